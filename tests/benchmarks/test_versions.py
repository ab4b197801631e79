"""Comparing two revisions: what the parts write is understood, the better round counts, and slower is said."""

from __future__ import annotations

import pytest

from benchmarks.versions import HERE, PARTS, Measure, better, measure, table

QUICK = {
    "throughput": ("--tuples", "20000", "--repeats", "1"),
    "calls": ("--tuples", "200", "--repeats", "1"),
    "planning": ("--boxes", "200", "--rounds", "1", "--plans", "5", "--policy", "fifo"),
    "latency": ("--seconds", "2.2"),
    "consumers": ("--tuples", "300"),
}


def test_every_part_has_a_quick_form() -> None:
    assert QUICK.keys() == PARTS.keys()


@pytest.mark.parametrize("part", ["calls", "planning", "consumers"])
def test_what_a_part_writes_is_understood(part: str) -> None:
    found = measure(part, HERE, QUICK[part])
    assert found
    assert all(one.value > 0 for one in found.values())
    assert {one.less for one in found.values()} == {part == "planning"}


def test_a_part_without_results_is_named() -> None:
    with pytest.raises(RuntimeError, match=r"benchmarks.calls of .* wrote no results: .*--tuples"):
        measure("calls", HERE, ("--tuples", "many"))


def test_ratios_above_one_are_better() -> None:
    assert Measure(110.0).ratio(Measure(100.0)) == pytest.approx(1.1)
    assert Measure(50.0, less=True).ratio(Measure(100.0, less=True)) == 2
    assert better(Measure(1.0), None) == better(Measure(0.5), Measure(1.0)) == Measure(1.0)
    fast, slow = Measure(1.0, less=True), Measure(2.0, less=True)
    assert better(slow, fast) == better(fast, slow) == fast


def test_what_is_slower_is_counted() -> None:
    before = {"a": Measure(100.0), "b": Measure(100.0), "c": Measure(1.0)}
    after = {"a": Measure(96.0), "b": Measure(90.0), "d": Measure(1.0)}
    lines = table(before, after).splitlines()
    assert lines[2:4] == ["| a | 100 | 96 | 0.96 |", "| b | 100 | 90 | 0.90 |"]
    assert lines[4:6] == ["| c | only one of both measures it | | |", "| d | only one of both measures it | | |"]
    assert lines[-1] == "1 of 4 below 0.95"
