"""Outputs are opened together, completed together, and given up together."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headway as hw
from headway.checking import check
from headway.clock import ManualClock
from headway.engines.opening import Outlet, Outlets
from headway.engines.runs import RunSettings
from headway.engines.signals import Stopping
from headway.errors import HeadwayError
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
