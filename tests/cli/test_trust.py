"""Hostile network files at the command line: what a stranger's file may not do, and what nobody's may."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headway as hw
from headway.cli.main import main
from headway.connectors import spark
from headway.connectors.memory import DiscardSink
from headway.connectors.registry import register_sink, register_source
from headway.errors import HeadwayError

SECRET = "hunter2-not-to-be-told"
GENERATE = {"generate": {"count": 3, "fields": {"a": "cast(i as int)"}}}


def network(source: object = None, sink: object = None, table: str | None = None, **more: object) -> dict[str, Any]:
    made: dict[str, Any] = {
        "network": "n",
        "sources": {"s": {"schema": {"a": "int"}, "source": GENERATE if source is None else source}},
        "boxes": {"m": {"op": "map", "in": "s", "select": "a"}},
        "outputs": {"o": {"from": "m", "sink": {"discard": None} if sink is None else sink}},
        **more,
    }
    if table is not None:
        join = {"op": "join", "in": ["s", {"table": table}], "on": "left.a = right.a", "select": "left.a as a"}
        made["boxes"]["m"] = join
    return made


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a file that is nobody's business, one that is, and a place for the network file."""
    for name in ("in", "net", "data"):
        (tmp_path / name).mkdir()
    for folder in ("in", "data"):
        text = SECRET if folder == "in" else "5"
        (tmp_path / folder / "x.csv").write_text(f"{SECRET if folder == 'in' else 'a'}\n{text}\n")
        (tmp_path / folder / "x.jsonl").write_text(f'{{"a": "{text}"}}\n' if folder == "in" else '{"a": 5}\n')
        (tmp_path / folder / "x.yaml").write_text(f"{SECRET}: 1\n" if folder == "in" else "default: 1ms\n")
        pq.write_table(pa.table({SECRET if folder == "in" else "a": [5]}), tmp_path / folder / "x.parquet")
    (tmp_path / "net" / "link.csv").symlink_to(tmp_path / "in" / "x.csv")
    (tmp_path / "net" / "linked").symlink_to(tmp_path / "in")
    return tmp_path


