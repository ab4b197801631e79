"""The planning benchmark in its quick form, and what it promises."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import planning
from benchmarks.planning import Case, Cost, Load, check, measure, network
from headway.scheduling.policy import make_policy, registered_policies


@pytest.mark.alone
def test_the_cost_of_bucketed_does_not_follow_the_size_of_the_network() -> None:
    """A ratio: what exact planning takes at most, in microseconds, is for the benchmark to say."""
    small, large = network(1_000), network(20_000)
    for _ in range(3):  # others may be busy on the same machine
        broken = check([measure(Case("bucketed", "bucketed"), made, rounds=3, plans=100) for made in (small, large)])
        if not broken:
            break
    assert not broken


def test_broken_promises_are_named() -> None:
    def costs(large: float, exact: float) -> list[Cost]:
        return [
            Cost("bucketed", 1000, 100.0, 16, 0.0),
            Cost("bucketed", 100_000, large, 16, 0.0),
            Cost("slope-slack", 1000, exact, 16, 0.0),
            Cost("slope-slack", 100_000, 1e6, 16, 0.0),
        ]

    assert check(costs(200.0, 200.0)) == []
    assert check(costs(201.0, 100.0)) == [
        "bucketed takes 201 µs for 100,000 boxes, more than 2 times the 100 µs for 1,000"
    ]
    assert check(costs(100.0, 201.0)) == ["slope-slack takes 201 µs for 1,000 boxes, more than 200"]
    assert check([]) == []


@pytest.mark.parametrize("told", [True, False])
def test_the_load_is_steady_and_says_what_changed(told: bool) -> None:
    load, policy = Load(network(1_000), Case("bucketed", "bucketed", told=told)), make_policy("bucketed")
    memory, before = policy.start(), None
    for _ in range(20):
        seen = load.snapshot()
        assert seen.ready.sum() == planning.READY
        if told and before is not None:
            assert seen.changed is not None
            assert set((seen.ready != before).nonzero()[0].tolist()) <= set(seen.changed)
        before = seen.ready.copy()
        plan, memory = policy.plan(seen, memory)
        assert len(plan.steps) == planning.ROOM
        assert all(before[step.unit] for step in plan.steps)
        load.serve(plan)


def test_every_policy_is_measured_or_says_why_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "costs.json"
    planning.main(["--boxes", "300", "600", "--rounds", "1", "--plans", "5", "--json", str(path)])
    printed = capsys.readouterr().out
    assert "## Planning" in printed
    for entry in registered_policies():
        assert f"\n| {entry.name} |" in printed or f"Not measured: {entry.name} (" in printed
    costs = json.loads(path.read_text())
    assert {one["boxes"] for one in costs} == {300, 600}
    assert all(one["plan"] > 0 for one in costs)


def test_only_some_policies(capsys: pytest.CaptureFixture[str]) -> None:
    costs = planning.report([200], 1, 2, ["round-robin"])
    assert [one.case for one in costs] == ["round-robin"]
    assert "| bucketed" not in capsys.readouterr().out
