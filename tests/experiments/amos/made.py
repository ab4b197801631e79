"""Rows as runs would leave them, made by hand: by plan and policy the values, with two seeds that differ a little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headway_experiments.amos.plans import SINGLES
from headway_experiments.checks import Check
from headway_experiments.rows import Row, Rows

EVEN = {f"time of {single}": 0.25 for single in SINGLES}
PLAIN: dict[str, float] = {"queue": 10, "latency": 1, "late latency": 1, "throughput": 10, "calls": 100, **EVEN}
"""What a run has where a test says nothing."""

Values = Mapping[str, Mapping[str, Mapping[str, float]]]


def made(values: Values) -> Rows:
    """Return rows of whole runs and of three equal spans each; the second seed has all but shares a tenth larger."""
    rows: list[Row] = []
    for plan, policies in values.items():
        for policy, given in policies.items():
            for seed, factor in ((1, 1.0), (2, 1.1)):
                every = {**PLAIN, **given}
                scaled = {name: one if name.startswith("time of") else one * factor for name, one in every.items()}
                named: Row = {"plan": plan, "policy": policy, "seed": seed}
                rows.append({**named, "what": "run", "time": 15, **scaled})
                rows += [{**named, "what": "span", "time": end, **scaled} for end in (5, 10, 15)]
                rows += [{**named, "what": "second", "time": end, **scaled} for end in range(1, 16)]
    return Rows(rows)


def held(checks: Sequence[Check]) -> dict[str, bool]:
    """Return by key whether checks hold."""
    return {check.key: check.holds for check in checks}
