"""How far experiments are: what is shown, when, and how long the rest may take."""

from __future__ import annotations

import io

import pytest

from headway.clock import ManualClock
from headway_experiments.progress import Progress, span_text
from tests.cli.test_status import Terminal

SECOND = 1_000_000_000


def _progress(stream: io.StringIO, experiments: int = 2) -> tuple[Progress, ManualClock]:
    clock = ManualClock()
    return Progress(stream, experiments, clock.now), clock


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1:00"), (245, "4:05"), (3845, "1:04:05")]
)
def test_spans(seconds: float, text: str) -> None:
    assert span_text(seconds) == text


def test_the_time_left_is_by_engine() -> None:
    progress, clock = _progress(io.StringIO())
    progress.count("a", "sim", 0, 4)
    progress.count("b", "local", 0, 3)
    assert progress.left() is None
    assert progress.text() == "0/2 experiments  0 s"
    clock.advance(2 * SECOND)
    progress.count("a", "sim", 1, 4)
    assert progress.left() == 3 * 2.0 + 3 * 2.0  # nothing is known of the other yet
    clock.advance(6 * SECOND)
    progress.count("a", "sim", 4, 4)
    progress.end("a")
    clock.advance(10 * SECOND)
    progress.count("b", "local", 1, 3)
    assert progress.left() == 2 * 10.0
    assert progress.text() == "b: 1/3 runs  1/2 experiments  18 s  about 20 s left"
    progress.end("b", "an error")  # what it has not run will not be run
    assert progress.left() == 0.0


def test_without_a_terminal_a_line_every_ten_seconds() -> None:
    stream = io.StringIO()
    progress, clock = _progress(stream)
    for done in range(25):
        progress.count("a", "sim", done, 24)
        progress.show()
        clock.advance(SECOND)
    progress.end("a", "confirmed, 24.0 s")
    progress.clear()
    assert stream.getvalue().splitlines() == [
        "headway: a: 10/24 runs  0/2 experiments  10 s  about 14 s left",
        "headway: a: 20/24 runs  0/2 experiments  20 s  about 4 s left",
        "headway: a: confirmed, 24.0 s",
    ]


def test_on_a_terminal_one_line_that_changes() -> None:
    stream = Terminal()
    progress, clock = _progress(stream)
    progress.count("a", "sim", 0, 2)
    progress.show()
    progress.show()  # too soon
    clock.advance(SECOND)
    progress.count("a", "sim", 1, 2)
    progress.say("look")
    progress.end("a")
    shown = stream.getvalue()
    assert [text.strip() for text in shown.split("\r") if text.strip()] == [
        "0/2 experiments  0 s",
        "a: 1/2 runs  0/2 experiments  1 s  about 1 s left",
        "headway: look",
    ]
    assert "\rheadway: look\n" in shown


def test_a_stream_that_breaks_does_not_stop_the_work() -> None:
    stream = Terminal()
    progress, _ = _progress(stream)
    stream.close()
    progress.count("a", "sim", 1, 2)
    progress.end("a", "done")
    progress.clear()
