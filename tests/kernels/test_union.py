"""Merging trains by arrival number."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headway.boxes import Union
from headway.columns import Column
from headway.kernels.compile import compile_kernel
from headway.trains import Tick, Train, merge
from tests.kernels.helpers import few

streams = st.lists(st.lists(st.integers(0, 12), max_size=8).map(sorted), min_size=2, max_size=4)


def _train(who: int, numbers: list[int], progress: int, ticks: tuple[Tick, ...] = (), end: bool = False) -> Train:
    at = np.array(numbers, np.int64)
    return Train((Column(np.full(len(at), who)),), at + 50, at, progress, ticks, end)


@few
@given(inputs=streams)
def test_sorted_by_number_then_by_input(inputs: list[list[int]]) -> None:
    merged = merge([_train(who, numbers, 12 + who) for who, numbers in enumerate(inputs)])
    expected = sorted((number, who) for who, numbers in enumerate(inputs) for number in numbers)
    assert list(zip(merged.numbers.tolist(), merged.columns[0].values.tolist(), strict=True)) == expected
    assert merged.stamps.tolist() == [number + 50 for number, _ in expected]
    assert merged.progress == 12


def test_a_tick_counts_once_and_the_end_when_all_have_ended() -> None:
    tick = Tick(5, 1)
    both = merge([_train(0, [1], 6, (tick,), True), _train(1, [], 6, (tick,), False)])
    assert (both.ticks, both.end) == ((tick,), False)
    kernel = compile_kernel(Union(), "u", [], (), None)
    _, result = kernel.run(None, [_train(0, [], 6, (), True), _train(1, [], 6, (), True)], 0)
    assert result.outputs[0].end
