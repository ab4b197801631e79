"""The universal box: it passes tuples on at a set cost and selectivity, to model any other box.

It is the box of the experiments in the paper on operator scheduling in Aurora (section 5.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from headway.boxes.costs import COST, NOTHING, Cost
from headway.boxes.keys import Key, KeyKind, one_of
from headway.boxes.operator import Modelled, Operator, register
from headway.boxes.union import ORDERED, Union
from headway.errors import NetworkError, finite
from headway.expressions import Functions
from headway.network.schema import Schema

MODES = {
    "random": "each tuple by itself, by the hash of its arrival number",
    "even": "as evenly as can be, counted over all tuples of the box",
}
MOST = 10_000
"""The largest selectivity: the results of a thousand tuples still fit into memory."""
_FINEST = 10**9
"""The largest denominator of a selectivity, so that counting with it stays within 64 bits."""


def parse_selectivity(value: object) -> float:
    """Read a number from 0 to MOST."""
    if not isinstance(value, int | float) or finite(value) is None or value < 0:
        raise NetworkError(f"must be a number, zero or more, not {value!r}")
    if value > MOST:
        raise NetworkError(f"{value} is too large; the largest selectivity is {MOST}")
    return value


@register
@dataclass(frozen=True, slots=True)
class Universal(Operator):
    """All tuples of all inputs, each `selectivity` times on average, at `cost` seconds of work.

    They come in arrival order, or as they come when not `ordered`.
    """

    cost: Cost = NOTHING
    selectivity: float = 1
    seed: int = 0
    mode: str = "random"
    ordered: bool = True

    op = "universal"
    doc = "Pass tuples on at a set cost and selectivity, to model other boxes."
    keys = (
        Key(
            "cost",
            COST,
            "what a tuple costs: `2ms`, seconds as a number, `{uniform: [1ms, 3ms]}` or "
            "`{zipf: [exponent, ranks, unit]}` (default 0)",
        ),
        Key(
            "selectivity",
            KeyKind({"type": "number", "minimum": 0, "maximum": MOST}, parse_selectivity),
            "tuples out per tuple in, zero or more (default 1)",
        ),
        Key(
            "mode",
            one_of("mode", MODES),
            "`random`: each tuple by itself (default); `even`: exactly, counted over all tuples",
        ),
        Key("seed", "count", "what `random` and distributions of costs are drawn from (default 0)"),
        ORDERED,
    )
    inputs = (1, None)
    passes = True
    traceable = True

    def schemas(self, inputs: Sequence[Schema], functions: Functions | None) -> tuple[Schema, ...]:
        """Return the schema that all inputs have."""
        return Union().schemas(inputs, functions)

    @property
    def ratio(self) -> Fraction:
        """The selectivity as the decimal that was written, or the nearest fraction if it has many digits."""
        return Fraction(repr(self.selectivity)).limit_denominator(_FINEST)

    @property
    def stateful(self) -> bool:
        """Whether it counts tuples."""
        return self.counts

    @property
    def modelled(self) -> Modelled:
        """Its declared cost and seed."""
        return Modelled(self.cost, self.seed)

    @property
    def counts(self) -> bool:
        """Whether what happens to a tuple depends on how many came before it, and so on their order."""
        return self.mode == "even"
