"""Several workers: results must not depend on who was faster. Threads are made to switch as often as they can."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

import headway as hw


@pytest.fixture
def busy_switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def _diamonds() -> dict[str, Any]:
    """Unions over branches of unlike length that share arcs, so that queues are released while others look at them."""
    boxes: dict[str, Any] = {}
    for side, source in (("a", "s"), ("b", "r")):
        boxes[f"{side}1"] = {"op": "filter", "in": source, "where": "v % 3 <> 0"}
        boxes[f"{side}2"] = {"op": "map", "in": f"{side}1", "select": "v + 1000 as v"}
        boxes[f"{side}3"] = {"op": "filter", "in": source, "where": "v % 2 = 0"}
    boxes["first"] = {"op": "union", "in": ["a1", "b2", "a3"]}
    boxes["second"] = {"op": "union", "in": ["first", "a2", "b3", "b1"]}
    sources = {name: {"schema": {"v": "int"}} for name in ("s", "r")}
    outputs = {"out": {"from": "second"}, "half": {"from": "first"}}
    return {"network": "diamonds", "sources": sources, "boxes": boxes, "outputs": outputs}


@pytest.mark.usefixtures("busy_switching")
def test_unions_keep_their_order_whoever_is_faster() -> None:
    net = hw.load(_diamonds())
    inputs = {"s": [(at,) for at in range(60)], "r": [(at,) for at in range(40)]}
    expected = hw.run(net, inputs, engine="local").outputs
    for _ in range(25):
        result = hw.run(net, inputs, policy="round-robin/box", train=1, workers=4, engine="local").outputs
        assert all(result[name].equals(expected[name]) for name in expected)
