"""Networks of universal boxes: query trees by depth and fan-out, with sources at the leaves; and running them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headway.runner import run

SCHEMA = {"a": "int"}


def source(rate: float, count: int, seed: int, **more: Any) -> dict[str, Any]:
    """Return a source of so many tuples that arrive by a Poisson process of this rate (tuples per second)."""
    made = {"arrivals": "poisson", "rate": rate, "count": count, "seed": seed, "fields": {"a": 1}, **more}
    return {"schema": SCHEMA, "source": {"generate": made}}


def tree(
    depth: int,
    fan_out: int,
    box: Callable[[int, int], Mapping[str, Any]],
    leaf: Callable[[int], Mapping[str, Any]],
    name: str = "q",
    latency: Sequence[Sequence[float]] | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return sources, boxes and outputs of one query tree; streams meet in any order, as in the papers' unions.

    Level 0 is the root, whose results are delivered; each box of a level above `depth - 1` has `fan_out` children, and
    each of the last level a source of its own. `box(level, place)` gives a box's settings (cost, selectivity),
    `leaf(place)` a source. Names begin with `name`, so that several trees make one network.
    """
    sources: dict[str, Any] = {}
    boxes: dict[str, Any] = {}
    for level in reversed(range(depth)):
        for place in range(fan_out**level):
            if level == depth - 1:
                sources[f"{name}s{place}"] = dict(leaf(place))
                feeding = [f"{name}s{place}"]
            else:
                feeding = [f"{name}b{level + 1}x{place * fan_out + child}" for child in range(fan_out)]
            boxes[f"{name}b{level}x{place}"] = {"op": "universal", "in": feeding, "ordered": False, **box(level, place)}
    output: dict[str, Any] = {"from": f"{name}b0x0"}
    if latency is not None:
        output["qos"] = {"latency": [list(point) for point in latency]}
    return sources, boxes, {f"{name}o": output}


def together(name: str, parts: Sequence[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]) -> dict[str, Any]:
    """Return one network of several trees."""
    sources, boxes, outputs = ({key: one for part in parts for key, one in part[at].items()} for at in range(3))
    return {"network": name, "sources": sources, "boxes": boxes, "outputs": outputs}


def run_for_summary(network: Mapping[str, Any], engine: str, policy: str, **settings: Any) -> dict[str, Any]:
    """Run a network whose results go nowhere, and return the summary; `settings` are those of `headway.run`."""
    nowhere = dict.fromkeys(network["outputs"])
    return dict(run(network, engine=engine, policy=policy, outputs=nowhere, **settings).summary)
