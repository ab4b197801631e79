"""A calendar queue: events by moment, with insertion, deletion and extraction in constant time, amortised.

After R. Brown, "Calendar Queues: A Fast O(1) Priority Queue Implementation for the Simulation Event Set Problem"
(CACM 1988): an event is written on the page of its day, and one reads on from page to page. How long a day is
follows from the events: about three times the distance between the nearest ones.

One difference. Brown's year has a fixed number of days, and a page holds the events of that day in every year;
here a page is the entry of a dict and holds one day only, so that no page mixes years, and an empty day costs no
memory. Where the days to read on are more than the pages there are, the pages are looked through instead.
"""

from __future__ import annotations

from heapq import nsmallest
from itertools import pairwise

from headway.clock import MILLISECOND

_SAMPLE = 32
"""How many of the nearest events say how long a day is."""
_PER_DAY = 3
"""Events that a day should hold."""
_FEW = 16
"""Events below which the length of the day does not matter."""
_PATIENCE = 4
"""Looks in vain for each event, after which the length of the day is reconsidered."""
_NEVER = 1 << 128


class Calendar:
    """At most one event for each item, at a moment (ns). Items are numbers, such as those of units.

    Constant time holds, as with every calendar queue, where the next events are spread somewhat evenly.
    """

    def __init__(self) -> None:
        """Begin without events."""
        self._day = MILLISECOND
        self._moments: dict[int, int] = {}
        self._pages: dict[int, set[int]] = {}
        self._earliest = _NEVER  # no event is earlier; one that was deleted may have been as early
        self._sized = _FEW
        self._vain = 0

    def __len__(self) -> int:
        """Return how many events there are."""
        return len(self._moments)

    def clear(self) -> None:
        """Forget all events; the length of the day stays."""
        self._moments.clear()
        self._pages.clear()
        self._earliest, self._vain = _NEVER, 0

    def put(self, item: int, moment: int) -> None:
        """Let an item's event be at this moment, and not where it was."""
        if item in self._moments:
            self._take_out(item)
        self._moments[item] = moment
        self._write(item, moment)
        if moment < self._earliest:
            self._earliest = moment
        if len(self._moments) > 2 * self._sized:
            self._resize()

    def drop(self, item: int) -> None:
        """Delete an item's event, if there is one."""
        if item in self._moments:
            self._take_out(item)
            self._reconsider()

    def due(self, now: int) -> list[int]:
        """Take out all events up to this moment, itself included, and return their items, the earliest first."""
        if now < self._earliest:
            return []
        today, first = now // self._day, self._earliest // self._day
        pages, moments = self._pages, self._moments
        if today - first > len(pages):
            past = [day for day in pages if day < today]
            self._vain += len(pages) - len(past)
        else:
            past = [day for day in range(first, today) if day in pages]
            self._vain += today - first - len(past)
        found: list[int] = []
        for day in past:
            found += pages.pop(day)
        page = pages.get(today)
        if page is not None:
            ended = [item for item in page if moments[item] <= now]
            self._vain += len(page) - len(ended)
            found += ended
            page.difference_update(ended)
            if not page:
                del pages[today]
        made = sorted([(moments.pop(item), item) for item in found])
        self._earliest = self._next(today)
        self._reconsider()
        return [item for _, item in made]

    def _write(self, item: int, moment: int) -> None:
        day = moment // self._day
        page = self._pages.get(day)
        if page is None:
            self._pages[day] = {item}
        else:
            page.add(item)

    def _take_out(self, item: int) -> None:
        day = self._moments.pop(item) // self._day
        page = self._pages[day]
        page.discard(item)
        if not page:
            del self._pages[day]

    def _next(self, today: int) -> int:
        """Return the earliest moment; there is none before today."""
        if not self._pages:
            return _NEVER
        day, last = today, today + len(self._pages)
        while day not in self._pages and day < last:
            day += 1
        self._vain += day - today
        if day == last:
            day = min(self._pages)
        page = self._pages[day]
        self._vain += len(page)
        return min([self._moments[item] for item in page])

    def _reconsider(self) -> None:
        """Choose another day if the events have become far fewer, or if too much is looked at in vain."""
        count = len(self._moments)
        if 2 * count < self._sized > _FEW or (count > _FEW and self._vain > _PATIENCE * count):
            self._resize()

    def _resize(self) -> None:
        """Choose the length of the day by the nearest events, and write all pages anew."""
        self._sized, self._vain = max(_FEW, len(self._moments)), 0
        self._day = _length(nsmallest(_SAMPLE, self._moments.values()), self._day)
        self._pages = {}
        for item, moment in self._moments.items():
            self._write(item, moment)


def _length(nearest: list[int], present: int) -> int:
    """Return how long a day should be; as at present if these moments do not tell."""
    gaps = [later - earlier for earlier, later in pairwise(nearest)]
    usual = [gap for gap in gaps if gap * len(gaps) <= 2 * sum(gaps)]  # one long pause would make every day long
    total = sum(usual)
    return max(1, _PER_DAY * total // len(usual)) if total else present
