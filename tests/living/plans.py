"""Random networks that change: a plan is a network as twins, and every change of it is another plan."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.reference.graph import Node
from tests.reference.order import NUMBER, Order
from tests.reference.tuples import Row
from tests.reference.twins import (
    Pair,
    Result,
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
from tests.reference.union import Union
from tests.streams import COMMON, CONDITIONS, WHENS

STATELESS = ("filter", "map", "union")
_KNOWN = results("v")
_KEEP = (
    Result("id", "min(id)", results("id")["low"].function),
    Result("v", "cast(sum(v) as int)", _KNOWN["total"].function),
)
_LOW = Result("a", "min(a)", results("a")["low"].function)
_FLOATS = ("mean", "spread", "var", "middle")
_ANY = ("filter", "route", "map", "union", "loose", "bsort", "aggregate", "count", "resample", "session", "stats")
_LOOSE = ("filter", "map", "loose")
"""What may follow a box that takes tuples as they come: its results depend on no order."""


@dataclass(frozen=True)
class Part:
    """A box of a plan: its twin, and what kind of box it is."""

    kind: str
    pair: Pair

    @property
    def name(self) -> str:
        """The box's name."""
        return self.pair.name

    @property
    def stateful(self) -> bool:
        """Whether the box keeps a state."""
        return self.pair.settings["op"] not in STATELESS

    @property
    def arcs(self) -> tuple[str, ...]:
        """The arcs that it writes."""
        match self.kind:
            case "filter":
                return self.name, f"{self.name}.else"
            case "route":
                return f"{self.name}.1", f"{self.name}.2", f"{self.name}.else"
        return (self.name,)


@dataclass(frozen=True)
class Piece:
    """A fragment: its parts have the names that they have in the network."""

    name: str
    parts: tuple[Part, ...]
    outputs: Mapping[str, str]

    def mapping(self) -> dict[str, Any]:
        """Return it as a file's mapping, where its boxes have names of their own."""
        prefix = f"{self.name}/"

        def own(item: Any) -> Any:
            return [own(one) for one in item] if isinstance(item, list) else str(item).removeprefix(prefix)

        boxes = {own(part.name): (box := part.pair.mapping()) | {"in": own(box["in"])} for part in self.parts}
        outputs = {own(name): {"from": own(arc)} for name, arc in self.outputs.items()}
        return {"attach": self.name, "since": "now", "boxes": boxes, "outputs": outputs}


@dataclass(frozen=True)
class Plan:
    """A network, and what is attached to it."""

    sources: tuple[str, ...]
    parts: tuple[Part, ...]
    outputs: Mapping[str, str]
    pieces: Mapping[str, Piece] = field(default_factory=dict)

    @property
    def every(self) -> tuple[Part, ...]:
        """All boxes, those of fragments last."""
        return (*self.parts, *(part for piece in self.pieces.values() for part in piece.parts))

    @property
    def shown(self) -> dict[str, str]:
        """By output, those of fragments included, its arc."""
        return {**self.outputs, **{name: arc for piece in self.pieces.values() for name, arc in piece.outputs.items()}}

    @property
    def arcs(self) -> list[str]:
        """The arcs that boxes may read, fragments' apart."""
        return [*self.sources, *(arc for part in self.parts if part.kind != "stats" for arc in part.arcs)]

    def mapping(self) -> dict[str, Any]:
        """Return the network as a file's mapping, without what is attached."""
        return {
            "network": "living",
            "sources": {name: {"schema": dict(COMMON), "push": True} for name in self.sources},
            "boxes": {part.name: part.pair.mapping() for part in self.parts},
            "outputs": {name: {"from": arc} for name, arc in self.outputs.items()},
        }

    def readers(self, box: str) -> list[str]:
        """Return the boxes that read a box or source."""
        return [part.name for part in self.every if any(_base(arc) == box for arc in part.pair.inputs)]

    def marks(self) -> dict[str, Any]:
        """Return by box what it is and everything before it."""
        marks: dict[str, Any] = {}
        for part in self.every:
            inputs = [(_port(arc), marks.get(_base(arc), _base(arc))) for arc in part.pair.inputs]
            marks[part.name] = (dict(part.pair.settings), inputs)
        return marks

    def loose(self) -> set[str]:
        """Return the boxes whose results come in no fixed order."""
        found: set[str] = set()
        for part in self.every:
            if part.kind == "loose" or any(_base(arc) in found for arc in part.pair.inputs):
                found.add(part.name)
        return found

    def upstream(self, names: Sequence[str]) -> set[str]:
        """Return boxes and all boxes before them."""
        before = {part.name: [_base(arc) for arc in part.pair.inputs] for part in self.every}
        found: set[str] = set()
        waiting = [name for name in names if name in before]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += [one for one in before[name] if one in before]
        return found

    def nodes(self) -> dict[str, Node]:
        """Return fresh reference operators, by box."""
        return {part.name: Node(part.name, part.pair.make(), part.pair.inputs) for part in self.every}


