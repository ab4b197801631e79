"""The decision table: for each measure the rank of each strategy, more is better.

MavStream's runtime optimizer, section 4.6 and table 1. With n strategies to choose from, equation 1 gives each its
score:

    score(strategy) = sum over measures of weight(measure) * rank(measure, strategy) / n

Table 1 has latency, memory and throughput. Two rows are ours: waiting tuples (`queue`) are ranked as the bytes they
take, and utility as the latency that it comes from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headway.errors import PolicyError, choices

Ranks = Mapping[str, Mapping[str, float]]
"""By measure, by strategy."""

_LATENCY = {"round-robin": 2, "path-capacity": 4, "segment": 1, "simplified-segment": 3}
_MEMORY = {"round-robin": 2, "path-capacity": 1, "segment": 4, "simplified-segment": 3}
TABLE_1: Ranks = {
    "latency": _LATENCY,
    "memory": _MEMORY,
    "throughput": _LATENCY,
    "queue": _MEMORY,
    "utility": _LATENCY,
}
STRATEGIES = tuple(_LATENCY)
"""The strategies of table 1."""


@dataclass(frozen=True, slots=True)
class DecisionTable:
    """Ranks of strategies by measure. A strategy ``name:argument`` has its own rank, or else that of its name."""

    ranks: Ranks = field(default_factory=lambda: TABLE_1)

    def extended(self, ranks: Ranks) -> DecisionTable:
        """Return a table with these ranks besides, or instead where they are there. Raises a PolicyError.

        A rank is a number, 0 or more; zeros and ones make the table that section 4.6 names as another choice.
        """
        for measure, row in ranks.items():
            for strategy, rank in row.items():
                if isinstance(rank, bool) or not isinstance(rank, int | float) or not 0 <= rank < math.inf:
                    raise PolicyError(
                        f"table: {measure}: the rank of '{strategy}' is a number, 0 or more, and more is better; "
                        f"not {rank!r}"
                    )
        rows = {measure: dict(row) for measure, row in self.ranks.items()}
        for measure, row in ranks.items():
            rows.setdefault(measure, {}).update(row)
        return DecisionTable(rows)

    def row(self, measure: str, strategies: Sequence[str]) -> tuple[float, ...]:
        """Return the ranks of strategies for a measure. Raises a PolicyError that names those without."""
        row = self.ranks.get(measure, {})
        if all(one in row for one in strategies):
            return tuple(map(row.__getitem__, strategies))
        missing = [one for one in strategies if one not in row and one.partition(":")[0] not in row]
        if missing:
            example = ", ".join(f"{one}: RANK" for one in missing)
            raise PolicyError(
                f"the decision table has no rank for {measure} of: {choices(missing)}; "
                f"it has {_listed(row)}; add the others with table: {{{measure}: {{{example}}}}}"
            )
        return tuple(float(row[one] if one in row else row[one.partition(":")[0]]) for one in strategies)

    def scores(self, strategies: Sequence[str], weights: Mapping[str, float]) -> tuple[float, ...]:
        """Return the score of each strategy, given the weights of the measures that count (equation 1)."""
        sums = [0.0] * len(strategies)
        for measure, weight in weights.items():
            for at, rank in enumerate(self.row(measure, strategies)):
                sums[at] += weight * rank / len(strategies)
        return tuple(sums)


def _listed(row: Mapping[str, float]) -> str:
    return choices(f"{one} ({rank:g})" for one, rank in row.items())
