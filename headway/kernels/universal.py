"""Universal: pass on each tuple zero or more times, and burn its cost.

A tuple's draw is a hash of its arrival number, so how trains are cut does not matter. Only where several tuples have
the same number must the kernel remember where among them the last train ended; an engine that never cuts there may run
mode `random` without its state, from `initial` each time, and in parallel. Mode `even` counts all tuples.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from headway.boxes.costs import Constant, Keys, LastTuple, draw, places_of, tuple_keys
from headway.boxes.universal import Universal
from headway.clock import SECOND, burn
from headway.columns import Int64s
from headway.errors import RunError
from headway.expressions import Functions
from headway.kernels.codec import unpack
from headway.kernels.kernel import Kernel, Result, Tables
from headway.network.schema import Schema
from headway.trains import Train, merge

_PASSING = 2
"""The draw of a tuple's key that decides whether it passes; its cost is another one."""


class UniversalState(NamedTuple):
    """How many tuples the box has seen, and the last of them. Immutable: each call returns a new one."""

    seen: int = 0
    last: LastTuple = LastTuple()


class UniversalKernel(Kernel):
    """The running universal box."""

    burns = True
    """Whether a tuple takes as long as the box says."""

    def __init__(
        self, spec: Universal, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None
    ) -> None:
        super().__init__(spec, box, schemas, tables, functions)
        self._spec = spec
        # The selectivity taken apart: whole copies, and one more in `part` of `of` cases.
        ratio = spec.ratio
        self._whole, self._of = int(ratio), ratio.denominator
        self._part = ratio.numerator - self._whole * self._of
        self._chance = self._part / self._of
        drawn = self._part > 0 and not spec.counts
        self._keyed = drawn or not isinstance(spec.cost, Constant)

    def initial(self) -> UniversalState:
        """Return the state before the first tuple."""
        return UniversalState()

    def run(self, state: UniversalState, trains: Sequence[Train], now: int) -> tuple[UniversalState, Result]:
        """Merge the inputs, choose what passes, and burn the cost of all that came in."""
        train = merge(trains) if len(trains) > 1 else trains[0]
        if not len(train):
            return state, Result((train,))
        keys, last = None, state.last
        if self._keyed:
            places, last = places_of(train.numbers, last)
            keys = tuple_keys(self._spec.seed, self._box, train.numbers, places)
        output = self._pass(train, self._copies(len(train), state.seen, keys))
        if self.burns:
            burn(round(self._seconds(len(train), keys) * SECOND))
        return UniversalState(state.seen + len(train), last), Result((output,))

    def without_burning(self) -> Self:
        """Return one that costs next to nothing."""
        quiet = copy(self)
        quiet.burns = False
        return quiet

    def _copies(self, count: int, before: int, keys: Keys | None) -> Int64s | None:
        """Return how often each tuple leaves; None: once. `before` tuples came in earlier trains."""
        if self._part == 0:
            return None if self._whole == 1 else np.full(count, self._whole, np.int64)
        if self._spec.counts:
            # Of all tuples so far only the remainder beyond whole copies matters, so that 64 bits are enough.
            over = before * self._part % self._of
            reached = (over + self._part * np.arange(count + 1, dtype=np.int64)) // self._of
            return self._whole + np.diff(reached)
        assert keys is not None
        return self._whole + (draw(keys, _PASSING) < self._chance).astype(np.int64)

    def _pass(self, train: Train, copies: Int64s | None) -> Train:
        if copies is None or bool((copies == 1).all()):
            return train
        return train.take(np.repeat(np.arange(len(train)), copies))

    def _seconds(self, count: int, keys: Keys | None) -> float:
        cost = self._spec.cost
        return cost.mean * count if keys is None or isinstance(cost, Constant) else float(cost.seconds(keys).sum())

    def _saved(self, state: UniversalState) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"op": "universal", "seen": state.seen, **state.last._asdict()}, {}

    def load(self, data: bytes) -> UniversalState:
        """Read a state back."""
        meta, _ = unpack(data)
        found = [meta[name] for name in ("seen", "number", "place")]
        if not all(isinstance(one, int) for one in found):
            raise RunError("a box's saved state is damaged, or not in this version's format")
        seen, number, place = found
        return UniversalState(seen, LastTuple(number, place))
