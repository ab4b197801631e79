"""Neighbouring filters and maps as one kernel; a single filter or map is a chain of one.

A filter does not copy: it narrows a mask over the tuples, and the columns that are still needed are taken
once, at the end, before a map, or when less than half of the tuples are left. A predicate may thus be
evaluated on tuples that an earlier one dropped. If an expression fails on any tuple, the train goes through
the chain again box by box, so that only tuples that reach a box can fail in it and become its dead letters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from headway.boxes.filter import Filter
from headway.columns import UNREAD, Column, Int64s, Mask, numpy_type, truth
from headway.expressions import EvaluationError, Expression, Functions
from headway.expressions.nodes import Run
from headway.kernels.kernel import DeadLetter, Kernel, Result, Tables
from headway.kernels.results import BYTES, evaluate
from headway.network.schema import Schema
from headway.trains import Train, merge, take_numbers

_FIRST = 64
"""Tuples that are processed at first, while the length of the texts they produce is unknown."""
_LONG = 256
"""From this many tuples on, columns are taken only when they are read."""


@dataclass(frozen=True, slots=True)
class Link:
    """One box of a chain: a predicate, or the fields that a map makes; `schema` is that of its input."""

    box: str
    schema: Schema
    predicate: Expression | None = None
    fields: tuple[Expression, ...] = ()


@dataclass(slots=True)
class ChainKernel(Kernel):
    """Run the links in order over a train; the one output is the last link's."""

    links: tuple[Link, ...]
    wanted: frozenset[int] | None = None
    """The columns of the output that its consumer reads; None: all. Others are left out. Only after a filter."""
    _needed: list[frozenset[int]] = field(init=False, repr=False)
    _made: list[list[Run]] = field(init=False, repr=False)
    _most: int = field(default=0, init=False, repr=False)
    _few: int | None = field(init=False, repr=False)
    """How many tuples are processed together if links make texts, which may be long; None: all, as none do."""

    def __post_init__(self) -> None:
        """Determine which columns are needed before each link, and at the end."""
        last = self.links[-1]
        needed = frozenset(range(len(last.schema) if last.predicate else len(last.fields)))
        if self.wanted is not None:
            needed &= self.wanted
        self._made = [[expression.evaluate for expression in link.fields] for link in self.links]
        made = [expression for link in self.links for expression in link.fields if expression.field is None]
        self._few = None if all(numpy_type(expression.type) is not None for expression in made) else _FIRST
        self._needed = [needed]
        for link in reversed(self.links):
            if link.predicate:
                needed |= frozenset(link.predicate.slots)
            else:
                needed = frozenset(slot for expression in link.fields for slot in expression.slots)
            self._needed.insert(0, needed)

    def run(self, state: None, trains: Sequence[Train], now: int) -> tuple[None, Result]:
        """Run one train through the chain."""
        (train,) = trains
        if self._few is None or train.ticks:
            return None, self._run_whole(train)
        if len(train) <= self._few:
            return None, self._run_texts(train)
        results = self._run_pieces(train)
        return None, next(results)._replace(rest=results)

    def _run_whole(self, train: Train) -> Result:
        try:
            return self._run_one(self.links[0], train) if len(self.links) == 1 else self._run_links(train)
        except EvaluationError:
            return self._run_apart(train)

    def _run_texts(self, train: Train) -> Result:
        """Run a train, and adapt `_few` to the length of the texts that it makes."""
        self._most = 0
        result = self._run_whole(train)
        count = len(train)
        if count and self._few is not None:
            width = max(1, max(self._most, result.outputs[0].nbytes) // count)
            self._few = max(1, min(4 * max(count, self._few), BYTES // width))
        return result

    def _run_pieces(self, train: Train) -> Iterator[Result]:
        start, count = 0, len(train)
        while start < count:
            stop = min(count, start + (self._few or count))
            part = train.slice(start, stop)
            if stop == count:
                part = Train(part.columns, part.stamps, part.numbers, train.progress, (), train.end)
            yield self._run_texts(part)
            start = stop

    def _run_links(self, train: Train) -> Result:
        work = _Work(train)
        counts: list[int] = []
        for at, link in enumerate(self.links):
            counts.append(work.alive)
            if link.predicate is not None:
                work.narrow(link.predicate, self._needed[at + 1])
            else:
                work.compact(self._needed[at])
                columns, count = work.columns, work.count
                work.columns = [make(columns, count) for make in self._made[at]]
                if self._few is not None:
                    made = sum([column.nbytes for column in work.columns if column is not None])
                    self._most = max(self._most, made)
        work.compact(self._needed[-1])
        left = tuple([UNREAD if column is None else column for column in work.columns])
        output = Train(left, work.stamps, work.numbers, train.progress, train.ticks, train.end)
        return Result((output,), counts=tuple(counts))

    def _run_one(self, link: Link, train: Train) -> Result:
        """Run a chain of one without the bookkeeping of a longer one."""
        count = len(train.numbers)
        if link.predicate is None:
            return Result((train.with_columns([field.evaluate(train.columns, count) for field in link.fields]),))
        mask = truth(link.predicate.evaluate(train.columns, count))
        if np.count_nonzero(mask) == count:
            return Result((train,))
        if self.wanted is not None and count >= _LONG:
            return Result((train.choose(mask.nonzero()[0], self.wanted),))
        return Result((train.take(mask.nonzero()[0]),))

    def _run_apart(self, train: Train) -> Result:
        counts: list[int] = []
        dead: list[DeadLetter] = []
        for link in self.links:
            counts.append(len(train))
            expressions = link.fields if link.predicate is None else (link.predicate,)
            train, values, _ = evaluate(expressions, train, link.schema, link.box, dead)
            if link.predicate is None:
                train = train.with_columns(values)
            else:
                train = train.take(np.flatnonzero(truth(values[0])))
        return Result((train,), dead=tuple(dead), counts=tuple(counts))


class RouteKernel(Kernel):
    """Filter with several outputs: a tuple goes to the first predicate that is true, else to the last output."""

    def __init__(
        self, spec: Filter, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None
    ) -> None:
        super().__init__(spec, box, schemas, tables, functions)
        self._predicates = spec.predicates(schemas[0], functions)

    def run(self, state: None, trains: Sequence[Train], now: int) -> tuple[None, Result]:
        """Divide a train; a predicate sees only the tuples for which no earlier one was true."""
        (rest,) = trains
        outputs: list[Train] = []
        dead: list[DeadLetter] = []
        for predicate in self._predicates:
            rest, (answer,), _ = evaluate((predicate,), rest, self._schemas[0], self._box, dead)
            mask = truth(answer)
            outputs.append(rest.take(np.flatnonzero(mask)))
            rest = rest.take(np.flatnonzero(~mask))
        return None, Result((*outputs, rest), dead=tuple(dead))


class UnionKernel(Kernel):
    """Merge one train of each input by arrival number. The engine has cut the trains at one arrival number."""

    def run(self, state: None, trains: Sequence[Train], now: int) -> tuple[None, Result]:
        """Merge."""
        return None, Result((merge(trains),))


class _Work:
    """A train on its way through a chain."""

    __slots__ = ("alive", "columns", "count", "live", "numbers", "stamps")

    def __init__(self, train: Train) -> None:
        self.columns: list[Column | None] = list(train.columns)
        self.stamps: Int64s = train.stamps
        self.numbers: Int64s = train.numbers
        self.count = self.alive = len(train)
        self.live: Mask | None = None

    def narrow(self, predicate: Expression, needed: frozenset[int]) -> None:
        """Drop the tuples for which the predicate is not true."""
        mask = truth(predicate.evaluate(self.columns, self.count))
        if self.live is not None:
            mask = mask & self.live
        self.alive = int(np.count_nonzero(mask))
        if self.alive < self.count:
            self.live = mask
            if 2 * self.alive < self.count:
                self.compact(needed)

    def compact(self, needed: frozenset[int]) -> None:
        """Take the tuples that are still alive, of the columns that are still needed."""
        if self.live is None:
            return
        if self.alive < self.count:
            indices = np.flatnonzero(self.live)
            self.columns = [
                column.take(indices) if column is not None and at in needed else None
                for at, column in enumerate(self.columns)
            ]
            self.stamps, self.numbers = take_numbers(self.stamps, indices), self.numbers.take(indices)
            self.count = self.alive
        self.live = None
