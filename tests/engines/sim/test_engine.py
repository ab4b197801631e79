"""The simulator as a whole: moments worked out by hand, arrivals of all kinds, and runs that repeat themselves."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headway as hw
from headway.engines.runs import Status
from headway.engines.steering import Steering
from tests.behaviour.running import check
from tests.engines.sim.moments import Moments
from tests.engines.sim.networks import arriving, at_once, box, every, network, replayed, simulate, steps
from tests.searching import examples
from tests.streams import Case, Running, networks

# Moments


def test_a_box_that_keeps_up(left: Moments) -> None:
    result = simulate(network({"b": box("s", "2ms")}, {"o": "b"}, s=every(5, 3)))
    assert left.of() == [2, 7, 12]
    assert result.summary["seconds"] == 0.012
    assert result.summary["outputs"]["o"]["latency"]["mean"] == pytest.approx(0.002)
    assert result.summary["time"]["boxes"] == 0.006
    assert result.outputs["o"]["a"].to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("train", [1, 2, 1000])
def test_a_box_that_does_not_keep_up(left: Moments, train: int) -> None:
    simulate(network({"b": box("s", "2ms")}, {"o": "b"}, s=every(1, 4)), train=train)
    assert left.latencies() == [2, 3, 4, 5]


@pytest.mark.parametrize("unit", ["box", "superbox"])
def test_results_leave_one_by_one_and_the_next_box_begins_when_the_call_ends(left: Moments, unit: str) -> None:
    made = network({"x": box("s", "1ms"), "y": box("x", "10ms")}, {"o": "x", "p": "y"}, s=at_once(3))
    simulate(made, f"round-robin/{unit}/3")
    assert left.of("o") == [1, 2, 3]
    assert left.of("p") == [13, 23, 33]


def test_short_trains_take_turns(left: Moments) -> None:
    made = network({"x": box("s", "1ms"), "y": box("x", "10ms")}, {"o": "x", "p": "y"}, s=at_once(3))
    result = simulate(made, trace=True)
    assert left.of("o") == [1, 12, 23]
    assert left.of("p") == [11, 22, 33]
    assert steps(result)[:3] == [("x", 0, 1), ("y", 1, 11), ("x", 11, 12)]


def test_copies_of_a_tuple_leave_one_by_one(left: Moments) -> None:
    boxes = {"twice": box("s", "1ms", selectivity=2), "b": box("twice", "3ms"), "half": box("b", 0, selectivity=0)}
    simulate(network(boxes, {"o": "twice", "p": "b", "q": "half"}, s=at_once(2)), train=100)
    assert left.of("o") == [1, 1, 2, 2]
    assert left.of("p") == [5, 8, 11, 14]
    assert left.of("q") == []


def test_a_window_leaves_with_the_tuple_that_closes_it(left: Moments) -> None:
    window = {"op": "aggregate", "in": "s", "select": "count(*) as n", "order": {"on": "a"}, "size": 2}
    result = simulate(network({"b": window}, {"o": "b"}, s=at_once(5)), train=100, model={"costs": {"b": "1ms"}})
    assert result.outputs["o"]["n"].to_pylist() == [2, 2, 1]
    assert left.of() == [3, 5, 5]  # the last one with the end, which costs nothing


@pytest.mark.parametrize(("workers", "o", "p"), [(1, [3, 10], [7, 14]), (2, [3, 6], [4, 8]), (3, [3, 6], [4, 8])])
def test_processors_work_at_the_same_time(left: Moments, workers: int, o: list[float], p: list[float]) -> None:
    made = network({"x": box("s", "3ms"), "y": box("s", "4ms")}, {"o": "x", "p": "y"}, s=at_once(2))
    result = simulate(made, workers=workers, trace=True)
    assert (left.of("o"), left.of("p")) == (o, p)
    assert result.trace is not None
    assert {step.worker for step in result.trace.steps if step.tuples} == set(range(min(workers, 2)))


def test_a_box_is_called_once_at_a_time(left: Moments) -> None:
    simulate(network({"b": box("s", "3ms")}, {"o": "b"}, s=at_once(2)), workers=2)
    assert left.of() == [3, 6]


def test_boxes_that_cost_nothing_take_no_time_however_many_steps_there_are() -> None:
    result = simulate(network({"b": box("s")}, {"o": "b"}, s=arriving(11_000)))
    assert (result.summary["seconds"], result.summary["tuples_out"]) == (0, 11_000)


def test_other_boxes_cost_a_microsecond_or_what_the_model_says(left: Moments) -> None:
    made = network({"b": {"op": "map", "in": "s", "select": "a"}}, {"o": "b"}, s=at_once(2))
    simulate(made)
    assert left.of() == [0.001, 0.002]
    simulate(made, model={"default": "3ms"})
    assert left.of() == [3, 6]
    simulate(made, model={"costs": {"b": "2ms"}, "default": "3ms"})
    assert left.of() == [2, 4]


# Arrivals


def test_bursts(left: Moments) -> None:
    made = network({"b": box("s", "2ms")}, {"o": "b"}, s=arriving(6, burst={"size": 3, "every": "10ms"}))
    simulate(made)
    assert left.of() == [2, 4, 6, 12, 14, 16]


def test_recorded_arrivals(left: Moments, tmp_path: Path) -> None:
    fields = {"a": "bigint", "t": "double"}
    simulate(network({"b": box("s", "3ms")}, {"o": "b"}, fields, s=replayed(tmp_path, [1000, 1004, 1005])))
    assert left.of() == [3, 7, 10]


def test_poisson_arrivals_follow_from_their_seed(left: Moments) -> None:
    def moments(seed: int) -> list[float]:
        source = arriving(50, arrivals="poisson", rate=1000, seed=seed)
        simulate(network({"b": box("s")}, {"o": "b"}, s=source))
        return left.of()

    first = moments(3)
    assert first == moments(3) == sorted(first)
    assert first != moments(4)
    assert 25 < first[-1] < 100


def test_several_sources_are_merged_by_moment(left: Moments) -> None:
    made = network({"u": box(["s", "r"], "1ms")}, {"o": "u"}, s=every(2, 3), r=every(3, 2))
    result = simulate(made)  # at 0, 2, 4 and at 0, 3; of equals the first source's
    assert result.outputs["o"]["a"].to_pylist() == [0, 0, 1, 1, 2]
    assert left.of() == [1, 2, 3, 4, 5]


def test_what_arrives_at_a_moment_is_there_before_anybody_chooses() -> None:
    made = network({"x": box("s", "9ms"), "y": box("r", "1ms")}, {"o": "x", "p": "y"}, s=at_once(2), r=at_once(1))
    assert steps(simulate(made, "rate-based/box/1", trace=True))[0] == ("y", 0, 1)


def test_a_live_source_is_read_to_its_end(left: Moments) -> None:
    def live() -> Iterator[tuple[int]]:
        yield from ((at,) for at in range(3))

    made = network({"b": box("s", "1ms")}, {"o": "b"}, s=None)
    del made["sources"]["s"]["source"]
    result = simulate(made, inputs={"s": live()}, train=100)
    assert result.outputs["o"]["a"].to_pylist() == [0, 1, 2]
    simulate(made, inputs={"s": live()}, rates={"s": 100})
    assert left.of()[-3:] == [1, 11, 21]


def test_how_a_live_source_comes_does_not_matter() -> None:
    def live(pauses: bool) -> Iterator[tuple[int]]:
        for at in range(3000):
            if pauses and at % 700 == 0:
                time.sleep(0.01)
            yield (at,)

    made = network({"b": box("s", "1us"), "c": box("b", "2us")}, {"o": "c"}, s=None)
    del made["sources"]["s"]["source"]
    one, other = (simulate(made, train=100, inputs={"s": live(pauses)}, trace=True) for pauses in (False, True))
    assert one.trace == other.trace
    assert one.summary["outputs"] == other.summary["outputs"]


def test_a_source_that_raises_is_said_so() -> None:
    def broken() -> Iterator[tuple[int]]:
        yield (1,)
        raise ValueError("the line is dead")

    made = network({"b": box("s", "1ms")}, {"o": "b"}, s=None)
    del made["sources"]["s"]["source"]
    with pytest.raises(hw.HeadwayError, match=r"source 's': .*the line is dead"):
        simulate(made, inputs={"s": broken()})


def test_a_timeout_in_virtual_time(left: Moments, tmp_path: Path) -> None:
    window = {"op": "aggregate", "in": "s", "select": "count(*) as n", "order": {"on": "a"}, "size": 3}
    source = replayed(tmp_path, [0, 1, 200, 201])  # of the first window, the third tuple is late
    made = network({"b": {**window, "timeout": "50ms"}}, {"o": "b"}, {"a": "bigint", "t": "double"}, s=source)
    result = simulate(made, model={"costs": {"b": "5ms"}})
    assert result.outputs["o"].to_pylist() == [{"a": 0, "n": 2}, {"a": 3, "n": 1}]
    assert result.summary["boxes"]["b"]["ignored"] == 1
    assert left.of()[0] == 55  # it was opened when its first tuple was done


# Holding sources back


def test_above_the_memory_sources_wait() -> None:
    made = network({"b": box("s", "1ms")}, {"o": "b"}, s=arriving(5000))
    free = simulate(made).summary
    bound = simulate(made, memory=1).summary
    assert bound["tuples_out"] == free["tuples_out"] == 5000
    assert bound["peak_queued_bytes"] == 1024 * (8 + 16)  # one portion, when all else is gone
    assert free["peak_queued_bytes"] > bound["peak_queued_bytes"]


def test_tuples_that_are_held_back_grow_old(left: Moments) -> None:
    made = network({"b": box("s", "3ms")}, {"o": "b"}, s=every(1, 9))
    simulate(made)
    free = left.latencies()
    simulate(made, memory=30)
    assert left.latencies() == free == [3 + 2 * at for at in range(9)]


@pytest.mark.parametrize("source", [arriving(3000), every(1, 100)], ids=["in turn", "timed"])
def test_trains_that_wait_do_not_wait_for_what_is_held_back(source: Any) -> None:
    made = network({"b": box("s", "10us"), "c": box("b", "10us")}, {"o": "c"}, s=source)
    result = simulate(made, "round-robin/box/auto", memory=100, model={"overheads": {"call": "1ms"}})
    assert result.summary["tuples_out"] == result.summary["tuples_in"]


# The same again


def test_runs_repeat_themselves() -> None:
    boxes = {
        "x": box("s", {"uniform": ["1ms", "3ms"]}, selectivity=0.7),
        "y": box("x", {"zipf": [1.5, 100, "100us"]}),
        "z": box(["r", "x"], "1ms"),
    }
    poisson = arriving(60, arrivals="poisson", rate=300, seed=5)
    made = network(boxes, {"o": "y", "p": "z"}, s=poisson, r=every(4, 40))
    for policy in ("slope-slack/superbox", "preemptive-rate-based/box/5", "round-robin:2ms/box/3", "chain/box/auto"):
        one, other = (simulate(made, policy, workers=2, trace=True) for _ in range(2))
        assert one.trace == other.trace
        assert one.outputs == other.outputs
        assert {**one.summary, "real_seconds": 0, "real_planning": 0} == {
            **other.summary,
            "real_seconds": 0,
            "real_planning": 0,
        }


POLICIES = ("round-robin", "round-robin:700us", "rate-based", "preemptive-rate-based", "fifo", "chain")


@examples(30)
@given(
    cost=st.sampled_from(({"uniform": ["1us", "3ms"]}, {"zipf": [1.1, 1000, "7us"]}, 1.5e-9, 1 / 3e7)),
    seed=st.integers(0, 5),
    policy=st.sampled_from(POLICIES),
    unit=st.sampled_from(("box", "superbox")),
    train=st.sampled_from((1, 3, 1000)),
    workers=st.integers(1, 3),
)
def test_work_does_not_depend_on_policies_trains_and_processors(
    cost: Any, seed: int, policy: str, unit: str, train: int, workers: int
) -> None:
    boxes = {"x": box("s", cost, seed=seed, selectivity=1.5), "y": box("x", cost), "z": box(["s", "x"], cost)}
    made = network(boxes, {"o": "y", "p": "z"}, s=every(1, 40))
    plain = simulate(made, "round-robin/box/1").summary
    other = simulate(made, f"{policy}/{unit}/{train}", workers=workers).summary
    assert other["time"]["boxes"] == plain["time"]["boxes"]
    for name in boxes:
        assert other["boxes"][name]["seconds"] == plain["boxes"][name]["seconds"]


PREEMPTIVE = ("round-robin:2us", "round-robin:7us", "preemptive-rate-based")


@examples(40)
@given(
    case=networks(),
    policy=st.sampled_from(PREEMPTIVE),
    unit=st.sampled_from(("box", "superbox")),
    train=st.sampled_from((1, 3, 1000)),
    workers=st.integers(1, 3),
)
def test_preemption_does_not_change_results(case: Case, policy: str, unit: str, train: int, workers: int) -> None:
    check("sim", case, Running(f"{policy}/{unit}", train, workers))


# What runs tell


def test_the_summary_keeps_its_contract() -> None:
    made = network({"b": box("s", "1ms", selectivity=0.5, mode="even")}, {"o": "b"}, s=every(2, 10))
    made["outputs"]["o"]["qos"] = {"latency": [[0, 1], [0.1, 1], [1, 0]]}
    summary = simulate(made, workers=2).summary
    assert (summary["engine"], summary["policy"], summary["workers"]) == ("sim", "round-robin/box/1", 2)
    assert (summary["tuples_in"], summary["tuples_out"], summary["seconds"]) == (10, 5, 0.019)
    assert summary["outputs"]["o"]["utility"] == 1
    assert summary["boxes"]["b"]["cost_per_tuple"] == 0.001
    assert summary["real_seconds"] > 0
    assert set(summary["time"]) == {"scheduler", "boxes", "storage", "sources", "sinks", "preemption"}
    assert not summary["interrupted"]


def test_a_status_tells_of_virtual_time() -> None:
    seen: list[Status] = []
    simulate(network({"b": box("s", "1ms")}, {"o": "b"}, s=every(1, 3000)), on_status=seen.append)
    assert seen
    assert all(0 <= status.seconds <= 3 for status in seen)


@pytest.mark.parametrize("model", [{}, {"like": "local"}])
def test_nobody_looks_while_nothing_happens(model: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    look = Steering.look

    def counted(self: Steering, now: int, memory: Any) -> Any:
        looks.append(now)
        return look(self, now, memory)

    monkeypatch.setattr(Steering, "look", counted)
    made = network({"b": box("s", "10h")}, {"o": "b"}, s=every(1, 1))
    result = simulate(made, shed=True, model=model)
    assert result.summary["seconds"] == pytest.approx(36_000, rel=0.01)
    assert 1 <= len(looks) < 10


def test_an_interrupt_ends_a_source_without_end() -> None:
    seen: list[int] = []

    def interrupting(batch: pa.RecordBatch) -> None:
        if len(seen) < 5 <= len(seen) + batch.num_rows:
            os.kill(os.getpid(), signal.SIGINT)
        seen.extend(batch.column(0).to_pylist())

    made = network({"b": box("s", "3ms")}, {"o": "b"}, s=arriving(None, rate=1000))
    result = simulate(made, outputs={"o": interrupting})
    assert result.summary["interrupted"]
    assert seen == list(range(result.summary["tuples_in"]))
    assert result.summary["tuples_in"] == 15  # those that came before the fifth left, at 15 ms


def test_tuples_that_are_refused_become_dead_letters() -> None:
    made = network({"b": {"op": "map", "in": "s", "select": "12 / (a - 1) as x"}}, {"o": "b"}, s=at_once(3))
    result = simulate(made)
    assert result.outputs["o"]["x"].to_pylist() == [-12, 12]
    assert result.dead_letters["box"].to_pylist() == ["b"]
