"""Units: single boxes, or superboxes in the order of a traversal."""

from __future__ import annotations

from headway.catalog import Topology, paths_to_outputs
from headway.scheduling.snapshot import Unit


def box_units(topology: Topology) -> tuple[Unit, ...]:
    """Return every box as a unit."""
    reach = paths_to_outputs(topology, range(len(topology.boxes)))
    return tuple(Unit(name, (at,), reach[at]) for at, name in enumerate(topology.boxes))


def superbox_units(topology: Topology) -> tuple[Unit, ...]:
    """Return one superbox for each output, in min-cost order, and one more for boxes that lead to no output.

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
    # Boxes that nobody's output needs still run: their dead letters and counts are wanted, and queues must drain.
    rest = tuple(at for at in range(len(topology.boxes)) if at not in covered)
    units += [Unit(topology.boxes[at], (at,), ()) for at in rest]
    return tuple(units)


def min_cost_order(topology: Topology, root: int) -> tuple[int, ...]:
    """Return the boxes that a root depends on and itself, in post-order, each once."""
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
