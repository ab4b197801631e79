"""What the experiments on traversals and trains share: one application tree, fed with groups of tuples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headway.engines.runs import RunResult
from headway.runner import run
from headway_experiments.trees import SCHEMA, together, tree

CALL = 0.0002
"""Seconds that a box call takes beside its tuples, in all simulated runs. The paper's tuples cost 0.1 to 1 ms; a call
that takes twice as long as the cheapest of them can be seen, and does not drown the others."""
OUTPUT = "qo"
ROOT = "qb0x0"
"""How `tree` calls the output, and the box before it."""


def groups(size: int, every: float, count: int, offset: float = 0.0) -> dict[str, Any]:
    """Return a source of `count` groups: `size` tuples at one moment, one group every so many seconds from `offset` on.

    The generator's bursts all begin at 0, so this is written as phases: a nanosecond that brings a group, and silence.
    """
    phases = [[offset, 0.0]] if offset > 0 else []
    for _ in range(count):
        phases += [[1e-9, size * 1e9], [every - 1e-9, 0.0]]
    return {"schema": SCHEMA, "source": {"generate": {"phases": phases, "fields": {"a": 1}}}}


def run_tree(
    depth: int,
    fan_out: int,
    box: Callable[[int, int], Mapping[str, Any]],
    leaf: Callable[[int], Mapping[str, Any]],
    engine: str,
    policy: str,
    **settings: Any,
) -> RunResult:
    """Run one application tree (see `tree`) whose results go nowhere; `settings` are those of `headway.run`."""
    network = together("application", [tree(depth, fan_out, box, leaf)])
    return run(network, engine=engine, policy=policy, outputs={OUTPUT: None}, **settings)


def latency_of(result: RunResult) -> float:
    """Return the mean latency of the results, in seconds."""
    return float(result.summary["outputs"][OUTPUT]["latency"]["mean"])
