"""How much work can be done per second, as what was done tells it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from headway.clock import SECOND
from headway.fading import Faded

_FADE = 0.5
"""How much of what was done before a look counts at the next."""
_NEEDED = 0.2
"""The least part of its time that an engine is taken to need, whatever short trains are said to cost."""
_SHOWN = 2
"""Looks in a row after which it shows what can be done, where costs are measured."""
_PRESSED = 0.1
"""Seconds of work that wait at least where an engine has as much to do as it can."""


class Effort(NamedTuple):
    """What processors have done since the start, in nanoseconds."""

    busy: int
    """The time of all of them together that was not spent waiting."""
    under_way: int = 0
    """How much of it belongs to calls under way, of which nobody knows yet what they have done."""


class Done(NamedTuple):
    """What boxes have done since the look before."""

    work: float
    """Seconds of work, at the costs of now."""
    warming: int
    """Nanoseconds of boxes that were called for the first times: they tell nothing of what can be done."""
    avoidable: float
    """Seconds that calls of short trains took more than those of long ones would have."""


class Capacity:
    """Sets work against the time that it took.

    What can be done shows only where there is more to do than that; until then, all of it is expected. An engine
    without a backlog keeps up, however busy it is: it has the time for short trains, which cost more by the tuple. So
    what it was busy with counts as it would under load.
    """

    def __init__(self, effort: Callable[[], Effort], now: int, exact: bool) -> None:
        """Begin; `exact` says that costs are known, and not measured."""
        self._effort, self._moment, self._exact = effort, now, exact
        self._busy, self._under_way = effort().busy, 0
        self._backlog = 0.0
        self._pressed = 0  # looks in a row with work waiting all the time
        self._done = Faded(2)  # work and busy time, faded

    def look(self, now: int, workers: int, usable: float, backlog: float, made: Done) -> tuple[float, float, bool]:
        """Return the seconds of work that can be done per second, the share of the time needed, and if it shows.

        `usable` is how many of the workers have something to do, and `backlog` the seconds of work that wait.
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
            # What short trains cost more is no want of time: under load they are long.
            spent_on = ended / SECOND
            if made.avoidable > 0:
                spent_on = max(spent_on - made.avoidable, made.work, _NEEDED * spent_on)
            self._done.add((made.work, spent_on), _FADE)
        # What is not work in boxes is the engine's own.
        done, took = self._done.sums.tolist()
        part = min(1.0, done / took) if done > 0 else 1.0
        needed = share if pressed else min(share, made.work / part * SECOND / spent)
        # Workers that can be of no use are idle however much there is to do.
        # One look may be a moment in which trains were short, or a box was slow: measured costs need two.
        shows = self._exact or self._pressed >= _SHOWN
        return usable * part, min(1.0, needed * workers / usable), shows
