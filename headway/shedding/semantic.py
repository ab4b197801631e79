"""Semantic load shedding: not what share of the tuples to drop, but which tuples (Aurora, section 4.5).

For an output with a value graph, the tuples that lead to results of the lowest utility are dropped first. At a drop
box's entry they are found in one of three ways: backward, if the output's field is a function of a field of the entry;
by trial, if there are boxes without an inverse between; at random, if a box mixes tuples.

A trial shows which values lead to useful results: a sample of recent tuples at the entry is run through the boxes up to
where values can be followed to the output, and each result is traced to its tuple by arrival number. The field whose
intervals separate useful tuples from others best is the one to drop by. All boxes in a trial must process each tuple
separately; the results of a box that mixes tuples cannot be traced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from headway.checking import CheckedNetwork
from headway.columns import Floats, Unread, as_floats
from headway.errors import HeadwayError, choices
from headway.expressions.types import is_numeric
from headway.kernels.compile import compile_kernel
from headway.kernels.kernel import Kernel
from headway.kernels.results import whole
from headway.network import Box, Table, arc_name
from headway.network.qos import Graph
from headway.network.schema import Schema
from headway.shedding.intervals import Bins, Histogram, bin_values, loss_graph, lowest_first
from headway.shedding.inverses import Inverse, Route, propagate
from headway.shedding.sites import Entry
from headway.sieves import Sieve
from headway.structure import owner
from headway.tables import load_static
from headway.trains import Train, merge

_MENTIONED = 4
"""The most names listed in texts for people."""
_WORTH_IT = 0.05
"""The share of the utilities' variance that a field must explain to be better than chance."""
LEAST = 64
"""The fewest tuples in a sample that is significant."""


def trial_fields(schema: Schema) -> tuple[int, ...]:
    """Return the fields by which a trial can distinguish tuples: numbers and booleans."""
    return tuple(at for at, type_ in enumerate(schema.types) if is_numeric(type_) or pa.types.is_boolean(type_))


class Trial:
    """The compiled boxes from an entry up to certain arcs, to run samples through."""

    def __init__(
        self,
        route: Route,
        ends: Mapping[str, tuple[Inverse, ...]],
        entry: tuple[Inverse, ...] = (),
        tables: Mapping[str, Any] | None = None,
    ) -> None:
        """Compile the boxes; `ends` are the arcs from which values can be followed to the output.

        `entry` are inverses at the entry itself, for other paths; `tables` are the static tables by name.
        """
        self._route = route
        self._ends = dict(ends)
        self._entry = entry
        needed = {owner(arc) for arc in ends}
        for box in reversed(route.boxes):
            if box.name in needed:
                items = enumerate(route.checked.inputs[box.name])
                needed |= {owner(item) for at, item in items if isinstance(item, str) and route.leads(box.name, at)}
        self.boxes = tuple(box for box in route.boxes if box.name in needed)
        self._kernels: dict[str, Kernel] = {}
        self.impossible = ""
        """Why a trial is impossible; empty if it is possible."""
        for box in self.boxes:
            if box.spec.tuplewise:
                try:
                    self._kernels[box.name] = self._compile(box, tables)
                except HeadwayError as error:
                    self.impossible = f"'{box.name}' cannot be tried: {error}"
                    return
            elif not box.spec.passes:
                self.impossible = f"'{box.name}' mixes tuples"
                return

    def _compile(self, box: Box, tables: Mapping[str, Any] | None) -> Kernel:
        checked = self._route.checked
        network = checked.network
        statics = [
            load_static(network, item, tables) if isinstance(item, Table) else None for item in checked.inputs[box.name]
        ]
        return compile_kernel(box.spec, box.name, checked.input_schemas(box.name), statics, checked.functions)

    def worth(self, sample: Train, graph: Graph) -> tuple[Floats, int]:
        """Return the sum of the utilities of each tuple's results, and the number of results.

        The tuples of the sample are in order of arrival.
        """
        checked, route, count = self._route.checked, self._route, len(sample)
        # Renumbered: at the entry several tuples may have the same number, as after a join.
        first = Train(sample.columns, sample.stamps, np.arange(count, dtype=np.int64), count)
        trains: dict[str, Train] = {}
        for box in self.boxes:
            given = [
                first if (box.name, at) in route.starts else trains.get(item) or Train.empty(checked.arcs[item], count)
                for at, item in enumerate(checked.inputs[box.name])
                if isinstance(item, str)
            ]
            kernel = self._kernels.get(box.name)
            # A universal box drops regardless of values, and a sort only reorders: passing all tuples gives less noise.
            outputs = (merge(given),) if kernel is None else whole(kernel.run(kernel.initial(), given, 0)[1]).outputs
            trains.update(zip([arc_name(box.name, port) for port in box.spec.ports], outputs, strict=True))
        total, results = np.zeros(count), 0
        ends = [(trains[arc], one) for arc, inverses in self._ends.items() for one in inverses]
        for train, inverse in [*ends, *((first, one) for one in self._entry)]:
            values = as_floats(train.columns[inverse.slot])
            results += int(inverse.domain.has(values).sum())
            if len(train):
                total += np.bincount(train.numbers, weights=inverse.worth(values, graph), minlength=count)
        return total, results


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """A field of the entry, its values in intervals, and the mean utility of each interval's tuples."""

    field: int
    bins: Bins
    utilities: Floats
    """By interval; NaN if it is empty."""


