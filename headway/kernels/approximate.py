"""Aggregates that estimate what they would give if nothing had been dropped: ``approximate: true``.

They are the plain ones over a wider input: each train gets the weight of its tuples and what the error needs as hidden
columns (see `headway.boxes.approximate`), and the rewritten select list does the rest. Nothing of it is state: a
tuple's weight is decided when it is taken in, so a share that changes within a window counts for the tuples from there
on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headway.boxes.aggregate import Aggregate
from headway.boxes.approximate import HIDDEN, widened
from headway.columns import Column
from headway.expressions import Functions
from headway.kernels.aggregate import AggregateKernel, AggregateState
from headway.kernels.kernel import DeadLetter, Kernel, Result
from headway.kernels.sessions import SessionKernel, SessionState
from headway.network.schema import Schema
from headway.sieves import KeptShares, ShareLookup
from headway.trains import Train


class Weighted(Kernel):
    """What kernels have in common that weigh their tuples, by what an engine says was `kept` of them."""

    def __init__(self, schema: Schema) -> None:
        """Take an input schema."""
        self.kept: ShareLookup = KeptShares()
        self._narrow = schema
        self._wide = widened(schema)

    def weigh_by(self, kept: ShareLookup) -> None:
        """Hear how much is kept of the tuples that come in."""
        self.kept = kept

    def weigh(self, train: Train) -> Train:
        """Return a train with the hidden columns."""
        shares = self.kept.shares(train.numbers)
        # Of a share of 0 nothing can have come; what came nevertheless stands for itself.
        weights = np.divide(1.0, shares, out=np.ones(len(shares)), where=shares > 0)
        made = train.with_columns((*train.columns, Column(weights), Column(weights * (weights - 1))))
        # What others have found out about the tuples' groups holds for these, too.
        made.base = train.base
        if train.memo is None:
            train.memo = {}
        made.memo = train.memo
        return made

    def shown(self, result: Result) -> Result:
        """Return a result whose dead letters do not show the hidden columns."""
        if result.rest is not None:
            result = result._replace(rest=map(self.shown, result.rest))
        if not result.dead:
            return result
        return result._replace(dead=tuple([self._letter(letter) for letter in result.dead]))

    def _letter(self, letter: DeadLetter) -> DeadLetter:
        if letter.schema != self._wide:
            return letter  # a window's, not a tuple's
        return replace(letter, train=letter.train.with_columns(letter.train.columns[:-HIDDEN]), schema=self._narrow)


class WeightedAggregate(Weighted, AggregateKernel):
    """Estimates over windows of the order field or of the tuple number."""

    def __init__(self, box: str, spec: Aggregate, schema: Schema, functions: Functions | None) -> None:
        """Compile a specification for an input schema."""
        Weighted.__init__(self, schema)
        AggregateKernel.__init__(self, box, spec.estimating(schema, functions), self._wide, functions)
        # Estimates of plain fields cannot fail either: what is read is what the exact aggregate reads.
        self.reads = AggregateKernel(box, replace(spec, approximate=False), schema, functions).reads

    def run(self, state: AggregateState, trains: Sequence[Train], now: int) -> tuple[AggregateState, Result]:
        """Take in a train and emit the windows that it closes."""
        state, result = AggregateKernel.run(self, state, (self.weigh(trains[0]),), now)
        return state, self.shown(result)


class WeightedSessions(Weighted, SessionKernel):
    """Estimates over data-driven windows."""

    def __init__(self, box: str, spec: Aggregate, schema: Schema, functions: Functions | None) -> None:
        """Compile a specification for an input schema."""
        Weighted.__init__(self, schema)
        SessionKernel.__init__(self, box, spec.estimating(schema, functions), self._wide, functions)

    def run(self, state: SessionState, trains: Sequence[Train], now: int) -> tuple[SessionState, Result]:
        """Take in a train and emit the windows that it closes."""
        state, result = SessionKernel.run(self, state, (self.weigh(trains[0]),), now)
        return state, self.shown(result)
