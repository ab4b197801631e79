"""Bad tuples are found and set apart."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headway.columns import Column, from_pylist
from headway.expressions import Scope, compile_expression
from headway.kernels.kernel import DeadLetter
from headway.kernels.results import dead_letters, evaluate, failures
from headway.network.schema import Schema
from headway.trains import Tick, Train
from tests.kernels.helpers import few

SCHEMA = Schema.parse("v int, w int")
SCOPE = Scope.of(SCHEMA)
EXPRESSIONS = [compile_expression("10 div v", SCOPE), compile_expression("2147483647 + w", SCOPE)]
numbers = st.lists(st.tuples(st.integers(-1, 1) | st.none(), st.integers(-1, 1)), max_size=30)


def _train(rows: list[tuple[int | None, int]]) -> Train:
    columns = tuple(from_pylist([row[at] for row in rows], SCHEMA.types[at]) for at in (0, 1))
    count = len(rows)
    return Train(columns, np.arange(count) * 2, np.arange(count) * 3, 99, (Tick(98, 1),), True)


@few
@given(rows=numbers)
def test_failures_and_the_rest(rows: list[tuple[int | None, int]]) -> None:
    train = _train(rows)
    bad = [at for at, (v, w) in enumerate(rows) if v == 0 or w == 1]
    assert [at for at, _ in failures(EXPRESSIONS, train.columns, len(train))] == bad
    dead: list[DeadLetter] = []
    rest, values, kept = evaluate(EXPRESSIONS, train, SCHEMA, "box", dead)
    good = [at for at in range(len(rows)) if at not in bad]
    assert np.arange(len(rows))[kept].tolist() == good
    assert rest.numbers.tolist() == [3 * at for at in good]
    assert (rest.progress, rest.ticks, rest.end) == (99, (Tick(98, 1),), True)
    assert [len(one) for one in values] == [len(good)] * 2
    assert values[1].values.tolist() == [2147483647 + rows[at][1] for at in good]
    assert sorted(number for letter in dead for number in letter.train.numbers.tolist()) == [3 * at for at in bad]
    assert all(letter.box == "box" and letter.schema is SCHEMA for letter in dead)
    assert len({letter.reason for letter in dead}) == len(dead)


def test_nothing_is_copied_where_nothing_fails() -> None:
    train = _train([(1, 0), (None, -1)])
    dead: list[DeadLetter] = []
    rest, _, kept = evaluate(EXPRESSIONS, train, SCHEMA, "box", dead)
    assert rest is train
    assert kept == slice(None)
    assert dead == []


def test_one_letter_for_each_reason() -> None:
    train = Train((Column(np.arange(4)), Column(np.arange(4))), np.zeros(4, np.int64), np.arange(4))
    made = dead_letters([(0, "x"), (1, "y"), (3, "x")], train, SCHEMA, "b")
    assert [(one.reason, one.train.numbers.tolist()) for one in made] == [("x", [0, 3]), ("y", [1])]
