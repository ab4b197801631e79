"""A checked network as numbers, for policies."""

from __future__ import annotations

import math

from headway.catalog import Topology
from headway.checking import CheckedNetwork
from headway.structure import owner


def topology_of(checked: CheckedNetwork) -> Topology:
    """Return who feeds whom, boxes in topological order."""
    network = checked.network
    index = {box.name: at for at, box in enumerate(checked.order)}
    producers = [
        tuple(
            dict.fromkeys(
                index[owner(item)]
                for item in checked.inputs[box.name]
                if isinstance(item, str) and owner(item) in index
            )
        )
        for box in checked.order
    ]
    consumers: list[list[int]] = [[] for _ in checked.order]
    for box, feeding in enumerate(producers):
        for producer in feeding:
            consumers[producer].append(box)
    readers = [
        tuple(index[one.name] for one in checked.consumers[source.name] if one.kind == "box")
        for source in network.sources
    ]
    timeouts = tuple(math.inf if box.spec.timeout is None else float(box.spec.timeout.seconds) for box in checked.order)
    return Topology(
        tuple(box.name for box in checked.order),
        tuple(source.name for source in network.sources),
        tuple(output.name for output in network.outputs),
        tuple(output.qos for output in network.outputs),
        tuple(producers),
        tuple(tuple(one) for one in consumers),
        tuple(readers),
        tuple(index.get(owner(checked.outputs[output.name]), -1) for output in network.outputs),
        () if all(math.isinf(one) for one in timeouts) else timeouts,
    )
