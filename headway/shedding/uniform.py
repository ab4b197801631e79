"""Uniform: a naive strategy, for comparison. The same share of all input is dropped, whatever its worth.

    keep = 1 - excess / work         work = rate * cost, summed over all sites that are at a source

It saves work as early as possible, but an output that tolerates no loss loses as much as one that would not notice
(Aurora paper, section 4.5, on dropping without control). The output with the lowest limit sets the limit for all; if
an output is downstream of several such sites, the share kept of it is their product, as for the results of a join.
A site whose costs are not measured yet drops like the others: the share is of tuples, not of work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from headway.columns import Floats
from headway.shedding.strategies import Demand, register_strategy


@dataclass(frozen=True, slots=True)
class UniformShedding:
    """Keeps the same share at every source, whatever the tuples are worth."""

    by_value: ClassVar[bool] = False

    def shares(self, demand: Demand, excess: float, most: Sequence[float]) -> Floats:
        """Return by site the share to keep: the same at every site at a source, 1 elsewhere."""
        keep = np.ones(len(demand.sites))
        at_sources = [at for at, site in enumerate(demand.sites) if any(one.producer < 0 for one in site.entries)]
        work = np.nan_to_num(demand.rates * demand.costs, nan=0.0)
        used = [at for at in at_sources if demand.rates[at] > 0]
        if not excess > 0 or not work[used].sum() > 0:
            return keep
        times = Counter(output for at in used for output in demand.sites[at].outputs)
        least = max(max(1.0 - most[output], 0.0) ** (1 / count) for output, count in times.items())
        keep[used] = max(1.0 - excess / float(work[used].sum()), least)
        return keep


register_strategy(
    "uniform", UniformShedding, "the same share at every source, whatever it costs (naive, for comparison)"
)