class Ran:
    """What a command said."""

    def __init__(self, home: Path, what: object, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = home / "net" / "net.json"
        self.path.write_text(json.dumps(what).replace("HOME", str(home)))
        self.capsys = capsys

    def __call__(self, command: str, *options: str) -> tuple[int, str]:
        engine = ("--engine", "local") if command == "run" and "--engine" not in options else ()
        code = main([command, str(self.path), *engine, *options])
        said = self.capsys.readouterr()
        return code, said.out + said.err


def refused(home: Path, what: object, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """Check and run; both must end in one line that tells no secret. Returns what the run said."""
    ran = Ran(home, what, capsys)
    for command in ("check", "run"):
        code, said = ran(command, *options)
        assert code == 2, (command, said)
        assert said.startswith("headway: error: "), said
        assert said.count("\n") == 1
        assert len(said) < 1500
        assert SECRET not in said
    return said


READS: list[object] = [
    "HOME/in/x.csv",
    "../in/x.csv",
    "link.csv",
    "linked/x.jsonl",
    {"csv": "../in/x.jsonl"},
    {"jsonl": "../data/../in/x.csv"},
    {"parquet": "../in/x.parquet"},
    {"replay": {"file": "../in/x.csv", "rate": 10}},
    {"csv": "/proc/self/environ"},
    {"csv": "/dev/stdin"},
    "-",
    {"jsonl": "-"},
    {"spark": {"format": "json", "path": "HOME/data", "available_now": True}},
]


@pytest.mark.parametrize("source", READS, ids=range(len(READS)))
def test_a_stranger_s_source_reads_nothing_else(home: Path, source: object, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(home, network(source), capsys, "--trust", "stranger", "--allow-path", str(home / "data"))
    assert "source 's'" in said
    assert "stranger" in said
    assert "--allow-" in said


WRITES: list[object] = [
    "HOME/in/x.csv",
    "../in/x.csv",
    "linked/x.jsonl",
    "linked/",
    {"csv": "../in/x.csv"},
    {"parquet": "HOME/in/"},
    {"directory": "../in"},
    {"directory": {"path": "../in", "format": "csv"}},
    "-",
    {"console": {}},
    {"spark": {"format": "parquet", "path": "HOME/data/out"}},
    {"spark": {"format": "parquet", "table": "people"}},
]


@pytest.mark.parametrize("sink", WRITES, ids=range(len(WRITES)))
def test_a_stranger_s_sink_writes_nothing_else(home: Path, sink: object, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file() and path.name != "net.json"}
    allowed = ("--allow-path", str(home / "data"), "--allow-path", f"{home / 'in'}:ro")
    said = refused(home, network(sink=sink), capsys, "--trust", "stranger", *allowed)
    assert "output 'o'" in said
    assert "--allow-" in said
    after = {path: path.read_bytes() for path in home.rglob("*") if path.is_file() and path.name != "net.json"}
    assert after == before


@pytest.mark.parametrize(
    "ref",
    [
        "HOME/in/x.csv",
        "../in/x.csv",
        "linked",
        "../in",
        "text.`/etc/passwd`",
        "csv.`HOME/in/x.csv`",
        "people",
        "shop.t",
    ],
)
def test_a_stranger_s_table_reads_nothing_else(home: Path, ref: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(home, network(table=ref), capsys, "--trust", "stranger", "--allow-path", str(home / "data"))
    assert "box 'm': in: table" in said
    assert "--allow-" in said


@pytest.mark.parametrize("model", ["../in/x.yaml", {"measured": "../in/x.yaml"}])
def test_a_stranger_s_model_reads_nothing_else(home: Path, model: object, capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(home, network(schedule={"engine": "sim", "model": model}), capsys)
    options = ("--trust", "stranger", "--allow-path", str(home / "data"))
    code, said = ran("run", *options, "--engine", "sim")
    assert code == 2
    assert "--allow-path DIR:ro adds one" in said
    assert SECRET not in said
    assert SECRET not in ran("check", *options)[1]


def test_what_is_allowed_works(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for source in ("../data/x.csv", {"jsonl": "HOME/data/x.jsonl"}, {"replay": {"file": "../data/x.csv", "rate": 99}}):
        what = network(source, {"csv": "../out/o.csv"}, table="../data/x.parquet")
        (home / "out").mkdir(exist_ok=True)
        ran = Ran(home, what, capsys)
        allowed = ("--trust", "stranger", "--allow-path", f"{home / 'data'}:ro", "--allow-path", str(home / "out"))
        assert ran("check", *allowed)[0] == 0
        assert ran("run", *allowed)[0] == 0
        assert (home / "out" / "o.csv").read_text() == "a\n5\n"
        (home / "out" / "o.csv").unlink()
        assert ran("run")[0] == 0, "one's own file may name anything"
        assert (home / "out" / "o.csv").read_text() == "a\n5\n"
        assert ran("compare", *allowed, "--seconds", "0.1", "--out", str(home / "c"))[0] == 0
        assert ran("compare", "--trust", "stranger", "--seconds", "0.1", "--out", str(home / "c"))[0] == 2


def test_what_the_operator_names_is_not_asked_about(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(home, network("../in/x.csv", "../in/x.csv", table="people"), capsys)
    given = ("--input", f"s={home}/data/x.csv", "--output", f"o={home}/o.csv", "--table", f"people={home}/data/x.csv")
    assert ran("run", "--trust", "stranger", *given)[0] == 0
    assert (home / "o.csv").read_text() == "a\n5\n"


def test_options_that_would_protect_nobody_are_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(home, network(), capsys)
    for option in ("--allow-path", "--allow-table", "--allow-host"):
        code, said = ran("run", option, "x")
        assert code == 2
        assert f"{option} applies to a stranger's file only: add --trust stranger" in said
    assert ran("check", "--allow-host", "x", "--allow-format", "x", "--allow-option", "y")[0] == 0
    assert ran("run", "--trust", "nobody")[0] == 2


REFLECT = "reflect('java.lang.System', 'load', '/x.so') as a"
CODE: list[dict[str, Any]] = [
    network({"spark": {"format": "rate", "select": [REFLECT]}}),
    network({"spark": {"format": "rate", "select": ["value", "upper(" + REFLECT[:-5] + ") as a"]}}),
    network({"spark": {"format": "org.evil.Source"}}),
    network({"spark": {"format": "kafka", "options": {"kafka.sasl.jaas.config": "evil required;"}}}),
    network({"spark": {"format": "json", "path": "in", "options": {"fs.file.impl": "org.evil.FileSystem"}}}),
    network({"spark": {"format": "json", "options": {"path": "/etc/passwd"}}}),
    network(sink={"spark": {"format": "org.evil.Sink"}}),
    network(sink={"spark": {"format": "jdbc", "options": {"driver": "org.evil.Driver", "url": "jdbc:evil:"}}}),
    network(sink={"spark": {"format": "jdbc", "options": {"sessionInitStatement": "call x()", "url": "jdbc:x:"}}}),
    network(sink={"spark": {"format": "parquet", "table": "t as select reflect('a', 'b')"}}),
    network(table="org.evil.Source.`/x`"),
    network(table="evil.`/x`"),
    network(table="a`b"),
]


@pytest.mark.parametrize("what", CODE, ids=range(len(CODE)))
@pytest.mark.parametrize("options", [(), ("--trust", "stranger")], ids=["own", "stranger"])
def test_nobody_s_file_runs_code(
    home: Path,
    what: object,
    options: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spark, "_openers", [lambda: pytest.fail("nobody needs Spark to refuse it")])
    refused(home, what, capsys, *options)


@pytest.fixture
def bucket() -> Iterator[tuple[int, list[object]]]:
    """A port that notes who comes, and hangs up."""
    met: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, address = server.accept()
                except OSError:
                    return
                met.append(address)
                connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1], met
        server.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def test_a_check_contacts_nobody(
    home: Path, bucket: tuple[int, list[object]], capsys: pytest.CaptureFixture[str]
) -> None:
    port, met = bucket
    uri = f"s3://me:key@bucket/t?endpoint_override=127.0.0.1:{port}&scheme=http&region=x&allow_bucket_creation=false"
    ran = Ran(home, network(table=uri), capsys)
    code, said = ran("check")
    assert code == 2
    assert "a check contacts nobody, and this is on 'bucket'; --allow-host bucket lets it" in said
    with pytest.raises(HeadwayError, match="contacts nobody"):
        hw.check(hw.load(ran.path))
    for options in ((), ("--allow-host", "127.0.0.1"), ("--allow-host", "bucket")):
        assert ran("run", "--trust", "stranger", *options)[0] == 2
    assert met == []
    schema = pa.table({"a": [5]})
    hw.check(hw.load(ran.path), tables={uri: schema})
    assert met == []


def test_a_connector_of_one_s_own_is_closed_to_strangers(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened: list[object] = []

    def sink(request: Any) -> DiscardSink:
        opened.append(request.settings)
        return DiscardSink()

    register_sink("mine", sink)
    ran = Ran(home, network(sink={"mine": "anything"}), capsys)
    code, said = ran("run", "--trust", "stranger")
    assert code == 2
    assert "may not use the connector 'mine'; allowed: (none); --allow-format mine lets it" in said
    assert not opened
    assert ran("run", "--trust", "stranger", "--allow-format", "mine")[0] == 0
    assert ran("run")[0] == 0
    assert opened == ["anything"] * 2
    register_source("mine", lambda request: pytest.fail("opened"))
    assert Ran(home, network({"mine": 1}), capsys)("run", "--trust", "stranger")[0] == 2


def test_from_python(home: Path) -> None:
    text = json.dumps(network(f"{home}/data/x.csv", f"{home}/data/o.csv"))
    for trust in ("stranger", hw.Trust(), {"paths": [str(home / "in")]}, hw.Trust(read_only=(str(home / "data"),))):
        loaded = hw.load(text, trust=trust)
        with pytest.raises(HeadwayError, match="a file from a stranger may not"):
            hw.run(loaded, engine="local")
        with pytest.raises(HeadwayError, match="a file from a stranger may not"):
            hw.run(text, engine="local", trust=trust)
    hw.run(hw.load(text, trust="stranger"), engine="local", trust=hw.Trust(paths=(str(home / "data"),)))
    hw.run(text, engine="local")
    assert hw.load(text) == hw.load(text, trust="stranger"), "who wrote it does not change what it is"


def test_the_first_line_of_a_file_is_told_in_part_only(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "data" / "long.csv").write_text(",".join(f"{'y' * 200}{at}" for at in range(500)) + "\n")
    code, said = Ran(home, network("../data/long.csv"), capsys)("run")
    assert code == 2
    assert "has no column 'a'" in said
    assert "and 480 more" in said
    assert len(said) < 1500
    (home / "data" / "wide.csv").write_text("a,b\n" + "z" * 5000 + "\n")
    code, said = Ran(home, network(table="../data/wide.csv"), capsys)("run")
    assert code == 2
    assert len(said) < 600
