"""The roulette wheel: chances in proportion to scores.

Sutherland et al. (IDEAS 2005), section 3.5. Each algorithm has a slice of the wheel as large as its score; the wheel
is spun once. It is the paper's own strategy, for comparison: scores lie near 1, slices are nearly equal, and so bad
algorithms run nearly as often as good ones, however well they are known.
"""

from __future__ import annotations

from dataclasses import dataclass

from headway.adaptive.learning.base import Choice, Record, register_learning
from headway.errors import PolicyError


@dataclass(frozen=True, slots=True)
class Roulette:
    """Spin the wheel once."""

    def choose(self, record: Record) -> Choice:
        """Return the algorithm at the marker."""
        slices = [max(score, 0.0) for score in record.scores]
        total = sum(slices)
        if total <= 0:
            slices, total = [1.0] * len(slices), float(len(slices))
        marker = record.random().random() * total
        chosen = len(slices) - 1
        for algorithm, size in enumerate(slices):
            marker -= size
            if marker < 0:
                chosen = algorithm
                break
        share = 100 * slices[chosen] / total
        return Choice(chosen, f"came up on the wheel: score {record.scores[chosen]:.2f}, {share:.0f} % of it")


def _make(argument: str | None) -> Roulette:
    if argument is not None:
        raise PolicyError(f"learning: 'roulette' takes nothing after a colon, got '{argument}'")
    return Roulette()


register_learning("roulette", _make, "chances in proportion to scores, as in the paper")
