"""Kernels: what boxes do, vectorised over trains.

A kernel is compiled once from a box's specification and the schemas of its inputs, and holds no data.
Everything that lasts from one train to the next is in a state, which can be written to bytes and read back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from headway.schema import Schema
from headway.trains import Train


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Tuples that a box could not process, with the reason; `train` holds them in the schema named."""

    box: str
    reason: str
    train: Train
    schema: Schema


class Result(NamedTuple):
    """What one call of a kernel gave.

    `outputs` has a train for each port, also when it is empty: it brings progress. `ignored` counts tuples
    out of order or too late. `counts` are, for a fused kernel, the tuples that went into each of its boxes.
    `rest` gives further results of the same call, which come after these: they are made when they are asked for, so
    that they never fill the memory all at once. All of them must be asked for before the state is used again.
    """

    outputs: tuple[Train, ...]
    ignored: int = 0
    dead: tuple[DeadLetter, ...] = ()
    counts: tuple[int, ...] = ()
    rest: Iterator[Result] | None = None


class Kernel(Protocol):
    """The running side of a box: ``(state, trains) -> (state, result)``.

    `run` may change the state it is given and return it: the caller must not use the old one again. It is
    called with one train for each input. A kernel with several inputs gets all tuples of all its inputs up to
    one arrival number, and never again one with that number or a smaller one, unless it is unordered. Ticks
    lie within the trains. A train with `end` is the last: the kernel empties its state into the outputs.
    """

    def initial(self) -> Any:
        """Return the state before the first tuple."""
        ...

    def run(self, state: Any, trains: Sequence[Train], now: int) -> tuple[Any, Result]:
        """Process one train for each input; `now` is the engine's clock."""
        ...

    def deadline(self, state: Any) -> int | None:
        """Return the moment at which the state wants a clock tick, or None."""
        ...

    def dump(self, state: Any) -> bytes:
        """Write a state to bytes."""
        ...

    def load(self, data: bytes) -> Any:
        """Read a state that `dump` wrote for the same kernel."""
        ...


@dataclass(slots=True)
class Stateless:
    """What kernels without a state have in common."""

    _none: None = field(default=None, init=False, repr=False)

    def initial(self) -> None:
        """There is nothing to remember."""

    def deadline(self, state: None) -> int | None:
        """No tick is ever needed."""
        return None

    def dump(self, state: None) -> bytes:
        """Return no bytes."""
        return b""

    def load(self, data: bytes) -> None:
        """Accept what `dump` wrote."""
