"""Outputs are opened together, completed together, and given up together."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headway as hw
from headway.checking import check
from headway.clock import SECOND, ManualClock
from headway.engines.opening import Outlet, Outlets
from headway.engines.runs import RunSettings
from headway.engines.signals import Stopping
from headway.errors import HeadwayError
from headway.network.keep import Keep, Roll
from headway.scheduling.schedule import Schedule
from headway.trains import Train
from tests.engines.local.networks import POSITIVE, network

MADE = network({"b": POSITIVE}, {"o": "b", "p": "s"})


def _open(stack: contextlib.ExitStack, made: dict[str, Any] = MADE, **settings: Any) -> Outlets[Outlet]:
    given = RunSettings(Schedule(), {}, **{"outputs": {}, **settings})
    return Outlets(check(hw.load(made)), given, stack, Stopping(), lambda to: Outlet(to, ManualClock()))


def _train(count: int) -> Train:
    values = list(range(count))
    return Train.from_batch(pa.record_batch({"a": pa.array(values, pa.int64()), "v": pa.array(values, pa.int32())}))


def test_what_has_no_sink_becomes_a_table() -> None:
    with contextlib.ExitStack() as stack:
        outlets = _open(stack)
        outlets.deliveries["o"].deliver(_train(3))
        outlets.deliveries["p"].deliver(_train(2))
        tables = outlets.complete()
    assert {name: table["a"].to_pylist() for name, table in tables.items()} == {"o": [0, 1, 2], "p": [0, 1]}


def test_the_runs_sink_counts_before_the_files(tmp_path: Path) -> None:
    made = {**MADE, "outputs": {"o": {"from": "b", "sink": str(tmp_path / "file.jsonl")}, "p": {"from": "s"}}}
    with contextlib.ExitStack() as stack:
        outlets = _open(stack, made, outputs={"o": tmp_path / "run.jsonl"})
        outlets.deliveries["o"].deliver(_train(1))
        assert set(outlets.complete()) == {"p"}
    assert [path.name for path in tmp_path.iterdir()] == ["run.jsonl"]


def test_given_up_there_are_no_half_files(tmp_path: Path) -> None:
    outputs = {"o": tmp_path / "o.jsonl", "p": tmp_path / "p.csv"}
    with contextlib.ExitStack() as stack:
        outlets = _open(stack, outputs=outputs, dead_letters=tmp_path / "dead.jsonl")
        for delivery in outlets.deliveries.values():
            delivery.deliver(_train(10))
    assert list(tmp_path.iterdir()) == []


def test_files_roll_over_while_nothing_is_delivered(tmp_path: Path) -> None:
    loaded, clock = hw.load(MADE), ManualClock()
    o, p = loaded.outputs
    rolled = replace(loaded, outputs=(replace(o, roll=Roll.parse("10s")), replace(p, keep=Keep.parse("10s"))))
    given = RunSettings(Schedule(), {}, outputs={"o": tmp_path / "o.csv"}, dead_letters=tmp_path / "dead.csv")
    with contextlib.ExitStack() as stack:
        outlets = Outlets(
            *(check(rolled), given, stack, Stopping(), lambda to: Outlet(to, clock), clock),
            letters_keep=Keep(tuples=1),
            letters_roll=Roll.parse("10s"),
        )
        assert outlets.ageing
        for delivery in outlets.deliveries.values():
            delivery.deliver(_train(3))
        outlets.letters.add([("b", "bad", "{}", "")] * 2)
        outlets.look()
        assert _parts(tmp_path) == []
        assert outlets.outlets["p"].table is not None
        assert outlets.outlets["p"].table.num_rows == 3
        assert outlets.letters.table().num_rows == 1
        clock.advance(11 * SECOND)
        outlets.look()
        assert _parts(tmp_path) == ["dead-000001.csv", "o-000001.csv"]
        assert outlets.outlets["p"].table.num_rows == 0
        outlets.letters.add([("b", "bad", "{}", "")])
    assert _parts(tmp_path) == ["dead-000001.csv", "o-000001.csv"]  # the rest was given up
    assert list(tmp_path.glob(".*")) == []


def _parts(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


@pytest.mark.parametrize("what", [None, print, "-", "o.csv"])
def test_where_the_run_says_that_it_goes_need_not_roll(tmp_path: Path, what: object) -> None:
    """What the file keeps and how it rolls may be about a sink of another kind."""
    loaded = hw.load(MADE)
    kept = replace(loaded.outputs[0], keep=Keep(tuples=1), roll=None if what == "o.csv" else Roll.parse("1h"))
    what = tmp_path / "o.csv" if what == "o.csv" else what
    with contextlib.ExitStack() as stack:
        given = RunSettings(Schedule(), {}, outputs={"o": what})
        made = check(replace(loaded, outputs=(kept, loaded.outputs[1])))
        Outlets(made, given, stack, Stopping(), lambda to: Outlet(to, ManualClock()))
    own = replace(kept, roll=None, sink=str(tmp_path / "o.csv"))
    made = check(replace(loaded, outputs=(own, loaded.outputs[1])))
    with contextlib.ExitStack() as stack, pytest.raises(HeadwayError, match="output 'o': keep: nothing is deleted"):
        Outlets(made, RunSettings(Schedule(), {}, {}), stack, Stopping(), lambda to: Outlet(to, ManualClock()))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_rolls_over_while_it_waits(tmp_path: Path, workers: int) -> None:
    """By its clock, although nothing more is delivered before the source ends."""
    seen: list[list[str]] = []

    def rows() -> Iterator[dict[str, int]]:
        yield {"a": 1, "v": 1}
        until = time.monotonic() + 10
        while time.monotonic() < until and not _parts(tmp_path):
            time.sleep(0.01)
        seen.append(_parts(tmp_path))
        yield {"a": 2, "v": 1}

    loaded = hw.load({**MADE, "outputs": {"o": {"from": "b", "sink": str(tmp_path / "o.csv")}}})
    made = replace(loaded, outputs=(replace(loaded.outputs[0], roll=Roll.parse("50ms")),))
    hw.run(made, {"s": rows()}, engine="local", workers=workers)
    assert seen == [["o-000001.csv"]]
    assert _parts(tmp_path) == ["o-000001.csv", "o-000002.csv"]


def test_completed_they_stay(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        outlets = _open(stack, outputs={"o": tmp_path / "o.jsonl"}, dead_letters=tmp_path / "dead.jsonl")
        outlets.complete()
    assert {path.name for path in tmp_path.iterdir()} == {"o.jsonl", "dead.jsonl"}


def test_one_that_cannot_be_opened_gives_up_those_before_it(tmp_path: Path) -> None:
    outputs = {"o": tmp_path / "o.jsonl", "p": tmp_path / "p.unheard-of"}
    with pytest.raises(HeadwayError, match="output 'p'"), contextlib.ExitStack() as stack:
        _open(stack, outputs=outputs)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_one_that_cannot_be_completed_keeps_the_others_from_appearing(tmp_path: Path, suffix: str) -> None:
    outputs = {"o": tmp_path / f"o.{suffix}", "p": tmp_path / f"p.{suffix}"}
    with contextlib.ExitStack() as stack:
        outlets = _open(stack, outputs=outputs)
        for delivery in outlets.deliveries.values():
            delivery.deliver(_train(10))
        outputs["p"].mkdir()
        with pytest.raises(HeadwayError, match="output 'p'"):
            outlets.complete()
    assert list(tmp_path.iterdir()) == [outputs["p"]]
