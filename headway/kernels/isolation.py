"""Evaluation that survives bad tuples: they are found, set apart with the reason, and the rest goes on.

Expressions are evaluated on whole trains. Only when that fails is the train halved until the culprits are
alone, so a run without bad tuples pays nothing and one bad tuple costs a logarithm.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headway.columns import Column
from headway.expressions import EvaluationError, Expression
from headway.kernels.kernel import DeadLetter
from headway.schema import Schema
from headway.trains import Train


def failures(expressions: Sequence[Expression], columns: Sequence[Column | None], count: int) -> list[tuple[int, str]]:
    """Return position and reason of each tuple on which one of the expressions fails."""
    found: list[tuple[int, str]] = []
    pending = [(0, count)]
    while pending:
        start, stop = pending.pop()
        if start == stop:
            continue
        part = [None if column is None else column.slice(start, stop) for column in columns]
        try:
            for expression in expressions:
                expression.evaluate(part, stop - start)
        except EvaluationError as error:
            if stop - start == 1:
                found.append((start, str(error)))
            else:
                middle = (start + stop) // 2
                pending += [(middle, stop), (start, middle)]
    return found


def evaluate(
    expressions: Sequence[Expression], train: Train, schema: Schema, box: str
) -> tuple[Train, list[Column], tuple[DeadLetter, ...]]:
    """Return the tuples on which all expressions succeed, the expressions' values, and the others as dead letters."""
    count = len(train)
    try:
        return train, [expression.evaluate(train.columns, count) for expression in expressions], ()
    except EvaluationError:
        pass
    bad = failures(expressions, train.columns, count)
    rest = without(train, bad)
    try:
        values = [expression.evaluate(rest.columns, len(rest)) for expression in expressions]
    except EvaluationError as error:
        # Each tuple alone succeeds, but not all together, as with a function that returns the wrong number of values.
        bad = [(at, str(error)) for at in range(count)]
        rest = without(train, bad)
        values = [expression.evaluate(rest.columns, 0) for expression in expressions]
    return rest, values, letters(bad, train, schema, box)


def without(train: Train, bad: Sequence[tuple[int, str]]) -> Train:
    """Return a train without the tuples at these positions."""
    keep = np.ones(len(train), np.bool_)
    keep[[at for at, _ in bad]] = False
    return train.take(np.flatnonzero(keep))


def letters(bad: Sequence[tuple[int, str]], train: Train, schema: Schema, box: str) -> tuple[DeadLetter, ...]:
    """Return tuples of a train, by position, as dead letters, one letter for each reason."""
    by_reason: dict[str, list[int]] = {}
    for at, reason in bad:
        by_reason.setdefault(reason, []).append(at)
    return tuple(
        DeadLetter(box, reason, train.take(np.array(positions, np.intp)), schema)
        for reason, positions in by_reason.items()
    )
