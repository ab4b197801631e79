"""A call whose results come in pieces, beside other workers: it waits for them while the queues are full."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pytest

import headway as hw
from headway.engines.local.steps import StepRunner
from headway.kernels import join

MEMORY = 200_000
PIECE = 20_000


def crossing() -> dict[str, Any]:
    """Return a network whose join makes 90,000 pairs in one call, for a box that is slower than it."""
    order = [{"on": "t"}, {"on": "t"}]
    return {
        "network": "crossing",
        "sources": {"a": {"schema": {"t": "bigint"}}, "b": {"schema": {"t": "bigint"}}},
        "boxes": {
            "pairs": {"op": "join", "in": ["a", "b"], "on": "true", "size": 1000, "order": order},
            "slow": {"op": "universal", "in": "pairs", "cost": "5us"},
        },
        "outputs": {"o": {"from": "slow"}},
    }


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_full_queues_hold_pieces_back(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    relieve = StepRunner._relieve

    def see(self: StepRunner) -> None:
        relieve(self)
        held.append(self._runtime.board.bytes)

    monkeypatch.setattr(StepRunner, "_relieve", see)
    monkeypatch.setattr(join, "BYTES", PIECE)
    rows = pa.table({"t": pa.array(range(300), pa.int64())})
    result = hw.run(
        crossing(), {"a": rows, "b": rows}, engine="local", policy="round-robin/box", workers=workers, memory=MEMORY
    )
    assert result.outputs["o"].num_rows == 90_000
    assert len(held) > 50
    assert max(held) <= MEMORY + 2 * PIECE


def several(joins: int) -> dict[str, Any]:
    """Return a network with several such joins, each with a slow box behind it."""
    network = crossing()
    pairs, slow = network["boxes"]["pairs"], network["boxes"]["slow"]
    network["boxes"] = {f"pairs{at}": pairs for at in range(joins)}
    network["boxes"] |= {f"slow{at}": {**slow, "in": f"pairs{at}"} for at in range(joins)}
    network["outputs"] = {f"o{at}": {"from": f"slow{at}"} for at in range(joins)}
    return network


@pytest.mark.parametrize(("joins", "workers"), [(2, 2), (3, 3), (3, 2)])
def test_a_worker_works_off_what_waits_where_all_give_pieces(
    joins: int, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[int] = []
    pass_on = StepRunner._pass_on

    def see(self: StepRunner, *passed: Any) -> None:
        pass_on(self, *passed)
        held.append(self._runtime.board.bytes)

    monkeypatch.setattr(StepRunner, "_pass_on", see)
    monkeypatch.setattr(join, "BYTES", PIECE)
    rows = pa.table({"t": pa.array(range(300), pa.int64())})
    made, inputs = several(joins), {"a": rows, "b": rows}
    result = hw.run(made, inputs, engine="local", policy="round-robin/box", workers=workers, memory=MEMORY)
    assert [one.num_rows for one in result.outputs.values()] == [90_000] * joins
    assert MEMORY < max(held) <= MEMORY + 2 * workers * PIECE


def test_workers_that_all_wait_for_each_other_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    network = crossing()
    network["boxes"]["pairs2"] = network["boxes"]["pairs"]
    network["boxes"]["slow"] = {"op": "union", "in": ["pairs", "pairs2"]}
    monkeypatch.setattr(join, "BYTES", PIECE)
    rows = pa.table({"t": pa.array(range(200), pa.int64())})
    began = time.monotonic()
    # Both workers make pieces, and nobody is left to take them.
    result = hw.run(network, {"a": rows, "b": rows}, engine="local", policy="round-robin/box", workers=2, memory=1000)
    assert result.outputs["o"].num_rows == 80_000
    assert time.monotonic() - began < 15
