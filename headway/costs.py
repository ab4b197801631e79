"""The cost model: the flow of tuples through every box, and the work that a tuple causes on its way to the outputs.

All readers share one model. It walks the network along its arcs, weighted by their shares of a box's tuples (`Shares`):

- forwards for rates: the tuples per second that reach each box, from the rates of the sources;
- backwards for work: the seconds that a tuple entering a box causes, there and in all boxes downstream;
- for units: what a step costs until its tuples are delivered, the paper's cost(D(b)), for all units at once;
- for the static analysis of the paper on Aurora (section 4.4). A box with the cost c (seconds per tuple), the
  selectivity s (tuples out per tuple in) and r tuples in per second has

      load = r * c        stable if 1 / c >= r        rate out = min(1 / c, r) * s

  and the sum of all loads is the least capacity that the network needs, `min_cap`, in seconds of work per second, that
  is, in processors. A capacity C of which this network may use the share H is too small if C * H < min_cap.

By this formula, a box that cannot keep up hides the work downstream of it: give it more processors, and the next box
becomes the bottleneck. Sizing a machine, or deciding how much to shed, needs the cost of all that arrives. So `analyse`
passes on the demand, r * s, unless told to throttle as the formula does. If all boxes are stable, both are the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headway.catalog import BoxReadings, Topology
from headway.checking import CheckedNetwork
from headway.columns import Floats, Int64s, Mask, ReadOnly, frozen
from headway.errors import HeadwayError
from headway.network import arc_name
from headway.structure import owner

HEADROOM = 0.9
"""The share of the capacity that boxes may use; the rest is a reserve for the engine and the unforeseen."""
_ROUNDING = 1e-9
"""Tolerance, so that 1,000 tuples per second at 1 ms fit one processor despite binary fractions."""
_NARROW = 12
"""Mean nodes per level below which a walk node by node is faster than level by level with arrays."""

Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Shares:
    """How boxes' tuples are divided among their readers; a reader that is not listed gets all of them."""

    boxes: Mapping[tuple[int, int], float] = field(default_factory=dict)
    """By producer and consumer: tuples that the consumer gets per tuple produced.

    More than 1 for a box that reads the same tuples twice.
    """
    outputs: Mapping[int, float] = field(default_factory=dict)
    """By output: its share of the tuples of the box that feeds it."""
    direct: Mapping[int, int] = field(default_factory=dict)
    """By output that a source feeds: the source. A topology does not say which of several it is."""


class _Arcs:
    """Arcs between numbered nodes, prepared once for many walks.

    Nodes are in topological order, arcs sorted by producer. A walk goes level by level with arrays, or node by node if
    the network is deep and narrow. Both add in the same order, so they give the same numbers.
    """

    def __init__(self, nodes: int, arcs: Sequence[tuple[int, int]]) -> None:
        self._pairs = arcs
        self.producers: Places = np.array([producer for producer, _ in arcs], np.intp)
        self.consumers: Places = np.array([consumer for _, consumer in arcs], np.intp)
        behind, before = [0] * nodes, [0] * nodes
        for producer, consumer in reversed(arcs):
            behind[producer] = max(behind[producer], behind[consumer] + 1)
        for producer, consumer in arcs:
            before[consumer] = max(before[consumer], before[producer] + 1)
        self._deep = max(behind, default=0) * _NARROW > nodes
        self._forwards = [] if self._deep else self._levels([before[consumer] for _, consumer in arcs], 1)
        self._backwards = [] if self._deep else self._levels([behind[producer] for producer, _ in arcs], -1)

    @staticmethod
    def _levels(levels: Sequence[int], step: int) -> list[Places]:
        """Return the arcs of each level, in their order or, with step -1, in reverse."""
        of = np.array(levels, np.intp)[::step]
        order = np.argsort(of, kind="stable")
        places = (np.arange(len(of))[::step])[order]
        return np.split(places, np.flatnonzero(np.diff(of[order])) + 1) if len(of) else []

    def forwards(self, values: Floats, gains: Floats, limits: Floats | None = None) -> Floats:
        """Return each node's own value plus what its producers pass on, each of no more than its limit."""
        if self._deep:
            found, factors = values.tolist(), gains.tolist()
            most = [np.inf] * len(found) if limits is None else limits.tolist()
            for (producer, consumer), gain in zip(self._pairs, factors, strict=True):
                found[consumer] += min(found[producer], most[producer]) * gain
            return np.array(found, np.float64)
        flow = values.copy()
        for places in self._forwards:
            producers = self.producers[places]
            passed = flow[producers] if limits is None else np.minimum(flow[producers], limits[producers])
            np.add.at(flow, self.consumers[places], passed * gains[places])
        return flow

    def backwards(self, values: Floats, gains: Floats) -> Floats:
        """Return each node's own value plus those of all nodes downstream, weighted by the gains on the way."""
        if self._deep:
            found, factors = values.tolist(), gains.tolist()
            for at in range(len(factors) - 1, -1, -1):
                producer, consumer = self._pairs[at]
                found[producer] += found[consumer] * factors[at]
            return np.array(found, np.float64)
        sums = values.copy()
        for places in self._backwards:
            np.add.at(sums, self.producers[places], sums[self.consumers[places]] * gains[places])
        return sums


