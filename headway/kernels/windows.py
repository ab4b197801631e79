"""Windows: the base of their kernels, and the contents of open windows by (partition, pane)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from headway.boxes.aggregate import Aggregate
from headway.boxes.approximate import HIDDEN, widened
from headway.columns import NEVER, Column, Indices, Int64s, Mask, Values, empty
from headway.expressions import Functions
from headway.kernels.accumulators import Accumulator, Arrays
from headway.kernels.codec import pack_columns, unpack_columns
from headway.kernels.groups import Groups, composites, ranges
from headway.kernels.kernel import DeadLetter, Kernel, Result, Tables
from headway.kernels.results import Emitted, between_ticks, in_pieces
from headway.network.schema import Schema
from headway.sieves import KeptShares, ShareLookup
from headway.trains import Aligned, Tick, Train, ascends


class WindowKernel(Kernel):
    """The base of Aggregate's kernels, for windows of the order field and for data-driven ones.

    With ``approximate: true`` it estimates what the results would be if nothing had been dropped. It is the plain
    aggregate over a wider input: each train gets the weight and the spread of its tuples as hidden columns (see
    `headway.boxes.approximate`), and the rewritten select list does the rest. That takes no state: a tuple's weight is
    fixed when it is processed, so a share that changes within a window applies to the tuples from there on.
    """

    def __init__(
        self, spec: Aggregate, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None
    ) -> None:
        super().__init__(spec, box, schemas, tables, functions)
        (self._schema,) = schemas
        (self._output,) = spec.infer(box, schemas, functions)
        self.kept: ShareLookup | None = None
        """The shares that drop boxes keep of the input; None unless it estimates."""
        if spec.approximate:
            self.kept, self._schema = KeptShares(), widened(self._schema)
            spec = spec.estimating(schemas[0], functions)
        self._spec = spec
        self._timeout = None if spec.timeout is None else spec.timeout.nanoseconds
        self._step: int | None = None
        """How many tuples are processed together; None: all."""

    def run(self, state: Any, trains: Sequence[Train], now: int) -> tuple[Any, Result]:
        """Process a train and emit the windows that it closes; many of them in pieces."""
        train = trains[0] if self.kept is None else self._weigh(trains[0], self.kept)
        if self._step is None:
            result = self._run(state, train, now)
        else:
            result = in_pieces(lambda state, some: self._run(state, some[0], now), state, (train,), self._step)
        return state, result if self.kept is None else self._shown(result)

    def _run(self, state: Any, train: Train, now: int) -> Result:
        emitted = Emitted()
        for part, tick in between_ticks(train, self._timeout is not None):
            self._take(state, part, now, emitted)
            if tick is not None:
                self._expire(state, tick, emitted)
        more = self._finish(state, train.progress, now, emitted) if train.end else None
        return emitted.result(self._output, train, more)

    @abstractmethod
    def _take(self, state: Any, train: Train, now: int, emitted: Emitted) -> None:
        """Process a train, and emit the windows that its tuples close."""

    @abstractmethod
    def _expire(self, state: Any, tick: Tick, emitted: Emitted) -> None:
        """Emit the windows that have timed out."""

    @abstractmethod
    def _finish(self, state: Any, number: int, now: int, emitted: Emitted) -> Iterator[Emitted] | None:
        """Emit all windows at the end of the input, at once or in pieces."""

    def deadline(self, state: Any) -> int | None:
        """Return when the oldest open window times out."""
        if self._timeout is None:
            return None
        opened = self._opened(state)
        return int(opened.min()) + self._timeout if len(opened) else None

    @abstractmethod
    def _opened(self, state: Any) -> Int64s:
        """Return when the windows that can time out were opened."""

    def weigh_by(self, kept: ShareLookup) -> None:
        """Set the shares that drop boxes keep of the input; ignored unless it estimates."""
        if self.kept is not None:
            self.kept = kept

    def _weigh(self, train: Train, kept: ShareLookup) -> Train:
        """Return a train with the hidden columns."""
        shares = kept.shares(train.numbers)
        # With a share of 0 no tuple should come; one that does stands for itself.
        weights = np.divide(1.0, shares, out=np.ones(len(shares)), where=shares > 0)
        made = train.with_columns((*train.columns, Column(weights), Column(weights * (weights - 1))))
        # Groups that other boxes have computed for these tuples can be used here, too.
        made.base = train.base
        if train.memo is None:
            train.memo = {}
        made.memo = train.memo
        return made

    def _shown(self, result: Result) -> Result:
        """Return a result whose dead letters do not show the hidden columns."""
        if result.rest is not None:
            result = result._replace(rest=map(self._shown, result.rest))
        return result._replace(dead=tuple([self._letter(letter) for letter in result.dead])) if result.dead else result

    def _letter(self, letter: DeadLetter) -> DeadLetter:
        if letter.schema != self._schema:
            return letter  # a window's, not a tuple's
        train = letter.train.with_columns(letter.train.columns[:-HIDDEN])
        return replace(letter, train=train, schema=self._schemas[0])


_BY_PANE = ("partition", "pane", "stamps", "opened")
_FEW = 64
"""Up to so many panes, one pane is found by looking at all of them."""


class Store:
    """The open panes, sorted by (partition, pane), with parallel arrays of their contents.

    A call takes time in proportion to the open panes, in a few vectorised passes; longer trains amortise it.
    """

    __slots__ = ("accumulators", "arrays", "opened", "pane", "partition", "stamps")

    def __init__(self, accumulators: Sequence[Accumulator]) -> None:
        self.accumulators = tuple(accumulators)
        self.partition: Int64s = np.zeros(0, np.int64)
        self.pane: Int64s = np.zeros(0, np.int64)
        self.stamps: Int64s = np.zeros(0, np.int64)
        self.opened: Int64s = np.zeros(0, np.int64)
        self.arrays: list[Arrays] = [one.empty(0) for one in self.accumulators]

    def __len__(self) -> int:
        return len(self.pane)

    def locate(self, partition: Int64s, pane: Int64s) -> Indices:
        """Return the indices of panes, which are given sorted by (partition, pane); new ones are opened."""
        if len(pane) == 1 and len(self.pane) <= _FEW:
            found: Indices = ((self.pane == pane) & (self.partition == partition)).nonzero()[0]
            if len(found):
                return found
        mine, theirs = composites((self.partition, self.pane), (partition, pane))
        places = np.searchsorted(mine, theirs)
        if len(mine):
            known = mine[np.minimum(places, len(mine) - 1)] == theirs
            if known.all():
                return places
        else:
            known = np.zeros(len(theirs), np.bool_)
        fresh = ~known
        at: Indices = places + np.cumsum(fresh) - fresh
        new = at[fresh]
        old = np.ones(len(mine) + len(new), np.bool_)
        old[new] = False

        def spread(array: Values, filling: Any) -> Values:
            grown = np.empty((len(old), *array.shape[1:]), array.dtype)
            grown[old] = array
            grown[new] = filling
            return grown

        self.partition = spread(self.partition, partition[fresh])
        self.pane = spread(self.pane, pane[fresh])
        self.stamps = spread(self.stamps, NEVER)
        self.opened = spread(self.opened, NEVER)
        for one, arrays in zip(self.accumulators, self.arrays, strict=True):
            for name, (_, start) in one.fields.items():
                arrays[name] = spread(arrays[name], start)
        return at

    def add(
        self,
        groups: Groups,
        stamps: Int64s,
        arguments: Sequence[Column | None],
        masks: Sequence[Mask | None],
        now: int,
    ) -> None:
        """Add tuples, in arrival order, to their panes."""
        places = self.locate(groups.partition, groups.cell)
        if ascends(stamps):
            oldest = stamps[groups.first]
        else:
            local = np.full(groups.size, NEVER, np.int64)
            np.minimum.at(local, groups.ids, stamps)
            oldest = local[groups.at]
        self.stamps[places] = np.minimum(self.stamps[places], oldest)
        self.opened[places] = np.minimum(self.opened[places], now)
        counts = groups.counts
        if counts is None and self.accumulators:
            counts = np.bincount(groups.ids, minlength=groups.size)
        for one, arrays, column, mask in zip(self.accumulators, self.arrays, arguments, masks, strict=True):
            work = one.empty(groups.size)
            for name in one.fields:
                work[name][groups.at] = arrays[name][places]
            if mask is None:
                one.add(work, groups.ids, column, counts)
            else:
                chosen = np.flatnonzero(mask)
                one.add(work, groups.ids[chosen], None if column is None else column.take(chosen))
            for name in one.fields:
                arrays[name][places] = work[name][groups.at]

    def keep(self, mask: Mask) -> None:
        """Drop the panes for which the mask is false."""
        if mask.all():
            return
        for name in _BY_PANE:
            setattr(self, name, getattr(self, name)[mask])
        self.arrays = [{name: array[mask] for name, array in arrays.items()} for arrays in self.arrays]

    def dump(self) -> dict[str, Any]:
        """Return everything as named arrays."""
        named = {name: getattr(self, name) for name in _BY_PANE}
        for at, arrays in enumerate(self.arrays):
            named.update({f"acc{at}.{name}": array for name, array in arrays.items()})
        return named

    def restore(self, named: dict[str, Any]) -> None:
        """Restore what `dump` returned."""
        for name in _BY_PANE:
            setattr(self, name, named[name])
        self.arrays = [
            {name: named[f"acc{at}.{name}"] for name in one.fields} for at, one in enumerate(self.accumulators)
        ]


@dataclass(slots=True)
class _Held(Aligned):
    partition: Int64s
    pane: Int64s
    values: Values
    columns: tuple[Column, ...]


class HeldTuples:
    """Tuples that wait for their window to close, with partition, pane and order value."""

    __slots__ = ("_parts", "_types")

    def __init__(self, types: Sequence[pa.DataType], dtype: Any) -> None:
        """Hold columns of these types."""
        self._types = tuple(types)
        none = np.zeros(0, np.int64)
        self._parts = [_Held(none, none, np.zeros(0, dtype), tuple(empty(type_) for type_ in self._types))]

    def add(self, partition: Int64s, pane: Int64s, values: Values, columns: Sequence[Column]) -> None:
        """Hold tuples; they come in arrival order."""
        self._parts.append(_Held(partition, pane, values, tuple(columns)))

    def _gather(self) -> _Held:
        """Return all tuples, sorted by (partition, pane, order value, arrival), and keep them in this order."""
        if len(self._parts) > 1:
            every = _Held.joined(self._parts)
            self._parts = [every.take(np.lexsort((every.values, every.pane, every.partition)))]
        return self._parts[0]

    def ranges(self, partition: Int64s, first: Int64s, after: Int64s) -> tuple[Int64s, Int64s]:
        """Return where the tuples of windows (partition, panes from first to after) start and stop, for `columns`."""
        held = self._gather()
        return ranges((held.partition, held.pane), partition, first, after)

    def columns(self, at: Int64s) -> tuple[Column, ...]:
        """Return the columns of some tuples."""
        return tuple(column.take(at) for column in self._gather().columns)

    def keep(self, wanted: Callable[[Int64s, Int64s], Mask]) -> None:
        """Keep the tuples for which ``wanted(partition, pane)`` is true."""
        held = self._gather()
        mask = wanted(held.partition, held.pane)
        if not mask.all():
            self._parts = [held.keep(mask)]

    def dump(self) -> dict[str, Any]:
        """Return everything as named arrays."""
        held = self._gather()
        named = {"held.partition": held.partition, "held.pane": held.pane, "held.values": held.values}
        return {**named, **pack_columns("held.", held.columns, self._types)}

    def restore(self, named: dict[str, Any]) -> None:
        """Restore what `dump` returned."""
        columns = unpack_columns("held.", named, len(self._types))
        self._parts = [_Held(named["held.partition"], named["held.pane"], named["held.values"], columns)]
