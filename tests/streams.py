"""Hypothesis strategies: small random streams, boxes and networks, and ways to run them."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hypothesis import strategies as st

from tests.reference.aggregate import AggregateBase
from tests.reference.join import Join
from tests.reference.kinds import BIGINT, KINDS, Kind
from tests.reference.order import NUMBER, Order, Partitions
from tests.reference.tuples import Operator, Row
from tests.reference.twins import (
    Pair,
    Result,
    Twin,
    aggregates,
    bsorts,
    filters,
    joins,
    maps,
    resamples,
    results,
    sessions,
    unions,
)

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[T]], T]

TRAINS = (1, 2, 3, 7, 1000)
POLICIES = ("round-robin/box", "round-robin/superbox", "slope-slack/box", "slope-slack/superbox")
RANDOM_POLICY = importlib.util.find_spec("tests.policies") is not None


TABLE: list[Row] = [
    {"k": 0, "name": "zero"},
    {"k": 1, "name": "one"},
    {"k": None, "name": "none"},
    {"k": 1, "name": "eins"},
]
"""A static table."""


@dataclass(frozen=True)
class Running:
    """How to run a network; it must not change results."""

    policy: str = "round-robin/box"
    train: int = 1000
    workers: int = 1


@st.composite
def runnings(draw: Draw[Any]) -> Running:
    """Any policy, also one that cuts trains at random, any train and number of workers."""
    seeds = st.integers(0, 10_000).map(lambda seed: f"random:{seed}")
    fixed = st.sampled_from(POLICIES)
    policy = draw(st.one_of(seeds, fixed) if RANDOM_POLICY else fixed)
    return Running(policy, draw(st.sampled_from(TRAINS)), draw(st.sampled_from((1, 1, 1, 2))))


kinds = st.sampled_from(KINDS)
BY: tuple[tuple[str, ...], ...] = ((), ("k",), ("g",), ("k", "g"))


def schema(kind: Kind) -> dict[str, str]:
    """Return the fields of a random stream for a network file."""
    return {"id": "int", "a": kind.type, "k": "int", "g": "string", "v": "int", "side": "int"}


Fields = tuple[bool, int, int | None, str | None, int | None, int]
"""What is drawn for one row: A is NULL, A, k, g, v, side."""


def _fields(drifting: bool, partitions: int) -> st.SearchStrategy[Fields]:
    keys = st.integers(0, partitions - 1)
    return st.tuples(
        st.sampled_from((False,) * 9 + (True,)),
        st.integers(-4, 4) if drifting else st.integers(-12, 25),
        st.one_of(keys, keys, st.none()),
        st.sampled_from(("north", "south", None)),
        st.one_of(st.integers(-9, 9), st.integers(-9, 9), st.none()),
        st.integers(0, 1),
    )


def _seeded(seed: int, count: int, drifting: bool, partitions: int) -> list[Fields]:
    """Return rows from a seed: a shorter stream is the beginning of a longer one, so that it shrinks well.

    With an odd seed partitions appear one after the other, so that some are first seen late.
    """
    chance = random.Random(seed)
    rows: list[Fields] = []
    for at in range(count):
        known = min(partitions, 1 + at // 7) if seed % 2 else partitions
        nulls = at > 20 or not seed % 2
        rows.append(
            (
                chance.random() < 0.07,
                chance.randint(-4, 4) if drifting else chance.randint(-12, 25),
                None if nulls and chance.random() < 0.08 else chance.randrange(known),
                None if nulls and chance.random() < 0.2 else chance.choice(("north", "south")[:known]),
                None if chance.random() < 0.15 else chance.randint(-9, 9),
                chance.randint(0, 1),
            )
        )
    return rows


def _rows(drawn: Sequence[Fields], kind: Kind, drifting: bool, start: int = 0) -> list[Row]:
    return [
        {
            "id": start + at,
            "a": kind.value(None if null else value + (at // 2 - 8 if drifting else 0)),
            "k": k,
            "g": g,
            "v": v,
            "side": side,
        }
        for at, (null, value, k, g, v, side) in enumerate(drawn)
    ]


def long_stream(seed: int, count: int, kind: Kind = BIGINT) -> list[Row]:
    """Return a drifting stream that is long enough for state to be dropped many times."""
    return _rows(_seeded(seed, count, True, 3), kind, True)


@st.composite
def streams(draw: Draw[Any], kind: Kind = BIGINT, most: int = 60, start: int = 0) -> list[Row]:
    """Rows with ties, negative values and NULLs, in no order or in a bounded disorder.

    Hypothesis prefers short lists; so most streams come from a seed and a length, and most of these are long.
    """
    drifting = draw(st.sampled_from((True, True, False)))
    partitions = draw(st.integers(1, 3))
    if draw(st.sampled_from((True, True, True, False))):
        count = draw(
            st.integers(most // 3, most) if draw(st.sampled_from((False, True, True, True))) else st.integers(0, 9)
        )
        drawn = _seeded(draw(st.integers(0, 2**20)), count, drifting, partitions)
    else:
        drawn = draw(st.lists(_fields(drifting, partitions), max_size=most))
    return _rows(drawn, kind, drifting, start)


@st.composite
def orders(draw: Draw[Any], numbered: bool = False) -> Order:
    """An order on `a` with slack 0 to 5, or on the tuple number, by no, one or two fields."""
    by = draw(st.sampled_from(BY))
    if numbered and draw(st.sampled_from((False, False, True))):
        return Order(NUMBER, 0, by)
    return Order("a", draw(st.integers(0, 5)), by)


@st.composite
def selections(draw: Draw[Any], field: str = "v") -> list[Result]:
    """One to five built-in functions."""
    known = results(field)
    names = draw(st.lists(st.sampled_from(sorted(known)), min_size=1, max_size=5, unique=True))
    return [known[name] for name in names]


sizes = st.integers(1, 7)


@st.composite
def grids(draw: Draw[Any], kind: Kind, name: str = "box", arc: str = "s") -> Pair:
    """An aggregate over a grid: advance less than, equal to, more than the size, dividing it or not."""
    order = draw(orders(numbered=True))
    advance = draw(st.one_of(st.none(), sizes))
    align_first = order.on != NUMBER and draw(st.sampled_from((False, False, True)))
    return aggregates(name, arc, draw(selections()), order, draw(sizes), advance, kind, align_first)


def _greater(one: Any, other: Any) -> bool | None:
    return None if one is None or other is None else one > other


def _minus(one: Any, other: Any) -> Any:
    return None if one is None or other is None else one - other


WHENS: tuple[tuple[str, Callable[[Row, Row, Row], bool | None]], ...] = (
    ("v > last.v", lambda row, first, last: _greater(row["v"], last["v"])),
    ("v - first.v > 3", lambda row, first, last: _greater(_minus(row["v"], first["v"]), 3)),
    ("v is null", lambda row, first, last: row["v"] is None),
    ("a > last.a", lambda row, first, last: _greater(row["a"], last["a"])),
    ("first.k <> k", lambda row, first, last: _not(_equal(first["k"], row["k"]))),
    ("id - first.id >= 4", lambda row, first, last: row["id"] - first["id"] >= 4),
    ("false", lambda row, first, last: False),
    ("true", lambda row, first, last: True),
)


@st.composite
def data_driven(draw: Draw[Any], kind: Kind, name: str = "box", arc: str = "s") -> Pair:
    """An aggregate over data-driven windows, with or without a size."""
    text, when = draw(st.sampled_from(WHENS))
    order = draw(orders(numbered=True))
    size = draw(st.one_of(st.none(), st.integers(1, 7)))
    return sessions(name, arc, draw(selections()), order, text, when, size, kind)


def _equal(one: Any, other: Any) -> bool | None:
    return None if one is None or other is None else one == other


def _not(one: bool | None) -> bool | None:
    return None if one is None else not one


def _and(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _or(one: bool | None, other: bool | None) -> bool | None:
    return _not(_and(_not(one), _not(other)))


CONDITIONS: tuple[tuple[str, Callable[[Row, Row], bool | None]], ...] = (
    ("left.k = right.k", lambda one, other: _equal(one["k"], other["k"])),
    (
        "left.k = right.k and left.g = right.g",
        lambda one, other: _and(_equal(one["k"], other["k"]), _equal(one["g"], other["g"])),
    ),
    (
        "left.k = right.k and left.v > right.v",
        lambda one, other: _and(_equal(one["k"], other["k"]), _greater(one["v"], other["v"])),
    ),
    ("left.v + 1 = right.v", lambda one, other: _equal(_minus(one["v"], -1), other["v"])),
    ("left.v > right.v", lambda one, other: _greater(one["v"], other["v"])),
    (
        "left.g = right.g or left.k > right.k",
        lambda one, other: _or(_equal(one["g"], other["g"]), _greater(one["k"], other["k"])),
    ),
    ("true", lambda one, other: True),
)


@dataclass(frozen=True)
class Case:
    """A network and its finite inputs."""

    twin: Twin
    inputs: dict[str, list[Row]]


@st.composite
def one_box(draw: Draw[Any], box: Callable[..., st.SearchStrategy[Pair]]) -> Case:
    """One stream into one box; `box` gives the box for a kind of order field."""
    kind = draw(kinds)
    pair = draw(box(kind))
    return Case(Twin({"s": schema(kind)}, (pair,), {"out": pair.name}), {"s": draw(streams(kind))})


@st.composite
def two_streams(
    draw: Draw[Any], box: Callable[[tuple[str, str], Kind], st.SearchStrategy[Pair]], most: int = 25
) -> Case:
    """Two streams into one box: two sources in turn, or one source split, which interleaves them at random."""
    kind = draw(kinds)
    if draw(st.booleans()):
        pair = draw(box(("s", "r"), kind))
        twin = Twin({"s": schema(kind), "r": schema(kind)}, (pair,), {"out": pair.name})
        rows = draw(streams(kind, most))
        return Case(twin, {"s": rows, "r": draw(streams(kind, most, start=100))})
    pair = draw(box(("split", "split.else"), kind))
    split = filters("split", "s", ("side = 0", lambda row: row["side"] == 0))
    return Case(Twin({"s": schema(kind)}, (split, pair), {"out": pair.name}), {"s": draw(streams(kind, 2 * most))})


@st.composite
def join_boxes(draw: Draw[Any], arcs: tuple[str, str], kind: Kind) -> Pair:
    """A join on any order and condition."""
    if draw(st.sampled_from((False, False, False, False, True))):
        both = (Order(NUMBER, 0, draw(st.sampled_from(BY))), Order(NUMBER, 0, draw(st.sampled_from(BY))))
    else:
        both = (draw(orders()), draw(orders()))
    return joins("box", arcs, draw(st.sampled_from(CONDITIONS)), draw(sizes), both, kind)


@st.composite
def resample_boxes(draw: Draw[Any], arcs: tuple[str, str], kind: Kind) -> Pair:
    """A resample on any orders; `v` is the value."""
    both = (draw(orders()), draw(orders()))
    return resamples("box", arcs, draw(selections()), draw(sizes), both, kind)


def sorted_first(case: Case) -> Twin:
    """Return the network whose last box has slack 0, with a BSort of the same slack before each input."""
    *before, box = case.twin.boxes
    settings = box.settings["order"]
    specified = settings if isinstance(settings, list) else [settings]
    sorts = [
        bsorts(f"sorted{at}", arc, Order(order["on"], order["slack"], tuple(order["by"])))
        for at, (arc, order) in enumerate(zip(box.inputs, specified, strict=True))
    ]
    strict = [{**order, "slack": 0} for order in specified]
    plain = Pair(
        box.name,
        tuple(sort.name for sort in sorts),
        {**box.settings, "order": strict if isinstance(settings, list) else strict[0]},
        lambda: _without_slack(box.make()),
    )
    return Twin(case.twin.sources, (*before, *sorts, plain), case.twin.outputs)


def _without_slack(operator: Operator) -> Operator:
    for partitions in _partitions(operator):
        partitions.order = replace(partitions.order, slack=0)
    if isinstance(operator, AggregateBase):
        operator.order = replace(operator.order, slack=0)
    return operator


def _partitions(operator: Operator) -> tuple[Partitions, ...]:
    if isinstance(operator, Join):
        return operator.sides
    assert isinstance(operator, AggregateBase)
    return (operator.partitions,)


COMMON = {"a": "bigint", "k": "int", "id": "int", "v": "int"}
"""Every arc of a random network has these fields, so that any box can follow any other."""

_KEEP = (
    Result("id", "min(id)", results("id")["low"].function),
    Result("v", "cast(sum(v) as int)", results("v")["total"].function),
)


def _common(row: Row) -> Row:
    return {name: row[name] for name in COMMON}


@st.composite
def networks(draw: Draw[Any], most: int = 7) -> Case:
    """A random loop-free network over two sources; at most one join, so that streams stay small."""
    arcs = ["s", "r"]
    pairs: list[Pair] = []
    used: set[str] = set()
    joined = False

    def pick() -> str:
        arc: str = draw(st.sampled_from(arcs[-4:] if draw(st.booleans()) else arcs))
        used.add(arc)
        return arc

    for at in range(draw(st.integers(1, most))):
        name = f"b{at}"
        ops = ["filter", "route", "map", "union", "bsort", "aggregate", "count", "resample", "session"]
        op = draw(st.sampled_from(ops if joined else [*ops, "join"]))
        grouped = Order("a", draw(st.integers(0, 3)), ("k",))
        match op:
            case "filter":
                floor = draw(st.integers(-9, 9))
                pairs.append(filters(name, pick(), (f"v >= {floor}", _at_least("v", floor))))
                arcs += [name, f"{name}.else"]
            case "route":
                routes = (("k = 0", _is("k", 0)), ("a > 4", _at_least("a", 5)))
                pairs.append(filters(name, pick(), *routes))
                arcs += [f"{name}.1", f"{name}.2", f"{name}.else"]
            case "map":
                pairs.append(maps(name, pick(), "a, k, id, v + 1 as v", lambda row: row | {"v": _minus(row["v"], -1)}))
                arcs.append(name)
            case "union":
                pairs.append(unions(name, *[pick() for _ in range(draw(st.integers(2, 3)))]))
                arcs.append(name)
            case "bsort":
                by = draw(st.sampled_from(((), ("k",))))
                pairs.append(bsorts(name, pick(), Order("a", grouped.slack, by)))
                arcs.append(name)
            case "aggregate":
                advance = draw(st.one_of(st.none(), st.integers(2, 5)))
                pairs.append(aggregates(name, pick(), _KEEP, grouped, draw(sizes), advance))
                arcs.append(name)
            case "count":
                order = Order(NUMBER, 0, ("k",))
                low = Result("a", "min(a)", results("a")["low"].function)
                counted = aggregates(f"{name}w", pick(), [low, *_KEEP], order, draw(st.integers(1, 3)))
                pairs += [counted, maps(name, counted.name, "a, k, id, v", _common)]
                arcs.append(name)
            case "session":
                text, when = draw(st.sampled_from(WHENS[:3]))
                pairs.append(sessions(name, pick(), _KEEP, grouped, text, when))
                arcs.append(name)
            case "resample":
                two = (pick(), pick())
                sampled = resamples(f"{name}w", two, _KEEP, draw(st.integers(1, 3)), (Order("a", 1), grouped))
                pairs += [sampled, maps(name, sampled.name, "a, k, id, v", _common)]
                arcs.append(name)
            case _:
                joined = True
                select = ("left.a as a, left.k as k, left.id as id, right.v as v", _combine)
                two = (pick(), pick())
                both = (grouped, Order("a", 1))
                pairs.append(
                    joins(name, two, draw(st.sampled_from(CONDITIONS[:1] + CONDITIONS[2:5])), 2, both, select=select)
                )
                arcs.append(name)
    shown = [arc for arc in arcs if arc not in used or arc == arcs[len(arcs) // 2]]
    outputs = {f"out{at}": arc for at, arc in enumerate(shown)}
    inputs = {name: [_common(row) for row in draw(streams(BIGINT, 20))] for name in ("s", "r")}
    return Case(Twin({"s": COMMON, "r": COMMON}, tuple(pairs), outputs), inputs)


def _at_least(name: str, floor: int) -> Callable[[Row], bool | None]:
    return lambda row: None if row[name] is None else row[name] >= floor


def _is(name: str, value: int) -> Callable[[Row], bool | None]:
    return lambda row: _equal(row[name], value)


def _combine(left: Row, right: Row) -> Row:
    return {"a": left["a"], "k": left["k"], "id": left["id"], "v": right["v"]}