class CostModel:
    """A topology and its shares, prepared once for many walks, each a millisecond or two for 10,000 boxes."""

    def __init__(self, topology: Topology, shares: Shares | None = None) -> None:
        """Prepare the arcs, in a loop over all boxes."""
        self.topology = topology
        # Sorted by producer: boxes are in topological order, so a box's rate is complete when its turn comes.
        self.arcs = topology.arcs
        self.place = {arc: at for at, arc in enumerate(self.arcs)}
        """By arc (producer, consumer): its index in `arcs`."""
        self._flow = _Arcs(len(topology.boxes), self.arcs)
        reads = [(source, box) for source, readers in enumerate(topology.readers) for box in readers]
        self._read: Places = np.array(reads, np.intp).reshape(-1, 2)
        self._weigh(shares or Shares())

    def _weigh(self, shares: Shares) -> None:
        topology = self.topology
        self.weights: Floats = np.ones(len(self.arcs))
        """By arc: the tuples that it gets per tuple its box produces."""
        for arc, share in shares.boxes.items():
            if arc in self.place:
                self.weights[self.place[arc]] = share
        self._delivered: Floats = np.ones(len(topology.outputs))
        for output, share in shares.outputs.items():
            self._delivered[output] = share
        fed = [at for at, root in enumerate(topology.roots) if root >= 0]
        self.delivers: Floats = np.zeros(len(topology.boxes))
        """By box: the tuples that go straight to outputs per tuple it produces."""
        np.add.at(self.delivers, [topology.roots[at] for at in fed], self._delivered[fed])
        count, alone = len(topology.boxes), len(topology.sources) == 1
        # Indices into all boxes, then all sources, then a NaN for unknown; a single source is never unknown.
        unknown = count + (0 if alone else len(topology.sources))
        feeders = [
            root if root >= 0 else count + shares.direct[output] if output in shares.direct else unknown
            for output, root in enumerate(topology.roots)
        ]
        self._feeders: Places = np.array(feeders, np.intp)
        frozen(self.weights), frozen(self.delivers)
        self._ways: list[list[tuple[int, float]]] = []  # made when first needed

    @property
    def ways(self) -> list[list[tuple[int, float]]]:
        """By box: its consumers, each with the tuples it gets per tuple that the box makes."""
        if not self._ways:
            self._ways = [[] for _ in self.topology.boxes]
            for (producer, consumer), weight in zip(self.arcs, self.weights.tolist(), strict=True):
                self._ways[producer].append((consumer, weight))
        return self._ways

    def with_shares(self, shares: Shares) -> CostModel:
        """Return the model with other shares, without preparing the arcs again."""
        model = copy(self)
        model._weigh(shares)
        return model

    def share(self, producer: int, consumer: int) -> float:
        """Return how many tuples a box gets per tuple that another one produces, over all its inputs together."""
        at = self.place.get((producer, consumer))
        return 0.0 if at is None else float(self.weights[at])

    def rates(self, source_rates: Floats, selectivity: Floats, limits: Floats | None = None) -> Floats:
        """Return the tuples per second that reach each box, from the rates of the sources.

        With `limits`, by box, a box processes no more than its limit of tuples per second.
        """
        rates: Floats = np.zeros(len(self.topology.boxes))
        np.add.at(rates, self._read[:, 1], source_rates[self._read[:, 0]])
        return self._flow.forwards(rates, self.weights * selectivity[self._flow.producers], limits)

    def work(self, costs: Floats, selectivity: Floats) -> Floats:
        """Return by box the seconds of work that a tuple entering it causes, there and in all boxes downstream."""
        return self._flow.backwards(costs, self.weights * selectivity[self._flow.producers])

    def source_work(self, work: Floats) -> Floats:
        """Return by source the seconds of work that one of its tuples causes, from the result of `work` by box."""
        found: Floats = np.zeros(len(self.topology.sources))
        np.add.at(found, self._read[:, 0], work[self._read[:, 1]])
        return found

    def deliveries(self, source_rates: Floats, rate_out: Floats) -> Floats:
        """Return by output the tuples delivered per second; NaN if an unknown source feeds it."""
        return np.concatenate((rate_out, source_rates, [np.nan]))[self._feeders] * self._delivered


