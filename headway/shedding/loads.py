"""Loads: what flows through every box and what work it makes, from rates, costs and selectivities alone.

This is the static analysis of the paper on Aurora (section 4.4). A box with the cost c (seconds per tuple) and the
selectivity s (tuples out per tuple in) to which r tuples come per second has

    load = r * c        stable if 1 / c >= r        rate out = min(1 / c, r) * s

and, box after box from the sources on, the rate out is what comes to the boxes behind it. The sum of all loads is the
least capacity that the network needs, `min_cap`, in seconds of work per second, which is processors. A capacity C of
which the share H is meant for this network is too small if C * H < min_cap.

By the formula a box that cannot keep up hides what would be to do behind it: give it more processors, and the next
box is the one that is too slow. To size a machine, or to know how much to shed, one has to know what all that arrives
would cost. So `analyse` passes on the demand, r * s, unless it is told to throttle as the formula does. Where all
boxes are stable both are the same.

Beyond the paper: a box with several outputs (a filter's routes) shares out what it makes (`Shares`), and what a call
costs is spread over the tuples of a train.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headway.catalog import Topology
from headway.checking import CheckedNetwork
from headway.errors import HeadwayError
from headway.network import arc_name
from headway.structure import owner

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

HEADROOM = 0.9
"""The share of the capacity that boxes may need; the rest is for the engine itself, and for what nobody foresaw."""
TRAIN = 1000.0
"""Tuples per call, where nothing is said."""
_ROUNDING = 1e-9
"""So that 1,000 tuples per second at 1 ms are one processor, whatever binary fractions make of it."""


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


class LoadModel:
    """A topology, made ready once to be walked often: forwards for rates, backwards for work.

    A walk is one pass over the arcs, whatever the depth of the network: some milliseconds for 10,000 boxes.
    """

    def __init__(self, topology: Topology, shares: Shares | None = None) -> None:
        """Lay out the arcs; set-up takes a loop over all boxes."""
        self.topology = topology
        # Sorted by producer: boxes stand in topological order, so a box's rate is whole when its turn comes.
        self._arcs = [
            (box, one) for box, consumers in enumerate(topology.consumers) for one in dict.fromkeys(consumers)
        ]
        self._producers = [producer for producer, _ in self._arcs]
        self._consumers = [consumer for _, consumer in self._arcs]
        self._from: npt.NDArray[np.intp] = np.array(self._producers, np.intp)
        reads = [(source, box) for source, readers in enumerate(topology.readers) for box in readers]
        self._read: npt.NDArray[np.intp] = np.array(reads, np.intp).reshape(-1, 2)
        self._place = {arc: at for at, arc in enumerate(self._arcs)}
        self._weigh(shares or Shares())

    def _weigh(self, shares: Shares) -> None:
        weights = np.ones(len(self._arcs))
        for arc, share in shares.boxes.items():
            if arc in self._place:
                weights[self._place[arc]] = share
        delivered = np.ones(len(self.topology.outputs))
        for output, share in shares.outputs.items():
            delivered[output] = share
        count, alone = len(self.topology.boxes), len(self.topology.sources) == 1
        # Where a box would stand in the row of all boxes and then all sources; after both, nobody knows.
        unknown = count + (0 if alone else len(self.topology.sources))
        feeders = [
            root if root >= 0 else count + shares.direct[output] if output in shares.direct else unknown
            for output, root in enumerate(self.topology.roots)
        ]
        self._weights, self._delivered = weights, delivered
        self._feeders: npt.NDArray[np.intp] = np.array(feeders, np.intp)

    def with_shares(self, shares: Shares) -> LoadModel:
        """Return the model with other shares, without laying out the arcs again."""
        model = copy(self)
        model._weigh(shares)
        return model

    def share(self, producer: int, consumer: int) -> float:
        """Return how many tuples a box gets per tuple that another one makes, over all its inputs together."""
        at = self._place.get((producer, consumer))
        return 0.0 if at is None else float(self._weights[at])

    def rates(self, source_rates: Floats, selectivity: Floats, limits: Floats | None = None) -> Floats:
        """Return the tuples that come to each box per second, from those of each source.

        With `limits`, a box passes on what it makes of so many tuples per second at most.
        """
        rates = self._from_sources(source_rates).tolist()
        gains = (self._weights * selectivity[self._from]).tolist()
        arcs = zip(self._producers, self._consumers, gains, strict=True)
        if limits is None:
            for producer, consumer, gain in arcs:
                rates[consumer] += rates[producer] * gain
        else:
            most = limits.tolist()
            for producer, consumer, gain in arcs:
                rates[consumer] += min(rates[producer], most[producer]) * gain
        found: Floats = np.array(rates, np.float64)
        return found

    def work(self, costs: Floats, selectivity: Floats) -> Floats:
        """Return by box the seconds of work that a tuple which enters it makes, there and in all boxes behind it."""
        work = costs.tolist()
        gains = (self._weights * selectivity[self._from]).tolist()
        for producer, consumer, gain in zip(
            reversed(self._producers), reversed(self._consumers), reversed(gains), strict=True
        ):
            work[producer] += work[consumer] * gain
        found: Floats = np.array(work, np.float64)
        return found

    def source_work(self, work: Floats) -> Floats:
        """Return by source the seconds of work that one of its tuples makes, from what `work` says of the boxes."""
        found: Floats = np.zeros(len(self.topology.sources))
        np.add.at(found, self._read[:, 0], work[self._read[:, 1]])
        return found

    def deliveries(self, source_rates: Floats, rate_out: Floats) -> Floats:
        """Return by output the tuples that are delivered per second; NaN where it hangs on a source nobody named."""
        found: Floats = np.concatenate((rate_out, source_rates, [np.nan]))[self._feeders] * self._delivered
        return found

    def _from_sources(self, source_rates: Floats) -> Floats:
        rates: Floats = np.zeros(len(self.topology.boxes))
        np.add.at(rates, self._read[:, 1], source_rates[self._read[:, 0]])
        return rates


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
    topology: Topology | LoadModel,
    rates: Floats,
    costs: Floats,
    selectivity: Floats,
    *,
    shares: Shares | None = None,
    overheads: Floats | None = None,
    train: float = TRAIN,
    capacity: float = 1.0,
    headroom: float = HEADROOM,
    throttled: bool = False,
) -> Loads:
    """Return what the sources' rates (tuples per second) make every box do.

    `costs` (seconds per tuple), `selectivity` (tuples out per tuple in, all outputs of a box together) and `overheads`
    (seconds per call, spread over the tuples of a `train`) are arrays by box; `shares` says how boxes with several
    outputs divide what they make. `throttled` applies the paper's formula for the rate out: a box then does no more
    than one processor can, and what it cannot do does not come to the boxes behind it.
    """
    model = LoadModel(topology) if isinstance(topology, Topology) else topology
    if shares is not None:
        model = model.with_shares(shares)
    known = model.topology
    rates = _checked("rate", rates, "source", known.sources)
    costs = _checked("cost", costs, "box", known.boxes)
    selectivity = _checked("selectivity", selectivity, "box", known.boxes)
    if overheads is not None:
        costs = costs + _checked("overhead", overheads, "box", known.boxes) / max(1.0, train)
    # A box that costs nothing has no limit.
    limits = None
    if throttled:
        with np.errstate(over="ignore"):
            limits = np.divide(1.0, costs, out=np.full(len(costs), np.inf), where=costs > 0)
    rate_in = model.rates(rates, selectivity, limits)
    done = rate_in if limits is None else np.minimum(limits, rate_in)
    rate_out = done * selectivity
    return Loads(
        rate_in,
        rate_out,
        done * costs,
        rate_in * costs <= 1 + _ROUNDING,
        rates,
        model.deliveries(rates, rate_out),
        capacity,
        headroom,
    )


def work_per_tuple(topology: Topology | LoadModel, costs: Floats, selectivity: Floats) -> Floats:
    """Return by box the seconds of work that a tuple which enters it makes, there and in all boxes behind it.

    Who asks often keeps a LoadModel and gives that.
    """
    model = LoadModel(topology) if isinstance(topology, Topology) else topology
    return model.work(costs, selectivity)


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
