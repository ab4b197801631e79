"""Run a network in virtual time, or for real, and take what experiments need from the summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.runner import run


def run_for_summary(network: Mapping[str, Any], engine: str, policy: str, **settings: Any) -> dict[str, Any]:
    """Run a network whose results go nowhere, and return the summary; `settings` are those of `headway.run`."""
    nowhere = dict.fromkeys(network["outputs"])
    return dict(run(network, engine=engine, policy=policy, outputs=nowhere, **settings).summary)


def mean_over_outputs(summary: Mapping[str, Any], key: str) -> float:
    """Return a figure as the mean over all delivered tuples: `utility`, or one of `latency` (mean, p50, p99)."""
    outputs = [one for one in summary["outputs"].values() if one["tuples"]]
    values = [one["tuples"] * (one["utility"] if key == "utility" else one["latency"][key]) for one in outputs]
    return float(sum(values) / sum(one["tuples"] for one in outputs))