def _base(arc: str) -> str:
    return arc.partition(".")[0]


def _port(arc: str) -> str:
    return arc.partition(".")[2]


# Boxes


def make_part(chance: random.Random, kind: str, name: str, inputs: Sequence[str]) -> Part:
    """Return a box of a kind that reads these arcs (as many of them as it has inputs)."""
    one, two = inputs[0], (inputs[0], inputs[-1])
    grouped = Order("a", chance.randint(0, 3), chance.choice(((), ("k",))))
    size = chance.randint(1, 6)
    match kind:
        case "filter":
            pair = filters(name, one, floor(chance.randint(-9, 9)))
        case "route":
            key, least = chance.randint(0, 2), chance.randint(0, 6)
            routes = (f"k = {key}", _equals("k", key)), (f"a > {least}", floor(least + 1, "a")[1])
            pair = filters(name, one, *routes)
        case "map":
            more = chance.randint(1, 5)
            pair = maps(name, one, f"a, k, id, v + {more} as v", _added(more))
        case "union":
            pair = unions(name, *inputs)
        case "loose":
            pair = Pair(name, tuple(inputs), {"op": "union", "ordered": False}, Union)
        case "bsort":
            pair = bsorts(name, one, grouped)
        case "aggregate":
            order = Order("a", grouped.slack, ("k",))
            pair = aggregates(name, one, _KEEP, order, size, chance.choice((None, 2, 3, 5)))
        case "count":
            pair = aggregates(name, one, [_LOW, *_KEEP], Order(NUMBER, 0, ("k",)), chance.randint(1, 3))
        case "stats":
            own = random.Random(name)  # so that another window has the same fields
            drawn = [*own.sample(sorted(_KNOWN), 2), own.choice(_FLOATS)]
            order = Order("a", grouped.slack, own.choice(((), ("k",))))
            chosen = [_KNOWN[one] for one in dict.fromkeys(drawn)]
            pair = aggregates(name, one, chosen, order, size, chance.choice((None, 2, 7)))
        case "session":
            pair = sessions(name, one, _KEEP, Order("a", grouped.slack, ("k",)), *chance.choice(WHENS[:3]))
        case "resample":
            pair = resamples(name, two, _KEEP, chance.randint(1, 3), (Order("a", 1), Order("a", 1, ("k",))))
        case _:
            select = "left.a as a, left.k as k, left.id as id, right.v as v", _combined
            pair = joins(
                name, two, chance.choice(CONDITIONS[:1] + CONDITIONS[2:4]), 2, (grouped, Order("a", 1)), select=select
            )
    return Part(kind, pair)


def _closed(part: Part) -> bool:
    """Whether its results have not all common fields."""
    return part.kind in ("stats", "count", "resample")


def floor(least: int, name: str = "v") -> tuple[str, Any]:
    """Return a predicate twice."""
    return f"{name} >= {least}", lambda row: None if row[name] is None else row[name] >= least


def _equals(name: str, value: int) -> Any:
    return lambda row: None if row[name] is None else row[name] == value


