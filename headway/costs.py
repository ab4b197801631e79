"""The cost model: what flows through every box, and what work a tuple makes on its way to the outputs.

One model walks the network for everybody, along its arcs and by what each of them gets of its box's tuples (`Shares`):

- forwards for rates: the tuples that come to each box per second, from those of the sources;
- backwards for work: the seconds that a tuple which enters a box makes, there and in all boxes behind it;
- for units: what a step costs until its tuples are delivered, the paper's cost(D(b)), for all units at once;
- for the static analysis of the paper on Aurora (section 4.4). A box with the cost c (seconds per tuple) and the
  selectivity s (tuples out per tuple in) to which r tuples come per second has

      load = r * c        stable if 1 / c >= r        rate out = min(1 / c, r) * s

  and the sum of all loads is the least capacity that the network needs, `min_cap`, in seconds of work per second, which
  is processors. A capacity C of which the share H is meant for this network is too small if C * H < min_cap.

By the formula a box that cannot keep up hides what would be to do behind it: give it more processors, and the next box
is the one that is too slow. To size a machine, or to know how much to shed, one has to know what all that arrives would
cost. So `analyse` passes on the demand, r * s, unless it is told to throttle as the formula does. Where all boxes are
stable both are the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headway.catalog import BoxReadings, Floats, Topology
from headway.checking import CheckedNetwork
from headway.columns import Int64s, Mask
from headway.errors import HeadwayError
from headway.network import arc_name
from headway.structure import owner

HEADROOM = 0.9
"""The share of the capacity that boxes may need; the rest is for the engine itself, and for what nobody foresaw."""
TRAIN = 1000.0
"""Tuples per call, where nothing is said."""
_ROUNDING = 1e-9
"""So that 1,000 tuples per second at 1 ms are one processor, whatever binary fractions make of it."""
_NARROW = 12
"""Nodes per level below which one by one is faster than level by level with arrays."""

Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Shares:
    """How a box's tuples divide over those who read it; what is not named gets all of them."""

    boxes: Mapping[tuple[int, int], float] = field(default_factory=dict)
    """By producer and consumer: tuples that the consumer gets per tuple that the producer makes.

    It is more than 1 for a box that reads the same tuples twice.
    """
    outputs: Mapping[int, float] = field(default_factory=dict)
    """By output: the share of the tuples of the box that feeds it."""
    direct: Mapping[int, int] = field(default_factory=dict)
    """By output that hangs on a source: the source. A topology does not say which of several it is."""


