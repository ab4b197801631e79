"""The running universal box: who passes, how often, and at what cost."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import floor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.boxes import Union, Universal
from headway.boxes.costs import Uniform, tuple_keys
from headway.clock import MILLISECOND, burn, stopwatch
from headway.columns import Column
from headway.errors import RunError
from headway.kernels import universal
from headway.kernels.compile import compile_kernel
from headway.kernels.universal import UniversalKernel, UniversalState
from headway.network.schema import Schema
from headway.trains import Tick, Train, merge
from tests.kernels.helpers import few
from tests.reference.tuples import Tuple
from tests.reference.universal import Universal as Reference

SCHEMA = Schema.parse("who bigint")


def make(**keys: Any) -> UniversalKernel:
    return UniversalKernel(Universal.parse("box", keys), "box", [SCHEMA], (), None)


def train(numbers: list[int] | int, **rest: Any) -> Train:
    """Return a train whose tuples are numbered in their one field, so that copies can be told from others."""
    at = np.arange(numbers) if isinstance(numbers, int) else np.array(numbers, np.int64)
    return Train((Column(np.arange(len(at))),), at * 10, at, **rest)


def who(output: Train) -> list[int]:
    found: list[int] = output.columns[0].values.tolist()
    return found


def passed(kernel: UniversalKernel, given: Train, state: UniversalState | None = None) -> list[int]:
    _, result = kernel.run(kernel.initial() if state is None else state, [given], 0)
    return who(result.outputs[0])


@pytest.mark.parametrize(
    ("selectivity", "expected"),
    [
        (0, []),
        (1, [0, 1, 2, 3, 4]),
        (2, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]),
        (0.5, [1, 3]),
        (0.4, [2, 4]),
        (0.2, [4]),
        (2.5, [0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 4, 4]),
        (1 / 3, [2]),
    ],
)
def test_even_by_hand(selectivity: float, expected: list[int]) -> None:
    assert passed(make(selectivity=selectivity, mode="even"), train(5)) == expected


@few
@given(
    selectivity=st.integers(0, 3 * 10**9).map(lambda part: part / 10**9) | st.floats(0, 5),
    seen=st.integers(0, 10**18),
    count=st.integers(1, 40),
)
def test_even_is_exact_however_many_have_come(selectivity: float, seen: int, count: int) -> None:
    kernel = make(selectivity=selectivity, mode="even")
    ratio = Fraction(repr(selectivity)).limit_denominator(10**9)
    found = passed(kernel, train(count), UniversalState(seen))
    assert len(found) == floor((seen + count) * ratio) - floor(seen * ratio)
    assert found == sorted(found)


@few
@given(
    numbers=st.lists(st.integers(0, 9), max_size=30).map(sorted),
    selectivity=st.sampled_from(["0", "0.3", "0.5", "1", "1.75", "3"]),
    mode=st.sampled_from(["random", "even"]),
    seed=st.integers(0, 5),
)
def test_as_the_reference_says(numbers: list[int], selectivity: str, mode: str, seed: int) -> None:
    reference = Reference("box", selectivity, mode, seed)
    expected = [
        emitted.tuple.row["who"]
        for at, number in enumerate(numbers)
        for emitted in reference.push(0, Tuple({"who": at}, 0, number))
    ]
    kernel = make(selectivity=float(selectivity), mode=mode, seed=seed)
    assert passed(kernel, train(numbers)) == expected


COSTS: tuple[Any, ...] = (0, "2ms", {"uniform": ["1ms", "3ms"]}, {"zipf": [1.5, 9, "1ms"]})


@few
@given(
    numbers=st.lists(st.integers(0, 9), max_size=30).map(sorted),
    cuts=st.lists(st.integers(0, 30), max_size=4).map(sorted),
    selectivity=st.sampled_from([0, 0.3, 1, 1.75, 3]),
    mode=st.sampled_from(["random", "even"]),
    cost=st.sampled_from(COSTS),
)
def test_trains_change_neither_results_nor_costs(
    numbers: list[int], cuts: list[int], selectivity: float, mode: str, cost: Any
) -> None:
    kernel = make(selectivity=selectivity, mode=mode, cost=cost, seed=3)
    whole = train(numbers)
    burnt: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(universal, "burn", burnt.append)
        _, at_once = kernel.run(kernel.initial(), [whole], 0)
        together = sum(burnt)
        burnt.clear()
        state, outputs = kernel.initial(), []
        for start, stop in pairwise([0, *cuts, len(numbers)]):
            state, result = kernel.run(kernel.load(kernel.dump(state)), [whole.slice(start, max(start, stop))], 0)
            outputs.append(result.outputs[0])
    assert [one for output in outputs for one in who(output)] == who(at_once.outputs[0])
    assert [one for output in outputs for one in output.numbers.tolist()] == at_once.outputs[0].numbers.tolist()
    assert sum(burnt) == pytest.approx(together, abs=len(outputs))  # each is rounded to whole nanoseconds


def test_copies_keep_stamp_and_number() -> None:
    _, result = make(selectivity=2).run(UniversalState(), [train([4, 4, 9])], 0)
    (output,) = result.outputs
    assert output.numbers.tolist() == [4, 4, 4, 4, 9, 9]
    assert output.stamps.tolist() == [40, 40, 40, 40, 90, 90]


@pytest.mark.parametrize("mode", ["random", "even"])
@pytest.mark.parametrize("count", [0, 3])
def test_progress_ticks_and_end_pass_also_where_no_tuple_does(mode: str, count: int) -> None:
    given = train(count, progress=8, ticks=(Tick(5, 1),), end=True)
    _, result = make(selectivity=0, mode=mode).run(UniversalState(), [given], 0)
    (output,) = result.outputs
    assert (len(output), output.progress, output.ticks, output.end) == (0, 8, (Tick(5, 1),), True)


def test_several_inputs_are_merged_as_a_union_does() -> None:
    trains = [train([1, 5, 5], progress=6), train([0, 5, 6], progress=7)]
    expected = merge(trains)
    _, found = make().run(UniversalState(), trains, 0)
    assert found.outputs[0].numbers.tolist() == expected.numbers.tolist() == [0, 1, 5, 5, 5, 6]
    assert who(found.outputs[0]) == who(expected)
    assert found.outputs[0].progress == 6
    _, halved = make(selectivity=0.5, mode="even").run(UniversalState(), trains, 0)
    assert halved.outputs[0].numbers.tolist() == [1, 5, 6]


def test_random_passes_about_its_share_and_by_the_seed() -> None:
    many = train(100_000)
    share = len(passed(make(selectivity=0.3), many)) / len(many)
    assert abs(share - 0.3) < 5 * (0.3 * 0.7 / len(many)) ** 0.5
    copies = np.bincount(passed(make(selectivity=2.25), many))
    assert set(copies.tolist()) == {2, 3}
    assert abs((copies == 3).mean() - 0.25) < 0.01
    assert passed(make(selectivity=0.3), many) == passed(make(selectivity=0.3), many)
    assert passed(make(selectivity=0.3, seed=1), many) != passed(make(selectivity=0.3), many)
    renamed = UniversalKernel(Universal(selectivity=0.3), "other", [SCHEMA], (), None)
    assert passed(renamed, many) != passed(make(selectivity=0.3), many)


def test_states_are_not_changed_so_that_a_start_can_be_used_again() -> None:
    kernel = make(selectivity=0.5, mode="even")
    start = kernel.initial()
    after, _ = kernel.run(start, [train([2, 2, 2])], 0)
    assert start == UniversalState()
    assert (after.seen, kernel.deadline(after)) == (3, None)
    keyed, _ = make(selectivity=0.5).run(start, [train([2, 2, 2])], 0)
    assert keyed.last == (2, 2)


@pytest.mark.parametrize("data", [b"", b"nonsense", b"HWS1"])
def test_foreign_states_are_refused(data: bytes) -> None:
    with pytest.raises(RunError, match="saved state"):
        make().load(data)
    with pytest.raises(RunError, match="saved state"):
        make().load(make().dump(UniversalState("many")))  # type: ignore[arg-type]


class TestBurning:
    def test_the_sum_of_a_train_is_burnt_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        burnt: list[int] = []
        monkeypatch.setattr(universal, "burn", burnt.append)
        passed(make(cost="2ms", selectivity=0.5), train(7))
        assert burnt == [14 * MILLISECOND]
        burnt.clear()
        kernel = make(cost={"uniform": ["1ms", "3ms"]}, seed=5)
        passed(kernel, train(7))
        numbers = np.arange(7)
        expected = Uniform(0.001, 0.003).seconds(tuple_keys(5, "box", numbers, numbers * 0)).sum()
        assert burnt == [round(expected * 1e9)]
        burnt.clear()
        passed(make(cost="2ms"), train(0))
        assert sum(burnt) == 0

    def test_it_takes_as_long_as_it_costs(self) -> None:
        begun = stopwatch()
        passed(make(cost="2ms"), train(10))
        assert stopwatch() - begun >= 20 * MILLISECOND
        begun = stopwatch()
        burn(0)
        burn(-5 * MILLISECOND)
        passed(make(), train(10))
        assert stopwatch() - begun < 1_000 * MILLISECOND

    def test_engines_with_a_time_of_their_own_do_not_burn(self) -> None:
        spec = Universal.parse("box", {"cost": "1 hour", "selectivity": 0.5, "mode": "even"})
        loud = compile_kernel(spec, "box", [SCHEMA], [None], None)
        assert isinstance(loud, UniversalKernel)
        assert loud.burns
        quiet = loud.without_burning()
        state, result = quiet.run(quiet.initial(), [train(4)], 0)  # the test would last four hours
        assert who(result.outputs[0]) == [1, 3]
        assert state.seen == 4
        other = compile_kernel(Union(), "box", [SCHEMA] * 2, (), None)
        assert other.without_burning() is other
