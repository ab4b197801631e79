"""What executors are told: the network, the unit, and along which lanes trains travel.

A lane leads a stream from the front to a shard, to all shards by the hash of fields, or out to the driver. All of
this is plain data that Spark sends along; kernels are compiled where they run, once per process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from headway.checking import CheckedNetwork
from headway.engines.spark.cut import CutUnit, order_agnostic
from headway.expressions.registry import Functions, ScalarFunction, UserAggregate
from headway.network import Network
from headway.structure import owner


@dataclass(frozen=True, slots=True)
class Lane:
    """A stream on its way: `by` tells shards apart, `shard` names one, and with neither it goes to the driver."""

    number: int
    arc: str
    shard: int | None = None
    by: tuple[str, ...] = ()
    counted: bool = False
    """Only how many tuples there are is wanted: its outputs keep nothing."""

    @property
    def out(self) -> bool:
        """Whether it leads to the driver."""
        return self.shard is None and not self.by


@dataclass(frozen=True)
class Work:
    """A unit as executors get it."""

    network: Network
    unit: CutUnit
    shards: int
    lanes: tuple[Lane, ...]
    tables: Mapping[str, str]
    """By ref: the Arrow file in which a static table lies."""
    scalars: Mapping[str, ScalarFunction] = field(default_factory=dict)
    aggregates: Mapping[str, UserAggregate] = field(default_factory=dict)
    prints: Mapping[str, str] = field(default_factory=dict)
    """By box in shards: a print of all that what it keeps depends on."""
    exchange: str | None = None
    """The folder by which large trains travel, where driver and executors share a disk."""
    run: str = ""
    """Differs from run to run, so that no process confuses two of them."""

    @property
    def functions(self) -> Functions:
        """The user's functions."""
        return Functions(dict(self.scalars), dict(self.aggregates))

    @property
    def key(self) -> str:
        """By this a process finds what it has compiled before."""
        return f"{self.run}/{self.unit.name}"


def make_work(
    checked: CheckedNetwork,
    unit: CutUnit,
    shards: int,
    discarded: frozenset[str] = frozenset(),
    tables: Mapping[str, str] = MappingProxyType({}),
    run: str = "",
    exchange: str | None = None,
) -> Work:
    """Lay the lanes of a unit; the arcs in `discarded` are only counted."""
    lanes: list[Lane] = []
    known: set[tuple[str, int | None, tuple[str, ...]]] = set()

    def lay(arc: str, shard: int | None = None, by: tuple[str, ...] = (), counted: bool = False) -> None:
        if (arc, shard, by) not in known:
            known.add((arc, shard, by))
            lanes.append(Lane(len(lanes), arc, shard, by, counted))

    names = {source.name for source in checked.network.sources}
    for name in unit.boxes:
        place = unit.placements[name]
        if place.front:
            continue
        for item in checked.inputs[name]:
            if not isinstance(item, str):
                continue
            feeder = owner(item)
            if feeder in names or unit.placements[feeder].front:
                lay(item, place.shard, place.by if place.spread else ())
    for output in unit.outputs:
        arc = checked.outputs[output]
        lay(arc, counted=arc in discarded)
    functions = checked.functions
    return Work(
        checked.network,
        unit,
        shards,
        tuple(lanes),
        dict(tables),
        dict(functions.scalars),
        dict(functions.aggregates),
        {name: mark[:16] for name, mark in fingerprint(checked, unit, shards, every=True).items()},
        exchange,
        run,
    )


def fingerprint(checked: CheckedNetwork, unit: CutUnit, shards: int, every: bool = False) -> dict[str, str]:
    """Return by box that keeps state what it depends on: its specification and all that lies before it.

    Filters, maps, unions and joins with tables keep none, wherever they run: they may change freely, unless they lie
    before a box that does. With `every`, all boxes in shards are there, to tell by which name they keep what they hold.
    """
    texts: dict[str, str] = {source.name: f"{source.name} {source.schema}" for source in checked.network.sources}
    found: dict[str, str] = {}
    boxes = {box.name: box for box in checked.order}
    for name in unit.boxes:
        box = boxes[name]
        inputs = [texts[owner(item)] + item if isinstance(item, str) else str(item) for item in checked.inputs[name]]
        place = unit.placements[name]
        spread = f" by {place.by} over {shards}" if place.spread else ""
        text = f"{box.spec.op} {box.spec.to_mapping()} {inputs}{spread}"
        texts[name] = hashlib.sha256(text.encode()).hexdigest()
        inside = not place.front and (not place.spread or box.spec.stateful)
        if inside and (every or not order_agnostic(box)):
            found[name] = texts[name]
    return found
