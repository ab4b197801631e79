"""Courses made by hand for the tests of checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway_experiments.checks import Check
from headway_experiments.rows import Row


def course(
    every: float,
    latencies: Sequence[float],
    memories: Sequence[float] = (),
    using: Sequence[str] = (),
    dry: int = 0,
    **columns: Any,
) -> list[Row]:
    """Return the rows of a run; the first `dry` of them have no results, and strategies default to the run's own."""
    return [
        {
            **columns,
            "moment": every * (at + 1),
            "latency": slow,
            "memory": memories[at] if memories else 10.0,
            "results": 0 if at < dry else 100,
            "using": using[at] if using else columns["strategy"],
        }
        for at, slow in enumerate(latencies)
    ]


def failing(checks: Sequence[Check]) -> set[str]:
    """Return the keys of those that do not hold."""
    return {check.key for check in checks if not check.holds}
