"""Results of kernels: failing tuples become dead letters, windows' results are collected, many come in pieces.

Expressions are evaluated on whole trains. Only when that fails is the train halved until the bad tuples are isolated,
so a run without bad tuples pays nothing, and one bad tuple costs a logarithmic number of steps.

A call whose results would fill the memory yields them piece by piece. Results do not depend on where trains are cut, so
a kernel may cut the trains of one call itself, or its candidate pairs, and the caller processes each piece before it
asks for the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from headway.columns import Column, Indices, Int64s, Values, numpy_type
from headway.expressions import EvaluationError, Expression
from headway.kernels.accumulators import Arrays
from headway.kernels.kernel import DeadLetter, Result
from headway.kernels.selects import CompiledSelect, Failed, Rows
from headway.network.schema import Field, Schema, type_name
from headway.trains import NOTHING, Tick, Train, join_trains


def failures(expressions: Sequence[Expression], columns: Sequence[Column | None], count: int) -> Failed:
    """Return position and reason of each tuple on which one of the expressions fails."""
    found: Failed = []
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
    expressions: Sequence[Expression], train: Train, schema: Schema, box: str, dead: list[DeadLetter]
) -> tuple[Train, list[Column], Indices | slice]:
    """Return the tuples on which all expressions succeed, the expressions' values, and which tuples these are.

    The others are added to `dead`.
    """
    count = len(train)
    try:
        return train, [expression.evaluate(train.columns, count) for expression in expressions], _ALL
    except EvaluationError:
        pass
    bad = failures(expressions, train.columns, count)
    kept = others(bad, count)
    rest = train.take(kept)
    try:
        values = [expression.evaluate(rest.columns, len(rest)) for expression in expressions]
    except EvaluationError as error:
        # Each tuple alone succeeds, but not all together, as with a function that returns the wrong number of values.
        bad, kept = [(at, str(error)) for at in range(count)], kept[:0]
        rest = train.take(kept)
        values = [expression.evaluate(rest.columns, 0) for expression in expressions]
    dead += dead_letters(bad, train, schema, box)
    return rest, values, kept


def others(bad: Failed, count: int) -> Indices:
    """Return the positions, out of `count`, at which nothing has failed."""
    keep = np.ones(count, np.bool_)
    keep[[at for at, _ in bad]] = False
    return np.flatnonzero(keep)


def dead_letters(bad: Failed, train: Train, schema: Schema, box: str) -> tuple[DeadLetter, ...]:
    """Return tuples of a train, by position, as dead letters, one letter for each reason."""
    by_reason: dict[str, list[int]] = {}
    for at, reason in bad:
        by_reason.setdefault(reason, []).append(at)
    return tuple(
        DeadLetter(box, reason, train.take(np.array(positions, np.intp)), schema)
        for reason, positions in by_reason.items()
    )


_ALL = slice(None)
BYTES = 16 << 20
"""Approximate bytes of a piece, where the width of its rows is known."""
ROWS = 1 << 17
"""Approximate rows of a piece, where only their number is known."""
PAIRS = 1 << 20
"""Candidates for results, such as pairs, that are processed together; more would only cost memory."""


def in_pieces(run: Callable[[Any, Sequence[Train]], Result], state: Any, trains: Sequence[Train], step: int) -> Result:
    """Run a kernel over `step` tuples at a time; the state changes as the pieces are consumed."""
    if sum([len(train.numbers) for train in trains]) <= step:
        return run(state, trains)

    def pieces() -> Iterator[Result]:
        for piece in cut(trains, step):
            result = run(state, piece)
            yield result._replace(rest=None)
            if result.rest is not None:
                yield from result.rest

    results = pieces()
    return next(results)._replace(rest=results)


def cut(trains: Sequence[Train], step: int) -> Iterator[tuple[Train, ...]]:
    """Yield the trains of one call in pieces of about `step` tuples, each piece up to one arrival number.

    Ticks go with the numbers before them; the end and the final progress come with the last piece.
    """
    reached = [np.maximum.accumulate(train.numbers) if len(train) else train.numbers for train in trains]
    every = np.sort(np.concatenate(reached))
    # Tuples of one number stay together: a box with several inputs gets all of them at once.
    upto = np.unique(every[step - 1 : -1 : step]).tolist()
    upto = [one for one in upto if one < every[-1]]
    places, below = [0] * len(trains), -(1 << 63)
    for number in [*upto, None]:
        piece = []
        for at, train in enumerate(trains):
            start, last = places[at], number is None
            stop = len(train) if last else int(np.searchsorted(reached[at], number, side="right"))
            some = [column.slice(start, stop) for column in train.columns]
            ticks = tuple([one for one in train.ticks if one.number > below and (last or one.number <= number)])
            progress = train.progress if number is None else number
            stamps, numbers = train.stamps[start:stop], train.numbers[start:stop]
            piece.append(Train(tuple(some), stamps, numbers, progress, ticks, train.end and last))
            places[at] = stop
        below = below if number is None else number
        yield tuple(piece)


def between_ticks(train: Train, wanted: bool) -> Iterator[tuple[Train, Tick | None]]:
    """Yield the tuples up to each tick, with the tick, then the rest; all at once unless ticks are `wanted`."""
    at = 0
    for tick in train.ticks if wanted else ():
        stop = int(np.searchsorted(train.numbers, tick.number, side="right"))
        yield train.slice(at, stop), tick
        at = stop
    yield (train.slice(at, len(train)) if at else train), None


def portions(weights: Int64s) -> list[slice]:
    """Divide neighbours into portions with a weight of about PAIRS, and at least one element, each."""
    after = np.cumsum(weights)
    if len(after) == 0 or after[-1] <= PAIRS:
        return [slice(0, len(after))] if len(after) else []
    starts = [0, *(np.flatnonzero(np.diff((after - weights) // PAIRS)) + 1).tolist(), len(after)]
    return [slice(start, stop) for start, stop in pairwise(starts)]


def whole(result: Result) -> Result:
    """Return a result with all its pieces joined, for callers that need them together."""
    if result.rest is None:
        return result
    every = [result, *result.rest]
    last = every[-1]
    outputs = []
    for port, train in enumerate(last.outputs):
        filled = [one.outputs[port] for one in every if len(one.outputs[port]) or one.outputs[port].ticks]
        joined = join_trains(filled) if filled else train
        outputs.append(Train(joined.columns, joined.stamps, joined.numbers, train.progress, joined.ticks, train.end))
    return Result(
        tuple(outputs),
        sum(one.ignored for one in every),
        tuple([letter for one in every for letter in one.dead]),
        tuple([sum(counts) for counts in zip(*[one.counts for one in every], strict=False)]),
    )


@dataclass(slots=True)
class Emitted:
    """What one call of a kernel has emitted so far: ordered results, dead letters, ignored tuples."""

    parts: list[Train] = field(default_factory=list)
    dead: list[DeadLetter] = field(default_factory=list)
    ignored: int = 0

    def result(
        self, schema: Schema, cause: Train, more: Iterator[Emitted] | None = None, ordered: bool = True
    ) -> Result:
        """Return all results, and those of `more` on demand; the last carry the progress, ticks and end of `cause`.

        `ordered`: none of `more` has a smaller arrival number than those before it.
        """
        if more is not None:
            return next(results := self._results(schema, cause, more, ordered))._replace(rest=results)
        every = join_trains(self.parts) if self.parts else Train.empty(schema)
        train = Train(every.columns, every.stamps, every.numbers, cause.progress, cause.ticks, cause.end)
        return Result((train,), self.ignored, tuple(self.dead))

    def _results(self, schema: Schema, cause: Train, more: Iterator[Emitted], ordered: bool) -> Iterator[Result]:
        last = self
        for following in more:
            if not last.size or last.size + following.size <= 1:
                last.parts += following.parts
                last.dead += following.dead
                last.ignored += following.ignored
            else:
                # More results may follow with the last one's number.
                upto = int(last.parts[-1].numbers[-1]) - 1 if ordered and last.size else NOTHING
                yield last.result(schema, Train((), cause.stamps[:0], cause.numbers[:0], upto))
                last = following
        yield last.result(schema, cause)

    @property
    def size(self) -> float:
        """How large the results are so far, in pieces."""
        return max(
            sum([len(part.numbers) for part in self.parts]) / ROWS, sum([part.nbytes for part in self.parts]) / BYTES
        )


class Emission:
    """Builds result tuples: order field and `by` fields, then the select list's results.

    `order_last` is Resample's form: `by` fields first.
    """

    def __init__(
        self,
        box: str,
        select: CompiledSelect,
        schema: Schema,
        by_types: Sequence[pa.DataType],
        order_last: bool = False,
    ) -> None:
        """Compile for a result schema."""
        self._box = box
        self._select = select
        self._results = [expression for _, expression in select.results]
        self._order_last = order_last
        position = len(by_types) if order_last else 0
        type_ = schema.types[position]
        self._order_dtype = numpy_type(type_)
        self._narrow = self._order_dtype is not None and self._order_dtype.itemsize < 8
        self._too_far = f"the window's start does not fit {type_name(type_)}"
        fields = [Field(f"{call.function}#{at}", call.type) for at, call in enumerate(select.calls)]
        # The tuple that a dead letter shows when a result fails: the calls' values, the by fields, and which window.
        by_fields = [schema.fields[at if order_last else at + 1] for at in range(len(by_types))]
        self._inner_schema = Schema((*fields, *by_fields, schema.fields[position]))

    def add(
        self,
        emitted: Emitted,
        start: Values,
        by: tuple[Column, ...],
        arrays: Sequence[Arrays],
        rows: Rows,
        held: Sequence[Column],
        stamps: Int64s,
        numbers: Int64s,
    ) -> None:
        """Emit one result for each group; those whose expressions fail become dead letters."""
        calls, failed = self._select.values(arrays, rows, held)
        order = Column(start.astype(self._order_dtype, copy=False))
        if self._narrow:
            # A window may start before the least value of a narrow type. A float is rounded to the nearest.
            fits = np.isfinite(order.values) if order.values.dtype.kind == "f" else order.values == start
            if not fits.all():
                failed = [*failed, *[(int(at), self._too_far) for at in np.flatnonzero(~fits)]]
        # The order value is added as the last column, so that it is dropped with a failing tuple.
        inner = Train((*calls, *by, order), stamps, numbers)
        if failed:
            emitted.dead += dead_letters(failed, inner, self._inner_schema, self._box)
            inner = inner.take(others(failed, len(inner)))
        inner, results, _ = evaluate(self._results, inner, self._inner_schema, self._box, emitted.dead)
        width = len(calls)
        by, order = inner.columns[width:-1], inner.columns[-1]
        head = (*by, order) if self._order_last else (order, *by)
        emitted.parts.append(Train((*head, *results), inner.stamps, inner.numbers))
