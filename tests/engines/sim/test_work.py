"""Calls under way, and what calls cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headway as hw
from headway.boxes.costs import Cost, parse_cost
from headway.catalog import Statistics
from headway.checking import check
from headway.engines.models import Model, Overheads
from headway.engines.sim.work import Costs, Stretch, UnderWay
from headway.network.schema import Schema
from headway.trains import Train
from tests.engines.sim.networks import at_once, box, network


def _call(numbers: list[int], offsets: list[int], cost: int | None = None, begin: int = 0) -> UnderWay:
    whole = (offsets or [0])[-1] if cost is None else cost
    return UnderWay(
        0,
        (),
        len(numbers),
        np.array(numbers, np.int64),
        np.array(offsets, np.int64),
        whole,
        0,
        [Stretch(0, begin)],
        begin,
    )


def _results(numbers: list[int]) -> Train:
    empty = Train.empty(Schema.parse("a bigint"))
    return Train(empty.columns, np.zeros(len(numbers), np.int64), np.array(numbers, np.int64))


def _leaving(call: UnderWay, results: list[int]) -> list[int]:
    found: list[int] = call.leaving(_results(results)).tolist()
    return found


# Calls under way


def test_a_call_goes_on_from_where_it_was_halted() -> None:
    call = _call([1], [100], begin=10)
    assert (call.end, call.done(5), call.done(30), call.done(500)) == (110, 0, 20, 100)
    call.halt(30)
    assert (call.done(30), call.done(400)) == (20, 20)
    call.go_on(400)
    assert (call.end, call.done(390), call.done(410)) == (480, 20, 30)
    assert call.stretches == [Stretch(0, 10), Stretch(20, 400)]


def test_a_stretch_without_work_is_forgotten() -> None:
    call = _call([1], [100], begin=10)
    call.halt(7)
    call.go_on(50)
    assert call.stretches == [Stretch(0, 50)]


def test_a_delay_comes_after_other_overheads() -> None:
    call = _call([1], [100], begin=10)
    call.delay(5, 3)
    assert call.end == 113
    call.delay(20, 3)  # 7 are done
    assert (call.end, call.done(20), call.done(24)) == (116, 7, 8)


@settings(deadline=None)
@given(data=st.data(), cost=st.integers(1, 50))
def test_work_is_neither_lost_nor_won(data: st.DataObject, cost: int) -> None:
    """Against counting each nanosecond."""
    call = _call(list(range(cost)), list(range(1, cost + 1)), begin=0)
    done, waiting, now = 0, 0, 0
    finished: list[int] = []
    for action in data.draw(st.lists(st.sampled_from(("run", "halt", "delay")), max_size=12)):
        if done == cost:
            break  # then it is ended, and nobody halts it
        span = data.draw(st.integers(0, 10))
        if action == "halt":
            call.halt(now)
            now += span
            call.go_on(now)
            waiting = 0  # overheads before it went on are for nothing
        elif action == "delay":
            call.delay(now, span)
            waiting += span
        else:
            for _ in range(span):
                now += 1
                if waiting:
                    waiting -= 1
                elif done < cost:
                    done += 1
                    finished.append(now)
        assert call.done(now) == done
    if done < cost:
        assert call.end == now + waiting + cost - done
        finished += range(now + waiting + 1, call.end + 1)
    assert _leaving(call, list(range(cost))) == finished


# When results leave


def test_results_leave_when_their_causes_are_done() -> None:
    call = _call([3, 5, 9], [10, 30, 60], cost=100, begin=1000)  # 40 ns of overheads come first
    assert _leaving(call, [3, 3, 5, 9]) == [1050, 1050, 1070, 1100]
    assert _leaving(call, [9]) == [1100]
    assert _leaving(call, []) == []
    assert _leaving(call, [4, 7, 11]) == [1050, 1070, 1100]  # a tick's number lies between
    assert _leaving(call, [1]) == [1050]
    assert _leaving(_call([], [], cost=7, begin=1), [4, 5]) == [8, 8]  # a mark alone


@pytest.mark.parametrize(
    ("results", "moments"),
    [
        ([5, 5, 5], [10, 20, 30]),  # one each
        ([5, 5, 5, 5, 5, 5], [10, 10, 20, 20, 30, 30]),  # two each
        ([5], [30]),  # whichever caused it
        ([5, 5], [20, 30]),
        ([5, 5, 5, 8], [10, 20, 30, 40]),
        ([8], [40]),
    ],
)
def test_results_of_copies_are_shared_out(results: list[int], moments: list[int]) -> None:
    assert _leaving(_call([5, 5, 5, 8], [10, 20, 30, 40]), results) == moments


@settings(deadline=None)
@given(
    copies=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    times=st.lists(st.integers(0, 4), min_size=6, max_size=6),
)
def test_results_leave_in_their_order_within_the_call(copies: list[int], times: list[int]) -> None:
    numbers = [at for at, many in enumerate(copies) for _ in range(many)]
    results = [at for at, many in enumerate(times[: len(copies)]) for _ in range(many)]
    call = _call(numbers, [7 * (at + 1) for at in range(len(numbers))])
    moments = _leaving(call, results)
    assert moments == sorted(moments)
    for number in set(results):
        own = [7 * (at + 1) for at, one in enumerate(numbers) if one == number]
        mine = [moment for moment, one in zip(moments, results, strict=True) if one == number]
        assert set(mine) <= set(own)
        assert mine[-1] == own[-1]


# Costs


def _costs(cost: Any = 0, model: Model | None = None, **more: Any) -> Costs:
    made = network(
        {"b": box("s", cost, **more), "m": {"op": "map", "in": "s", "select": "a"}},
        {"o": "b", "p": "m"},
        s=at_once(1),
    )
    return Costs(check(hw.load(made)), model or Model())


def test_tuples_are_done_one_after_the_other() -> None:
    assert _costs("2us").offsets(0, np.arange(3)).tolist() == [2000, 4000, 6000]
    assert _costs("2us").offsets(0, np.arange(0)).tolist() == []
    assert _costs("2us").offsets(1, np.arange(2)).tolist() == [1000, 2000]  # the default


def test_a_third_of_a_nanosecond_is_not_lost() -> None:
    costs = _costs(4e-9 / 3)
    assert [int(costs.offsets(0, np.arange(1))[-1]) for _ in range(6)] == [1, 1, 1, 2, 1, 1]
    assert _costs(4e-9 / 3).offsets(0, np.arange(6)).tolist() == [1, 2, 3, 5, 6, 7]


@settings(deadline=None)
@given(
    cost=st.sampled_from(("3ms", 1.7e-9, {"uniform": [0, "5us"]}, {"zipf": [1.2, 50, "3us"]}, 86_400)),
    numbers=st.lists(st.integers(0, 20), min_size=1, max_size=40).map(sorted),
    cuts=st.lists(st.integers(1, 40), max_size=5),
)
def test_how_trains_are_cut_does_not_change_costs(cost: Any, numbers: list[int], cuts: list[int]) -> None:
    whole = _costs(cost).offsets(0, np.array(numbers))
    costs, begin, parts = _costs(cost), 0, []
    for at, part in enumerate(np.split(np.array(numbers), sorted(set(cuts)))):
        offsets = costs.offsets(0, part)
        parts += (offsets + begin).tolist()
        begin = parts[-1] if parts else 0
        assert len(offsets) == len(part), at
    assert parts == whole.tolist()


def test_costs_come_from_the_model_then_the_box_then_the_default() -> None:
    model = Model({"m": parse_cost("5us")}, {"b": 1e-6}, parse_cost("9us"), Overheads(2e-6, 3e-6, 4e-6, 5e-6))
    costs = _costs("2us", model)
    assert [one.mean for one in costs.each] == [2e-6, 5e-6]
    assert costs.call == [3000, 2000]
    assert (costs.scheduler, costs.preemption, costs.storage) == (3000, 4000, 5000)
    assert [one.mean for one in _costs("2us", Model({"b": parse_cost(1)})).each] == [1, 1e-6]


def test_seeds_decide_on_costs_that_are_drawn() -> None:
    def drawn(seed: int, model: Model | None = None) -> list[int]:
        found: list[int] = _costs({"uniform": ["1ms", "2ms"]}, model, seed=seed).offsets(0, np.arange(5)).tolist()
        return found

    assert drawn(1) == drawn(1) != drawn(2)
    uniform: Cost = parse_cost({"uniform": ["1ms", "2ms"]})
    assert drawn(2, Model({"b": uniform}, seed=1)) == drawn(1)  # the model's cost has the model's seed
    each = np.diff([0, *drawn(3)])
    assert each.min() >= 1_000_000
    assert each.max() <= 2_000_001


def test_policies_know_what_the_model_knows() -> None:
    statistics = Statistics(2, 1000)
    _costs("2us", Model(calls={"m": 4e-6}), selectivity=0.25).declare(statistics)
    readings = statistics.readings()
    assert readings.cost.tolist() == [2e-6, 1e-6]
    assert readings.overhead.tolist() == [0, 4e-6]
    assert readings.selectivity[0] == 0.25
