"""No file is written twice, or over what is read: refused before anything is opened, from Python as on the shell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import headway as hw
from headway.engines.opening import file_of, is_standard
from headway.errors import InputError, OutputError

NETWORK = """
network: n
sources:
  s: {{schema: {{v: int}}}}
boxes:
  f: {{op: filter, in: s, where: 'v > 1'}}
outputs:
  o: {{from: f{0}}}
  p: {{from: f.else{1}}}
"""
PLAIN = NETWORK.format("", "")
ROWS = [(1,), (2,), (3,)]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("sub")
    return tmp_path


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("y.csv", "y.csv"),
        ("y.csv", "./y.csv"),
        ("y.csv", Path("sub/../y.csv")),
        ("sub/y.csv", "link/y.csv"),
        ("y.csv", {"csv": "y.csv"}),
        ({"parquet": "sub/"}, {"parquet": "./sub"}),
    ],
)
@pytest.mark.parametrize("engine", ["local", "sim"])
def test_two_outputs_on_one_path(here: Path, one: object, other: object, engine: str) -> None:
    with pytest.raises(OutputError, match=r"output 'p' would write to '.*', which output 'o' writes; give it another"):
        hw.run(hw.load(PLAIN), {"s": ROWS}, outputs={"o": one, "p": other}, engine=engine)
    assert sorted(path.name for path in here.rglob("*")) == ["link", "sub"]


def test_two_sinks_of_a_file_on_one_path() -> None:
    with pytest.raises(OutputError, match="output 'p' would write"):
        hw.run(hw.load(NETWORK.format(", sink: z.csv", ", sink: ./z.csv")), {"s": ROWS}, engine="local")


def test_a_sink_of_the_file_and_an_output_of_the_run() -> None:
    network = hw.load(NETWORK.format(", sink: z.csv", ""))
    with pytest.raises(OutputError, match="output 'p' would write"):
        hw.run(network, {"s": ROWS}, outputs={"p": "z.csv"}, engine="local")
    result = hw.run(network, {"s": ROWS}, outputs={"o": "a.csv", "p": "z.csv"}, engine="local")
    assert result.summary["tuples_out"] == 3


def test_dead_letters_on_the_path_of_an_output() -> None:
    with pytest.raises(OutputError, match=r"dead letters would write to 'w\.jsonl', which output 'o' writes"):
        hw.run(hw.load(PLAIN), {"s": ROWS}, outputs={"o": "w.jsonl"}, dead_letters="./w.jsonl", engine="local")


def test_an_output_over_an_input(here: Path) -> None:
    (here / "in.csv").write_text("v\n1\n")
    with pytest.raises(OutputError, match=r"output 'o' would write to 'in\.csv', which source 's' reads"):
        hw.run(hw.load(PLAIN), {"s": here / "in.csv"}, outputs={"o": "in.csv"}, engine="local")
    assert (here / "in.csv").read_text() == "v\n1\n"


def test_one_standard_input_for_two_sources() -> None:
    schema = {"schema": {"v": "int"}}
    network = {"network": "n", "sources": {"s": schema, "t": schema}, "outputs": {"o": {"from": "s"}}}
    with pytest.raises(InputError, match="only one source can read standard input, not 's' and 't'"):
        hw.run(network, {"s": "-", "t": "-"}, engine="local")


@pytest.mark.parametrize("what", [pa.table({"v": [1]}), np.array(["-"]), {"v": np.array([1, 2])}, [(1,)], None, print])
def test_what_is_no_path(what: object) -> None:
    assert file_of(what) is None
    assert not is_standard(what)


def test_several_outputs_may_share_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    hw.run(hw.load(PLAIN), {"s": ROWS}, outputs={"o": "-", "p": {"jsonl": "-"}}, engine="local")
    assert len(capfdbinary.readouterr().out.splitlines()) == 3