@dataclass(frozen=True, slots=True)
class UnitCosts(ReadOnly):
    """The costs of steps, as arrays by unit: ``overhead + cost * tuples`` seconds until the tuples are delivered.

    They include the boxes of the unit and those downstream, each for the share of tuples that reaches it, and are 0
    where nothing has been measured yet.
    """

    overhead: Floats
    cost: Floats
    yields: Floats
    """Tuples delivered to outputs per tuple that a step takes."""

    def seconds(self, tuples: Int64s) -> Floats:
        """Return by unit the seconds until its `tuples` are delivered."""
        return self.overhead + self.cost * tuples


class UnitCostModel:
    """Computes what a unit's tuples cost on their way to the outputs.

    A unit of several boxes is a superbox: it takes tuples to its outputs by itself, so only its own boxes count. If
    every unit is a single box, all boxes downstream count.
    """

    def __init__(self, model: CostModel, units: Sequence[Sequence[int]]) -> None:
        """Prepare the arcs of all units, once for a network; `units` gives the boxes of each."""
        self.model = model
        """May be replaced by one with other shares."""
        self._plain = all(len(boxes) == 1 for boxes in units)
        if self._plain:
            count, arcs = len(model.topology.boxes), model.arcs
            self._box: Places = np.arange(count)
            self._own: Places = np.array([boxes[0] for boxes in units], np.intp)
            self._arc: Places = np.arange(len(arcs))
        else:
            # Every box of every unit is a node of its own.
            lengths = np.array([len(boxes) for boxes in units], np.intp)
            self._box = np.array([box for boxes in units for box in boxes], np.intp)
            self._own = np.cumsum(lengths) - lengths
            count, arcs, places = len(self._box), [], []
            for boxes, first in zip(units, self._own.tolist(), strict=True):
                node = {box: first + at for at, box in enumerate(boxes)}
                for box in boxes:
                    for one in dict.fromkeys(model.topology.consumers[box]):
                        if one in node:
                            arcs.append((node[box], node[one]))
                            places.append(model.place[box, one])
            self._arc = np.array(places, np.intp)
        self._flow = _Arcs(count, arcs)
        self._boxless: Mask = np.array([not boxes for boxes in units], np.bool_)
        # A call's overhead is split among the box's feeders, so that a box downstream of two branches counts once.
        feeders = np.bincount(self._flow.consumers, minlength=count)
        self._calls: Floats = 1.0 / feeders[self._flow.consumers]
        self._seen: tuple[BoxReadings, CostModel] | None = None  # inputs of what is cached below
        self._of_boxes: UnitCosts | None = None
        self._tuple = self._yield = self._call = np.zeros(0)

    def read(self, boxes: BoxReadings, waiting: Int64s) -> UnitCosts:
        """Return the costs of all units; a unit's cost is the mean over the tuples `waiting` at its boxes.

        If none waits, its boxes have equal weight.
        """
        if self._seen is None or boxes is not self._seen[0] or self.model is not self._seen[1]:
            self._follow(boxes)
        if self._of_boxes is not None:
            return self._of_boxes
        weight = waiting[self._box].astype(np.float64)
        total = self._sums(weight)
        if not total.all():
            weight += np.repeat(total == 0, np.diff(self._own, append=len(weight)))
            total = self._sums(weight)
            total[self._boxless] = 1.0
        return UnitCosts(self._call, self._sums(weight * self._tuple) / total, self._sums(weight * self._yield) / total)

    def _sums(self, values: Floats) -> Floats:
        """Return by unit the sum over its boxes; 0 for a unit without boxes, which only passes on a source's tuples."""
        gaps = bool(self._boxless.any())
        sums: Floats = np.add.reduceat(np.append(values, 0.0) if gaps else values, self._own)
        if gaps:
            sums[self._boxless] = 0.0
        return sums

    def _follow(self, boxes: BoxReadings) -> None:
        """Compute the costs by box, once for all plans that see the same statistics."""
        overhead, selectivity = boxes.overhead[self._box], boxes.selectivity[self._box]
        gains = self.model.weights[self._arc] * selectivity[self._flow.producers]
        self._tuple = self._flow.backwards(boxes.cost[self._box], gains)
        self._yield = self._flow.backwards(self.model.delivers[self._box] * selectivity, gains)
        self._seen = boxes, self.model
        if self._plain:
            calls, own = self._flow.backwards(overhead, self._calls), self._own
            self._of_boxes = UnitCosts(calls[own], self._tuple[own], self._yield[own])
        else:
            self._call = self._sums(overhead)


