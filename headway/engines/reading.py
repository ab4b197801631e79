"""The one reading of a running network: snapshots for policies, totals for everybody else.

What every engine reads in the same way stands here. How units wait is the engine's own: in this process it is read
off queues, on Spark off the log.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from headway.catalog import BoxReadings, Floats, Statistics, Topology
from headway.checking import CheckedNetwork
from headway.columns import Int64s
from headway.costs import CostModel, UnitCostModel, UnitCosts, shares_of
from headway.engines.delivery import Delivered, Delivery, know_arrivals, output_readings
from headway.engines.ingest import Feed, Ingest
from headway.engines.letters import DeadLetters
from headway.errors import PolicyError
from headway.scheduling.schedule import Schedule
from headway.scheduling.snapshot import Layout, OutputReadings, QueueReadings, Unit
from headway.totals import NOTHING_SPENT, Spent, Totals


class Reading(ABC):
    """Looks at a run and changes nothing. Used by the scheduler thread."""

    def __init__(
        self,
        checked: CheckedNetwork,
        topology: Topology,
        units: tuple[Unit, ...],
        statistics: Statistics,
        exclusive: bool = True,
    ) -> None:
        """Prepare; `attach` says the rest before the first look."""
        self.checked = checked
        self.topology = topology
        self.units = units
        self.statistics = statistics
        self.layout = Layout(topology, units, exclusive)
        self.model = CostModel(topology, shares_of(checked))
        """The cost model; whoever finds out how boxes divide their tuples replaces it."""
        self.looks = 0
        """How often the engine has looked; what was not read of a look before is gone."""
        self.workers = 1
        """How many steps may be under way at once."""
        self._unit_model: UnitCostModel | None = None
        self._box_model: UnitCostModel | None = None

    def attach(
        self,
        ingest: Ingest,
        feeds: Sequence[Feed],
        deliveries: Sequence[Delivery],
        letters: DeadLetters,
        schedule: Schedule,
    ) -> None:
        """Say where tuples come from and go to, both in the network's order."""
        self.ingest, self.feeds, self.deliveries, self.letters = ingest, feeds, deliveries, letters
        self._held = know_arrivals(deliveries, ingest.times, schedule)

    # What policies may ask as of the latest look

    @abstractmethod
    def boxes(self, now: int) -> BoxReadings:
        """Return the statistics of the boxes, a few milliseconds old at most."""

    @abstractmethod
    def queues(self, now: int) -> QueueReadings:
        """Return what waits before each box."""

    @abstractmethod
    def latencies(self, now: int) -> Floats:
        """Return by unit the mean latency of its waiting tuples, 0 where none waits."""

    @abstractmethod
    def latency(self, now: int, unit: int) -> float:
        """Return one unit's entry of `latencies`, without reading the others."""

    @abstractmethod
    def unit_costs(self, now: int) -> UnitCosts:
        """Return by unit what a step costs until its tuples are delivered."""

    def box_costs(self, now: int) -> UnitCosts:
        """Return by box what a step of it alone costs until its tuples are delivered."""
        if self._box_model is None:
            self._box_model = UnitCostModel(self.model, [(at,) for at in range(len(self.topology.boxes))])
        self._box_model.model = self.model
        return self._box_model.read(self.boxes(now), np.zeros(0, np.int64))

    def follow_units(self, boxes: BoxReadings, waiting: Int64s) -> UnitCosts:
        """Return by unit what the cost model says of a step, with so many tuples waiting at the boxes."""
        if self._unit_model is None:
            self._unit_model = UnitCostModel(self.model, [unit.boxes for unit in self.units])
        self._unit_model.model = self.model
        return self._unit_model.read(boxes, waiting)

    def rates(self, now: int) -> Floats:
        """Return by source the tuples per second that arrived lately."""
        return self.ingest.rates(now)

    def outputs(self) -> OutputReadings:
        """Return how the outputs do."""
        return output_readings(self.deliveries)

    def held(self) -> Floats:
        """Return by output how long results are held; nothing where trains do not wait."""
        return self._held()

    # What everybody else reads

    @property
    def pressing(self) -> bool:
        """Whether tuples come whether anybody has time for them or not: no source only comes in turn."""
        return self.ingest.pressing

    @abstractmethod
    def backlog(self) -> tuple[Int64s, Int64s]:
        """Return by box the tuples that wait, and the timestamp of the oldest, the largest number where none waits.

        What is due and has not been let in waits, too.
        """

    @property
    @abstractmethod
    def ignored(self) -> Mapping[str, int]:
        """By box: the tuples that came too late for it."""

    def overdue(self) -> Int64s:
        """Return by source the tuples that are due and have not been let in."""
        return self.ingest.overdue()

    def totals(self, now: int, spent: Spent = NOTHING_SPENT, shed: Sequence[int] = ()) -> Totals:
        """Return what has happened so far; `spent` and `shed` by those who know."""
        rows = np.array([one.delivered() for one in self.deliveries], np.float64).reshape(-1, len(Delivered._fields))
        tuples, latency, utility, late = np.concatenate((rows, rows.sum(axis=0, keepdims=True))).T
        return Totals(
            now,
            tuples.astype(np.int64),
            latency.copy(),
            utility.copy(),
            late=late.astype(np.int64),
            shed=np.array(shed, np.int64),
            arrived=np.array([feed.tuples for feed in self.feeds], np.int64),
            overdue=self.overdue(),
            boxes=self.statistics.readings(),
            spent=spent,
        )


class Moment:
    """What policies may ask of a reading, as of one look: each part is read once, when first asked for."""

    def __init__(self, reading: Reading, now: int) -> None:
        """Begin with nothing read."""
        self._reading = reading
        self._looks = reading.looks
        self._now = now

    def _live(self) -> Reading:
        if self._reading.looks != self._looks:
            raise PolicyError("a snapshot is of the past: what a policy did not read of it while it planned is gone")
        return self._reading

    # What each of them is, `Snapshot` says.
    rates = cached_property[Floats](lambda self: self._live().rates(self._now))
    boxes = cached_property[BoxReadings](lambda self: self._live().boxes(self._now))
    outputs = cached_property[OutputReadings](lambda self: self._live().outputs())
    queues = cached_property[QueueReadings](lambda self: self._live().queues(self._now))
    latencies = cached_property[Floats](lambda self: self._live().latencies(self._now))
    costs = cached_property[UnitCosts](lambda self: self._live().unit_costs(self._now))
    box_costs = cached_property[UnitCosts](lambda self: self._live().box_costs(self._now))
    held = cached_property[Floats](lambda self: self._live().held())

    def latency_of(self, unit: int) -> float:
        """Return one unit's entry of `latencies`, without reading the others."""
        return self._live().latency(self._now, unit)
