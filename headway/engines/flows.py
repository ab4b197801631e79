"""How many tuples went along each arc of a run in this process."""

from __future__ import annotations

from headway.engines.runtime import Runtime
from headway.network import arc_name
from headway.structure import owner


def flows(runtime: Runtime) -> dict[str, int]:
    """Return by arc the tuples that a run has put on it, for arcs that somebody reads.

    Boxes that are called as one hand each other nothing, so of a box with one output its own count is taken.
    """
    made = runtime.statistics.readings().tuples_out
    found = {}
    for name, arc in runtime.arcs.items():
        if not arc.queue.cursors and not arc.deliveries:
            continue
        at = runtime.index.get(owner(name))
        if at is not None and len(runtime.boxes[at].arcs) == 1 and name == arc_name(owner(name), ""):
            found[name] = int(made[at])
        elif arc.deliveries:
            found[name] = arc.deliveries[0].tuples
        else:
            found[name] = arc.queue.appended + arc.handed
    return found
