"""Filter with several outputs: a tuple goes to the first predicate that is true, else to the last output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.columns import truth
from headway.expressions import Expression
from headway.kernels.kernel import DeadLetter, Kernel, Result
from headway.kernels.results import evaluate
from headway.network.schema import Schema
from headway.trains import Train


@dataclass(slots=True)
class RouteKernel(Kernel):
    """Route tuples by predicates; a predicate sees only the tuples that no earlier one took."""

    box: str
    schema: Schema
    predicates: tuple[Expression, ...]

    def run(self, state: None, trains: Sequence[Train], now: int) -> tuple[None, Result]:
        """Divide a train."""
        (rest,) = trains
        outputs: list[Train] = []
        dead: list[DeadLetter] = []
        for predicate in self.predicates:
            rest, (answer,), failed = evaluate((predicate,), rest, self.schema, self.box)
            dead += failed
            mask = truth(answer)
            outputs.append(rest.take(np.flatnonzero(mask)))
            rest = rest.take(np.flatnonzero(~mask))
        return None, Result((*outputs, rest), dead=tuple(dead))
