"""Inputs with more malformed rows than a reader keeps: they are taken as they come, and the run goes on."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

import headway as hw
from headway.connectors.protocol import PENDING_LIMIT

MANY = 2 * PENDING_LIMIT + 7
NETWORK: dict[str, Any] = {
    "network": "n",
    "sources": {"x": {"schema": {"id": "int"}}, "y": {"schema": {"id": "int"}}},
    "boxes": {"u": {"op": "union", "in": ["x", "y"]}},
    "outputs": {"o": {"from": "u"}},
}


@pytest.mark.parametrize("rates", [{}, {"x": 1000.0}, {"x": 1000.0, "y": 1000.0}], ids=["turns", "mixed", "timed"])
@pytest.mark.parametrize(("engine", "policy"), [("local", "qos"), ("local", "threads"), ("sim", "qos")])
def test_they_do_not_hold_a_run_up(tmp_path: Path, engine: str, policy: str, rates: dict[str, float]) -> None:
    path = tmp_path / "x.csv"
    path.write_text("id\n" + "no\n" * MANY)  # a batch without a tuple
    result = hw.run(NETWORK, {"x": str(path), "y": [(3,), (4,)]}, engine=engine, policy=policy, rates=rates)
    assert sorted(result.outputs["o"].column("id").to_pylist()) == [3, 4]
    assert result.summary["sources"]["x"] == {"tuples": 0, "malformed": MANY}


@pytest.mark.parametrize("engine", ["local", "sim"])
def test_nor_on_standard_input(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = '{"id": "no"}\n' * MANY + '{"id": 2}\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    result = hw.run(NETWORK, {"x": "-", "y": [(3,)]}, engine=engine)
    assert sorted(result.outputs["o"].column("id").to_pylist()) == [2, 3]
    assert result.summary["sources"]["x"] == {"tuples": 1, "malformed": MANY}
