"""The applications, the stream that they share, and the network that Headway runs for them.

Tuple number i of the stream ``i long, k int, v double`` arrives i/rate seconds after the stream begins. Keys and
values are a hash of i, so that every system, and every task of it, can make any range of the stream by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import headway as hw
from headway.network import Network
from headway.network.qos import Graph

KEYS = 100
LEVELS = 20
"""Applications filter by ``v > level / LEVELS``."""
SCHEMA = "i long, k int, v double"
ARROW = pa.schema([("i", pa.int64()), ("k", pa.int32()), ("v", pa.float64())])

GRAPHS = {
    "tight": Graph(((0.0, 1.0), (2.0, 1.0), (6.0, 0.0))),
    "loose": Graph(((0.0, 1.0), (20.0, 1.0), (40.0, 0.0))),
}
"""What a result is worth by its latency in seconds, by class."""


@dataclass(frozen=True)
class App:
    """One application: a filter, then a map, or a count by key in tumbling windows of a second of the stream."""

    number: int
    qos: str
    windowed: bool
    level: int

    @property
    def name(self) -> str:
        """The name of its output and of its query."""
        return f"app{self.number}"

    @property
    def bound(self) -> float:
        """Only values above this pass its filter."""
        return self.level / LEVELS

    @property
    def graph(self) -> Graph:
        """Its latency graph."""
        return GRAPHS[self.qos]


def make_apps(count: int) -> tuple[App, ...]:
    """Return so many applications: the first half stateless, the rest windowed; every second one loose."""
    return tuple(App(at, "loose" if at % 2 else "tight", at >= count // 2, at % LEVELS) for at in range(count))


def make_single(windowed: bool) -> tuple[App, ...]:
    """Return the one application that drains a backlog; half of the tuples pass its filter."""
    return (App(0, "tight", windowed, LEVELS // 2),)


def make_batch(first: int, stop: int) -> pa.RecordBatch:
    """Return the tuples first, ..., stop - 1 of the stream."""
    i = np.arange(first, stop, dtype=np.int64)
    mixed = (i * 2654435761) % 4294967296
    k = (mixed % KEYS).astype(np.int32)
    v = ((mixed >> 8) % 1000) / 1000.0
    return pa.RecordBatch.from_arrays([pa.array(i), pa.array(k), pa.array(v)], schema=ARROW)


def window_of(rate: float) -> int:
    """Return the length of a window: as many numbers as arrive in a second."""
    return max(1, int(rate))


def make_network(apps: tuple[App, ...], window: int) -> Network:
    """Return the applications as one network; results are counted and let go."""
    builder = hw.Network("streaming")
    stream = builder.source("events", {"i": "long", "k": "int", "v": "double"})
    for app in apps:
        passed = stream.filter(f"v > {app.bound}", name=f"filter{app.number}")
        if app.windowed:
            result = passed.aggregate("count(*) as n", on="i", by="k", size=window, name=f"count{app.number}")
        else:
            result = passed.map("i", "k", "v * 2 + 1 as w", name=f"map{app.number}")
        result.output(app.name, latency=app.graph.points, sink={"discard": None})
    return builder.build()
