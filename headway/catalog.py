"""The catalog: a network's topology as numbers, and running statistics of its boxes as arrays.

Boxes, sources and outputs are numbered, so that policies work on arrays whatever the size of the network.
"""

from __future__ import annotations

import threading
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from headway.columns import Floats, Int64s, ReadOnly
from headway.errors import HeadwayError
from headway.fading import Faded, Rates, slope
from headway.network.qos import QoS

REMEMBER = 1000.0
"""Default number of calls of a box after which the weight of a call has fallen to about a third (1/e)."""
HALF_LIFE = 5.0
"""Default half-life of rates and recent utilities, in seconds."""
_FOLD_AFTER = 4096
"""Reported calls that may wait to be folded: batching keeps reports cheap, the limit bounds memory."""
EARLY, SHORT = 3, 64
"""The first EARLY calls, if of fewer than SHORT tuples, measure imports and cold caches more than the box itself."""
_FADED = 1e-200
"""Faded sums below this have no significant digits left."""


@dataclass(frozen=True, slots=True)
class Topology:
    """Which box feeds which. Boxes are in topological order: each after those it reads."""

    boxes: tuple[str, ...]
    sources: tuple[str, ...]
    outputs: tuple[str, ...]
    qos: tuple[QoS, ...]
    """By output: its QoS graphs."""
    producers: tuple[tuple[int, ...], ...]
    """By box: the boxes that it reads."""
    consumers: tuple[tuple[int, ...], ...]
    """By box: the boxes that read it."""
    readers: tuple[tuple[int, ...], ...]
    """By source: the boxes that read it."""
    roots: tuple[int, ...]
    """By output: the box that feeds it, -1 where it is a source."""
    timeouts: tuple[float, ...] = ()
    """By box: the seconds after which its windows time out, infinite for never; empty if no box has a timeout."""

    @property
    def arcs(self) -> list[tuple[int, int]]:
        """The arcs between boxes, each once, as producer and consumer; sorted by producer."""
        return [(box, one) for box, consumers in enumerate(self.consumers) for one in dict.fromkeys(consumers)]

    def upstream(self, box: int) -> set[int]:
        """Return a box and all boxes that lead to it."""
        pending, boxes = [box], set[int]()
        while pending:
            one = pending.pop()
            if one not in boxes:
                boxes.add(one)
                pending += self.producers[one]
        return boxes

    def downstream(self, boxes: Iterable[int], within: Container[int]) -> set[int]:
        """Return some boxes and all boxes downstream of them, following only those in `within`."""
        pending, found = list(boxes), set[int]()
        while pending:
            one = pending.pop()
            if one not in found:
                found.add(one)
                pending += [consumer for consumer in self.consumers[one] if consumer in within]
        return found

    def gather(self, own: Sequence[int]) -> list[int]:
        """Return by box the union of its own set and those of all boxes downstream; sets are bits, see `members`."""
        found = list(own)
        for box in range(len(found) - 1, -1, -1):
            for producer in self.producers[box]:
                found[producer] |= found[box]
        return found

    def reach(self) -> list[int]:
        """Return by box the outputs that it leads to, as bits."""
        own = [0] * len(self.boxes)
        for output, root in enumerate(self.roots):
            if root >= 0:
                own[root] |= 1 << output
        return self.gather(own)


@dataclass(frozen=True, slots=True)
class BoxReadings(ReadOnly):
    """Statistics of all boxes at one moment, as arrays by box; 0 for what a box never did.

    Counters cover the whole run; the other values follow recent behaviour. The arrays are read-only, because all
    readers of one moment share them.
    """

    calls: Int64s
    tuples_in: Int64s
    tuples_out: Int64s
    busy: Int64s
    """Nanoseconds spent in the box."""
    tuple_size: Floats
    """Bytes per tuple in."""
    overhead: Floats
    """Fixed seconds per call, by the running cost model."""
    cost: Floats
    """Seconds per tuple, by the running cost model."""
    selectivity: Floats
    """Tuples out per tuple in; 1 for a box that has seen none."""
    rate_in: Floats
    """Tuples in per second; 0 where time was not measured."""
    early: Int64s
    """Two rows: tuples in the short first calls of each box, and nanoseconds spent on them (see EARLY)."""
    exact: bool = False
    """Whether costs were declared as exact, not measured."""

    @property
    def overall(self) -> Floats:
        """The selectivity over the whole run: all tuples out per tuple in; 1 for a box that has seen none."""
        return np.where(self.tuples_in > 0, self.tuples_out / np.maximum(self.tuples_in, 1), 1.0)


