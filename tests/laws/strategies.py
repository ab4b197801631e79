"""Hypothesis strategies: small networks of universal boxes with arrivals, and schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import headway as hw
import tests.policies  # noqa: F401  (it registers the policy `random`)
from tests.laws.helpers import Box, Net, ms
from tests.searching import examples

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[T]], T]

POLICIES = hw.policies()
WITH_ARGUMENTS = ("round-robin:1ms", "bucketed:3x2", "feedback:5ms", "slope-slack:4")
EVERY = (*POLICIES, *WITH_ARGUMENTS)
TRAINS = ("1", "2", "7", "1000", "50%", "5ms", "64kB", "spread:10ms", "overhead:5%", "auto")
UNITS = ("box", "superbox", "spanner", "spanner:2")
TRAVERSALS = ("mc", "ml", "mm", "best")

costs = st.integers(1, 8)
selectivities = st.sampled_from((0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 0.0, 1.5, 2.0))


def laws(count: int) -> settings:
    """Return settings for a law that wants about so many tries."""
    return settings(examples(count), suppress_health_check=[HealthCheck.too_slow])


@st.composite
def schedules(draw: Draw[Any], policy: str | None = None, trains: tuple[str, ...] = TRAINS) -> str:
    """Any schedule of a policy, or of any."""
    name = draw(st.sampled_from(EVERY)) if policy is None else policy
    wait = draw(st.sampled_from(("", "/wait:5ms", "/wait:off")))
    unit, traversal = draw(st.sampled_from(UNITS)), draw(st.sampled_from(TRAVERSALS))
    return f"{name}/{unit}/{traversal}/{draw(st.sampled_from(trains))}{wait}"


@st.composite
def graphs(draw: Draw[Any]) -> list[list[float]]:
    """A latency graph that falls, in tens of milliseconds."""
    points = sorted(draw(st.sets(st.integers(1, 30), min_size=1, max_size=3)))
    values = sorted(draw(st.lists(st.integers(0, 9), min_size=len(points), max_size=len(points))), reverse=True)
    return [[0, 1.0], *[[x / 100, y / 10] for x, y in zip(points, values, strict=True)]]


@st.composite
def moments(draw: Draw[Any], most: int = 10, until: int = 60) -> tuple[int, ...]:
    """Arrivals within some milliseconds, some of them at once."""
    return ms(*sorted(draw(st.lists(st.integers(0, until), max_size=most))))


@st.composite
def forests(draw: Draw[Any], most: int = 6, several: bool = False, at_once: bool = False) -> Net:
    """Boxes that read one arc each, so that they are chains and forks; with `several`, some read more.

    Every box that nobody reads is shown by an output, and so are some others. With `at_once` all tuples are there at
    the beginning.
    """
    sources = [f"s{at}" for at in range(draw(st.integers(1, 3)))]
    many = draw(st.integers(1, 6))
    arrivals = {name: ms(*[0] * many) if at_once else draw(moments()) for name in sources}
    boxes: dict[str, Box] = {}
    arcs = list(sources)
    for at in range(draw(st.integers(1, most))):
        reads = draw(st.lists(st.sampled_from(arcs), min_size=1, max_size=3 if several else 1, unique=True))
        boxes[f"b{at}"] = Box(tuple(reads), draw(costs), draw(selectivities))
        arcs.append(f"b{at}")
    read = {arc for box in boxes.values() for arc in box.reads}
    shown = [name for name in boxes if name not in read or draw(st.booleans())]
    outputs: dict[str, Any] = {}
    for name in shown:
        graph = draw(st.none() | graphs())
        outputs[f"o{name}"] = {"from": name, **({} if graph is None else {"qos": {"latency": graph}})}
    used = [name for name in sources if name in read]
    return Net({name: arrivals[name] for name in used}, boxes, outputs)


@st.composite
def rows(
    draw: Draw[Any],
    alike: bool,
    most: int = 3,
    passing: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0),
    heaviest: int = 4,
) -> dict[str, Box]:
    """Boxes in rows with a source each: s0 -> r0x0 -> r0x1, and so on; all rows alike or not."""

    def row() -> list[tuple[int, float]]:
        pairs = st.tuples(st.integers(1, heaviest), st.sampled_from(passing))
        drawn: list[tuple[int, float]] = draw(st.lists(pairs, min_size=1, max_size=3))
        return drawn

    count = draw(st.integers(2 if alike else 1, most))
    every = [row()] * count if alike else [row() for _ in range(count)]
    return {
        f"r{at}x{place}": Box((f"r{at}x{place - 1}" if place else f"s{at}",), cost, passed)
        for at, one in enumerate(every)
        for place, (cost, passed) in enumerate(one)
    }


def ends(boxes: dict[str, Box]) -> list[str]:
    """Return the boxes that nobody reads."""
    read = {arc for box in boxes.values() for arc in box.reads}
    return [name for name in boxes if name not in read]