def split(field: int, values: Floats, worth: Floats, points: Floats | None = None) -> Split:
    """Return a field's intervals with their mean utilities; `points` are edges besides the quantiles."""
    bins = bin_values(values, points)
    return Split(field, bins, bins.average(values, worth))


def best_split(sample: Train, worth: Floats, fields: tuple[int, ...]) -> Split | None:
    """Return the split by the field that explains most of the variance of the tuples' utilities; None if none does.

    The earlier half of the sample is for learning and the later half for testing, so that neither chance nor a field
    that only ever increases, such as a time, looks like a cause.
    """
    count = len(sample)
    half = count // 2
    later = worth[half:]
    variance = float(((later - later.mean()) ** 2).sum()) if count >= LEAST else 0.0
    if variance <= 1e-12 * count:
        return None
    best, chosen = _WORTH_IT, None
    for field in fields:
        column = sample.columns[field]
        if isinstance(column, Unread):
            continue
        values = as_floats(column)
        learnt = split(field, values[:half], worth[:half])
        guess = learnt.utilities[learnt.bins.places(values[half:])]
        guess = np.where(np.isnan(values[half:]) | np.isnan(guess), worth[:half].mean(), guess)
        explained = 1.0 - float(((later - guess) ** 2).sum()) / variance
        if explained > best:
            best, chosen = explained, (field, values)
    return None if chosen is None else split(*chosen, worth)


