"""Trains of one call, cut into pieces, and results put together again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headway.boxes.join import Join
from headway.columns import Column
from headway.kernels.compile import compile_kernel
from headway.kernels.kernel import Result
from headway.kernels.results import BYTES, cut, in_pieces, portions, whole
from headway.network.schema import Schema
from headway.trains import Tick, Train

numbers = st.lists(st.integers(0, 30), max_size=20).map(sorted)


def _train(some: list[int], progress: int, ticks: tuple[Tick, ...] = (), end: bool = False) -> Train:
    array = np.array(some, np.int64)
    return Train((Column(array * 10),), array + 1, array, progress, ticks, end)


@given(left=numbers, right=numbers, step=st.integers(1, 9), ticks=st.sets(st.integers(0, 30)), end=st.booleans())
def test_cut(left: list[int], right: list[int], step: int, ticks: set[int], end: bool) -> None:
    if len(left) + len(right) <= step:
        return
    marks = tuple(Tick(number, 7) for number in sorted(ticks))
    both = (_train(left, 31, marks, end), _train(right, 31, marks, end))
    pieces = list(cut(both, step))
    for side, original in enumerate((left, right)):
        mine = [piece[side] for piece in pieces]
        assert [number for train in mine for number in train.numbers.tolist()] == original
        assert [value for train in mine for value in train.columns[0].values.tolist()] == [10 * n for n in original]
        assert tuple(tick for train in mine for tick in train.ticks) == marks
        assert [train.end for train in mine] == [False] * (len(mine) - 1) + [end]
        assert mine[-1].progress == 31
        for train, following in pairwise(mine):
            assert all(number <= train.progress for number in train.numbers.tolist())
            assert all(number > train.progress for number in following.numbers.tolist())
            assert all(tick.number <= train.progress for tick in train.ticks)
    assert all(one[0].progress == one[1].progress for one in pieces)


@given(left=numbers, step=st.integers(1, 9))
def test_pieces_make_the_whole(left: list[int], step: int) -> None:
    seen = []

    def run(state: list[int], trains: Sequence[Train]) -> Result:
        (train,) = trains
        seen.append(len(train))
        return Result((train,), len(train))

    result = in_pieces(run, [], (_train(left, 31),), step)
    assert len(seen) == 1  # the others only when they are asked for
    made = whole(result)
    assert made.outputs[0].numbers.tolist() == left
    assert made.outputs[0].progress == 31
    assert made.ignored == len(left)
    assert made.rest is None


@given(weights=st.lists(st.integers(1, 3_000_000), max_size=8))
def test_portions(weights: list[int]) -> None:
    found = portions(np.array(weights, np.int64))
    assert [at for one in found for at in range(one.start, one.stop)] == list(range(len(weights)))
    assert all(one.stop > one.start for one in found)


def test_a_cross_join_never_holds_more_than_a_piece() -> None:
    count = 1500
    schema = Schema.parse("t bigint")
    order = {"on": "t"}
    spec = Join.parse("j", {"op": "join", "on": "true", "size": 10**9, "order": [order, order]})
    kernel = compile_kernel(spec, "j", [schema, schema], [None, None], None)
    places = np.arange(2 * count, dtype=np.int64)
    left = Train((Column(places[::2]),), places[::2], places[::2], 2 * count)
    right = Train((Column(places[1::2]),), places[1::2], places[1::2], 2 * count)
    _, result = kernel.run(kernel.initial(), (left, right), 0)
    assert result.rest is not None
    sizes, last = [], -1
    for piece in [result, *result.rest]:
        train = piece.outputs[0]
        sizes.append(train.nbytes)
        assert int(train.numbers[0]) >= last
        last = int(train.numbers[-1])
        assert train.progress == 2 * count or train.progress == last - 1
    assert sum(sizes) == 32 * count * count
    assert max(sizes) < 2 * BYTES
