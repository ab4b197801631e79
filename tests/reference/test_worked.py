"""The reference must say what the worked examples say."""

from __future__ import annotations

import pytest

from tests.reference import Aggregate, Arrival, Graph, Node, Order, Tick, in_turn, run_reference
from tests.reference.compare import assert_same
from tests.reference.windows import count, total
from tests.reference.worked import BSORT, QUERY_1, RESAMPLE, STOCKS_0, WORKED, Worked


@pytest.mark.parametrize("worked", WORKED, ids=lambda worked: worked.name)
def test_the_reference_reproduces(worked: Worked) -> None:
    actual = worked.twin.expected(worked.inputs)
    for name, rows in worked.expected.items():
        assert_same(actual[name], rows, name)


def test_bsort_holds_back_four_and_eight_until_the_end() -> None:
    so_far = BSORT.twin.so_far(in_turn(BSORT.inputs))
    assert [row["a"] for row in so_far["out"]] == [1, 1, 2, 3, 4, 3, 4, 4]


def test_query_1_answers_only_when_the_window_closes() -> None:
    arrivals = in_turn(QUERY_1.inputs)
    assert [row["time"] for row in QUERY_1.twin.so_far(arrivals[:8])["alarms"]] == []
    assert [row["time"] for row in QUERY_1.twin.so_far(arrivals[:9])["alarms"]] == [2]


def test_the_late_quote_is_counted_as_ignored() -> None:
    assert STOCKS_0.twin.ignored(STOCKS_0.inputs) == {"hourly": 1}


def test_soldier_two_answers_first() -> None:
    so_far = RESAMPLE.twin.so_far(in_turn(RESAMPLE.inputs))
    assert [(row["sid"], row["time"]) for row in so_far["out"]] == [(2, 120), (2, 135), (1, 120)]


def test_a_window_that_times_out_ignores_later_tuples() -> None:
    box = Aggregate({"n": count(), "total": total("v")}, Order("a"), 10, timeout=5)
    graph = Graph([Node("box", box, ("s",))], {"out": "box"})
    arrivals: list[Arrival | Tick] = [
        Arrival("s", {"a": 1, "v": 1}, 100),
        Arrival("s", {"a": 2, "v": 2}, 102),
        Tick(104),
        Arrival("s", {"a": 3, "v": 3}, 104),
        Tick(105),
        Arrival("s", {"a": 4, "v": 4}, 106),
        Arrival("s", {"a": 11, "v": 5}, 107),
    ]
    assert run_reference(graph, arrivals)["out"] == [{"a": 0, "n": 3, "total": 6}, {"a": 10, "n": 1, "total": 5}]
    assert box.ignored == 1


def test_no_arrival_no_result() -> None:
    for worked in WORKED:
        nothing = worked.twin.expected({name: [] for name in worked.inputs})
        assert all(rows == [] for rows in nothing.values())
