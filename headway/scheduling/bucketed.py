"""Bucketed slope-slack: approximately the order of slope-slack, at a cost that does not grow with the network.

After Carney et al., "Operator Scheduling in a Data Stream Manager" (VLDB 2003), section 6.2. The plane of utility
and slack (see `slope_slack`) is divided into g times s buckets, numbered in the order in which they are served: by
descending utility, then by ascending slack. Units in the same bucket count as ties and are served round robin::

    bucket(unit) = (utility * g / steepest, largest first; slack * s / largest critical point, smallest first)

- Utilities range from 0, or from the least where a graph rises, to the steepest of all graphs.
- Slacks range from 0 to the largest critical point. The last bucket is for units without a critical point ahead
  (infinite slack), which have no deadline left to miss, unless there is only one bucket.

While nothing happens to a unit, its expected output latency grows by one second per second. So the time at which it
moves to another bucket is known, and is kept in a calendar, a heap. A plan examines the units whose time has come,
those whose readings changed (`Snapshot.changed`), and those it chooses; the state of all other ready units is only
copied, which takes nanoseconds each. If a snapshot does not say what changed, all ready units are examined at once
with arrays.

A unit's cost is the one read when the unit last changed; costs drift slowly, and a drift that was not read moves a
unit by less than one bucket. With one bucket this is round robin, with many it is `slope-slack`.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from headway.catalog import Topology
from headway.clock import SECOND
from headway.columns import Floats, ReadOnly, frozen
from headway.costs import Places
from headway.errors import PolicyError
from headway.network.qos import Graph
from headway.scheduling.graphs import critical_latencies, following, padded, slopes
from headway.scheduling.policy import STEPS, WORK, Plan, Policy, Step, Term, apart, register_policy
from headway.scheduling.snapshot import Snapshot, Unit

_DEFAULT = 20
_MOST = 4096
_NEVER = -1
"""Marks a unit that never moves to another bucket by itself."""
_STALE = 64
"""Outdated entries, beyond one per unit, after which the calendar is rebuilt without them."""

Chosen = tuple[list[int], list[int]]
"""The first units in the order, and the bucket of each."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """The policy's memory. A plan copies what it changes."""

    graphs: BucketGraphs
    turns: Mapping[int, int]
    """By bucket: the unit at which its next round begins; the last served buckets at the end, at most `_MOST`."""
    known: Index | Sweep | None = None
    """The ready units; a Sweep if the last plan examined all of them."""


@dataclass(frozen=True)
class Bucketed(Policy):
    """Serve the ready units by bucket, and round robin within a bucket.

    As in `Ranked`, the length of a plan is limited, and with several workers its steps do not share boxes.
    """

    gradients: int = _DEFAULT
    slacks: int = _DEFAULT

    def plan(self, snapshot: Snapshot, memory: Buckets | None) -> tuple[Plan, Buckets]:
        """Return steps for the first units of the first buckets."""
        memory = self.prepare(snapshot, memory)
        alone = snapshot.workers == 1
        most, work = (min(STEPS, snapshot.room), WORK) if alone else (STEPS, math.inf)
        known = memory.known
        if known is None or snapshot.changed is None or known.train != snapshot.train:
            sweep = known = Sweep.of(snapshot)
            order, buckets = sweep.first(snapshot, memory, most, work)
        else:
            index = known = known.copy() if isinstance(known, Index) else Index.of(memory.graphs, known, snapshot.now)
            index.read(snapshot, snapshot.changed)
            order, buckets = index.first(snapshot, memory.turns, most, work)
        chosen = order if alone else apart(snapshot, order, min(snapshot.free, snapshot.room))
        plan = Plan(tuple([Step(unit, snapshot.train) for unit in chosen]))
        return plan, Buckets(memory.graphs, _passed_on(memory.turns, order, buckets, set(chosen)), known)

    def prepare(self, snapshot: Snapshot, memory: Buckets | None) -> Buckets:
        """Compute the ranges of the graphs, once per network."""
        if memory is None or memory.graphs.units is not snapshot.units:
            return Buckets(bucket_graphs(snapshot.topology, snapshot.units, self.gradients, self.slacks), {})
        return memory

    def terms(self, snapshot: Snapshot, memory: Buckets) -> tuple[Term, ...]:
        """Return the gradient and slack buckets of all units, as of this snapshot."""
        every = np.arange(len(snapshot.units))
        latency = snapshot.latencies + _expected(snapshot, every)
        gradient, slack = np.divmod(memory.graphs.places(every, latency), self.slacks)
        return Term("gradient bucket", self.gradients - 1 - gradient, largest=True), Term("slack bucket", slack)


