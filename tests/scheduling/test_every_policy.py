"""Every policy, under several rules for trains: timeouts, graphs, boxes in common, a source that is an output."""

from __future__ import annotations

import pytest

import headway as hw

NETWORK = """
network: all-kinds
sources:
  s: {schema: {t: bigint, k: int}}
  r: {schema: {t: bigint, k: int}}
boxes:
  some: {op: filter, in: s, where: 'k > 1'}
  both: {op: union, in: [some, r]}
  sums: {op: aggregate, in: both, select: 'sum(k) as total', order: {on: t}, size: 10, timeout: 1h}
  near: {op: join, in: [some, r], on: 'left.k = right.k', size: 5, order: [{on: t}, {on: t}]}
outputs:
  o: {from: sums, qos: {latency: [[0, 1], [1, 1], [2, 0]]}}
  p: {from: near}
  q: {from: s, qos: {latency: [[0, 1], [5, 0]]}}
"""
ROWS = [(at, at % 5) for at in range(200)]


@pytest.mark.parametrize("engine", ["local", "sim"])
@pytest.mark.parametrize("policy", [name for name in hw.policies() if name != "threads"])
def test_every_policy_gives_the_same_results(policy: str, engine: str) -> None:
    expected: dict[str, list[dict[str, object]]] = {}
    for rest in ("", "/box/mc/10", "/superbox/mc/auto", "/superbox/mc/50%"):
        result = hw.run(hw.load(NETWORK), {"s": ROWS, "r": ROWS}, engine=engine, policy=policy + rest)
        found = {name: table.to_pylist() for name, table in result.outputs.items()}
        expected = expected or found
        assert found == expected
        # Joined are tuples of the same moment, and of five before and behind: three for each of 120, but for six.
        assert [len(rows) for rows in found.values()] == [20, 3 * 120 - 6, 200]
