"""Tasks: trains in pieces, and helper processes that import little."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.engines.spark import tasks
from headway.engines.spark.tasks import pieces
from headway.schema import Schema
from headway.trains import Train, join_trains

SCHEMA = Schema.parse({"n": "bigint"})


def numbered(numbers: list[int]) -> Train:
    values = np.array(numbers, np.int64)
    return Train.from_batch(pa.RecordBatch.from_arrays([pa.array(values)], schema=SCHEMA.to_arrow()), numbers=values)


@settings(deadline=None)
@given(st.lists(st.integers(0, 2), max_size=60), st.integers(1, 9))
def test_pieces_are_cut_at_the_same_numbers_and_lose_nothing(owners: list[int], size: int) -> None:
    trains = {name: numbered([at for at, one in enumerate(owners) if one == owner]) for owner, name in enumerate("abc")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "_PIECE", size)
        found = list(pieces(trains))
    longest = max(trains, key=lambda name: len(trains[name]))
    last = -1
    for piece in found:
        numbers = [number for train in piece.values() for number in train.numbers.tolist()]
        assert all(number > last for number in numbers)
        assert len(piece[longest]) <= size
        last = max(numbers, default=last)
    for name, train in trains.items():
        both = join_trains([piece[name] for piece in found])
        assert both.numbers.tolist() == train.numbers.tolist()
        assert both.columns[0].values.tolist() == train.numbers.tolist()


def test_a_large_train_goes_through_in_pieces() -> None:
    count = 2 * tasks._PIECE + 1
    lengths = [len(piece["s"]) for piece in pieces({"s": numbered(list(range(count)))})]
    assert lengths == [tasks._PIECE, tasks._PIECE, 1]


def test_helper_processes_import_neither_kernels_nor_expressions() -> None:
    program = (
        "import sys, headway.engines.spark.source, headway.engines.spark.operator; "
        "print([name for name in ('numpy', 'pandas', 'pyarrow', 'sqlglot', 'headway.kernels') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
