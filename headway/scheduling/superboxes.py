"""Superboxes: which boxes are scheduled as one unit, and in which order a step calls them.

After Carney et al., "Operator Scheduling in a Data Stream Manager" (VLDB 2003), section 4.1. A superbox is a unit
whose boxes lead to an output. A traversal processes all tuples waiting in it; D(b) are the boxes of the unit
downstream of b, including b, in topological order. Of a routing filter's tuples only those that stay in the unit count:

- min-cost (``mc``): post-order, each box once, so that a call's overhead is shared by as many tuples as possible;
- min-latency (``ml``): the nearest results first. Boxes by increasing ``output_cost(b)``, the sum over k in D(b) of
  ``cost(k) / o_sel(k)`` with ``o_sel(k)`` the product of the selectivities of D(k); for each b, D(b) is called;
- min-memory (``mm``): repeatedly the box that frees most bytes per second, the largest
  ``mem_rr(b) = size * (1 - selectivity) / cost``, among those with input;
- ``best``: min-cost or min-latency, whichever has the lower mean latency by the cost model.

Min-latency makes more calls than min-cost, and is faster only if tuples cost much compared with calls.
The paper builds min-memory "as in the case of ML", but its example calls single boxes, as here.

Traversals work on expected numbers of tuples. Two interpretations where the paper is silent: only boxes that have
input, or get some in the course of the sequence, are called; and a box whose selectivity is 0 so far may emit
something after all, so that the boxes downstream of it are called too. The engine skips calls that find no input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from headway.catalog import Topology, members
from headway.columns import Floats
from headway.scheduling.graphs import unit_graphs
from headway.scheduling.snapshot import Layout, Snapshot, Unit

Boxes = Sequence[int]
"""The boxes of a unit in post-order, as in `Unit.boxes`."""
Calls = tuple[int, ...]
"""Boxes in the order in which they are called; a box may occur several times."""

LONGEST = 10_000
"""Calls after which the rest of a sequence calls each box once, in post-order.