class Statistics:
    """Collects what steps report: one list append per box call, folded into arrays on reading.

    The cost model ``overhead + cost * tuples`` is a running least-squares fit over box calls in which older calls fade:
    each call of a box leaves ``1 - 1/remember`` of the weight of those before it. Selectivity and tuple size fade in
    the same way. Where no weight is left, as in a box that was long called without tuples, the last value stays.

    Declared values replace measurements until there are enough of these, or always if they are exact.
    """

    PRIOR = 8
    """Calls of a box after which measurements replace declared values."""

    def __init__(self, boxes: int, remember: float = REMEMBER, half_life: float = HALF_LIFE) -> None:
        """Start without readings.

        `remember` is the number of calls of a box after which a call's weight has fallen to about 1/e (infinite:
        nothing is forgotten), `half_life` the half-life of rates, in seconds.
        """
        if not remember >= 1:
            raise HeadwayError(f"statistics remember 1 call or more (inf for all), not {remember}")
        if not half_life > 0:
            raise HeadwayError(f"the half-life of rates is more than 0 seconds, not {half_life}")
        # Some weight always remains, so that an empty train does not wipe out what is known.
        self._fade = max(1 - 1 / remember, 1e-9)
        self._calls: list[tuple[int, int, int, int, int]] = []
        self._lock = threading.Lock()
        self._counts: Int64s = np.zeros((4, boxes), np.int64)  # calls, tuples in, tuples out, nanoseconds
        self._sums = Faded(8, boxes)  # weight, n, t, n*n, n*t, out, bytes, tuples of known size
        self._early: Int64s = np.zeros((2, boxes), np.int64)  # tuples and nanoseconds of first calls
        self._warm: npt.NDArray[np.bool_] = np.zeros(boxes, np.bool_)  # has had a long train
        self._overhead: Floats = np.zeros(boxes)
        self._cost: Floats = np.zeros(boxes)
        self._selectivity: Floats = np.ones(boxes)
        self._size: Floats = np.zeros(boxes)
        self._rates = Rates(boxes, None, half_life, least=1)
        self._declared: dict[str, Floats] = {}
        self._exact = False
        self._latest: BoxReadings | None = None

    def declare(
        self,
        cost: Floats | None = None,
        overhead: Floats | None = None,
        selectivity: Floats | None = None,
        *,
        exact: bool = False,
    ) -> None:
        """Declare what is known of the boxes in advance, as arrays by box with NaN where unknown.

        Declared values apply until PRIOR calls of a box have been measured; if `exact`, always. A later declaration
        replaces an earlier one.
        """
        declared: dict[str, Floats] = {}
        for name, values in {"cost": cost, "overhead": overhead, "selectivity": selectivity}.items():
            if values is None:
                continue
            copied: Floats = np.array(values, np.float64)
            if copied.shape != self._cost.shape:
                raise HeadwayError(
                    f"the declared {name} has the shape {copied.shape}; it is one number for each of "
                    f"{len(self._cost)} boxes, NaN where it is not known"
                )
            if (copied < 0).any():
                raise HeadwayError(f"the declared {name} of box {int(np.argmax(copied < 0))} is below 0")
            declared[name] = copied
        with self._lock:
            self._declared, self._exact = declared, exact
            self._latest = None

    @property
    def exact(self) -> bool:
        """Whether declared values always apply, so that nothing has to be measured."""
        return self._exact

    def report(self, box: int, tuples_in: int, tuples_out: int, nanoseconds: int, bytes_in: int) -> None:
        """Record one box call, from any thread. `bytes_in` is -1 if it was not measured."""
        self._calls.append((box, tuples_in, tuples_out, nanoseconds, bytes_in))
        if len(self._calls) >= _FOLD_AFTER:
            self.fold()

    def report_all(self, calls: Sequence[tuple[int, int, int, int, int]]) -> None:
        """Record several box calls, each with the arguments of `report`."""
        self._calls += calls
        if len(self._calls) >= _FOLD_AFTER:
            self.fold()

    def take_over(self, other: Statistics, boxes: Sequence[tuple[int, int]]) -> None:
        """Continue with what another has collected: pairs of a box here and the same box there."""
        other.fold()
        if not boxes:
            return
        mine, theirs = np.array(boxes, np.int64).T
        for name in ("_counts", "_early"):
            getattr(self, name)[:, mine] = getattr(other, name)[:, theirs]
        for name in ("_warm", "_overhead", "_cost", "_selectivity", "_size"):
            getattr(self, name)[mine] = getattr(other, name)[theirs]
        self._sums.sums[:, mine] = other._sums.sums[:, theirs]
        self._rates.take_over(other._rates, mine, theirs)
        self._latest = None

    def fold(self) -> None:
        """Fold reported calls into the arrays."""
        with self._lock:
            self._fold()

    def _fold(self) -> None:
        count = len(self._calls)
        if count == 0:
            return
        rows = np.array(self._calls[:count], np.int64)
        del self._calls[:count]  # others may have appended in the meantime
        self._latest = None
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        box, n, n_out, spent, size = rows.T
        starts = np.flatnonzero(np.diff(box, prepend=-1))
        boxes, calls = box[starts], np.diff(starts, append=count)
        # Only boxes that were called are touched: folding a few calls must not cost more in a large network.
        totals = np.add.reduceat(rows[:, 1:4], starts, axis=0)
        if (self._counts[0, boxes] < EARLY).any():
            place = self._counts[0, box] + np.arange(count) - np.repeat(starts, calls)
            first = np.where((place < EARLY) & (n < SHORT) & ~self._warm[box], (n, spent), 0)
            self._early[:, boxes] += np.add.reduceat(first, starts, axis=1)
            self._warm[box[n >= SHORT]] = True
        self._counts[0, boxes] += calls
        self._counts[1:, boxes] += totals.T
        parts = np.empty((8, count))
        parts[0] = 1.0
        parts[1] = n
        parts[2] = spent / 1e9
        np.multiply(parts[1], parts[1:3], out=parts[3:5])
        parts[5] = n_out
        parts[6:] = size, n
        parts[6:, size < 0] = 0.0
        if len(boxes) < count:  # a call weighs less the more calls of its box come after it
            parts *= self._fade ** (np.repeat(starts + calls, calls) - 1 - np.arange(count))
        self._follow(boxes, self._sums.add_at(boxes, np.add.reduceat(parts, starts, axis=1), self._fade**calls))

    def _follow(self, boxes: Int64s, sums: Floats) -> None:
        """Derive the costs, selectivities and tuple sizes of some boxes from their sums."""
        weight, n, t, nn, _, out, size, sized = sums
        # Below that, the last tuples came so many calls ago that their sums have no digits left.
        known = nn > _FADED
        safe = np.where(known, n, 1.0)
        mean, line = t / safe, slope(sums)
        cost = np.where(np.isnan(line), mean, np.minimum(np.maximum(line, 0.0), mean))
        cost = np.where(known, cost, self._cost[boxes])
        self._cost[boxes] = cost
        self._overhead[boxes] = np.maximum(t - np.where(known, cost * n, 0.0), 0.0) / weight
        self._selectivity[boxes] = np.where(known, out / safe, self._selectivity[boxes])
        measured = sized > _FADED
        self._size[boxes] = np.where(measured, size / np.where(measured, sized, 1.0), self._size[boxes])

    def readings(self, now: int | None = None) -> BoxReadings:
        """Return the current statistics; the caller may keep them, but not write to them.

        It returns the same object until a call is reported, values are declared or rates change. Rates advance only
        when `now` is given: they are means over the time since the first such moment, with less weight for older time.
        """
        with self._lock:
            self._fold()
            if now is not None:
                before, rates = self._rates.latest, self._rates.read(self._counts[1].copy(), now)
                if rates is not before and self._latest is not None:
                    self._latest = replace(self._latest, rate_in=rates)
            if self._latest is None:
                self._latest = self._read()
            return self._latest

    def _read(self) -> BoxReadings:
        calls, tuples_in, tuples_out, busy = self._counts.copy()
        # Early calls are irrelevant where the cost of a tuple is declared.
        declared = self._declared.get("cost")
        early: Int64s = self._early.copy() if declared is None else np.where(np.isnan(declared), self._early, 0)
        return BoxReadings(
            calls,
            tuples_in,
            tuples_out,
            busy,
            self._size.copy(),
            self._best("overhead", self._overhead),
            self._best("cost", self._cost),
            self._best("selectivity", self._selectivity),
            self._rates.latest,
            early,
            self._exact,
        )

    def _best(self, name: str, measured: Floats) -> Floats:
        """Return declared values where they apply, and measured ones elsewhere."""
        declared = self._declared.get(name)
        if declared is None:
            return measured.copy()
        counts = ~np.isnan(declared)
        if not self._exact:
            counts &= self._counts[0] < self.PRIOR
        return np.where(counts, declared, measured)


def members(bits: int) -> tuple[int, ...]:
    """Return the numbers of the bits that are set, in ascending order."""
    if bits.bit_count() <= 1:
        return (bits.bit_length() - 1,) if bits else ()
    packed = np.frombuffer(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), np.uint8)
    return tuple(np.flatnonzero(np.unpackbits(packed, bitorder="little")).tolist())
