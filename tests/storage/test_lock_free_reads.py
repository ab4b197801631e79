"""What others read of a queue without its lock, looked at in the middle of each change."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from headway.storage.queues import Queue
from headway.trains import NOTHING, Train
from tests.storage.test_queues import queue, train


class Watched(deque[Train]):
    """A list of segments that calls back after every change, when the queue is half-way through its own."""

    look: Callable[[], None]

    def append(self, item: Train) -> None:
        super().append(item)
        self.look()

    def popleft(self) -> Train:
        taken = super().popleft()
        self.look()
        return taken


def watch(arc: Queue, look: Callable[[], None]) -> None:
    segments = Watched(arc._segments)
    segments.look = look
    arc._segments = segments


def test_nobody_looks_idle_while_another_consumer_releases() -> None:
    _, arc = queue(2)
    for at in range(4):
        arc.push(train([at]))
    one, other = arc.cursors
    seen: list[bool] = []
    watch(arc, lambda: seen.append(other.idle))
    one.take(4)
    for _ in range(3):
        other.take(1)
        assert not other.idle
    assert seen
    assert not any(seen)


def test_a_promise_is_seen_only_when_what_it_is_about_is_queued() -> None:
    _, arc = queue()
    (cursor,) = arc.cursors
    seen: list[tuple[int, bool]] = []
    watch(arc, lambda: seen.append((arc.progress, cursor.idle)))
    arc.push(train([3, 4], 7))
    arc.push(train([9], 9, end=True))
    assert seen[0][0] == NOTHING
    assert all(progress <= 7 for progress, _ in seen)
    assert arc.progress == 9
