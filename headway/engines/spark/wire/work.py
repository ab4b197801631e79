"""What executors are told: the network, the unit, and along which lanes trains travel.

A lane leads a stream from the front to a shard, to all shards by the hash of fields, or out to the driver. All of
this is plain data that Spark sends along; kernels are compiled where they run, once per process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.expressions.userfunctions import Functions, ScalarFunction, UserAggregate
from headway.network import Network


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a box runs: in front, or in one shard, or, spread by the hash of some fields, in all of them."""

    front: bool
    shard: int | None = None
    by: tuple[str, ...] = ()
    why: str = ""

    @property
    def spread(self) -> bool:
        """Whether every shard runs the box for its share of the partitions."""
        return not self.front and self.shard is None


@dataclass(frozen=True, slots=True)
class CutUnit:
    """One streaming query."""

    name: str
    outputs: tuple[str, ...]
    sources: tuple[str, ...]
    boxes: tuple[str, ...]
    """In topological order."""
    placements: Mapping[str, Placement]
    owned: frozenset[str]
    """The boxes that this unit reports for."""
    why: str

    @property
    def stateful(self) -> bool:
        """Whether the query has a stateful operator."""
        return any(not placement.front for placement in self.placements.values())


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
