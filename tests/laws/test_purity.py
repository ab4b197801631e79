"""Policies are pure: planning twice from the same snapshot and memory gives the same plan, and changes neither."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headway as hw
from headway.adaptive.master import Master
from headway.clock import SECOND
from headway.scheduling import Plan, Policy, Schedule, Snapshot
from headway.scheduling.policy import Wrapper, make_policy, terms_of
from headway.scheduling.snapshot import OutputReadings
from tests.engines.local.networks import POSITIVE, network, rows
from tests.scheduling.snapshots import Points, graphs, measured, replace

NAMES = [name for name in hw.policies() if name != "threads"]
ARGUMENTS = ("bucketed:1", "bucketed:3x40", "feedback:100ms", "round-robin:1ms", "slope-slack:8")
WRAPPED = ("chain/box/auto", "bucketed/box/50%/wait:1s", "qos/box/overhead:5%/wait:100ms", "fifo/box/64kB/wait:1s")
NEVER = np.iinfo(np.int64).max


def policies() -> Iterator[tuple[str, Policy]]:
    for name in (*NAMES, *ARGUMENTS):
        yield name, make_policy(name)
    for text in WRAPPED:
        yield text, Schedule.parse(text).make_policy()
    for pair in (("bucketed", "qos"), ("round-robin:1ms", "feedback")):
        yield f"master of {' and '.join(pair)}", Master([make_policy(name) for name in pair], pair)


def frozen(value: Any, seen: set[int] | None = None) -> Any:
    """Return all that a memory says as plain values, in whatever objects it is kept."""
    seen = set() if seen is None else seen
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, Mapping):
        return [(frozen(key, seen), frozen(one, seen)) for key, one in value.items()]
    if isinstance(value, (list, tuple)):
        return [frozen(one, seen) for one in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, value))
    if is_dataclass(value) and not isinstance(value, type):
        return [frozen(getattr(value, one.name), seen) for one in fields(value)]
    if hasattr(value, "__dict__") and id(value) not in seen:
        seen.add(id(value))
        return frozen(vars(value), seen)
    return value if isinstance(value, (int, float, str, bytes, type(None))) else repr(value)


def writable(value: Any, where: str = "") -> list[str]:
    """Return where arrays can be written to in what a policy is given, or remembers."""
    if isinstance(value, np.ndarray):
        return [where] if value.flags.writeable else []
    if isinstance(value, (list, tuple)):
        names = getattr(value, "_fields", range(len(value)))
        return [found for name, one in zip(names, value, strict=True) for found in writable(one, f"{where}.{name}")]
    if is_dataclass(value) and not isinstance(value, type):
        return [found for one in fields(value) for found in writable(getattr(value, one.name), f"{where}.{one.name}")]
    return []


@st.composite
def networks(draw: st.DrawFn) -> Snapshot:
    some: list[list[Points | None]] = draw(
        st.lists(st.lists(st.one_of(st.none(), graphs()), min_size=1, max_size=2), min_size=1, max_size=6)
    )
    outputs = sum(map(len, some))
    count = len(some)
    return measured(
        some,
        [draw(st.integers(0, 8)) / 4 for _ in some],
        overhead=[draw(st.sampled_from([0.0, 0.001]))] * count,
        cost=[draw(st.sampled_from([0.0, 0.0001, 0.25])) for _ in some],
        waiting=[draw(st.integers(0, 30)) for _ in some],
        workers=1,
        read_outputs=lambda: OutputReadings(
            np.arange(outputs), np.full(outputs, 0.5), np.full(outputs, 0.25), np.full(outputs, 0.25)
        ),
        read_held=lambda: np.zeros(outputs),
    )


def later(data: st.DataObject, seen: Snapshot) -> Snapshot:
    """Return the network a moment later, in another state."""
    count = len(seen.units)
    ready = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    ready[data.draw(st.integers(0, count - 1))] = True  # nobody is asked while there is nothing to do
    now = seen.now + data.draw(st.sampled_from([1, SECOND // 100, SECOND, 20 * SECOND]))
    workers = data.draw(st.integers(1, 3))
    return replace(
        seen,
        now=now,
        ready=ready,
        busy=~ready,
        oldest=np.where(ready, seen.oldest, NEVER),
        box_ready=ready,
        workers=workers,
        free=data.draw(st.integers(1, workers)),
        room=data.draw(st.integers(1, 8)),
        changed=data.draw(st.one_of(st.none(), st.just(list(range(count))))),
    )


@settings(deadline=None, max_examples=12)
@given(data=st.data(), first=networks())
@pytest.mark.parametrize(("name", "policy"), [pytest.param(*one, id=one[0]) for one in policies()])
def test_planning_twice_changes_nothing(name: str, policy: Policy, data: st.DataObject, first: Snapshot) -> None:
    memory = policy.start()
    if isinstance(policy, Master):
        memory = policy.assign(memory, [at % 2 for at in range(len(first.units))])
    seen = first
    for _ in range(4):
        before = frozen(memory)
        plan, after = policy.plan(seen, memory)
        assert frozen(memory) == before, f"{name} changed its memory"
        terms_of(policy, seen, memory)
        for step in plan.steps:
            policy.rule(seen, memory, step.unit)
        assert frozen(memory) == before, f"{name} changed its memory while it explained"
        again, same = policy.plan(copy.copy(seen), memory)
        assert again == plan, f"{name} planned something else"
        assert frozen(same) == frozen(after)
        assert not writable(after), f"others could change what {name} remembers"
        memory, seen = after, later(data, seen)


@dataclass(frozen=True, slots=True)
class Looking(Wrapper):
    """Notes what could be written to in the snapshots that it is given."""

    found: list[str]

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        read = ("rates", "boxes", "outputs", "queues", "latencies", "costs", "held_inside")
        self.found.extend(writable(snapshot))
        self.found.extend(found for name in read for found in writable(getattr(snapshot, name), name))
        self.found.extend(writable(snapshot.measures.box_costs, "box_costs"))
        return self.policy.plan(snapshot, memory)


WAYS: list[tuple[str, str, dict[str, Any], int]] = [
    ("fifo", "superbox", {"engine": "local"}, 2),
    ("qos", "box", {"engine": "local", "workers": 2}, 3),
    ("bucketed", "box", {"engine": "local"}, 600),  # large enough to be read bit by bit
    ("fifo", "superbox", {"engine": "sim", "model": {"default": "1ms"}}, 2),
    ("preemptive-rate-based", "box", {"engine": "sim", "model": {"default": "1ms"}, "workers": 2}, 3),
]


def check_snapshots(policy: str, unit: str, how: Mapping[str, Any], branches: int) -> None:
    boxes = {f"a{at}": POSITIVE for at in range(branches)}
    boxes |= {f"b{at}": POSITIVE | {"in": f"a{at}"} for at in range(branches)}
    net = network(boxes, {f"o{at}": f"b{at}" for at in range(branches)})
    found: list[str] = []
    hw.run(net, {"s": rows(12)}, policy={"policy": Looking(make_policy(policy), found), "unit": unit}, **how)
    assert not found


@pytest.mark.parametrize(("policy", "unit", "how", "branches"), WAYS)
def test_nobody_can_write_to_a_snapshot(policy: str, unit: str, how: Mapping[str, Any], branches: int) -> None:
    check_snapshots(policy, unit, how, branches)


def test_nobody_can_write_to_a_snapshot_of_spark(spark: Any) -> None:
    check_snapshots("fifo", "superbox", {"engine": "spark"}, 2)
