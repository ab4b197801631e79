"""Resample: windows of one stream around the tuples of another, per partition."""

from __future__ import annotations

from hypothesis import given

from tests.behaviour.running import check
from tests.reference.kinds import BIGINT
from tests.reference.order import Order
from tests.reference.tuples import Row
from tests.reference.twins import Twin, resamples, results
from tests.streams import Case, Running, resample_boxes, runnings, schema, streams, two_streams


@given(case=two_streams(resample_boxes), how=runnings(), other=runnings())
def test_resample(engine: str, case: Case, how: Running, other: Running) -> None:
    check(engine, case, how, other)


@given(rows=streams(most=40), how=runnings())
def test_a_stream_at_its_own_tuples(engine: str, rows: list[Row], how: Running) -> None:
    chosen = [results("id")["listed"], results("v")["mean"]]
    box = resamples("box", ("s", "s"), chosen, 2, (Order("a"), Order("a", 1, ("k",))))
    check(engine, Case(Twin({"s": schema(BIGINT)}, (box,), {"out": "box"}), {"s": rows}), how)


def test_a_partition_first_seen_later_does_not_answer(engine: str) -> None:
    box = resamples("box", ("s", "r"), [results("v")["n"]], 1, (Order("a"), Order("a", 0, ("k",))))
    twin = Twin({"s": {"a": "int"}, "r": {"a": "int", "k": "int", "v": "int"}}, (box,), {"out": "box"})
    inputs: dict[str, list[Row]] = {
        "s": [{"a": 5}],
        "r": [{"a": 5, "k": 1, "v": 0}, {"a": 7, "k": 1, "v": 0}, {"a": 5, "k": 2, "v": 0}],
    }
    assert twin.expected(inputs)["out"] == [{"k": 1, "a": 5, "n": 1}]
    check(engine, Case(twin, inputs), Running(train=1), Running())


def test_without_any_partition_nothing_is_answered(engine: str) -> None:
    box = resamples("box", ("s", "r"), [results("v")["n"]], 1, (Order("a"), Order("a")))
    twin = Twin({"s": schema(BIGINT), "r": schema(BIGINT)}, (box,), {"out": "box"})
    rows: list[Row] = [{"id": 0, "a": 1, "k": None, "g": None, "v": 1, "side": 0}]
    check(engine, Case(twin, {"s": rows, "r": []}), Running())
