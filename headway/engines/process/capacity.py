"""The capacity of an engine, measured from the work done and the time it took."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from headway.clock import SECOND
from headway.fading import Faded

_FADE = 0.5
"""The weight that earlier work keeps at each look."""
_NEEDED = 0.2
"""Least share of busy time that still counts after the extra cost of short trains is subtracted."""
_SHOWN = 2
"""Consecutive looks under pressure before a measured capacity is trusted."""
_PRESSED = 0.1
"""Least backlog (seconds of work) at which an engine counts as fully occupied."""


class Effort(NamedTuple):
    """Work done by all processors since the start."""

    busy: int
    """Nanoseconds, summed over processors, that were not spent waiting."""
    under_way: int = 0
    """Nanoseconds of `busy` in calls under way, whose results are not counted yet."""


class Done(NamedTuple):
    """The work that boxes have done since the previous look."""

    work: float
    """Seconds of work, at current costs."""
    warming: int
    """Nanoseconds in the first calls of boxes, which say nothing about capacity."""
    avoidable: float
    """Seconds that short trains took beyond what long ones would have."""


class Capacity:
    """Measures the capacity of an engine.

    It is measurable only under a backlog; until then, full capacity is assumed. An engine without a backlog keeps up,
    however busy it is: it has the time for short trains, which cost more per tuple. So its busy time is converted to
    what the same work would take under load.
    """

    def __init__(self, effort: Callable[[], Effort], now: int, exact: bool) -> None:
        """Start; `exact` says whether costs are known rather than measured."""
        self._effort, self._moment, self._exact = effort, now, exact
        self._busy, self._under_way = effort().busy, 0
        self._backlog = 0.0
        self._pressed = 0  # consecutive looks with work waiting all the time
        self._done = Faded(2)  # work and busy time, faded

    def look(self, now: int, workers: int, usable: float, backlog: float, made: Done) -> tuple[float, float, bool]:
        """Return capacity (seconds of work per second), the share of time needed, and whether capacity can be trusted.

        `usable` is how many of the workers can be used at once, and `backlog` the seconds of work that wait.
        """
        effort = self._effort()
        spent, busy = max(1, (now - self._moment) * workers), effort.busy - self._busy
        ended = busy - made.warming - (0 if self._exact else effort.under_way - self._under_way)
        self._busy, self._under_way, self._moment = effort.busy, effort.under_way, now
        share = min(1.0, busy / spent)
        pressed = min(backlog, self._backlog) > _PRESSED
        self._pressed = self._pressed + 1 if pressed else 0
        self._backlog = backlog
        if pressed and ended > 0:
            # The extra cost of short trains is no lack of time: under load, trains are long.
            spent_on = ended / SECOND
            if made.avoidable > 0:
                spent_on = max(spent_on - made.avoidable, made.work, _NEEDED * spent_on)
            self._done.add((made.work, spent_on), _FADE)
        # Busy time that is not work in boxes is the engine's own overhead.
        done, took = self._done.sums.tolist()
        part = min(1.0, done / took) if done > 0 else 1.0
        needed = share if pressed else min(share, made.work / part * SECOND / spent)
        # Workers that cannot be used are idle however much work there is. With measured costs, a single look may hit a
        # moment of short trains or of a slow box, so two are needed.
        shows = self._exact or self._pressed >= _SHOWN
        return usable * part, min(1.0, needed * workers / usable), shows
