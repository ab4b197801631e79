"""Snapshots and topologies for tests of policies."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

from headway.catalog import Statistics, Topology
from headway.clock import SECOND
from headway.costs import CostModel, UnitCosts
from headway.network.qos import Graph, QoS
from headway.scheduling.snapshot import Layout, Measures, Moment, OutputReadings, QueueReadings, Snapshot, Unit


def topology(reads: Mapping[str, Sequence[str]], outputs: Mapping[str, str]) -> Topology:
    """Return a topology from the boxes that each box reads, in topological order."""
    names = list(reads)
    producers = tuple(tuple(names.index(one) for one in reads[name]) for name in names)
    consumers = tuple(tuple(at for at, some in enumerate(producers) if box in some) for box in range(len(names)))
    leaves = tuple(at for at, some in enumerate(producers) if not some)
    roots = tuple(names.index(box) if box in names else -1 for box in outputs.values())
    return Topology(
        tuple(names), ("s",), tuple(outputs), (QoS(),) * len(outputs), producers, consumers, (leaves,), roots
    )


class Given(Measures):
    """Measures whose parts are made by functions."""

    def __init__(self, **made: Callable[..., Any]) -> None:
        self.made = made
        if "model" in made:
            self.model = made["model"]()

    def rates(self, now: int) -> Any:
        return self.made["rates"]()

    def boxes(self, now: int) -> Any:
        return self.made["boxes"]()

    def outputs(self) -> Any:
        return self.made["outputs"]()

    def queues(self, now: int) -> Any:
        return self.made["queues"]()

    def latencies(self, now: int) -> Any:
        return self.made["latencies"]()

    def latency(self, now: int, unit: int) -> float:
        return float(self.made["latency"](unit))

    def unit_costs(self, now: int) -> Any:
        return self.made["costs"]()

    def box_costs(self, now: int) -> Any:
        return self.made["box_costs"]()

    def held(self) -> Any:
        return self.made["held"]()


Made = TypeVar("Made", bound=Any)


def replace(made: Made, **changes: Any) -> Made:
    """Return a snapshot, or a dataclass, with other values; what is measured is given as ``read_boxes=function``."""
    if not isinstance(made, Snapshot):
        return dataclasses.replace(made, **changes)
    reads = {name.removeprefix("read_"): one for name, one in changes.items() if name.startswith("read_")}
    flat: dict[str, Any] = {name: one for name, one in changes.items() if not name.startswith("read_")}
    laid_out = {name: flat.pop(name) for name in ("topology", "units", "exclusive") if name in flat}
    if laid_out:
        layout = flat["layout"] = dataclasses.replace(made.layout, **laid_out)
        reads.setdefault("model", lambda: CostModel(layout.topology))
    measures = made.measures._measures
    if isinstance(measures, Given):
        flat["measures"] = Moment(Given(**measures.made | reads), made.now)
    return made._replace(**flat)


def snapshot(ready: Sequence[bool], train: int = 10) -> Snapshot:
    """Return a snapshot of single boxes, some of which are ready."""
    count = len(ready)
    mask = np.array(ready, np.bool_)
    names = {f"b{at}": () for at in range(count)}
    waiting = mask.astype(np.int64)
    none = np.zeros(0)
    return Snapshot(
        now=0,
        layout=Layout(topology(names, {}), tuple(Unit(f"b{at}", (at,), ()) for at in range(count))),
        ready=mask,
        waiting=waiting,
        oldest=np.zeros(count, np.int64),
        box_ready=mask,
        box_waiting=waiting,
        box_oldest=np.zeros(count, np.int64),
        workers=1,
        free=1,
        busy=np.zeros(count, np.bool_),
        spent=np.zeros(count),
        held=np.zeros(count, np.int64),
        memory=0,
        train=train,
        room=256,
        measures=Moment(
            Given(
                rates=lambda: np.zeros(1),
                boxes=Statistics(count).readings,
                outputs=lambda: OutputReadings(np.zeros(0, np.int64), none, none, none),
                queues=lambda: QueueReadings(waiting, 8 * waiting, np.zeros(count), np.zeros(count)),
                latencies=lambda: np.zeros(count),
                costs=lambda: UnitCosts(np.zeros(count), np.zeros(count), np.ones(count)),
                held=lambda: none,
                latency=lambda unit: 0.0,
            ),
            0,
        ),
    )


Points = Sequence[tuple[float, float]]


def measured(
    graphs: Sequence[Sequence[Points | None]],
    latencies: Sequence[float],
    *,
    overhead: Sequence[float] | None = None,
    cost: Sequence[float] | None = None,
    yields: Sequence[float] | None = None,
    waiting: Sequence[int] | None = None,
    oldest: Sequence[int] | None = None,
    now: int = 100 * SECOND,
    **more: Any,
) -> Snapshot:
    """Return a snapshot of single boxes that are all ready, each with outputs of its own: their latency graphs."""
    count = len(graphs)
    qos = [QoS(latency=None if one is None else Graph(tuple(one))) for some in graphs for one in some]
    outputs, units = 0, []
    for at, some in enumerate(graphs):
        units.append(Unit(f"b{at}", (at,), tuple(range(outputs, outputs + len(some)))))
        outputs += len(some)
    roots = tuple(unit.boxes[0] for unit in units for _ in unit.outputs)
    plain = topology({unit.name: () for unit in units}, {})
    made = replace(plain, outputs=tuple(f"o{at}" for at in range(outputs)), qos=tuple(qos), roots=roots)
    mean = np.array(latencies, np.float64)
    if oldest is None:
        oldest = [now - round(one * SECOND) for one in latencies]
    costs = UnitCosts(
        np.array(overhead or [0.0] * count), np.array(cost or [0.0] * count), np.array(yields or [1.0] * count)
    )
    many = np.array(waiting or [1] * count, np.int64)
    seen = replace(
        snapshot([True] * count),
        now=now,
        topology=made,
        units=tuple(units),
        waiting=many,
        oldest=np.array(oldest, np.int64),
        box_waiting=many,
        box_oldest=np.array(oldest, np.int64),
        read_latencies=lambda: mean,
        read_costs=lambda: costs,
        read_latency=lambda unit: float(mean[unit]),
    )
    return replace(seen, **more)


eighths = st.integers(0, 80).map(lambda one: one / 8)


@st.composite
def graphs(draw: st.DrawFn) -> Points:
    """Points at which everything is exact in binary, so that laws hold to the bit."""
    xs = sorted(draw(st.sets(eighths, min_size=1, max_size=5)))
    return tuple((x, draw(st.integers(0, 8)) / 8) for x in xs)
