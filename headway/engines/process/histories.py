"""Connection points at run time: what passes them is kept, and boxes that begin behind them catch up with it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

from headway.checking import CheckedNetwork
from headway.clock import MILLISECOND
from headway.columns import NEVER
from headway.engines.alteration import Alteration
from headway.engines.alteration import History as Wanted
from headway.engines.histories import OpenHistories
from headway.engines.process.runtime import Runtime
from headway.errors import HeadwayError, RunError
from headway.history import History, Reader
from headway.storage.branches import Branch, part_of
from headway.trains import NOTHING, Train, constant

_CHUNK = 16_384
"""Tuples of a history that are queued at a time."""
_AHEAD = 4 << 20
"""Bytes of a history that may wait for a box; what it has not taken is not read either."""
SOON = 2 * MILLISECOND
"""How long the loop sleeps at most while a history is being read in the background."""
_log = logging.getLogger("headway")


class Tap:
    """Hands what is pushed to an arc to the history of a point. When that fails, the run goes on without it."""

    def __init__(self, point: str, history: History, after: int) -> None:
        """Keep what is numbered above `after`."""
        self._point, self._history, self._after = point, history, after
        self.failed: RunError | None = None

    def offer(self, train: Train) -> None:
        """Keep a train."""
        if self.failed is not None:
            return
        try:
            self._history.append(part_of(train, self._after, NEVER))
        except RunError as error:
            self.failed = RunError(f"point '{self._point}' keeps nothing more: {error}")
            _log.error("%s", self.failed)


class CatchUp:
    """A box that reads the history of a point before what is live."""

    def __init__(
        self,
        branch: Branch,
        reader: Reader,
        stamp: int,
        seam: int | None,
        progress: Callable[[], int],
        lost: Future[HeadwayError] | None,
    ) -> None:
        """Tuples count their latency from `stamp`. With a `seam`, the input ends there.

        `progress` returns up to which arrival number the point's arc is complete; `lost` gets what goes wrong.
        """
        self._lost = lost
        self._branch, self._reader, self._stamp, self._seam = branch, reader, stamp, seam
        self._progress = progress
        if seam is not None:
            branch.upto = seam

    def feed(self, wait: bool) -> bool:
        """Queue what has been read, as far as the box takes it; return whether it is live now, or at its end.

        With `wait`, it waits for what is being read.
        """
        branch, reader, seam = self._branch, self._reader, self._seam
        while not branch.live:
            if branch.queue.bytes > _AHEAD:
                return False
            train = reader.next(_CHUNK, wait)
            if train is not None:
                branch.queue.push(part_of(self._stamped(train), NOTHING, branch.upto))
            elif not reader.reached:
                return False
            if train is None or reader.position.number > branch.upto:
                branch.join(self._rest)
        reader.close()
        if seam is None or branch.ended:
            return True
        if self._progress() < seam:
            return False
        branch.end(seam)
        return True

    def give_up(self, error: HeadwayError) -> None:
        """Read no more, and tell whoever asked."""
        self._reader.close()
        self._branch.give_up()
        _tell(self._lost, error)

    def _rest(self) -> Sequence[Train]:
        trains = list[Train]()
        while self._reader.position.number <= self._branch.upto and (train := self._reader.next()) is not None:
            trains.append(self._stamped(train))
        return trains

    def _stamped(self, train: Train) -> Train:
        return Train(train.columns, constant(self._stamp, len(train)), train.numbers, int(train.numbers[-1]) - 1)


def _tell(lost: Future[HeadwayError] | None, error: HeadwayError) -> None:
    """Tell whoever asked that a history cannot be read, once."""
    if lost is not None and not lost.done():
        lost.set_result(error)


class Asked(NamedTuple):
    """A box that is to catch up."""

    history: Wanted
    branch: Branch
    progress: Callable[[], int]


class Histories(OpenHistories):
    """The histories of a run's points. Used by the scheduler thread, except where it says otherwise."""

    def __init__(self, folder: str | None) -> None:
        """Keep them in a folder, by default in a temporary one."""
        super().__init__(folder)
        self._taps: dict[str, tuple[Tap, Runtime, str]] = {}
        self._asked: list[tuple[int, int, list[Asked]]] = []  # by seam and its moment
        self._catching: list[CatchUp] = []

    def follow(self, checked: CheckedNetwork, runtime: Runtime, anew: Sequence[str] = (), seam: int = NOTHING) -> None:
        """Keep what passes the points of a network after a seam; those in `anew` begin anew."""
        wanted = {point.name for point in checked.network.points if point.data is None}
        for name, (tap, before, arc) in list(self._taps.items()):
            gone = name not in wanted or name in anew
            if gone or not _same_queue(before, runtime, arc, checked.points[name]):
                before.arcs[arc].queue.forget(tap)
                del self._taps[name]
        opened = self.reopen(checked, anew)
        for name in wanted:
            arc = checked.points[name]
            if name not in self._taps:
                tap = Tap(name, self._open[name], seam if name in opened else NOTHING)
                runtime.arcs[arc].queue.listen(tap)
                self._taps[name] = tap, runtime, arc
            else:
                self._taps[name] = self._taps[name][0], runtime, arc

    def catch_up(
        self,
        alteration: Alteration,
        branches: Mapping[tuple[str, int], Branch],
        seam: int,
        now: int,
        progress: Callable[[str], int],
    ) -> None:
        """Let boxes that begin at a seam read history first; `progress` is that of an arc."""
        some = []
        for place, one in alteration.histories.items():
            branch, known = branches[place], partial(progress, alteration.new.points[one.point])
            branch.live, branch.past, branch.after, branch.queue.progress = False, True, NOTHING, NOTHING
            some.append(Asked(one, branch, known))
        if some:
            self._asked.append((seam, now, some))

    def _begin(self) -> None:
        """Begin to read for those whose arcs are complete up to their seam: before, it is not known from where on."""
        rest = []
        for seam, now, some in self._asked:
            if not all(one.progress() >= seam or one.branch.live for one in some):
                rest.append((seam, now, some))
                continue
            begun = some[0].history.begun
            try:
                begin = max(self.begins(one.history, seam) for one in some)
            except HeadwayError as error:  # whoever asked takes the fragment out again
                for one in some:
                    one.branch.give_up()
                    _tell(one.history.lost, error)
                if begun is not None:
                    begun.set_exception(error)
                continue
            for history, branch, progress in some:
                reader = self.of(history.point).follow(begin - 1, history.key)
                branch.queue.progress = begin - 1
                ends = seam if history.ends else None
                self._catching.append(CatchUp(branch, reader, now, ends, progress, history.lost))
            if begun is not None:
                begun.set_result(begin)
        self._asked = rest

    def failure(self, point: str) -> RunError | None:
        """Return why the history of a point has failed, if it has. Thread-safe."""
        return self._taps[point][0].failed

    @property
    def catching(self) -> bool:
        """Whether boxes catch up."""
        return bool(self._catching or self._asked)

    def feed(self, wait: bool = False) -> None:
        """Let boxes that catch up have more, as far as they take it; with `wait`, as if reading took no time."""
        if self._asked:
            self._begin()
        self._catching = [one for one in self._catching if not self._fed(one, wait)]

    def _fed(self, one: CatchUp, wait: bool) -> bool:
        """Feed a box; return whether that is over, also because the history cannot be read: the run goes on."""
        try:
            return one.feed(wait)
        except HeadwayError as error:
            one.give_up(error)
            return True


def _same_queue(before: Runtime, now: Runtime, old: str, new: str) -> bool:
    return new in now.arcs and before.arcs[old].queue is now.arcs[new].queue
