"""Snapshots and topologies for tests of policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from headway.catalog import Statistics, Topology
from headway.qos import QoS
from headway.scheduling.base import OutputReadings, Snapshot, Unit


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


def snapshot(ready: Sequence[bool], train: int = 10) -> Snapshot:
    """Return a snapshot of single boxes, some of which are ready."""
    count = len(ready)
    mask = np.array(ready, np.bool_)
    names = {f"b{at}": () for at in range(count)}
    waiting = mask.astype(np.int64)
    none = np.zeros(0)
    return Snapshot(
        now=0,
        topology=topology(names, {}),
        units=tuple(Unit(f"b{at}", (at,), ()) for at in range(count)),
        ready=mask,
        waiting=waiting,
        oldest=np.zeros(count, np.int64),
        box_waiting=waiting,
        box_oldest=np.zeros(count, np.int64),
        memory=0,
        train=train,
        read_rates=lambda: np.zeros(1),
        read_boxes=Statistics(count).readings,
        read_outputs=lambda: OutputReadings(np.zeros(0, np.int64), none, none),
    )
