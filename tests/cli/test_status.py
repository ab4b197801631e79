"""The status line: on a terminal, elsewhere, and not at all."""

from __future__ import annotations

import io
import logging
import os
import pty
import select
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

from headway.cli.status import StatusLine, notices, status_text
from headway.engines.runs import Status
from tests.cli.helpers import ENDLESS, LOCAL, command, environment

STATUS = Status(seconds=1.5, tuples_in=30_000, tuples_out=200, queued=12, queued_bytes=960, dead_letters=0, held=False)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_text() -> None:
    assert status_text(STATUS, 20_000.4) == "1.5 s  in 30,000 (20,000/s)  out 200  queued 12"
    full = status_text(replace(STATUS, dead_letters=3, held=True, paused=True), 1)
    assert "dead letters 3" in full
    assert "sources wait" in full
    assert full.endswith("paused")


def test_a_line_replaces_the_one_before() -> None:
    stream = Terminal()
    line = StatusLine(stream)
    line.show(replace(STATUS, dead_letters=1000))
    line.show(replace(STATUS, seconds=2.0))
    line.clear()
    line.clear()
    first, second, blank, rest = stream.getvalue().split("\r")[1:]
    assert len(second) == len(first)  # what was longer is covered
    assert "(0/s)" in second  # the rate since the status before
    assert not blank.strip()
    assert len(blank) >= len(second.rstrip())
    assert rest == ""


def test_the_first_rate_of_a_run_that_goes_on() -> None:
    stream = Terminal()
    StatusLine(stream).show(replace(STATUS, tuples_before=27_000))
    assert "in 30,000 (2,000/s)" in stream.getvalue()


def test_without_a_terminal_a_line_every_ten_seconds() -> None:
    stream = io.StringIO()
    line = StatusLine(stream)
    for second in range(35):
        line.show(replace(STATUS, seconds=float(second), tuples_in=second * 100))
    line.clear()
    written = stream.getvalue().splitlines()
    assert [text.split()[1] for text in written] == ["10.0", "20.0", "30.0"]
    assert all(text.startswith("headway: ") and "(100/s)" in text for text in written)


def test_what_is_said_before_the_first_status() -> None:
    terminal, plain = Terminal(), io.StringIO()
    for stream in (terminal, plain):
        line = StatusLine(stream)
        line.say("starting Spark…")
        line.show(STATUS)
        line.clear()
    said, shown, blank, _ = terminal.getvalue().split("\r")[1:]
    assert said == "starting Spark…"
    assert shown.startswith("1.5 s")
    assert not blank.strip()
    assert plain.getvalue() == "headway: starting Spark…\n"


def test_what_a_start_does_is_shown_for_how_long() -> None:
    stream = Terminal()
    line = StatusLine(stream)
    line.begin("starting Spark")
    line.show(replace(STATUS, starting="query 3 of 7"))
    for _ in range(100):
        if "query 3 of 7" in stream.getvalue():
            break
        threading.Event().wait(0.05)
    line.show(STATUS)
    written = stream.getvalue()
    assert "\rstarting Spark…" in written
    assert "\rstarting Spark: query 3 of 7  1 s" in written
    threading.Event().wait(1.2)
    assert stream.getvalue() == written, "it is over when the run goes"
    assert written.rstrip().endswith("queued 12")


def test_what_a_start_does_without_a_terminal() -> None:
    stream = io.StringIO()
    line = StatusLine(stream)
    line.begin("starting Spark")
    for second in range(25):
        line.show(replace(STATUS, seconds=float(second), starting=f"query {second // 5 + 1} of 5"))
    assert stream.getvalue().splitlines() == [
        "headway: starting Spark…",
        "headway: 10.0 s  starting Spark: query 3 of 5",
        "headway: 20.0 s  starting Spark: query 5 of 5",
    ]


def test_a_stream_that_breaks_does_not_stop_the_run() -> None:
    stream = Terminal()
    line = StatusLine(stream)
    stream.close()
    line.show(STATUS)
    line.show(STATUS)
    line.clear()


def _on_a_terminal(folder: Path, *argv: str) -> tuple[int, str]:
    """Run with standard error on a pseudo-terminal; return the exit code and what was written there."""
    ours, theirs = pty.openpty()
    written = b""
    with subprocess.Popen(
        command(*argv), cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=theirs
    ) as process:
        os.close(theirs)
        try:
            while select.select([ours], [], [], 30)[0]:
                data = os.read(ours, 4096)
                if not data:
                    break
                written += data
        except OSError:
            pass  # Linux says so when the other end is closed
        finally:
            os.close(ours)
        try:
            return process.wait(30), written.decode()
        finally:
            process.kill()


def test_on_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "n.yaml").write_text(ENDLESS.replace("seed: 3", "seed: 3, count: 20000"))
    code, written = _on_a_terminal(tmp_path, "run", "n.yaml", *LOCAL)
    assert code == 0
    assert "\n" not in written
    shown = [text for text in written.split("\r") if text.strip()]
    assert len(shown) >= 2
    assert all(" s  in " in text and "/s)" in text for text in shown)
    assert written.endswith("\r")  # cleared
    assert not written.split("\r")[-2].strip()


def test_quiet_on_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "n.yaml").write_text(ENDLESS.replace("seed: 3", "seed: 3, count: 10000"))
    assert _on_a_terminal(tmp_path, "run", "n.yaml", *LOCAL, "--quiet") == (0, "")


def test_what_a_run_warns_of_is_a_line_of_its_own() -> None:
    stream = Terminal()
    status = StatusLine(stream)
    status.say("in 10")
    with notices(stream, status):
        logging.getLogger("headway").warning("look at %s", "this")
    logging.getLogger("headway").info("nothing")
    assert stream.getvalue() == "\rin 10\r     \rheadway: look at this\n"
