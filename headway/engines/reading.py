"""The reading of a running network: snapshots for policies, totals for everything else.

This module holds what is the same for every engine. What waits where depends on the engine: in this process it is read
from queues, on Spark from the log.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from headway.catalog import BoxReadings, Statistics, Topology
from headway.checking import CheckedNetwork
from headway.columns import Floats, Int64s
from headway.costs import CostModel, UnitCostModel, UnitCosts, default_arcs, shares_of
from headway.engines.dead_letters import DeadLetters
from headway.engines.delivery import Delivered, Delivery
from headway.engines.ingest import Feed, Ingest
from headway.scheduling.schedule import Schedule
from headway.scheduling.snapshot import Layout, Measures, OutputReadings, Unit
from headway.structure import owner
from headway.totals import NOTHING_SPENT, Spent, Totals


class Reading(Measures):
    """Observes a run and changes nothing. Used by the scheduler thread."""

    def __init__(
        self,
        checked: CheckedNetwork,
        topology: Topology,
        units: tuple[Unit, ...],
        statistics: Statistics,
        exclusive: bool = True,
    ) -> None:
        """Prepare; `attach` must be called before the first look."""
        self.checked = checked
        self.topology = topology
        self.units = units
        self.statistics = statistics
        self.layout = Layout(topology, units, exclusive)
        self.model = CostModel(topology, shares_of(checked))
        """The cost model; `learn_shares` updates it."""
        index = {box.name: at for at, box in enumerate(checked.order)}
        self._routes = [(index[owner(arc)], arc) for arc in default_arcs(checked) if checked.consumers[arc]]
        self._shares: dict[str, float] = {}
        self.workers = 1
        """The most steps that may be under way at once."""
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
        """Set the run's sources and outputs, both in the network's order, and its dead letters."""
        self.ingest, self.feeds, self.deliveries, self.letters = ingest, feeds, deliveries, letters
        self._held: Floats = np.zeros(len(deliveries) if schedule.waits else 0)
        if schedule.waits:  # trains wait while results stay within their good zone, so results' ages are needed
            for at, one in enumerate(deliveries):
                one.arrived, one.held = ingest.times.moment, self._held[at : at + 1]

    @property
    @abstractmethod
    def longest(self) -> int:
        """The tuples that wait for the consumer that is furthest behind."""

    def learn_shares(self) -> None:
        """Update the cost model by how boxes with several ports have divided their tuples so far."""
        if not self._routes:
            return
        made = self.statistics.readings().tuples_out
        shares = {arc: self.carried(box, arc) / int(made[box]) for box, arc in self._routes if made[box]}
        if shares != self._shares:
            self._shares = shares
            self.model = self.model.with_shares(shares_of(self.checked, shares))

    @abstractmethod
    def carried(self, box: int, arc: str) -> float:
        """Return how many of its box's tuples went to an arc that is one of several ports and has readers."""

    # What policies may ask, as of the latest look

    def rates(self, now: int) -> Floats:
        """Return by source the tuples per second that arrived lately."""
        return self.ingest.rates(now)

    def box_costs(self, now: int) -> UnitCosts:
        """Return by box the cost of a step of that box alone until its tuples are delivered."""
        if self._box_model is None:
            self._box_model = UnitCostModel(self.model, [(at,) for at in range(len(self.topology.boxes))])
        self._box_model.model = self.model
        return self._box_model.read(self.boxes(now), np.zeros(0, np.int64))

    def follow_units(self, boxes: BoxReadings, waiting: Int64s) -> UnitCosts:
        """Return the cost model's cost of a step by unit, given the tuples waiting at the boxes."""
        if self._unit_model is None:
            self._unit_model = UnitCostModel(self.model, [unit.boxes for unit in self.units])
        self._unit_model.model = self.model
        return self._unit_model.read(boxes, waiting)

    def outputs(self) -> OutputReadings:
        """Return the readings of the outputs."""
        all_of = self.deliveries
        return OutputReadings(
            np.array([one.tuples for one in all_of], np.int64),
            np.array([one.latencies.mean or 0.0 for one in all_of]),
            np.array([1.0 if one.utility is None else one.utility for one in all_of]),
            np.array([one.recent for one in all_of]),
        )

    def held(self) -> Floats:
        """Return by output how long results are held; empty if trains do not wait."""
        return self._held.copy()

    # For monitor, adaptive layers, status and summary

    @abstractmethod
    def backlog(self) -> tuple[Int64s, Int64s]:
        """Return by box the number of waiting tuples and the oldest timestamp; `FAR` where none waits.

        Tuples that are due but not let in count as waiting.
        """

    @property
    @abstractmethod
    def ignored(self) -> Mapping[str, int]:
        """By box: the tuples that arrived too late for it."""

    def totals(self, now: int, spent: Spent = NOTHING_SPENT, shed: Sequence[int] = ()) -> Totals:
        """Return what has happened so far; the caller supplies `spent` and `shed`."""
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
            overdue=self.ingest.overdue(),
            boxes=self.statistics.readings(),
            spent=spent,
        )
