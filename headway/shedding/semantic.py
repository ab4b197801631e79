"""Semantic load shedding: not which share of the tuples to drop, but which tuples.

Of an output with a value graph the tuples that lead to results of the lowest utility are dropped first. Which those are
at a drop box's entry is found out in one of three ways: backward, where the output's field follows from one of the
entry's; by trial, where boxes without an inverse stand between; at random, where a box mixes tuples. (Aurora, section
4.5.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from headway.checking import CheckedNetwork
from headway.columns import Unread, as_floats
from headway.qos import Graph
from headway.shedding.base import Entry
from headway.shedding.histograms import Floats, Histogram
from headway.shedding.intervals import loss_graph, lowest_first
from headway.shedding.inverses import Inverse, Route, propagate
from headway.shedding.trials import LEAST, Split, Trial, best_split, split, trial_fields
from headway.sieves import Sieve
from headway.trains import Train

_MENTIONED = 4
"""Names that are listed for people."""


class SemanticPlanner:
    """Decides which tuples a drop box at an entry keeps for the sake of one output. Made once, asked often; pure.

    Used by one thread. Between the same questions it may remember an answer.
    """

    def __init__(
        self,
        checked: CheckedNetwork,
        output: int | str,
        entry: Entry | str,
        tables: Mapping[str, Any] | None = None,
    ) -> None:
        """Find out how the entry's values tell results apart.

        The output is named or numbered. An entry is an input of a box; or an arc's name, for a drop box before all
        that read it, as on Spark. `tables` are static tables that are given by name, as for an engine.
        """
        self._route = Route(checked, output, entry)
        value = self._route.output.qos.value
        self._graph = None if value is None else value.graph
        self._inverses: tuple[Inverse, ...] = ()
        self._cuts: Floats = np.zeros(0)
        self._trial: Trial | None = None
        self._fields: tuple[int, ...] = ()
        self._latest: tuple[Train, _Seen | None] | None = None  # a sample is asked about more than once
        self.how = self._find_out(tables)
        """The way, for people."""

    def _find_out(self, tables: Mapping[str, Any] | None) -> str:
        route = self._route
        if self._graph is None:
            return f"at random: output '{route.output.name}' has no value graph"
        backward = propagate(route)
        self._inverses = backward.entry
        slots = {inverse.slot for inverse in backward.entry}
        if not slots and not backward.stopped:
            return f"at random: '{route.arc}' does not lead to output '{route.output.name}'"
        if len(slots) == 1 and not backward.stopped:
            (slot,) = slots
            self._cuts = np.unique(np.concatenate([one.cuts(self._graph) for one in backward.entry]))
            through = f", backward through {_listed(backward.through)}" if backward.through else ""
            return f"by {_listed([route.schema.names[slot]])}{through}"
        trial = Trial(route, backward.stopped, backward.entry, tables)
        if trial.impossible:
            return f"at random: {trial.impossible}"
        fields = trial_fields(route.schema)
        if not fields:
            return f"at random: '{route.arc}' has no field of numbers to try"
        self._trial, self._fields = trial, fields
        tried = f"by trial over {_listed([route.schema.names[at] for at in fields])}"
        if backward.stopped and backward.through:
            tried += f" as far as {_listed(box for box in _owners(backward.stopped))}"
            tried += f", backward through {_listed(backward.through)}"
        return tried

    @property
    def by_value(self) -> bool:
        """Whether values can be told apart at all; if not, every sieve drops at random."""
        return self._trial is not None or len(self._cuts) > 0

    @property
    def needs_sample(self) -> bool:
        """Whether nothing can be said without a sample of the entry's tuples; with one it is always better."""
        return self._trial is not None

    def sieve(self, sample: Train | None, histogram: Histogram | None, keep: float, seed: int) -> Sieve:
        """Return the sieve that keeps a share of the entry's tuples, and of them the most useful.

        `sample` are tuples that came to the entry lately, from before any drop box there, in the order in which they
        came; without one, what the output's `histogram` holds is taken back to the entry. The share is exact for what
        was observed; the more that is, the nearer it is for others of the same kind. Where nothing is known it is a
        sieve at random. For the same sample, histogram and seed, a smaller share drops what a larger one does.
        """
        keep = min(max(keep, 0.0), 1.0)
        seen = self._look(sample, histogram) if 0.0 < keep < 1.0 else None
        if seen is None:
            return Sieve(keep, seed)
        bins, utilities = seen.split.bins, seen.split.utilities
        if self._trial is None:
            # A field that is NULL here is NULL in the result, and worth nothing: one more interval.
            bins = replace(bins, counts=np.append(bins.counts, bins.unknown))
            *told, unknown = lowest_first(bins, np.append(utilities, 0.0), keep).tolist()
        else:
            told, unknown = lowest_first(bins, utilities, keep).tolist(), keep
        edges, shares = _merged(seen.split.bins.edges, np.array(told))
        return Sieve(keep, seed, seen.split.field, edges, shares, unknown) if edges else Sieve(keep, seed)

    def loss_graph(self, sample: Train | None, histogram: Histogram | None) -> Graph | None:
        """Return the output's expected utility over the per cent kept here by such sieves; None: nothing is known.

        At 100 per cent it is the mean utility of the results. Unlike what the output's histogram shows, it is not
        biased by what is dropped here already.
        """
        seen = self._look(sample, histogram)
        if seen is None or not seen.results:
            return None
        whole, scale = loss_graph(seen.split.bins, seen.split.utilities), seen.split.bins.total / seen.results
        return Graph(tuple((x, min(y * scale, 1.0)) for x, y in whole.points))

    def explain(self, sieve: Sieve) -> str:
        """Return how a sieve of this planner tells tuples apart, for people."""
        if sieve.field is not None:
            name = self._route.schema.names[sieve.field]
            return f"by trial over '{name}'" if self._trial is not None else self.how
        return f"at random: nothing observed tells tuples apart ({self.how})" if self.by_value else self.how

    def _look(self, sample: Train | None, histogram: Histogram | None) -> _Seen | None:
        """Return how what was observed tells tuples apart; None if it does not, or is too little."""
        if not self.by_value:
            return None
        if sample is not None and len(sample) >= LEAST:
            if self._latest is None or self._latest[0] is not sample:
                self._latest = sample, self._look_at(sample)
            if self._latest[1] is not None or self._trial is not None:
                return self._latest[1]
        if self._trial is None and len(self._inverses) == 1 and histogram is not None and len(histogram) >= LEAST:
            return self._follow(self._inverses[0].back(histogram.values))
        return None

    def _look_at(self, sample: Train) -> _Seen | None:
        if self._trial is not None and self._graph is not None:
            worth, results = self._trial.worth(sample, self._graph)
            best = best_split(sample, worth, self._fields)
            return None if best is None else _Seen(best, results)
        column = sample.columns[self._inverses[0].slot]
        return None if isinstance(column, Unread) else self._follow(as_floats(column))

    def _follow(self, values: Floats) -> _Seen:
        """Return what values of the entry's field lead to, where they can be followed to the output."""
        made = split(self._inverses[0].slot, values, self._worth(values), self._cuts)
        # Of values that were not seen it is known all the same what they lead to.
        unseen = np.isnan(made.utilities)
        utilities = np.where(unseen, self._worth(made.bins.means), made.utilities)
        results = sum(int(inverse.domain.has(values).sum()) for inverse in self._inverses)
        return _Seen(Split(made.field, made.bins, utilities), results)

    def _worth(self, values: Floats) -> Floats:
        assert self._graph is not None
        total = np.zeros(len(values))
        for inverse in self._inverses:
            total += inverse.worth(values, self._graph)
        return total


class _Seen(NamedTuple):
    """What observed tuples are worth by the values of a field, and how many results they lead to."""

    split: Split
    results: int


def _merged(edges: Floats, shares: Floats) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return edges without those that have the same share on both sides: fewer to look through for every tuple."""
    kept = np.flatnonzero(shares[1:] != shares[:-1])
    return tuple(edges[kept].tolist()), (float(shares[0]), *shares[kept + 1].tolist())


def _owners(arcs: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(arc.partition(".")[0] for arc in arcs))


def _listed(names: Iterable[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    more = len(quoted) - _MENTIONED
    return ", ".join(quoted[:_MENTIONED]) + (f" and {more} more" if more > 0 else "")
