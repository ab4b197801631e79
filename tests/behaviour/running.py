"""Run twins through the public API and compare them with the reference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import settings

import headway as hw
from tests.reference.compare import assert_same, in_any_order
from tests.reference.tuples import Row
from tests.reference.twins import Twin
from tests.streams import POLICIES, TRAINS, Case, Running

PLAIN = Running()
EVERY_WAY = tuple(Running(policy, train) for policy in POLICIES for train in TRAINS)
"""Both policies with every train."""

fewer = settings(max_examples=max(1, settings().max_examples // 4))
"""For a property that is tested many times over."""


def run(engine: str, twin: Twin, inputs: Mapping[str, Iterable[Row]], how: Running = PLAIN) -> Any:
    """Run a twin's file; return the result."""
    return run_mapping(engine, twin.mapping(), inputs, how)


def run_mapping(
    engine: str, mapping: Mapping[str, Any], inputs: Mapping[str, Iterable[Row]], how: Running = PLAIN
) -> Any:
    """Run a network given as a mapping; return the result."""
    network = hw.load(mapping)
    return hw.run(network, inputs, engine=engine, policy=how.policy, train=how.train, workers=how.workers)


def rows_of(result: Any, output: str = "out") -> list[Row]:
    """Return the rows of an output."""
    rows: list[Row] = result.outputs[output].to_pylist()
    return rows


def check(engine: str, case: Case, *ways: Running, ordered: bool = True) -> None:
    """Run a case in several ways; every output must be what the reference says, and so the ignored counts."""
    expected = case.twin.expected(case.inputs)
    ignored = case.twin.ignored(case.inputs)
    for how in ways:
        result = run(engine, case.twin, case.inputs, how)
        for name, rows in expected.items():
            actual = rows_of(result, name)
            if not ordered:
                actual, rows = in_any_order(actual), in_any_order(rows)
            assert_same(actual, rows, f"output '{name}' under {how}")
        counted = {box: result.summary["boxes"][box]["ignored"] for box, count in ignored.items() if count}
        assert counted == {box: count for box, count in ignored.items() if count}, f"ignored under {how}"
        assert result.dead_letters.num_rows == 0
