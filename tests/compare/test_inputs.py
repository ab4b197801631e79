"""Inputs that are read once: what is held, cut, and read again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headway as hw
from headway.clock import SECOND
from headway.compare.inputs import FEW, Held, HeldReader, busiest, hold
from headway.errors import InputError
from tests.engines.sim.networks import arriving, box, every, network


def held(
    seconds: float = 10, most: int = 1000, inputs: Any = None, rates: Any = None, **sources: Any
) -> dict[str, Held]:
    made = network({"b": box(list(sources))}, {"o": "b"}, **sources)
    return hold(hw.check(hw.load(made)), inputs or {}, rates or {}, seconds, most)


def values(one: Held | HeldReader, portion: int = 7) -> list[int]:
    reader, found = one.reader() if isinstance(one, Held) else one, []
    while (chunk := reader.read(portion)) is not None:
        assert 0 < len(chunk) <= portion
        found += chunk.batch.column(0).to_pylist()
    return found


def due(one: Held) -> list[float]:
    return [moment / SECOND for chunk in one.chunks for moment in (chunk.due.tolist() if chunk.due is not None else [])]


def test_what_is_due_in_time_is_held() -> None:
    one = held(0.05, s=every(10, 20))["s"]
    assert (one.tuples, one.timed, one.cut) == (5, True, True)  # at 0, 10, 20, 30 and 40 ms
    assert values(one) == [0, 1, 2, 3, 4]
    assert values(one) == [0, 1, 2, 3, 4], "it can be read again"
    assert due(one) == [0, 0.01, 0.02, 0.03, 0.04]
    assert not held(1, s=every(10, 20))["s"].cut


def test_what_is_not_timed_is_held_up_to_a_number() -> None:
    one = held(0.001, 50, s=arriving(200))["s"]
    assert (one.tuples, one.timed, one.cut) == (50, False, True)
    assert values(one) == list(range(50))
    assert held(0.001, 500, s=arriving(200))["s"].tuples == 200
    assert held(1, 100, s=arriving(None))["s"].tuples == 100, "also if it has no end"


def test_rates_and_inputs_of_the_run_count() -> None:
    one = held(inputs={"s": [{"a": 7}, {"a": 8}, {"a": "x"}]}, rates={"s": 10}, s=arriving(1))["s"]
    assert (values(one), one.timed) == ([7, 8], True)  # what is malformed is left out
    assert due(one) == [0, 0.1]


def test_an_iterator_can_be_compared_by_many_times() -> None:
    one = held(inputs={"s": ({"a": at} for at in range(30))}, s=arriving(1))["s"]
    assert values(one) == values(one) == list(range(30))
    assert len(one.chunks) == 1


def test_what_cannot_be_opened() -> None:
    with pytest.raises(InputError, match="source 's' has no input"):
        held(s=None)


def test_at_once_forgets_the_moments() -> None:
    one = held(s=every(10, 20))["s"]
    reader = one.at_once()
    assert not reader.timed
    assert values(reader) == list(range(20))
    reader.close()
    assert reader.malformed() == []


def test_a_part_begins_at_its_own_zero() -> None:
    one = held(s=every(10, 20))["s"].between(SECOND // 20, SECOND // 10)
    assert values(one) == [5, 6, 7, 8, 9]
    assert due(one) == pytest.approx([0, 0.01, 0.02, 0.03, 0.04])
    assert held(s=every(10, 20))["s"].between(5 * SECOND, 6 * SECOND).tuples == 0


def test_the_first_tuples() -> None:
    one = held(s=every(10, 20))["s"]
    assert (values(one.first(3)), one.first(3).cut, due(one.first(3))) == ([0, 1, 2], True, [0, 0.01, 0.02])
    assert (one.first(20).tuples, one.first(20).cut) == (20, False)


def test_the_busiest_part_is_that_of_all_sources_together() -> None:
    one, other = [["1s", 10], ["1s", 100], ["2s", 10]], [["3s", 10], ["1s", 90]]
    found = busiest(held(60, s=arriving(None, phases=one), r=arriving(None, phases=other)), 1)
    assert (found["s"].tuples, found["r"].tuples) == (100, 10)
    assert min(due(found["s"])) == pytest.approx(0, abs=0.02)
    assert max(due(found["s"])) < 1


def test_a_short_input_is_all_busiest() -> None:
    all_of_it = held(s=every(10, 20), r=arriving(5))
    assert {name: one.tuples for name, one in busiest(all_of_it, 1).items()} == {"s": 20, "r": 5}
    assert busiest(held(1, FEW + 5, s=arriving(None)), 1)["s"].tuples == FEW
    assert busiest({"s": Held((), True, False)}, 1)["s"].tuples == 0


def test_moments_stay_ascending() -> None:
    one = held(3, 10_000, s=arriving(None, rate=1000, arrivals="poisson"))["s"]
    moments = np.concatenate([chunk.due for chunk in one.chunks if chunk.due is not None])
    assert (np.diff(moments) >= 0).all()
    assert moments[-1] < 3 * SECOND