class Sweep(NamedTuple):
    """Readings of all ready units at one moment (ns)."""

    now: int
    train: int
    units: Places
    latency: Floats
    """By entry of `units`: the expected output latency."""
    expected: Floats
    """By entry of `units`: the seconds until the unit's train would be delivered."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> Sweep:
        """Read all ready units at once."""
        units = np.flatnonzero(snapshot.ready)
        expected = frozen(_expected(snapshot, units))
        latency = frozen(snapshot.latencies[units] + expected)
        return cls(snapshot.now, snapshot.train, frozen(units), latency, expected)

    def first(self, snapshot: Snapshot, memory: Buckets, most: int, work: float) -> Chosen:
        """Return the first units in the order, up to a number of units or seconds of work."""
        able = np.flatnonzero(~snapshot.busy[self.units])
        if most < 1 or not len(able):
            return [], []
        units, expected = self.units[able], self.expected[able]
        bucket = memory.graphs.places(units, self.latency[able])
        if len(units) > most:
            near = np.flatnonzero(bucket <= np.partition(bucket, most - 1)[most - 1])
            units, bucket, expected = units[near], bucket[near], expected[near]
        used, kind = np.unique(bucket, return_inverse=True)
        turn = np.array([memory.turns.get(one, 0) for one in used.tolist()])[kind]
        order = np.lexsort((units, units < turn, bucket))[:most]
        order = order[: 1 + int(np.searchsorted(np.cumsum(expected[order]), work))]
        return units[order].tolist(), bucket[order].tolist()


def _passed_on(
    turns: Mapping[int, int], order: Sequence[int], buckets: Sequence[int], chosen: set[int]
) -> Mapping[int, int]:
    """Return the turns after a plan: per bucket, the first unit passed over, or else the one after the last served."""
    after, passed = dict(turns), set()
    for unit, bucket in zip(order, buckets, strict=True):
        if bucket not in passed:
            served = unit in chosen
            after.pop(bucket, None)
            after[bucket] = unit + served
            if not served:
                passed.add(bucket)
    while len(after) > _MOST:
        del after[next(iter(after))]
    return after


@dataclass
class Index:
    """The bucket of each ready unit, and when it moves to another. Built by a plan, and immutable after it."""

    graphs: BucketGraphs
    train: int
    origin: int
    """The moment (ns) from which seconds are counted; recent, so that differences stay exact."""
    placed: dict[int, tuple[int, float, float, int]] = field(default_factory=dict)
    """By unit: its bucket, its expected output latency less the seconds since the origin, the seconds until its
    train would be delivered, and the moment (ns) at which it moves to another bucket."""
    members: dict[int, list[int]] = field(default_factory=dict)
    """By non-empty bucket: its units, ascending."""
    occupied: list[int] = field(default_factory=list)
    """The non-empty buckets, ascending."""
    calendar: list[tuple[int, int]] = field(default_factory=list)
    """A heap of moments and units; entries whose moment differs from that in `placed` are outdated."""
    _own: set[int] = field(default_factory=set, compare=False)
    """The buckets whose lists are not shared with the index that this one was copied from."""

    @classmethod
    def of(cls, graphs: BucketGraphs, sweep: Sweep, now: int) -> Index:
        """Place all units of a sweep."""
        made, since = cls(graphs, sweep.train, sweep.now), (now - sweep.now) / SECOND
        for unit, latency, expected in zip(
            sweep.units.tolist(), sweep.latency.tolist(), sweep.expected.tolist(), strict=True
        ):
            made._place(unit, latency + since, expected, since, now)
        return made

    def copy(self) -> Index:
        """Return a copy that can be changed without changing this index."""
        calendar = self.calendar
        if len(calendar) > 2 * len(self.placed) + _STALE:
            calendar = [(date, unit) for unit, (_, _, _, date) in self.placed.items() if date != _NEVER]
            heapify(calendar)
        else:
            calendar = calendar.copy()
        placed, members, occupied = self.placed.copy(), self.members.copy(), self.occupied.copy()
        return Index(self.graphs, self.train, self.origin, placed, members, occupied, calendar)

    def read(self, snapshot: Snapshot, changed: Iterable[int]) -> None:
        """Update the buckets, given the units whose readings have changed."""
        now, placed, calendar = snapshot.now, self.placed, self.calendar
        since = (now - self.origin) / SECOND
        due = []
        while calendar and calendar[0][0] <= now:
            date, unit = heappop(calendar)
            if unit in placed and placed[unit][3] == date:
                due.append(unit)
        for unit in due:
            _, ahead, expected, _ = placed[unit]
            self._place(unit, ahead + since, expected, since, now)
        for unit in changed:
            if snapshot.ready[unit]:
                expected = snapshot.expected_of(unit)
                self._place(unit, snapshot.latency_of(unit) + expected, expected, since, now)
            else:
                self._leave(unit)

    def first(self, snapshot: Snapshot, turns: Mapping[int, int], most: int, work: float) -> Chosen:
        """Return the first units in the order, up to a number of units or seconds of work.

        Busy units stay in their buckets: when another unit's step ends, a unit may stop being busy without any change
        of its own readings.
        """
        ready, busy, placed = snapshot.ready, snapshot.busy, self.placed
        units: list[int] = []
        buckets: list[int] = []
        gone: list[int] = []
        total = 0.0
        for bucket in self.occupied if most > 0 else ():
            members = self.members[bucket]
            turn = bisect_left(members, turns.get(bucket, 0))
            for unit in chain(islice(members, turn, None), islice(members, turn)):
                if busy[unit]:
                    continue
                if not ready[unit]:  # a snapshot that this policy did not get may have reported the change
                    gone.append(unit)
                    continue
                units.append(unit)
                buckets.append(bucket)
                total += placed[unit][2]
                if len(units) == most or total >= work:
                    break
            else:
                continue
            break
        for unit in gone:
            self._leave(unit)
        return units, buckets

    def _place(self, unit: int, latency: float, expected: float, since: float, now: int) -> None:
        """Put a unit into its bucket, and enter in the calendar when it leaves it."""
        bucket, seconds = self.graphs.place(unit, latency)
        before = self.placed.get(unit)
        if before is None or before[0] != bucket:
            if before is not None:
                self._remove(unit, before[0])
            insort(self._list(bucket), unit)
        date = _NEVER
        if seconds < math.inf:
            date = now + max(1, math.ceil(seconds * SECOND))
            heappush(self.calendar, (date, unit))
        self.placed[unit] = bucket, latency - since, expected, date

    def _leave(self, unit: int) -> None:
        """Take a unit out of its bucket, if it is in one."""
        before = self.placed.pop(unit, None)
        if before is not None:
            self._remove(unit, before[0])

    def _remove(self, unit: int, bucket: int) -> None:
        members = self._list(bucket)
        if len(members) == 1:
            del self.members[bucket]
            self._own.discard(bucket)
            del self.occupied[bisect_left(self.occupied, bucket)]
        else:
            del members[bisect_left(members, unit)]

    def _list(self, bucket: int) -> list[int]:
        """Return the units of a bucket as a list that this index may change."""
        if bucket not in self._own:
            self._own.add(bucket)
            if bucket not in self.members:
                insort(self.occupied, bucket)
            self.members[bucket] = list(self.members.get(bucket, ()))
        return self.members[bucket]


def _expected(snapshot: Snapshot, units: Places) -> Floats:
    """Return the seconds until the trains of some units would be delivered."""
    costs = snapshot.costs
    return costs.overhead[units] + costs.cost[units] * np.minimum(snapshot.waiting[units], snapshot.train)


class Ranges(NamedTuple):
    """Gradient bucket and critical point of a set of graphs, by range of latency; n ends separate n + 1 ranges."""

    ends: list[float]
    """The latencies between ranges, ascending; each belongs to the range that it begins."""
    first: list[int]
    """By range: the first bucket of its gradient, the one with the least slack."""
    critical: list[float]
    """By range: the next critical point, infinite if there is none."""


@dataclass(frozen=True, slots=True)
class BucketGraphs(ReadOnly):
    """The ranges of all units: as lists for `place`, and as padded arrays for `places`.

    The latencies at which the gradient bucket or the next critical point changes are computed once per distinct set
    of graphs. Within such a range slack falls by one second per second, so that the slack bucket, and when it
    changes, follow from a division; a table of all changes would have an entry per slack bucket and be no faster.
    """

    units: tuple[Unit, ...]
    slacks: int
    largest: int
    """The last of the buckets for finite slacks."""
    width: float
    """Seconds of slack in a bucket."""
    ranges: tuple[Ranges, ...]
    """By distinct set of graphs."""
    kind: list[int]
    """By unit: the index of its set of graphs."""
    kinds: Places
    """The same as an array."""
    ends: Floats
    """By end, then by set of graphs: padded with infinity."""
    first: Places
    """By range, then by set of graphs."""
    critical: Floats
    """By range, then by set of graphs."""

    def place(self, unit: int, latency: float) -> tuple[int, float]:
        """Return a unit's bucket at an expected output latency, and the seconds until it changes (may be infinite)."""
        ends, first, critical = self.ranges[self.kind[unit]]
        at = bisect_right(ends, latency)
        until = ends[at] if at < len(ends) else math.inf
        point = critical[at]
        if point == math.inf:
            return first[at] + self.slacks - 1, until - latency
        width, largest = self.width, self.largest
        slack = min(max(math.ceil((point - latency) / width) - 1, 0), largest)
        # The quotient may be off by a rounding error: the edges decide, so that a bucket never ends before it begins.
        while slack > 0 and point - slack * width <= latency:
            slack -= 1
        while slack < largest and point - (slack + 1) * width > latency:
            slack += 1
        if slack > 0:
            until = min(until, point - slack * width)
        return first[at] + slack, until - latency

    def places(self, units: Places, latency: Floats) -> Places:
        """Return the buckets of some units, given the expected output latency of each."""
        kind = self.kinds[units]
        place = kind.copy()
        for ends in self.ends:
            place += (ends.take(kind) <= latency) * len(ends)
        point = self.critical.take(place)
        finite = point < np.inf
        point = np.where(finite, point, 0.0)
        width, largest = self.width, self.largest
        slack = np.clip(np.ceil((point - latency) / width) - 1, 0, largest)
        slack -= (slack > 0) & (point - slack * width <= latency)
        slack += (slack < largest) & (point - (slack + 1) * width > latency)
        return self.first.take(place) + np.where(finite, slack, self.slacks - 1).astype(np.intp)


