"""Networks of universal boxes for the simulator, and sources whose arrivals are worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import headway as hw
from headway.network import Network


def box(reads: str | Sequence[str], cost: Any = 0, **more: Any) -> dict[str, Any]:
    """Return a universal box."""
    return {"op": "universal", "in": reads if isinstance(reads, str) else list(reads), "cost": cost, **more}


def arriving(count: int | None, **how: Any) -> dict[str, Any]:
    """Return a source that makes the tuples 0, 1, 2, ...; `how` says when they arrive, in turn if it is left out."""
    return {"generate": {"fields": {"a": {"sequence": [0, 1]}}, **({} if count is None else {"count": count}), **how}}


def at_once(count: int) -> dict[str, Any]:
    """Return a source whose tuples all arrive at moment 0."""
    return arriving(count, burst={"size": count, "every": "1h"})


def every(milliseconds: float, count: int) -> dict[str, Any]:
    """Return a source of tuples that arrive at moment 0 and then one each time."""
    return arriving(count, rate=1000 / milliseconds)


def replayed(folder: Path, moments: Sequence[float]) -> dict[str, Any]:
    """Return a recorded source: its tuples arrive at these milliseconds, counted from the first."""
    path = folder / "arrivals.jsonl"
    path.write_text("".join(json.dumps({"a": at, "t": moment / 1000}) + "\n" for at, moment in enumerate(moments)))
    return {"replay": {"file": str(path), "by": "t"}}


def network(
    boxes: Mapping[str, Any], outputs: Mapping[str, str], schema: Mapping[str, str] | None = None, **sources: Any
) -> dict[str, Any]:
    """Return a network over sources of tuples `a bigint`."""
    return {
        "network": "n",
        "sources": {name: {"schema": schema or {"a": "bigint"}, "source": one} for name, one in sources.items()},
        "boxes": dict(boxes),
        "outputs": {name: {"from": arc} for name, arc in outputs.items()},
    }


def simulate(
    made: Mapping[str, Any] | Network, policy: str | Mapping[str, Any] = "round-robin/box/1", **settings: Any
) -> hw.RunResult:
    """Run a network in virtual time, if nothing else is said by box, a tuple at a time."""
    return hw.run(made, engine="sim", policy=policy, **settings)


def steps(result: hw.RunResult) -> list[tuple[str, float, float]]:
    """Return the steps of a trace that worked on tuples: unit, begin and end in milliseconds."""
    trace = result.trace
    assert trace is not None
    worked = [one for one in trace.steps if one.preempted or any(call.tuples_in for call in one.calls)]
    return [(trace.units[one.unit], one.begin / 1e6, one.end / 1e6) for one in worked]