class _Arcs:
    """Arcs between numbered nodes, laid out once to be walked often.

    Nodes stand in topological order and arcs are sorted by producer. Both ways of walking add in the same order, so
    they give the same numbers: level by level with arrays, or one by one where a network is deep and narrow.
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
        """Return the arcs of each level, in their order or, with step -1, in the opposite one."""
        of = np.array(levels, np.intp)[::step]
        order = np.argsort(of, kind="stable")
        places = (np.arange(len(of))[::step])[order]
        return np.split(places, np.flatnonzero(np.diff(of[order])) + 1) if len(of) else []

    def forwards(self, values: Floats, gains: Floats, limits: Floats | None = None) -> Floats:
        """Return what comes to each node: its own, and what its producers pass on; of no more than `limits` each."""
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
        """Return what a unit that enters each node comes to: the node's own, and its share of what is behind it."""
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
    """A topology and its shares, made ready once to be walked often: a millisecond or two for 10,000 boxes."""

    def __init__(self, topology: Topology, shares: Shares | None = None) -> None:
        """Lay out the arcs; set-up takes a loop over all boxes."""
        self.topology = topology
        # Sorted by producer: boxes stand in topological order, so a box's rate is whole when its turn comes.
        self.arcs = topology.arcs
        self.place = {arc: at for at, arc in enumerate(self.arcs)}
        """By arc, as producer and consumer: its place among them."""
        self._flow = _Arcs(len(topology.boxes), self.arcs)
        reads = [(source, box) for source, readers in enumerate(topology.readers) for box in readers]
        self._read: Places = np.array(reads, np.intp).reshape(-1, 2)
        self._weigh(shares or Shares())

    def _weigh(self, shares: Shares) -> None:
        topology = self.topology
        self.weights: Floats = np.ones(len(self.arcs))
        """By arc: the tuples that it gets per tuple that its box makes."""
        for arc, share in shares.boxes.items():
            if arc in self.place:
                self.weights[self.place[arc]] = share
        self._delivered: Floats = np.ones(len(topology.outputs))
        for output, share in shares.outputs.items():
            self._delivered[output] = share
        fed = [at for at, root in enumerate(topology.roots) if root >= 0]
        self.delivers: Floats = np.zeros(len(topology.boxes))
        """By box: the tuples that go to outputs at once per tuple that it makes."""
        np.add.at(self.delivers, [topology.roots[at] for at in fed], self._delivered[fed])
        count, alone = len(topology.boxes), len(topology.sources) == 1
        # Where a box would stand in the row of all boxes and then all sources; after both, nobody knows.
        unknown = count + (0 if alone else len(topology.sources))
        feeders = [
            root if root >= 0 else count + shares.direct[output] if output in shares.direct else unknown
            for output, root in enumerate(topology.roots)
        ]
        self._feeders: Places = np.array(feeders, np.intp)
        self._ways: list[list[tuple[int, float]]] = []  # made when somebody first asks

    @property
    def ways(self) -> list[list[tuple[int, float]]]:
        """By box: those that read it, each with the tuples that it gets per tuple that the box makes."""
        if not self._ways:
            self._ways = [[] for _ in self.topology.boxes]
            for (producer, consumer), weight in zip(self.arcs, self.weights.tolist(), strict=True):
                self._ways[producer].append((consumer, weight))
        return self._ways

    def with_shares(self, shares: Shares) -> CostModel:
        """Return the model with other shares, without laying out the arcs again."""
        model = copy(self)
        model._weigh(shares)
        return model

    def share(self, producer: int, consumer: int) -> float:
        """Return how many tuples a box gets per tuple that another one makes, over all its inputs together."""
        at = self.place.get((producer, consumer))
        return 0.0 if at is None else float(self.weights[at])

    def rates(self, source_rates: Floats, selectivity: Floats, limits: Floats | None = None) -> Floats:
        """Return the tuples that come to each box per second, from those of each source.

        With `limits`, a box passes on what it makes of so many tuples per second at most.
        """
        rates: Floats = np.zeros(len(self.topology.boxes))
        np.add.at(rates, self._read[:, 1], source_rates[self._read[:, 0]])
        return self._flow.forwards(rates, self.weights * selectivity[self._flow.producers], limits)

    def work(self, costs: Floats, selectivity: Floats) -> Floats:
        """Return by box the seconds of work that a tuple which enters it makes, there and in all boxes behind it."""
        return self._flow.backwards(costs, self.weights * selectivity[self._flow.producers])

    def source_work(self, work: Floats) -> Floats:
        """Return by source the seconds of work that one of its tuples makes, from what `work` says of the boxes."""
        found: Floats = np.zeros(len(self.topology.sources))
        np.add.at(found, self._read[:, 0], work[self._read[:, 1]])
        return found

    def deliveries(self, source_rates: Floats, rate_out: Floats) -> Floats:
        """Return by output the tuples that are delivered per second; NaN where it hangs on a source nobody named."""
        return np.concatenate((rate_out, source_rates, [np.nan]))[self._feeders] * self._delivered


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """What steps cost, as arrays by unit: ``overhead + cost * tuples`` seconds until the tuples are delivered.

    Counted are the boxes of the unit and those downstream of it, each for the share of tuples that comes through to it.
    Both are 0 where nothing has been measured yet.
    """

    overhead: Floats
    cost: Floats
    yields: Floats
    """Tuples delivered to outputs for each tuple that a step takes."""

    def seconds(self, tuples: Int64s) -> Floats:
        """Return by unit how long it takes until so many tuples are delivered."""
        return self.overhead + self.cost * tuples


