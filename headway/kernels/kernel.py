"""Kernels: what boxes do, vectorised over trains.

A kernel is compiled once from a box's specification and the schemas of its inputs, and holds no data.
Everything that is kept from one train to the next is in a state, which can be written to bytes and read back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import pyarrow as pa

from headway.boxes.operator import Operator
from headway.columns import Int64s, Values
from headway.expressions import Functions
from headway.kernels.codec import pack, unpack
from headway.network.schema import Schema
from headway.sieves import ShareLookup
from headway.trains import Train

Tables = Sequence[pa.Table | None]
"""For each input of a box, the content of a static table, or None for a stream."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Tuples that a box could not process, with the reason; `train` holds them, in this `schema`."""

    box: str
    reason: str
    train: Train
    schema: Schema


class Result(NamedTuple):
    """What one call of a kernel returned.

    `outputs` has a train for each port, even an empty one, which carries progress. `ignored` counts tuples out of order
    or too late. `counts` are, for a fused kernel, the tuples that went into each of its boxes. `rest` yields further
    results of the same call, which follow these: they are made on demand, so that they never fill the memory all at
    once. It must be exhausted before the state is used again.
    """

    outputs: tuple[Train, ...]
    ignored: int = 0
    dead: tuple[DeadLetter, ...] = ()
    counts: tuple[int, ...] = ()
    rest: Iterator[Result] | None = None


class Kernel(ABC):
    """The running side of a box: ``(state, trains) -> (state, result)``. By default it has no state.

    `run` may modify the state it is given and return it: the caller must not use the old one again. It is
    called with one train for each input. A kernel with several inputs gets all tuples of all its inputs up to
    one arrival number, and never again one with that number or a smaller one, unless it is unordered. Ticks
    lie within the trains. A train with `end` is the last: the kernel flushes its state to the outputs.
    """

    reads: frozenset[int] | None = None
    """The columns of its one input that it needs, others may be missing; None: all, since dead letters show them."""

    def __init__(
        self, spec: Operator, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None
    ) -> None:
        self._box = box
        self._schemas = tuple(schemas)

    def initial(self) -> Any:
        """Return the state before the first tuple."""
        return None

    @abstractmethod
    def run(self, state: Any, trains: Sequence[Train], now: int) -> tuple[Any, Result]:
        """Process one train for each input; `now` is the engine's clock."""

    def deadline(self, state: Any) -> int | None:
        """Return the moment at which the state needs a clock tick, or None."""
        return None

    def dump(self, state: Any) -> bytes:
        """Write a state to bytes."""
        return b"" if state is None else pack(*self._saved(state))

    def load(self, data: bytes) -> Any:
        """Read a state that `dump` wrote for the same kernel."""
        state = self.initial()
        if state is not None:
            self._restore(state, *unpack(data))
        return state

    def _saved(self, state: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the arguments of `pack` for a state."""
        raise NotImplementedError

    def _restore(self, state: Any, meta: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Restore into an initial state what `_saved` returned."""
        raise NotImplementedError

    def weigh_by(self, kept: ShareLookup) -> None:  # noqa: B027 - most kernels ignore it
        """Set the shares that drop boxes keep of the input; ignored unless the box is `approximate`."""

    def without_burning(self) -> Self:
        """Return a kernel that gives the same results in next to no time: for engines that move their clock themselves.

        Another than itself only where a tuple takes as long as its box says (`Operator.modelled`).
        """
        return self

    def ranks(self, state: Any, output: Train) -> tuple[Values, Int64s]:
        """Return two numbers for each result, by which results with one arrival number are ordered.

        Called right after `run`, and only for operators with `partitions`, which may be spread over several kernels:
        each then has some of the results, and their order must follow from the tuples, not from the kernel that made
        them.
        """
        raise NotImplementedError