A chain of n boxes would need n² / 2 calls, and a ladder of n diamonds up to 2ⁿ.
"""
_LEAST = 1e-12
"""Replaces a selectivity or a cost of 0 in a denominator."""


# Units


def box_units(topology: Topology) -> tuple[Unit, ...]:
    """Return every box as a unit."""
    reached = map(members, topology.reach())
    return tuple(
        Unit(name, (at,), outputs) for at, (name, outputs) in enumerate(zip(topology.boxes, reached, strict=True))
    )


def superbox_units(topology: Topology) -> tuple[Unit, ...]:
    """Return one superbox per output, in min-cost order, and one unit per box that leads to no output.

    A superbox is the tree of boxes that an output depends on. Min-cost order is post-order: every box once,
    after all boxes that it reads, so that no box is called twice for the same tuples. Outputs with the same
    root share a superbox.
    """
    units: list[Unit] = []
    covered: set[int] = set()
    by_root: dict[int, list[int]] = {}
    for output, root in enumerate(topology.roots):
        if root >= 0:
            by_root.setdefault(root, []).append(output)
    for root, outputs in by_root.items():
        boxes = min_cost_order(topology, root)
        covered.update(boxes)
        name = "+".join(topology.outputs[output] for output in outputs)
        units.append(Unit(name, boxes, tuple(outputs)))
    # Boxes that no output needs still run: their dead letters and counts are wanted, and queues must drain.
    rest = tuple(at for at in range(len(topology.boxes)) if at not in covered)
    units += [Unit(topology.boxes[at], (at,), ()) for at in rest]
    return tuple(units)


def min_cost_order(topology: Topology, root: int) -> tuple[int, ...]:
    """Return a root and the boxes that it depends on, in post-order, each once."""
    order: list[int] = []
    seen: set[int] = set()
    pending: list[tuple[int, bool]] = [(root, False)]
    while pending:
        box, entered = pending.pop()
        if entered:
            order.append(box)
        elif box not in seen:
            seen.add(box)
            pending.append((box, True))
            pending += [(producer, False) for producer in reversed(topology.producers[box]) if producer not in seen]
    return tuple(order)


# Traversals


def ways_of(view: Snapshot, boxes: Iterable[int]) -> dict[int, list[tuple[int, float]]]:
    """Return by box its consumers among the boxes, each with its share of the tuples."""
    inside, ways = dict.fromkeys(boxes), view.measures.model.ways
    return {box: [way for way in ways[box] if way[0] in inside] for box in inside}


def min_cost(view: Snapshot, boxes: Boxes) -> Calls:
    """Return each box once, after all boxes that it reads: the boxes of a unit stand in that order."""
    return tuple(boxes)


def min_latency(view: Snapshot, boxes: Boxes) -> Calls:
    """Return the calls that bring each box's tuples to the output, those that arrive soonest first.

    Ties go in the order of `boxes`. Empty if there is nothing to do.
    """
    flow = _Flow(view, boxes)
    costs = output_costs(view, boxes)
    sequence: list[int] = []
    for box in sorted(flow.filled, key=lambda one: costs[one]):
        if box not in flow.filled:
            continue  # emptied by a call for another box
        for one in flow.below(box):
            if one in flow.filled:
                sequence.append(one)
                flow.call(one)
        if len(sequence) >= LONGEST:
            break
    return (*sequence, *flow.rest())


def min_memory(view: Snapshot, boxes: Boxes) -> Calls:
    """Return the calls by descending memory reduction rate, choosing each among the boxes that then have input.

    Ties go in the order of `boxes`. Empty if there is nothing to do.
    """
    flow = _Flow(view, boxes)
    own = np.array(boxes, np.intp)
    urgency = dict(zip(boxes, (-memory_rates(view)[own]).tolist(), strict=True))
    place = {box: at for at, box in enumerate(boxes)}
    heap = [(urgency[box], place[box], box) for box in flow.filled]
    heapify(heap)
    sequence: list[int] = []
    while heap and len(sequence) < LONGEST:
        box = heappop(heap)[2]
        sequence.append(box)
        for one in flow.call(box):
            heappush(heap, (urgency[one], place[one], one))
    return (*sequence, *flow.rest())


def best(view: Snapshot, boxes: Boxes) -> Calls:
    """Return the calls of min-cost or min-latency, whichever has the lower expected mean latency.

    A tie goes to min-cost, whose total cost is never higher.
    """
    plain, quick = min_cost(view, boxes), min_latency(view, boxes)
    return quick if expected(view, quick)[1] < expected(view, plain)[1] else plain


def spanner(view: Snapshot, boxes: Boxes, priorities: Floats, k: int) -> Calls:
    """Return the paper's top-k spanner: the k ready boxes of the highest priority, and all boxes downstream of them.

    The result is in the order of `boxes`, by which ties are broken, too. A box that is ready without waiting tuples is
    always included and not counted: passing a mark on costs next to nothing, and other boxes wait for it.
    """
    own = np.array(boxes, np.intp)
    tuples, able = view.box_waiting[own] > 0, view.box_ready[own]
    counted = own[able & tuples]
    first = counted[np.argsort(-priorities[counted], kind="stable")[: max(0, k)]]
    wanted = view.topology.downstream([*first.tolist(), *own[able & ~tuples].tolist()], set(boxes))
    return tuple([box for box in boxes if box in wanted])


def output_costs(view: Snapshot, boxes: Boxes) -> dict[int, float]:
    """Return by box the expected seconds until one result comes out of the tuples that wait at it."""
    own = np.array(boxes, np.intp)
    flow = _Flow(view, boxes)
    ways = ways_of(view, boxes)
    passing = {
        box: selectivity * min(1.0, sum([share for _, share in ways[box]]) or delivered or 1.0)
        for box, selectivity, delivered in zip(
            boxes, view.boxes.selectivity[own].tolist(), view.measures.model.delivers[own].tolist(), strict=True
        )
    }
    seconds = dict(zip(boxes, view.boxes.cost[own].tolist(), strict=True))
    yields: dict[int, float] = {}
    costs: dict[int, float] = {}
    for box in sorted(boxes, reverse=True):
        consumers = [one for one, _ in ways[box]]
        if len(consumers) > 1:  # the branches may meet again, and a box counts once
            below = flow.below(box)[1:]
            yields[box] = passing[box] * float(np.prod([passing[one] for one in below]))
            behind = sum([seconds[one] / max(yields[one], _LEAST) for one in below])
        else:
            yields[box] = passing[box] * (yields[consumers[0]] if consumers else 1.0)
            behind = costs[consumers[0]] if consumers else 0.0
        costs[box] = seconds[box] / max(yields[box], _LEAST) + behind
    return costs


def memory_rates(view: Snapshot) -> Floats:
    """Return by box the bytes that it is expected to free per second of work; below 0 where it adds some."""
    return np.maximum(view.boxes.tuple_size, 1.0) * (1.0 - view.boxes.selectivity) / np.maximum(view.boxes.cost, _LEAST)


def expected(view: Snapshot, sequence: Calls) -> tuple[float, float]:
    """Return the expected seconds of a sequence of calls on the waiting tuples, and the mean latency of its results.

    Latency counts from the start of the sequence; it is 0 if there are no results. Within a call, tuples are emitted
    one after the other. Results are the tuples emitted by boxes that feed an output, or no other box of the sequence.
    """
    own = np.array(sequence, np.intp)
    queued = dict(zip(sequence, view.box_waiting[own].astype(np.float64).tolist(), strict=True))
    seconds, overhead = view.boxes.cost[own].tolist(), view.boxes.overhead[own].tolist()
    passing, delivers = view.boxes.selectivity[own].tolist(), view.measures.model.delivers[own].tolist()
    ways = ways_of(view, queued)
    now = results = latency = 0.0
    for at, box in enumerate(sequence):
        tuples, queued[box] = queued[box], 0.0
        # Less than one expected tuple is the probability of one: a call without input is skipped.
        start = now + overhead[at] * min(1.0, tuples)
        now = start + seconds[at] * tuples
        emitted = tuples * passing[at]
        if delivers[at] or not ways[box]:
            delivered = emitted * min(1.0, delivers[at] or 1.0)
            results += delivered
            latency += delivered * (start + seconds[at] * (tuples + 1) / 2)
        for one, share in ways[box]:
            queued[one] += emitted * share
    return now, latency / results if results > 0 else 0.0


class _Flow:
    """Tracks which boxes of a unit have input while a sequence of calls is built."""

    def __init__(self, view: Snapshot, boxes: Boxes) -> None:
        """Start from the boxes that have input now."""
        self._boxes = boxes
        self._topology = view.topology
        self._inside = set(boxes)
        own = np.array(boxes, np.intp)
        # A box may be ready without waiting tuples, to pass on a mark such as the end of an input. It must be called,
        # or boxes that wait for the mark with tuples of their other inputs would wait for ever.
        some = (view.box_waiting[own] > 0) | view.box_ready[own]
        # A dict instead of a set: it keeps the order of the boxes, by which ties are broken.
        self.filled: dict[int, None] = dict.fromkeys(own[some].tolist())

    def consumers(self, box: int) -> list[int]:
        """Return the boxes of the unit that read a box."""
        return [one for one in self._topology.consumers[box] if one in self._inside]

    def below(self, box: int) -> list[int]:
        """Return D(box): the box and those of the unit downstream of it, in topological order."""
        return sorted(self._topology.downstream([box], self._inside))

    def call(self, box: int) -> list[int]:
        """Call a box: its input moves to its consumers. Return the consumers that had no input before."""
        del self.filled[box]
        fed = [one for one in self.consumers(box) if one not in self.filled]
        self.filled.update(dict.fromkeys(fed))
        return fed

    def rest(self) -> list[int]:
        """Call each box that has or gets input, in post-order, so that the unit is empty; return the calls."""
        calls = []
        for box in self._boxes if self.filled else ():
            if box in self.filled:
                calls.append(box)
                self.call(box)
        return calls


class Traversal(NamedTuple):
    """A row of `TRAVERSALS`: the function that returns the calls, and its description."""

    order: Callable[[Snapshot, Boxes], Calls]
    about: str


TRAVERSALS = {
    "mc": Traversal(min_cost, "min-cost: post-order, each box once"),
    "ml": Traversal(min_latency, "min-latency: the nearest results first, boxes called again for each"),
    "mm": Traversal(min_memory, "min-memory: the box that frees most bytes per second first"),
    "best": Traversal(best, "min-cost or min-latency, whichever has the lower mean latency by measured cost"),
}
"""By name: the order of calls within a superbox."""


class Traverser:
    """Computes the calls of each step. Used by the scheduler thread."""

    def __init__(self, topology: Topology, traversal: str, span: int | None = None) -> None:
        """Use a traversal by name; with `span`, only over the spanner of that many urgent boxes."""
        self._order = TRAVERSALS[traversal].order
        self._span = span
        self._seen: Snapshot | None = None
        self._priorities: Floats = np.zeros(0)
        if span is not None:
            self._graphs = unit_graphs(Layout(topology, box_units(topology)))

    def order(self, unit: int, snapshot: Snapshot) -> Calls | None:
        """Return the boxes to call for a step of a unit; None for a unit of one box, whose own order is used."""
        if snapshot is not self._seen:
            self._look(snapshot)  # even for a single box: later steps of the plan may start when the snapshot is stale
        boxes = snapshot.units[unit].boxes
        if len(boxes) == 1:
            return None
        if self._span is not None:
            boxes = spanner(snapshot, boxes, self._priorities, self._span)
        return self._order(snapshot, boxes)

    def _look(self, snapshot: Snapshot) -> None:
        """Read what the steps of a plan need, once per snapshot, while it can still be read."""
        self._seen = snapshot
        _ = snapshot.boxes, snapshot.measures.model  # read now, or they cannot be read any more
        if self._span is not None:  # a box's priority is its reverse rank in the order of p-tuples
            seconds = snapshot.measures.box_costs.seconds(np.minimum(snapshot.box_waiting, snapshot.train))
            utility, slack = self._graphs.slopes_and_slacks(snapshot.queues.latency + seconds)
            self._priorities = np.empty(len(utility))
            self._priorities[np.lexsort((slack, -utility))] = np.arange(len(utility), 0, -1)
