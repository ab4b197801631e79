"""What is kept in memory of an endless stream: the last tuples, or those of the last duration."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from headway.clock import Clock
from headway.network.keep import Keep

_Item = TypeVar("_Item")

TOGETHER = 256
"""How many small items are merged into one, so that their number does not take memory."""
_SMALL = 64 * TOGETHER


class _Entry(NamedTuple, Generic[_Item]):
    """An item with when its tuples came: pairs of a moment and a number of tuples, in their order."""

    came: tuple[tuple[int, int], ...]
    item: _Item

    @property
    def tuples(self) -> int:
        return sum(count for _, count in self.came)


class Kept(Generic[_Item]):
    """Items of several tuples each, with the moment when they came. May be used from any thread."""

    def __init__(
        self,
        keep: Keep,
        clock: Clock,
        size: Callable[[_Item], int],
        merge: Callable[[Sequence[_Item]], _Item] | None = None,
    ) -> None:
        """Begin with none; `size` returns how many tuples an item has, `merge` makes one item of several."""
        self._keep, self._clock, self._size = keep, clock, size
        self._merging = merge
        self._merge = None if keep.all else merge
        self._entries: deque[_Entry[_Item]] = deque()
        self._tuples = self._loose = 0
        self._lock = threading.Lock()

    def limit(self, keep: Keep, cut: Callable[[_Item, int], _Item]) -> None:
        """Keep another amount from now on; what was dropped stays so.

        `cut` returns an item without its first tuples.
        """
        with self._lock:
            self._drop()
            extra = self._extra()
            if extra:
                first = self._entries.popleft()
                ends = itertools.accumulate(count for _, count in first.came)
                came = [(at, min(count, end - extra)) for (at, count), end in zip(first.came, ends, strict=True)]
                rest = [one for one in came if one[1] > 0] or came[-1:]
                self._entries.appendleft(_Entry(tuple(rest), cut(first.item, extra)))
                self._tuples -= extra
            if keep.span is not None and self._keep.span is None:  # when they came was not noted: as if now
                now = self._clock.now()
                self._entries = deque(_Entry(((now, entry.tuples),), entry.item) for entry in self._entries)
            self._keep, self._merge = keep, None if keep.all else self._merging
            self._loose = min(self._loose, len(self._entries))
            self._drop()

    def add(self, item: _Item) -> None:
        """Keep an item, and drop those that lie wholly outside."""
        with self._lock:
            size = self._size(item)
            self._entries.append(_Entry(((self._clock.now() if self._keep.span is not None else 0, size),), item))
            self._tuples += size
            self._drop()
            self._loose = min(self._loose + 1, len(self._entries))
            if self._merge is not None and self._loose >= TOGETHER:
                self._gather(self._merge)

    def drop(self) -> None:
        """Drop the items that lie wholly outside."""
        with self._lock:
            self._drop()

    def items(self) -> tuple[list[_Item], int]:
        """Return the items that are kept, and how many tuples of the first one are outside."""
        with self._lock:
            self._drop()
            return [entry.item for entry in self._entries], self._extra()

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._entries.clear()
            self._tuples = self._loose = 0

    def _extra(self) -> int:
        """Return how many tuples of the first item are outside."""
        if self._keep.tuples is not None:
            return max(0, self._tuples - self._keep.tuples)
        if self._keep.span is not None and self._entries:
            oldest = self._oldest(self._keep.span.nanoseconds)
            return sum(count for moment, count in self._entries[0].came if moment < oldest)
        return 0

    def _oldest(self, span: int) -> int:
        return self._clock.now() - span

    def _drop(self) -> None:
        entries = self._entries
        if self._keep.span is not None and entries:
            oldest = self._oldest(self._keep.span.nanoseconds)
            while entries and entries[0].came[-1][0] < oldest:
                self._tuples -= entries.popleft().tuples
        elif self._keep.tuples is not None:
            while entries and self._tuples - entries[0].tuples >= self._keep.tuples:
                self._tuples -= entries.popleft().tuples

    def _gather(self, merge: Callable[[Sequence[_Item]], _Item]) -> None:
        """Merge the newest items, unless they are large."""
        newest = [self._entries.pop() for _ in range(self._loose)][::-1]
        if sum(entry.tuples for entry in newest) <= _SMALL:
            came: dict[int, int] = {}
            for entry in newest:
                for moment, count in entry.came:
                    came[moment] = came.get(moment, 0) + count
            newest = [_Entry(tuple(came.items()), merge([entry.item for entry in newest]))]
        self._entries.extend(newest)
        self._loose = 0
