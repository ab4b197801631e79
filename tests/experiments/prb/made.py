"""Rows as if they had been measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headway_experiments.checks import Check
from headway_experiments.rows import Row, Rows, Value


def runs(x: str, levels: Sequence[float], responses: Mapping[str, Sequence[float]], **more: Value) -> list[Row]:
    """Return the runs of two seeds: by policy a response time at each level; the second seed's are 10 % longer."""
    return [
        {x: level, "policy": policy, "seed": seed, "response": response * (0.9 + seed / 10), **more}
        for policy, given in responses.items()
        for level, response in zip(levels, given, strict=True)
        for seed in (1, 2)
    ]


def swapped(rows: Sequence[Row], one: str, other: str) -> Rows:
    """Return the same runs as if two policies had done each other's."""
    names = {one: other, other: one}
    return Rows({**row, "policy": names.get(str(row["policy"]), row["policy"])} for row in rows)


def held(checks: Sequence[Check]) -> set[str]:
    """Return the keys of the checks that hold."""
    return {check.key for check in checks if check.holds}
