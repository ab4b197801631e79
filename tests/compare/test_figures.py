"""Figures, the advice and its reasons, and lists of policies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headway.compare.figures import Figures, advise, figures, margin, overhead, parse_policies
from headway.errors import PolicyError
from headway.scheduling.schedule import HANDFUL

ALIKE = "the results of all 2 are worth 0.5, within 1%; mean latencies are alike"
LOWEST = "it has the lowest mean latency"
PLAIN = Figures("a", 0.5, 0.2, "o", 0.1, 0.5, 1000.0, 2000.0, 100.0, 0.1, 10)


def some(*changes: dict[str, Any]) -> list[Figures]:
    return [replace(PLAIN, policy=name, **change) for name, change in zip("abcdef", changes, strict=False)]


@pytest.mark.parametrize(
    ("changes", "policy", "reason"),
    [
        (({"utility": 0.5}, {"utility": 0.9}), "b", "its results are worth most, 0.9; those of the next best 0.5"),
        # A worse latency does not matter then.
        (
            ({"utility": 0.9, "latency": 9.0}, {"utility": 0.8}),
            "a",
            "its results are worth most, 0.9; those of the next best 0.8",
        ),
        (({}, {"latency": 0.05}), "b", "the results of all 2 are worth 0.5, within 1%; it has the lowest mean latency"),
        (
            ({"utility": 0.9}, {"utility": 0.895, "latency": 0.09}, {"utility": 0.3, "latency": 0.01}),
            "b",
            "the results of 2 of 3 are worth 0.9, within 1%; it has the lowest mean latency",
        ),
        (
            ({"utility": None, "worst": None}, {"utility": None, "worst": None, "latency": 0.05}),
            "b",
            "no output says what its results are worth; it has the lowest mean latency",
        ),
        (
            ({}, {"latency": 0.1005, "queued": 10.0}),
            "b",
            f"{ALIKE}; it has the least in queues",
        ),
        (
            ({}, {"overhead": 0.01}),
            "b",
            f"{ALIKE}; queues are alike; it has the least overhead",
        ),
        (
            ({}, {}),
            "a",
            f"{ALIKE}; queues are alike; overheads are alike; it is named first",
        ),
        (
            ({"queued": None}, {"queued": None, "overhead": 0.2}),
            "a",
            f"{ALIKE}; queues are alike; it has the least overhead",
        ),
        # Who is alike in what is said: not all of those whose results are worth the same.
        (
            ({"latency": 2.0}, {"overhead": 0.3}, {"latency": 0.1005, "overhead": 0.2}),
            "c",
            "the results of all 3 are worth 0.5, within 1%; 2 of these have the lowest mean latency, within 1%; "
            "their queues are alike; it has the least overhead",
        ),
        (({},), "a", "it is the only one"),
        (({"results": 0, "utility": None}, {}), "b", "it is the only one with results"),
        (
            ({"utility": 0.0}, {"utility": 0.0, "latency": 0.05}),
            "b",
            f"the results of all 2 are worth 0, within 1%; {LOWEST}",
        ),
    ],
)
def test_the_advice(changes: tuple[dict[str, Any], ...], policy: str, reason: str) -> None:
    assert advise(some(*changes)) == (policy, reason)


def test_the_order_does_not_decide() -> None:
    compared = some({"utility": 0.2}, {"utility": 0.7}, {"utility": 0.695, "latency": 0.01})
    assert advise(compared).policy == advise(compared[::-1]).policy == "c"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (({"utility": 0.9}, {"utility": 0.6}), 1.5),
        (({"latency": 0.1}, {"latency": 0.3}, {"utility": 0.1, "latency": 0.05}), 3.0),
        (({"utility": None}, {"utility": None, "latency": 0.2}), 2.0),
        (({},), float("inf")),
        (({"utility": 0.9}, {"utility": 0.0}), float("inf")),
    ],
)
def test_by_how_much_the_best_is_better(changes: tuple[dict[str, Any], ...], expected: float) -> None:
    compared = some(*changes)
    assert margin(compared, advise(compared).policy) == pytest.approx(expected)


SUMMARY: dict[str, Any] = {
    "seconds": 10.0,
    "workers": 1,
    "tuples_out": 400,
    "time": {"scheduler": 0.5, "boxes": 5.0, "storage": 0.25, "sources": 0.25, "sinks": 1.0},
    "mean_queued_bytes": 123.0,
    "peak_queued_bytes": 456,
    "outputs": {
        "many": {"tuples": 300, "latency": {"mean": 0.1, "p99": 0.2}, "utility": 1.0, "worth": 1.0},
        "few": {"tuples": 100, "latency": {"mean": 0.5, "p99": 2.0}, "utility": 0.8, "worth": 0.4},
        "none": {"tuples": 0, "latency": {"mean": None, "p99": None}, "utility": None, "worth": None},
    },
}


def test_figures_of_a_summary() -> None:
    found = figures("qos", SUMMARY, graded=True)
    mean = pytest.approx(1.4 / 3)  # an output that delivers nothing counts as nothing
    assert found == Figures("qos", mean, 0.4, "few", pytest.approx(0.2), 2.0, 123.0, 456, 40.0, 0.1, 400)  # type: ignore[arg-type]
    row = found.row("predicted")
    assert (row["run"], row["policy"], row["worst_output"], row["queued_peak_bytes"]) == (
        "predicted",
        "qos",
        "few",
        456,
    )


def test_without_graphs_or_results() -> None:
    assert figures("qos", SUMMARY, graded=False).utility is None
    nothing = {**SUMMARY, "tuples_out": 0, "seconds": 0.0, "outputs": {"none": SUMMARY["outputs"]["none"]}}
    found = figures("qos", nothing, graded=True)
    assert (found.utility, found.latency, found.p99, found.throughput, found.overhead) == (None, None, None, 0, 0)
    assert found.row("predicted")["latency_mean_s"] == ""


@pytest.mark.parametrize(
    ("workers", "spent", "expected"),
    [
        (1, {"scheduler": 1.0, "boxes": 5.0}, 0.1),
        (4, {"scheduler": 1.0, "storage": 3.0, "boxes": 30.0}, 0.1),
        (2, {"scheduler": 9.0, "storage": 12.0, "boxes": 7.0}, 0.75),  # two workers, and the thread that plans
    ],
)
def test_the_overhead_is_a_share_of_the_processors_time(workers: int, spent: dict[str, float], expected: float) -> None:
    found = overhead({"seconds": 10.0, "workers": workers, "time": spent})
    assert found == pytest.approx(expected)
    assert found <= 1


def test_lists_of_policies() -> None:
    assert parse_policies("qos/superbox/mc/auto, chain/box", False) == ("qos/superbox/mc/auto", "chain/box")
    assert parse_policies("weighted-round-robin:a=3,b=0.5/box,fifo", False) == (
        "weighted-round-robin:a=3,b=0.5/box",
        "fifo",
    )
    assert parse_policies("threads,fifo", True) == ("threads", "fifo")
    assert parse_policies(",".join(HANDFUL), False) == HANDFUL


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("qos,nonsense/box", "unknown policy 'nonsense'.*choices: bucketed, chain, .*round-robin"),
        ("qos/bax", r"policy 'qos/bax': 'bax' is not a unit \(box, superbox"),
        ("", "an empty one; expected a list such as"),
        ("qos,,fifo", "an empty one"),
        ("qos,fifo,qos", "'qos' is named twice"),
        ("threads,fifo", "'threads' .*--engine local"),
    ],
)
def test_lists_that_are_wrong(text: str, expected: str) -> None:
    with pytest.raises(PolicyError, match=expected):
        parse_policies(text, False)