def _added(more: int) -> Any:
    return lambda row: row | {"v": None if row["v"] is None else row["v"] + more}


def _combined(left: Row, right: Row) -> Row:
    return {"a": left["a"], "k": left["k"], "id": left["id"], "v": right["v"]}


def _common(row: Row) -> Row:
    return {name: row[name] for name in COMMON}


def new_parts(chance: random.Random, name: str, plan: Plan, joins_allowed: bool = True, prefix: str = "") -> list[Part]:
    """Return a new box over arcs of a plan, with a map behind it if its results have other fields."""
    loose = plan.loose()
    arcs = plan.arcs + [
        arc
        for piece in plan.pieces.values()
        if prefix and piece.name == prefix.rstrip("/")
        for part in piece.parts
        if part.kind not in ("stats",)
        for arc in part.arcs
    ]
    arcs = [arc for arc in arcs if arc not in _with_other_fields(plan)]
    inputs = [chance.choice(arcs[-4:] if chance.random() < 0.5 else arcs) for _ in range(3)]
    kinds = list(_ANY) + (["join"] if joins_allowed and not any(part.kind == "join" for part in plan.every) else [])
    kind = chance.choice(kinds)
    count = chance.randint(2, 3) if kind in ("union", "loose") else 2 if kind in ("join", "resample") else 1
    inputs = inputs[:count]
    if any(_base(arc) in loose for arc in inputs) and kind not in _LOOSE:
        kind = chance.choice(_LOOSE)
        inputs = inputs[: 1 if kind != "loose" else 2]
        if kind == "loose" and len(inputs) < 2:
            inputs *= 2
    name = prefix + name
    if kind in ("count", "resample"):
        first = make_part(chance, kind, f"{name}w", inputs)
        return [first, Part("same", maps(name, first.name, "a, k, id, v", _common))]
    return [make_part(chance, kind, name, inputs)]


def _with_other_fields(plan: Plan) -> set[str]:
    return {part.name for part in plan.every if _closed(part)}


def first_plan(chance: random.Random, boxes: int) -> Plan:
    """Return a network over two sources."""
    plan = Plan(("s", "r"), (), {})
    for at in range(boxes):
        plan = replace(plan, parts=(*plan.parts, *new_parts(chance, f"b{at}", plan)))
    arcs = [arc for part in plan.parts for arc in part.arcs] + ["s"]
    used = {arc for part in plan.parts for arc in part.pair.inputs}
    shown = [arc for arc in arcs if arc not in used or chance.random() < 0.3] or arcs[:1]
    return replace(plan, outputs={f"o{at}": arc for at, arc in enumerate(shown)})


# Changes