def bucket_graphs(topology: Topology, units: tuple[Unit, ...], gradients: int, slacks: int) -> BucketGraphs:
    """Compute the ranges of all units."""
    numbers: dict[tuple[Graph, ...], int] = {}
    kind = [numbers.setdefault(_graphs(topology, unit), len(numbers)) for unit in units]
    steps = [_steps(graphs) for graphs in numbers]
    utilities = [utility for _, some, _ in steps for utility in some]
    least, most = min(utilities, default=0.0), max(utilities, default=0.0)
    largest = max([point for _, _, points in steps for point in points if point < math.inf], default=0.0)
    width = largest / max(1, slacks - 1) or 1.0
    ranges = []
    for ends, some, points in steps:
        first = []
        for utility in some:
            bucket = int((utility - least) / (most - least) * gradients) if most > least else 0
            first.append((gradients - 1 - min(bucket, gradients - 1)) * slacks)
        ranges.append(_merged(ends, first, points if slacks > 1 else [math.inf] * len(points)))
    return BucketGraphs(
        units,
        slacks,
        max(0, slacks - 2),
        width,
        tuple(ranges),
        kind,
        np.array(kind, np.intp),
        padded([one.ends for one in ranges], np.inf),
        padded([one.first for one in ranges], 0).astype(np.intp),
        padded([one.critical for one in ranges], np.inf),
    )