@dataclass(frozen=True, slots=True, eq=False)
class Loads:
    """The load of a network; arrays are read-only, and by box unless stated otherwise."""

    rate_in: Floats
    """Tuples in per second."""
    rate_out: Floats
    """Tuples out per second, over all ports of the box."""
    load: Floats
    """Seconds of work per second."""
    stable: Mask
    """Whether one processor can keep up with the rate in."""
    sources: Floats
    """By source: tuples per second."""
    outputs: Floats
    """By output: expected tuples per second."""
    capacity: float
    """Seconds of work that can be done per second: processors."""
    headroom: float
    """The share of the capacity that the boxes may use."""

    @property
    def min_cap(self) -> float:
        """The least capacity needed: the sum of all loads."""
        return float(self.load.sum())

    @property
    def usable(self) -> float:
        """The capacity that the boxes may use."""
        return self.capacity * self.headroom

    @property
    def fits(self) -> bool:
        """Whether the usable capacity is enough."""
        return self.min_cap <= self.usable * (1 + _ROUNDING)

    @property
    def overloaded(self) -> bool:
        """Whether even the whole capacity is not enough, so that queues grow without bound."""
        return self.min_cap > self.capacity * (1 + _ROUNDING)

    @property
    def excess(self) -> float:
        """The capacity needed beyond what is usable; 0 if it fits."""
        return 0.0 if self.fits else self.min_cap - self.usable

    @property
    def ranking(self) -> tuple[int, ...]:
        """The boxes by descending load; in topological order where loads are equal."""
        return tuple(np.argsort(-self.load, kind="stable").tolist())


def analyse(
    model: CostModel,
    rates: Floats,
    costs: Floats,
    selectivity: Floats,
    *,
    capacity: float = 1.0,
    headroom: float = HEADROOM,
    throttled: bool = False,
) -> Loads:
    """Return the loads that the sources' rates (tuples per second) cause.

    `costs` (seconds per tuple) and `selectivity` (tuples out per tuple in, all outputs of a box together) are arrays by
    box. `throttled` applies the paper's formula for the rate out: a box then does no more than one processor can, and
    the rest never reaches the boxes downstream.
    """
    topology = model.topology
    rates = _checked("rate", rates, "source", topology.sources)
    costs = _checked("cost", costs, "box", topology.boxes)
    selectivity = _checked("selectivity", selectivity, "box", topology.boxes)
    # A box that costs nothing has no limit.
    limits = None
    if throttled:
        with np.errstate(over="ignore"):
            limits = np.divide(1.0, costs, out=np.full(len(costs), np.inf), where=costs > 0)
    rate_in = model.rates(rates, selectivity, limits)
    done = rate_in if limits is None else np.minimum(limits, rate_in)
    rate_out = done * selectivity
    outputs, stable = model.deliveries(rates, rate_out), rate_in * costs <= 1 + _ROUNDING
    return Loads(rate_in, rate_out, done * costs, stable, rates, outputs, capacity, headroom)