class Editor:
    """Makes random changes; names are never used twice."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self._names = 0

    def _name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names:03}"

    def change(self, plan: Plan) -> Plan:
        """Return a plan with one to three changes."""
        edits = (self._another, self._another, self._add, self._add, self._remove, self._show, self._hide, self._turn)
        for _ in range(self.chance.choice((1, 1, 2, 3))):
            plan = self.chance.choice((*edits, self._rewire, self._source))(plan)
        return plan

    def _another(self, plan: Plan) -> Plan:
        """Replace a box by another of its kind."""
        if not plan.parts:
            return plan
        at = self.chance.randrange(len(plan.parts))
        part = plan.parts[at]
        if part.kind == "same":
            return plan
        return _exchanged(plan, at, make_part(self.chance, part.kind, part.name, part.pair.inputs))

    def _rewire(self, plan: Plan) -> Plan:
        """Let a box read something else, which comes before it."""
        known = [at for at, part in enumerate(plan.parts) if part.kind != "same"]
        if not known:
            return plan
        at = self.chance.choice(known)
        part, before = plan.parts[at], replace(plan, parts=plan.parts[:at], pieces={})
        loose, other = before.loose(), _with_other_fields(before)
        arcs = [arc for arc in before.arcs if arc not in other and (_base(arc) not in loose or part.kind in _LOOSE)]
        inputs = list(part.pair.inputs)
        inputs[self.chance.randrange(len(inputs))] = self.chance.choice(arcs)
        after = _exchanged(plan, at, Part(part.kind, replace(part.pair, inputs=tuple(inputs))))
        bad = [one for one in after.every if one.kind not in (*_LOOSE, "same") and one.name in after.loose()]
        return plan if bad else after

    def _add(self, plan: Plan) -> Plan:
        parts = new_parts(self.chance, self._name("n"), plan)
        arc = self.chance.choice(parts[-1].arcs)
        return replace(plan, parts=(*plan.parts, *parts), outputs={**plan.outputs, self._name("o"): arc})

    def _remove(self, plan: Plan) -> Plan:
        """Remove a box that none reads, and its outputs."""
        leaves = [part for part in plan.parts if not plan.readers(part.name)]
        if not leaves:
            return plan
        leaf = self.chance.choice(leaves)
        left = {name: arc for name, arc in plan.outputs.items() if _base(arc) != leaf.name}
        read = {arc for piece in plan.pieces.values() for arc in piece.outputs.values()}
        if not left or any(_base(arc) == leaf.name for arc in read):
            return plan
        return replace(plan, parts=tuple(part for part in plan.parts if part != leaf), outputs=left)

    def _show(self, plan: Plan) -> Plan:
        return replace(plan, outputs={**plan.outputs, self._name("o"): self.chance.choice(self._shown(plan))})

    def _hide(self, plan: Plan) -> Plan:
        if len(plan.outputs) < 2:
            return plan
        gone = self.chance.choice(sorted(plan.outputs))
        return replace(plan, outputs={name: arc for name, arc in plan.outputs.items() if name != gone})

    def _turn(self, plan: Plan) -> Plan:
        """Let an output show another arc with the same fields."""
        other = _with_other_fields(plan)
        movable = [name for name, arc in plan.outputs.items() if arc not in other]
        if not movable:
            return plan
        arc = self.chance.choice([arc for arc in plan.arcs if arc not in other])
        return replace(plan, outputs={**plan.outputs, self.chance.choice(movable): arc})

    def _shown(self, plan: Plan) -> list[str]:
        return [arc for part in plan.parts for arc in part.arcs] + list(plan.sources)

    def _source(self, plan: Plan) -> Plan:
        """Add a source and a box that reads it, or remove one that nobody reads."""
        read = {_base(arc) for part in plan.every for arc in part.pair.inputs} | {_base(a) for a in plan.shown.values()}
        unread = [name for name in plan.sources if name not in read]
        if unread and len(plan.sources) > 1:
            return replace(plan, sources=tuple(name for name in plan.sources if name != unread[0]))
        name = self._name("s")
        plan = replace(plan, sources=(*plan.sources, name))
        part = make_part(self.chance, self.chance.choice(("filter", "aggregate", "map")), self._name("n"), [name])
        return replace(plan, parts=(*plan.parts, part), outputs={**plan.outputs, self._name("o"): part.name})

    def piece(self, plan: Plan) -> Piece:
        """Return a fragment of one or two boxes, or of none: an output of an arc."""
        name = self._name("q")
        prefix = f"{name}/"
        piece = Piece(name, (), {})
        for _ in range(self.chance.choice((0, 1, 1, 2))):
            within = replace(plan, pieces={**plan.pieces, name: piece})
            parts = new_parts(self.chance, self._name("f"), within, prefix=prefix)
            piece = replace(piece, parts=(*piece.parts, *parts))
        own = [arc for part in piece.parts for arc in part.arcs]
        shown = [arc for arc in own if self.chance.random() < 0.7] or own[-1:] or [self.chance.choice(plan.arcs)]
        return replace(piece, outputs={f"{prefix}{self._name('x')}": arc for arc in shown})


def _exchanged(plan: Plan, at: int, part: Part) -> Plan:
    return replace(plan, parts=(*plan.parts[:at], part, *plan.parts[at + 1 :]))
