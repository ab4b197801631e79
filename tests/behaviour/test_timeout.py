"""Timeout: a window that waits for too long is emitted, and what comes later is ignored."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.behaviour.running import rows_of, run_mapping
from tests.reference.tuples import Row
from tests.streams import Running


def _network(timeout: str) -> dict[str, Any]:
    box = {
        "op": "aggregate",
        "in": "s",
        "select": "count(*) as n",
        "order": {"on": "a"},
        "size": 10,
        "timeout": timeout,
    }
    return {
        "network": "patience",
        "sources": {"s": {"schema": {"a": "int"}}},
        "boxes": {"box": box | {"timeout": timeout}},
        "outputs": {"out": {"from": "box"}},
    }


def _slow(pause: float) -> Iterator[Row]:
    yield {"a": 1}
    yield {"a": 2}
    time.sleep(pause)
    yield {"a": 3}
    yield {"a": 11}


def test_a_late_tuple_of_a_window_that_timed_out_is_ignored(engine: str) -> None:
    if engine == "sim":
        pytest.skip("virtual time stands still while a live source is silent; see tests/engines/sim/test_engine.py")
    result = run_mapping(engine, _network("50ms"), {"s": _slow(0.5)}, Running(train=1))
    assert rows_of(result) == [{"a": 0, "n": 2}, {"a": 10, "n": 1}]
    assert result.summary["boxes"]["box"]["ignored"] == 1


def test_patience_pays(engine: str) -> None:
    result = run_mapping(engine, _network("1h"), {"s": _slow(0.02)})
    assert rows_of(result) == [{"a": 0, "n": 3}, {"a": 10, "n": 1}]
    assert result.summary["boxes"]["box"]["ignored"] == 0
