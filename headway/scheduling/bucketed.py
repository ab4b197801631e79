"""Bucketed slope-slack: nearly the order of slope and slack, at a cost that does not grow with the network.

After Carney et al., "Operator Scheduling in a Data Stream Manager" (VLDB 2003), section 6.2. The plane of utility
and slack is cut into g times s buckets (`bucket_graphs`); units in one bucket count as equals and are served
round robin, buckets in the order of decreasing p-tuples::

    bucket(unit) = (utility * g / steepest, largest first; slack * s / largest critical point, smallest first)

While nothing happens to a unit its expected output latency grows by a second a second. So it is known when it
will come to another bucket, and that moment stands in a calendar queue. A decision looks at the units whose moment
has come, at those whose readings changed (`Snapshot.changed`), and at those it chooses: the cost follows what
happens, and is constant, amortised, in the number of units. Where a snapshot does not say what changed, all
units are looked at, at once with arrays.

A unit's cost is the one read when the unit last changed; it drifts slowly, and unread drift moves a unit by less
than a bucket. With one bucket this is round robin, with many it is `slope-slack`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headway.clock import SECOND
from headway.errors import PolicyError
from headway.scheduling.bucket_graphs import Places, bucket_graphs
from headway.scheduling.calendars import Calendar
from headway.scheduling.policy import Plan, Policy, Step, Term, register_policy
from headway.scheduling.ranking import STEPS, WORK, apart
from headway.scheduling.snapshot import Floats, Snapshot

_DEFAULT = 20
_MOST = 4096
_OUT = -1
"""The bucket of units that are not ready."""
_WORD = 9
"""Numbers are kept in words of two to this power of bits; words of a hundred thousand numbers are few then, too."""
_WITHIN = (1 << _WORD) - 1


@dataclass(frozen=True)
class Bucketed:
    """Serve the ready units by bucket, and round robin within a bucket.

    The memory is an object that is changed by every plan: it is handed from plan to plan and never shared. How
    long a plan is, and that its steps do not share boxes where there are several workers, is as in `Ranked`.
    """

    gradients: int = _DEFAULT
    slacks: int = _DEFAULT

    def start(self) -> Buckets | None:
        """Nothing is prepared."""
        return None

    def plan(self, snapshot: Snapshot, memory: Buckets | None) -> tuple[Plan, Buckets]:
        """Return steps for the first units of the first buckets."""
        if memory is None or memory.units is not snapshot.units:
            memory = Buckets(snapshot, self.gradients, self.slacks)
        memory.read(snapshot)
        train = snapshot.train
        return Plan(tuple([Step(unit, train) for unit in memory.choose(snapshot)])), memory

    def terms(self, snapshot: Snapshot, memory: Buckets | None) -> tuple[Term, ...]:
        """Return the gradient's and the slack's bucket, of all units and as of this snapshot."""
        if memory is None or memory.units is not snapshot.units:
            memory = Buckets(snapshot, self.gradients, self.slacks)
        every = np.arange(len(snapshot.units))
        expected = _expected(snapshot, every)
        gradient, slack = np.divmod(memory.graphs.places(every, snapshot.latencies + expected), self.slacks)
        return Term("gradient bucket", self.gradients - 1 - gradient, largest=True), Term("slack bucket", slack)


class Ring:
    """A set of numbers that finds the next one from any number on, in the time of a few operations on words."""

    def __init__(self) -> None:
        """Begin empty."""
        self._words: dict[int, int] = {}
        self._some = 0  # the words that are not 0, as bits
        self.turn = 0
        """Whose turn it is: `round` begins here."""

    def __bool__(self) -> bool:
        """Return whether there are any numbers."""
        return self._some != 0

    def add(self, number: int) -> None:
        """Put a number in."""
        at = number >> _WORD
        self._words[at] = self._words.get(at, 0) | 1 << (number & _WITHIN)
        self._some |= 1 << at

    def discard(self, number: int) -> None:
        """Take a number out, if it is in."""
        at = number >> _WORD
        word = self._words.get(at, 0) & ~(1 << (number & _WITHIN))
        if word:
            self._words[at] = word
        elif self._words.pop(at, 0):
            self._some ^= 1 << at

    def following(self, number: int) -> int:
        """Return the least that is not below this number, or -1."""
        at = number >> _WORD
        word = self._words.get(at, 0) >> (number & _WITHIN)
        if word:
            return number + _lowest(word)
        some = self._some >> (at + 1)
        if not some:
            return -1
        at += 1 + _lowest(some)
        return (at << _WORD) + _lowest(self._words[at])

    def round(self) -> Iterator[int]:
        """Yield every number once, in ascending order from the turn on, and then from the least."""
        number = self.following(self.turn)
        while number >= 0:
            yield number
            number = self.following(number + 1)
        number = self.following(0)
        while 0 <= number < self.turn:
            yield number
            number = self.following(number + 1)


class Buckets:
    """Which unit is in which bucket, and when it will be in another."""

    def __init__(self, snapshot: Snapshot, gradients: int, slacks: int) -> None:
        """Lay the graphs out; no unit is in a bucket before something is read."""
        self.units = snapshot.units
        self.graphs = bucket_graphs(snapshot.topology, snapshot.units, gradients, slacks)
        count = len(snapshot.units)
        self._origin = snapshot.now
        self._train: int | None = None
        self._bucket: Places = np.full(count, _OUT, np.intp)
        self._ahead: Floats = np.zeros(count)  # expected output latency, less the seconds since the origin
        self._expected: Floats = np.zeros(count)
        self._rings: dict[int, Ring] = {}
        self._occupied = Ring()
        self._calendar = Calendar()
        self._dated = False  # whether the calendar has the next change of every unit

    def read(self, snapshot: Snapshot) -> None:
        """Bring the buckets up to date."""
        if snapshot.changed is None or snapshot.train != self._train:
            self._read_all(snapshot)
        else:
            self._read_some(snapshot, snapshot.changed)

    def choose(self, snapshot: Snapshot) -> list[int]:
        """Return whom to serve, and let it be the others' turn in their buckets."""
        if snapshot.workers == 1:
            chosen = self._foremost(snapshot, min(STEPS, snapshot.room), WORK)
            for unit in chosen:
                self._rings[int(self._bucket[unit])].turn = unit + 1
            return chosen
        order = self._foremost(snapshot, STEPS, math.inf)
        chosen = apart(snapshot, np.array(order, np.intp), min(snapshot.free, snapshot.room))
        self._pass_on(order, set(chosen))
        return chosen

    def _foremost(self, snapshot: Snapshot, most: int, work: float) -> list[int]:
        """Return the first units in the order, until there are so many, or so many seconds of work.

        Who is busy keeps its place: that ends with a step of perhaps another unit, and nothing of its own changes.
        """
        ready, busy = snapshot.ready, snapshot.busy
        found: list[int] = []
        if most < 1:
            return found
        bucket = self._occupied.following(0)
        while bucket >= 0:
            for unit in self._rings[bucket].round():
                if busy[unit]:
                    continue
                if not ready[unit]:  # perhaps only a snapshot that was not shown to us told that
                    self._leave(unit)
                    continue
                found.append(unit)
                work -= float(self._expected[unit])
                if len(found) == most or work <= 0:
                    return found
            bucket = self._occupied.following(bucket + 1)
        return found

    def _pass_on(self, order: Sequence[int], chosen: set[int]) -> None:
        """Let it be the turn of the first in each bucket that was passed over, or of the one after the last."""
        passed = set()
        for unit in order:
            bucket = int(self._bucket[unit])
            if bucket not in passed:
                served = unit in chosen
                self._rings[bucket].turn = unit + served
                if not served:
                    passed.add(bucket)

    def _read_all(self, snapshot: Snapshot) -> None:
        ready = np.flatnonzero(snapshot.ready)
        expected = _expected(snapshot, ready)
        latency = snapshot.latencies[ready] + expected
        self._expected[ready], self._ahead[ready] = expected, latency - self._since(snapshot)
        self._train = snapshot.train
        self._calendar.clear()
        self._dated = False  # dates cost a step for each unit: they are made when they are first of use
        before, self._bucket = self._bucket, np.full(len(self.units), _OUT, np.intp)
        self._bucket[ready] = self.graphs.places(ready, latency)
        moved = np.flatnonzero(self._bucket != before)
        for unit, old, new in zip(moved.tolist(), before[moved].tolist(), self._bucket[moved].tolist(), strict=True):
            self._move(unit, old, new)

    def _read_some(self, snapshot: Snapshot, changed: Sequence[int]) -> None:
        now, since = snapshot.now, self._since(snapshot)
        if self._dated:
            come = self._calendar.due(now)
        else:
            come, self._dated = np.flatnonzero(self._bucket != _OUT).tolist(), True
        for unit in come:
            self._place(unit, float(self._ahead[unit]) + since, now)
        for unit in changed:
            if snapshot.ready[unit]:
                expected = snapshot.expected_of(unit)
                latency = snapshot.latency_of(unit) + expected
                self._expected[unit], self._ahead[unit] = expected, latency - since
                self._place(unit, latency, now)
            else:
                self._leave(unit)

    def _place(self, unit: int, latency: float, now: int) -> None:
        """Put a unit into its bucket, and note when it will leave it."""
        new, seconds = self.graphs.place(unit, latency)
        old = int(self._bucket[unit])
        if new != old:
            self._bucket[unit] = new
            self._move(unit, old, new)
        if seconds < math.inf:
            self._calendar.put(unit, now + max(1, math.ceil(seconds * SECOND)))
        else:
            self._calendar.drop(unit)

    def _leave(self, unit: int) -> None:
        """Take a unit out of its bucket, if it is in one."""
        old = int(self._bucket[unit])
        if old != _OUT:
            self._bucket[unit] = _OUT
            self._move(unit, old, _OUT)
            self._calendar.drop(unit)

    def _move(self, unit: int, old: int, new: int) -> None:
        if old != _OUT:
            ring = self._rings[old]
            ring.discard(unit)
            if not ring:
                self._occupied.discard(old)
        if new != _OUT:
            found = self._rings.get(new)
            if found is None:  # an empty ring stays, because it knows whose turn it is
                found = self._rings[new] = Ring()
            if not found:
                self._occupied.add(new)
            found.add(unit)

    def _since(self, snapshot: Snapshot) -> float:
        """Return the seconds since the origin: few, so that differences stay exact."""
        return (snapshot.now - self._origin) / SECOND


def _expected(snapshot: Snapshot, units: Places) -> Floats:
    """Return for some units the seconds until their trains would be delivered."""
    costs = snapshot.costs
    expected: Floats = costs.overhead[units] + costs.cost[units] * np.minimum(snapshot.waiting[units], snapshot.train)
    return expected


def _lowest(word: int) -> int:
    """Return the place of the lowest bit that is set; there must be one."""
    return (word & -word).bit_length() - 1


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