def _checked(what: str, values: Floats, kind: str, names: tuple[str, ...]) -> Floats:
    """Return a read-only copy of the values, or raise a HeadwayError that names the source or box with a wrong one."""
    array: Floats = np.array(values, np.float64)
    if array.shape != (len(names),):
        raise HeadwayError(f"{what}: one number for each {kind} is needed ({len(names)}), not the shape {array.shape}")
    wrong = ~(np.isfinite(array) & (array >= 0))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise HeadwayError(f"{kind} '{names[at]}': {what}: must be a number, zero or more, not {array[at]}")
    return frozen(array)


def shares_of(checked: CheckedNetwork, arcs: Mapping[str, float] | None = None) -> Shares:
    """Return how the boxes of a network divide their tuples among their readers.

    `arcs` gives by arc (``box.port``) its share of all tuples of its box, where it is known; `default_arcs` gives the
    others.
    """
    index = {box.name: at for at, box in enumerate(checked.order)}
    known = {**default_arcs(checked), **(arcs or {})}
    boxes: dict[tuple[int, int], float] = defaultdict(float)
    for at, box in enumerate(checked.order):
        for item in checked.inputs[box.name]:
            if isinstance(item, str) and owner(item) in index:
                boxes[index[owner(item)], at] += known.get(item, 1.0)
    outputs, direct = {}, {}
    sources = {source.name: at for at, source in enumerate(checked.network.sources)}
    for at, output in enumerate(checked.network.outputs):
        arc = checked.outputs[output.name]
        if arc in sources:
            direct[at] = sources[arc]
        else:
            outputs[at] = known.get(arc, 1.0)
    return Shares(
        {arc: share for arc, share in boxes.items() if share != 1},
        {output: share for output, share in outputs.items() if share != 1},
        direct,
    )


def default_arcs(checked: CheckedNetwork) -> dict[str, float]:
    """Return the default share of its box's tuples, by arc of a box with several ports.

    Engines count the tuples of all ports, read or not, except that a filter with one predicate whose ``else`` is not
    read produces nothing there. So all ports get the same share, and in that case the first one gets all.
    """
    shares: dict[str, float] = {}
    for box in checked.order:
        ports = box.spec.ports
        arcs = [arc_name(box.name, port) for port in ports]
        if len(ports) > 1 and (ports[0] != "" or any(checked.consumers[arc] for arc in arcs[1:])):
            shares |= dict.fromkeys(arcs, 1 / len(ports))
    return shares


def measured_arcs(
    checked: CheckedNetwork, taken: Mapping[str, float], made: Mapping[str, float], delivered: Mapping[str, float]
) -> dict[str, float]:
    """Return the share of its box's tuples in a run, by arc of a box with several ports, as far as counts show it.

    The counts are of tuples: `taken` and `made` by box, `delivered` by output. An arc's count is known if it feeds an
    output, or a box that reads nothing else; the box's other arcs divide the rest equally. Tuples shed on the way to a
    box are not among those it took.
    """
    shares: dict[str, float] = {}
    divided: dict[str, list[str]] = defaultdict(list)
    for arc in default_arcs(checked):
        divided[owner(arc)].append(arc)
    for box, arcs in divided.items():
        total = made.get(box, 0)
        if total <= 0:
            continue
        found = {arc: count / total for arc in arcs if (count := _count(checked, arc, taken, delivered)) is not None}
        if found:
            left = max(0.0, 1 - sum(found.values())) / max(1, len(arcs) - len(found))
            shares |= {arc: found.get(arc, left) for arc in arcs}
    return shares


def _count(
    checked: CheckedNetwork, arc: str, taken: Mapping[str, float], delivered: Mapping[str, float]
) -> float | None:
    """Return how many tuples an arc carried, or None if the counts of its readers do not tell."""
    for reader in checked.consumers[arc]:
        if reader.kind == "output":
            if reader.name in delivered:
                return delivered[reader.name]
        elif reader.name in taken and sum(isinstance(item, str) for item in checked.inputs[reader.name]) == 1:
            return taken[reader.name]
    return None
