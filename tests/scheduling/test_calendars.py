"""The calendar queue gives what a heap gives."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.clock import SECOND
from headway.scheduling.calendars import Calendar


class Heap:
    """What a calendar should do, the plain way."""

    def __init__(self) -> None:
        self._events: list[tuple[int, int]] = []
        self._moments: dict[int, int] = {}

    def put(self, item: int, moment: int) -> None:
        self._moments[item] = moment
        heapq.heappush(self._events, (moment, item))

    def drop(self, item: int) -> None:
        self._moments.pop(item, None)

    def due(self, now: int) -> list[int]:
        found = []
        while self._events and self._events[0][0] <= now:
            moment, item = heapq.heappop(self._events)
            if self._moments.get(item) == moment:  # else it was moved or deleted
                del self._moments[item]
                found.append(item)
        return found

    def __len__(self) -> int:
        return len(self._moments)


def test_events_come_in_the_order_of_their_moments() -> None:
    calendar = Calendar()
    for item, moment in ((1, 30), (2, 10), (3, 20), (4, 10), (5, 31)):
        calendar.put(item, moment)
    assert calendar.due(9) == []
    assert calendar.due(30) == [2, 4, 3, 1]
    assert calendar.due(30) == []
    assert len(calendar) == 1
    assert calendar.due(31) == [5]


def test_an_item_has_one_event() -> None:
    calendar = Calendar()
    calendar.put(1, 10)
    calendar.put(1, 20)
    assert len(calendar) == 1
    assert calendar.due(19) == []
    assert calendar.due(20) == [1]


def test_a_deleted_event_does_not_come() -> None:
    calendar = Calendar()
    calendar.put(1, 10)
    calendar.put(2, 10)
    calendar.drop(1)
    calendar.drop(1)
    calendar.drop(7)
    assert calendar.due(10) == [2]
    assert len(calendar) == 0
    assert calendar.due(SECOND) == []


def test_a_cleared_calendar_is_a_new_one() -> None:
    calendar = Calendar()
    calendar.put(1, 10)
    calendar.clear()
    assert len(calendar) == 0
    assert calendar.due(10) == []
    calendar.put(1, 11)
    assert calendar.due(11) == [1]


def test_an_event_may_be_put_into_the_past() -> None:
    calendar = Calendar()
    calendar.put(1, 100 * SECOND)
    assert calendar.due(50 * SECOND) == []
    calendar.put(2, SECOND)
    assert calendar.due(50 * SECOND) == [2]


moments = st.one_of(st.integers(0, 50), st.integers(0, 5000).map(lambda one: one * 1_000_003), st.integers(0, 2**62))
actions = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 60), moments),
        st.tuples(st.just("drop"), st.integers(0, 60), st.just(0)),
        st.tuples(st.just("due"), st.just(0), moments),
    ),
    max_size=200,
)


@settings(deadline=None)
@given(actions)
def test_it_gives_what_a_heap_gives(some: list[tuple[str, int, int]]) -> None:
    calendar, heap, now = Calendar(), Heap(), 0
    for what, item, moment in some:
        if what == "put":
            calendar.put(item, moment)
            heap.put(item, moment)
        elif what == "drop":
            calendar.drop(item)
            heap.drop(item)
        else:
            now = max(now, moment)
            assert calendar.due(now) == heap.due(now)
        assert len(calendar) == len(heap)
    assert calendar.due(2**63) == heap.due(2**63)


DISTANCES: dict[str, Callable[[Random], int]] = {
    "evenly": lambda random: random.randrange(SECOND),
    "soon": lambda random: int(random.expovariate(1e-6)),
    "together": lambda random: SECOND,
    "soon or late": lambda random: random.randrange(1000) if random.random() < 0.9 else random.randrange(100 * SECOND),
    "the narrower the longer": lambda random: int(SECOND ** random.random()),
}


@pytest.mark.parametrize("spread", DISTANCES)
def test_the_same_while_it_grows_stays_and_shrinks(spread: str) -> None:
    random, calendar, heap, now, item = Random(7), Calendar(), Heap(), 0, 0
    for growth in (2, 1, 0):  # for each event that comes, so many new ones
        for _ in range(1500):
            moment = now + DISTANCES[spread](random)
            for _ in range(growth):
                item += 1
                for queue in (calendar, heap):
                    queue.put(item, moment)
            now += random.choice((0, 1000, SECOND // 1000, SECOND // 100))
            found = calendar.due(now)
            assert found == heap.due(now)
    assert len(calendar) == len(heap)


class Watched(Calendar):
    """Counts what is looked at in vain, over all."""

    before = 0

    def _resize(self) -> None:
        self.before += self._vain
        super()._resize()

    @property
    def looked(self) -> int:
        return self.before + self._vain


def vain(count: int, begin: Callable[[Random], int], then: Callable[[Random], int], pause: int) -> float:
    """Return how many pages and events are looked at in vain for each that comes, if each that comes is put again."""
    random, calendar, now, come = Random(3), Watched(), 0, 0
    for item in range(count):
        calendar.put(item, begin(random))
    for item in range(count):
        calendar.put(item, then(random))
    before = calendar.looked
    while come < 4 * count:
        now += pause
        for item in calendar.due(now):
            come += 1
            calendar.put(item, now + then(random))
    return (calendar.looked - before) / come


@pytest.mark.parametrize("spread", DISTANCES)
def test_what_is_looked_at_follows_what_comes(spread: str) -> None:
    distance = DISTANCES[spread]
    few, many = (vain(count, distance, distance, 2 * SECOND // count) for count in (500, 8000))
    assert many < 2 * few + 3


@pytest.mark.parametrize(("first", "then"), [(10_000, SECOND), (SECOND, 10_000)])
def test_the_day_follows_the_times(first: int, then: int) -> None:
    """As many events as before, but much further apart, or much nearer."""
    looked = vain(4000, lambda random: random.randrange(first), lambda random: random.randrange(then), then // 4000 + 1)
    assert looked < 10
