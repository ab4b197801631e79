"""Results of windows on their way out: gathered during a call, then one train."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from headway.columns import Column, Int64s, Values, concat, numpy_type
from headway.kernels.accumulators import Arrays
from headway.kernels.holistic import Rows
from headway.kernels.isolation import evaluate, letters, without
from headway.kernels.kernel import DeadLetter, Result
from headway.kernels.pieces import ROWS
from headway.kernels.selects import CompiledSelect
from headway.schema import Field, Schema, type_name
from headway.trains import Train


class Emitted:
    """What one call of a kernel has emitted so far."""

    __slots__ = ("_parts", "dead", "ignored")

    def __init__(self) -> None:
        """Start with nothing."""
        self._parts: list[Train] = []
        self.dead: list[DeadLetter] = []
        self.ignored = 0

    def add(self, part: Train) -> None:
        """Add results, in their order."""
        self._parts.append(part)

    def train(self, schema: Schema, cause: Train) -> Train:
        """Return all results as one train, with the progress, ticks and end of the train that caused them."""
        parts = self._parts
        if not parts:
            return Train.empty(schema, cause.progress, cause.ticks, cause.end)
        if len(parts) == 1:
            whole = parts[0]
            return Train(whole.columns, whole.stamps, whole.numbers, cause.progress, cause.ticks, cause.end)
        return Train(
            tuple(concat([part.columns[at] for part in parts]) for at in range(len(schema))),
            np.concatenate([part.stamps for part in parts]),
            np.concatenate([part.numbers for part in parts]),
            cause.progress,
            cause.ticks,
            cause.end,
        )

    def result(self, schema: Schema, cause: Train, more: Iterator[Emitted] | None = None) -> Result:
        """Return all results, and those of `more` when they are asked for; the last bring what `cause` does."""
        if more is None:
            return Result((self.train(schema, cause),), self.ignored, tuple(self.dead))
        return next(results := self._results(schema, cause, more))._replace(rest=results)

    def _results(self, schema: Schema, cause: Train, more: Iterator[Emitted]) -> Iterator[Result]:
        # More may come at the end's own number.
        before = Train((), cause.stamps[:0], cause.numbers[:0], cause.progress - 1)
        last = self
        for following in more:
            if last.rows + following.rows <= ROWS:
                last._parts += following._parts
                last.dead += following.dead
                last.ignored += following.ignored
            else:
                yield last.result(schema, before)
                last = following
        yield last.result(schema, cause)

    @property
    def rows(self) -> int:
        """The results so far."""
        return sum([len(part.numbers) for part in self._parts])


class Emission:
    """Makes result tuples: order field and `by` fields, then the select list's results.

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
        self.schema = schema
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
            # A window may start before the least value of a narrow type. A float is the nearest there is.
            fits = np.isfinite(order.values) if order.values.dtype.kind == "f" else order.values == start
            if not fits.all():
                failed = [*failed, *[(int(at), self._too_far) for at in np.flatnonzero(~fits)]]
        # The order value rides along as a last column, so that it is dropped with a failing tuple.
        inner = Train((*calls, *by, order), stamps, numbers)
        if failed:
            emitted.dead += letters(failed, inner, self._inner_schema, self._box)
            inner = without(inner, failed)
        inner, results, dead = evaluate(self._results, inner, self._inner_schema, self._box)
        emitted.dead += dead
        width = len(calls)
        by, order = inner.columns[width:-1], inner.columns[-1]
        head = (*by, order) if self._order_last else (order, *by)
        emitted.add(Train((*head, *results), inner.stamps, inner.numbers))
