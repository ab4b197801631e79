"""What is kept in memory of an endless stream: the last tuples, or those of the last duration."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from headway.clock import Clock
from headway.network.keeping import Keep

_Item = TypeVar("_Item")


class Kept(Generic[_Item]):
    """Items of several tuples each, with the moment when they came. May be used from any thread."""

    def __init__(self, keep: Keep, clock: Clock, size: Callable[[_Item], int]) -> None:
        """Begin with none; `size` returns how many tuples an item has."""
        self._keep, self._clock, self._size = keep, clock, size
        self._items: deque[tuple[int, _Item]] = deque()
        self._tuples = 0
        self._lock = threading.Lock()

    def add(self, item: _Item) -> None:
        """Keep an item, and drop those that lie wholly outside."""
        with self._lock:
            self._items.append((self._clock.now() if self._keep.time is not None else 0, item))
            self._tuples += self._size(item)
            self._drop()

    def drop(self) -> None:
        """Drop the items that lie wholly outside."""
        with self._lock:
            self._drop()

    def items(self) -> tuple[list[_Item], int]:
        """Return the items that are kept, and how many tuples of the first one are outside."""
        with self._lock:
            self._drop()
            extra = 0 if self._keep.tuples is None else max(0, self._tuples - self._keep.tuples)
            return [item for _, item in self._items], extra

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._items.clear()
            self._tuples = 0

    def _drop(self) -> None:
        if self._keep.time is not None:
            oldest = self._clock.now() - self._keep.time.nanoseconds
            while self._items and self._items[0][0] < oldest:
                self._tuples -= self._size(self._items.popleft()[1])
        elif self._keep.tuples is not None:
            while self._items and self._tuples - self._size(self._items[0][1]) >= self._keep.tuples:
                self._tuples -= self._size(self._items.popleft()[1])