class UnitCostModel:
    """Follows the tuples of every unit to its outputs.

    A unit of several boxes is a superbox: it brings tuples to its outputs by itself, so that only its own boxes count.
    Where every unit is a single box, all boxes downstream count.
    """

    def __init__(self, model: CostModel, units: Sequence[Sequence[int]]) -> None:
        """Lay out what follows what, once for a network; `units` gives the boxes of each."""
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
        # A call's overhead is shared by those who feed it, so that a box behind two branches is not counted twice.
        feeders = np.bincount(self._flow.consumers, minlength=count)
        self._calls: Floats = 1.0 / feeders[self._flow.consumers]
        self._seen: tuple[BoxReadings, CostModel] | None = None  # and what followed from it:
        self._of_boxes: UnitCosts | None = None
        self._tuple = self._yield = self._call = np.zeros(0)

    def read(self, boxes: BoxReadings, waiting: Int64s) -> UnitCosts:
        """Return the costs of all units; a unit's tuple costs the mean over those that wait at its boxes (`waiting`).

        Where none waits, all its boxes count alike.
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
        """Return by unit the sum over its boxes; 0 for a unit without boxes, which only hands a source's tuples on."""
        gaps = bool(self._boxless.any())
        sums: Floats = np.add.reduceat(np.append(values, 0.0) if gaps else values, self._own)
        if gaps:
            sums[self._boxless] = 0.0
        return sums

    def _follow(self, boxes: BoxReadings) -> None:
        """Follow tuples to the outputs, once for all plans that see the same statistics."""
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
    """What a network has to do; arrays by box where nothing else is said. Nobody writes to them."""

    rate_in: Floats
    """Tuples that come, per second."""
    rate_out: Floats
    """Tuples that are made, per second, all outputs of the box together."""
    load: Floats
    """Seconds of work per second."""
    stable: Mask
    """Whether one processor can keep up with what comes."""
    sources: Floats
    """By source: tuples per second."""
    outputs: Floats
    """By output: tuples per second that are to be expected."""
    capacity: float
    """Seconds of work that can be done per second: processors."""
    headroom: float
    """The share of the capacity that the boxes may need."""

    @property
    def min_cap(self) -> float:
        """The least capacity that is needed: the sum of all loads."""
        return float(self.load.sum())

    @property
    def usable(self) -> float:
        """The capacity that the boxes may need."""
        return self.capacity * self.headroom

    @property
    def fits(self) -> bool:
        """Whether what is needed is no more than what is usable."""
        return self.min_cap <= self.usable * (1 + _ROUNDING)

    @property
    def overloaded(self) -> bool:
        """Whether more is needed than there is at all: queues grow without end."""
        return self.min_cap > self.capacity * (1 + _ROUNDING)

    @property
    def excess(self) -> float:
        """What is needed beyond what is usable; 0 if it fits."""
        return 0.0 if self.fits else self.min_cap - self.usable

    @property
    def ranking(self) -> tuple[int, ...]:
        """The boxes, those with the largest load first; in topological order where loads are equal."""
        return tuple(np.argsort(-self.load, kind="stable").tolist())


def analyse(
    model: CostModel,
    rates: Floats,
    costs: Floats,
    selectivity: Floats,
    *,
    overheads: Floats | None = None,
    train: float = TRAIN,
    capacity: float = 1.0,
    headroom: float = HEADROOM,
    throttled: bool = False,
) -> Loads:
    """Return what the sources' rates (tuples per second) make every box do.

    `costs` (seconds per tuple), `selectivity` (tuples out per tuple in, all outputs of a box together) and `overheads`
    (seconds per call, spread over the tuples of a `train`) are arrays by box. `throttled` applies the paper's formula
    for the rate out: a box then does no more than one processor can, and what it cannot do does not come to the boxes
    behind it.
    """
    topology = model.topology
    rates = _checked("rate", rates, "source", topology.sources)
    costs = _checked("cost", costs, "box", topology.boxes)
    selectivity = _checked("selectivity", selectivity, "box", topology.boxes)
    if overheads is not None:
        costs = costs + _checked("overhead", overheads, "box", topology.boxes) / max(1.0, train)
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
    """Return the values as an array of their own, or raise a HeadwayError that names whose value is wrong."""
    array: Floats = np.array(values, np.float64)
    if array.shape != (len(names),):
        raise HeadwayError(f"{what}: one number for each {kind} is needed ({len(names)}), not the shape {array.shape}")
    wrong = ~(np.isfinite(array) & (array >= 0))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise HeadwayError(f"{kind} '{names[at]}': {what}: must be a number, zero or more, not {array[at]}")
    array.flags.writeable = False
    return array


def shares_of(checked: CheckedNetwork, arcs: Mapping[str, float] | None = None) -> Shares:
    """Return how the boxes of a network divide their tuples over those who read them.

    `arcs` gives by arc (``box.port``) its share of all tuples of its box, as far as somebody knows it. Of other boxes
    with several ports each port gets the same.
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
    """Return by arc of a box with several ports which share of its tuples it gets, where nobody knows better.

    Engines count what all ports make, also those that nobody reads, except that a filter with one predicate whose
    ``else`` is not read makes nothing there. So each port gets the same, and in that case the first one all.
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
    """Return by arc of a box with several ports which share of its tuples it got in a run, as far as counts tell it.

    The counts are of tuples: `taken` and `made` by box, `delivered` by output. An arc's are known where it goes to an
    output, or to a box that reads nothing else; the other arcs of the box get the same share each of what is left.
    Tuples that were shed on the way to a box are not among those it took.
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
    """Return how many tuples an arc had, if any of those who read it can tell."""
    for reader in checked.consumers[arc]:
        if reader.kind == "output":
            if reader.name in delivered:
                return delivered[reader.name]
        elif reader.name in taken and sum(isinstance(item, str) for item in checked.inputs[reader.name]) == 1:
            return taken[reader.name]
    return None