class SemanticPlanner:
    """Decides which tuples a drop box at an entry keeps for one output. Created once, called often.

    Its answers depend only on the arguments. Not thread-safe, because it caches the analysis of the last sample.
    """

    def __init__(
        self,
        checked: CheckedNetwork,
        output: int | str,
        entry: Entry | str,
        tables: Mapping[str, Any] | None = None,
    ) -> None:
        """Find out how values at the entry determine the output's values.

        The output is given by name or number. An entry is an input of a box; or an arc's name, for a drop box before
        all its readers, as on Spark. `tables` are static tables given by name, as for an engine.
        """
        self._route = Route(checked, output, entry)
        value = self._route.output.qos.value
        self._graph = None if value is None else value.graph
        self._inverses: tuple[Inverse, ...] = ()
        self._cuts: Floats = np.zeros(0)
        self._trial: Trial | None = None
        self._fields: tuple[int, ...] = ()
        self._latest: tuple[Train, _Values | None] | None = None  # callers pass the same sample more than once
        self.how = self._find_out(tables)
        """How tuples are selected, for people."""

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
            tried += f" as far as {_listed(dict.fromkeys(map(owner, backward.stopped)))}"
            tried += f", backward through {_listed(backward.through)}"
        return tried

    @property
    def by_value(self) -> bool:
        """Whether tuples can be selected by value at all; if not, every sieve drops at random."""
        return self._trial is not None or len(self._cuts) > 0

    def sieve(self, sample: Train | None, histogram: Histogram | None, keep: float, seed: int) -> Sieve:
        """Return the sieve that keeps a share of the entry's tuples, the most useful ones.

        `sample` are recent tuples at the entry, from before any drop box there, in order of arrival; without one, the
        values of the output's `histogram` are propagated back to the entry. The share is exact for the observed tuples,
        and approximate for others; it gets more precise with larger samples. If nothing is known, the sieve drops at
        random. For the same sample, histogram and seed, a smaller share drops all that a larger one does.
        """
        keep = min(max(keep, 0.0), 1.0)
        seen = self._look(sample, histogram) if 0.0 < keep < 1.0 else None
        if seen is None:
            return Sieve(keep, seed)
        bins, utilities = seen.split.bins, seen.split.utilities
        if self._trial is None:
            # A field that is NULL here is NULL in the result, with utility 0: one more interval.
            bins = replace(bins, counts=np.append(bins.counts, bins.unknown))
            *told, unknown = lowest_first(bins, np.append(utilities, 0.0), keep).tolist()
        else:
            told, unknown = lowest_first(bins, utilities, keep).tolist(), keep
        edges, shares = _merged(seen.split.bins.edges, np.array(told))
        return Sieve(keep, seed, seen.split.field, edges, shares, unknown) if edges else Sieve(keep, seed)

    def loss_graph(self, sample: Train | None, histogram: Histogram | None) -> Graph | None:
        """Return the output's expected utility over the per cent kept here by such sieves; None if nothing is known.

        At 100 per cent it is the mean utility of the results. Unlike the output's histogram, it is not biased by
        dropping here.
        """
        seen = self._look(sample, histogram)
        if seen is None or not seen.results:
            return None
        whole, scale = loss_graph(seen.split.bins, seen.split.utilities), seen.split.bins.total / seen.results
        return Graph(tuple((x, min(y * scale, 1.0)) for x, y in whole.points))

    def explain(self, sieve: Sieve) -> str:
        """Return how a sieve of this planner selects tuples, for people."""
        if sieve.field is not None:
            name = self._route.schema.names[sieve.field]
            return f"by trial over '{name}'" if self._trial is not None else self.how
        return f"at random: nothing observed tells tuples apart ({self.how})" if self.by_value else self.how

    def _look(self, sample: Train | None, histogram: Histogram | None) -> _Values | None:
        """Return the utilities of the observed tuples by value; None if they are too few, or no field explains them."""
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

    def _look_at(self, sample: Train) -> _Values | None:
        if self._trial is not None and self._graph is not None:
            worth, results = self._trial.worth(sample, self._graph)
            best = best_split(sample, worth, self._fields)
            return None if best is None else _Values(best, results)
        column = sample.columns[self._inverses[0].slot]
        return None if isinstance(column, Unread) else self._follow(as_floats(column))

    def _follow(self, values: Floats) -> _Values:
        """Return the utilities of values of the entry's field, if they can be followed to the output."""
        made = split(self._inverses[0].slot, values, self._worth(values), self._cuts)
        # The utility of values that were not observed is known, too.
        unseen = np.isnan(made.utilities)
        utilities = np.where(unseen, self._worth(made.bins.means), made.utilities)
        results = sum(int(inverse.domain.has(values).sum()) for inverse in self._inverses)
        return _Values(Split(made.field, made.bins, utilities), results)

    def _worth(self, values: Floats) -> Floats:
        assert self._graph is not None
        total = np.zeros(len(values))
        for inverse in self._inverses:
            total += inverse.worth(values, self._graph)
        return total


class _Values(NamedTuple):
    """The utilities of observed tuples by the values of a field, and the number of their results."""

    split: Split
    results: int


def _merged(edges: Floats, shares: Floats) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Drop the edges with the same share on both sides, so that the search per tuple is shorter."""
    kept = np.flatnonzero(shares[1:] != shares[:-1])
    return tuple(edges[kept].tolist()), (float(shares[0]), *shares[kept + 1].tolist())


def _listed(names: Iterable[str]) -> str:
    return choices((f"'{name}'" for name in names), _MENTIONED)
