"""Thousands of boxes: the time of a step must not grow with the network."""

from __future__ import annotations

from typing import Any

import pytest

import headway as hw
from headway.network import Network
from tests.engines.sim.networks import arriving, box, every, network, simulate

DEEP, TWIGS, UNIONS = 500, 100, 500


def _network(wide: int) -> Network:
    """A long chain that works, and many branches, some with two inputs, that only wait."""
    boxes: dict[str, Any] = {f"c{at}": box(f"c{at - 1}" if at else "s", "10us") for at in range(DEEP)}
    outputs = {"o": f"c{DEEP - 1}"}
    for branch in range(wide):
        boxes[f"b{branch}"] = box("r", "10us")
        for twig in range(TWIGS):
            boxes[f"t{branch}x{twig}"] = box(f"b{branch}", "10us")
            outputs[f"o{branch}x{twig}"] = f"t{branch}x{twig}"
    for at in range(UNIONS):
        boxes[f"u{at}"] = box([f"t{at % wide}x{at // wide}", f"c{at % 10}"], "10us")
        outputs[f"u{at}"] = f"u{at}"
    return hw.load(network(boxes, outputs, s=every(20, 2), r=arriving(0)))


TEN_THOUSAND = pytest.mark.slow


@pytest.mark.parametrize(
    ("policy", "wide"),
    [
        pytest.param("round-robin/box/1", 90, marks=TEN_THOUSAND),
        pytest.param("preemptive-rate-based/box/1", 90, marks=TEN_THOUSAND),
        ("preemptive-rate-based/box/1", 30),
    ],
)
def test_a_large_network_is_no_slower_per_step(policy: str, wide: int) -> None:
    summary = simulate(_network(wide), policy).summary
    assert len(summary["boxes"]) == DEEP + wide * (1 + TWIGS) + UNIONS
    # Two tuples through the chain and the boxes that read its beginning, and the end at every box.
    assert summary["box_calls"] >= 2 * DEEP + 2 * UNIONS + len(summary["boxes"])
    assert summary["outputs"]["o"]["tuples"] == 2
    assert summary["outputs"]["u7"]["tuples"] == 2
    assert summary["seconds"] == pytest.approx(0.03)  # 1,000 calls at 10 us each from either arrival
    # With 10,000 boxes 12,000 steps in some 4 s; what grows with the network would take minutes.
    assert summary["real_seconds"] < 40