def _graphs(topology: Topology, unit: Unit) -> tuple[Graph, ...]:
    found = [graph for output in unit.outputs if (graph := topology.qos[output].latency) is not None]
    return tuple(sorted(found, key=lambda graph: graph.points))


def _steps(graphs: tuple[Graph, ...]) -> tuple[list[float], list[float], list[float]]:
    """Return the ends of the ranges of a set of graphs, and by range its total utility and next critical point."""
    points = [[x for x, _ in graph.points] for graph in graphs]
    steep = [slopes(graph) for graph in graphs]
    critical = sorted({x for graph in graphs for x in critical_latencies(graph) if x < math.inf})
    ends = sorted({x for some in points for x in some} | set(critical))
    utilities = [
        sum([-slope[bisect_right(xs, begin)] for xs, slope in zip(points, steep, strict=True)], 0.0)
        for begin in (-math.inf, *ends)
    ]
    return ends, utilities, following(critical, ends)


def _merged(ends: list[float], first: list[int], critical: list[float]) -> Ranges:
    """Return the ranges with equal neighbours merged."""
    kept = [at for at in range(len(ends)) if (first[at], critical[at]) != (first[at + 1], critical[at + 1])]
    rest = [0, *(at + 1 for at in kept)]
    return Ranges([ends[at] for at in kept], [first[at] for at in rest], [critical[at] for at in rest])


def _make(argument: str | None) -> Policy:
    if argument is None:
        return Bucketed()
    parts = argument.split("x")
    if len(parts) > 2 or not all(part.isdecimal() and 1 <= int(part) <= _MOST for part in parts):
        raise PolicyError(
            f"policy 'bucketed:{argument}': after the colon stands into how many parts gradients and slacks are "
            f"divided, 1 to {_MOST} each: one number for both as in bucketed:20, or two as in bucketed:20x10"
        )
    return Bucketed(int(parts[0]), int(parts[-1]))


register_policy(
    "bucketed",
    _make,
    "slope-slack in buckets: units of similar slope and slack in turn, at a cost that does not grow with the network",
    formula="bucket = (utility * g / steepest, slack * s / largest critical point); bucketed:20 is g = s = 20",
    paper="Carney et al., Operator Scheduling in a Data Stream Manager, VLDB 2003, 6.2 (bucketing, calendar queue)",
    use="slope-slack in networks of thousands of boxes, where looking at all of them would take longer than a step",
)
