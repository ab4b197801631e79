"""The second level at run time: which boxes of a chosen unit are called, and in which order."""

from __future__ import annotations

import numpy as np

from headway.catalog import Topology
from headway.scheduling.graphs import unit_graphs
from headway.scheduling.snapshot import Floats, Snapshot
from headway.scheduling.superboxes import box_units
from headway.scheduling.traversals import TRAVERSALS, Calls, View, spanner


class Traverser:
    """Gives the calls of each step. Used by the scheduler thread."""

    def __init__(self, topology: Topology, traversal: str, span: int | None = None) -> None:
        """Follow a traversal by name; with `span` only over so many urgent boxes and what follows them."""
        self._topology = topology
        self._order = TRAVERSALS[traversal].order
        self._span = span
        self._seen: Snapshot | None = None
        self._view: View | None = None
        self._priorities: Floats = np.zeros(0)
        if span is not None:
            self._graphs = unit_graphs(topology, box_units(topology))

    def order(self, unit: int, snapshot: Snapshot) -> Calls | None:
        """Return the boxes to call for a step of a unit; None where its own order will do."""
        if snapshot is not self._seen:
            self._look(snapshot)  # also for a single box: steps of the same plan may begin when the snapshot is past
        boxes = snapshot.units[unit].boxes
        if len(boxes) == 1:
            return None
        assert self._view is not None
        if self._span is not None:
            boxes = spanner(self._view, boxes, self._priorities, self._span)
        return self._order(self._view, boxes)

    def _look(self, snapshot: Snapshot) -> None:
        """Read what all steps of a plan need, once for it."""
        boxes = snapshot.boxes
        self._seen = snapshot
        self._view = View(
            self._topology,
            snapshot.box_waiting,
            boxes.cost,
            boxes.overhead,
            boxes.selectivity,
            np.maximum(boxes.tuple_size, 1.0),
            snapshot.box_ready,
        )
        if self._span is not None:
            self._priorities = self._urgency(snapshot)

    def _urgency(self, snapshot: Snapshot) -> Floats:
        """Return by box how urgent it is: its place in the order of p-tuples, from the end."""
        expected = snapshot.measures.box_costs.seconds(np.minimum(snapshot.box_waiting, snapshot.train))
        utility, slack = self._graphs.slopes_and_slacks(snapshot.queues.latency + expected)
        order = np.lexsort((slack, -utility))
        urgency: Floats = np.empty(len(order))
        urgency[order] = np.arange(len(order), 0, -1)
        return urgency
