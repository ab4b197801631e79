"""Networks of boxes in a row, with costs and selectivities, for tests of policies that look at paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from headway.catalog import BoxReadings, Statistics, Topology
from headway.costs import CostModel, UnitCostModel
from headway.scheduling.policy import Policy
from headway.scheduling.snapshot import Snapshot, Unit
from headway.scheduling.superboxes import box_units
from tests.scheduling.snapshots import replace, snapshot, topology

MANY = 1_000_000
"""Tuples that every box has seen."""

Row = Sequence[tuple[float, float]]
"""Boxes in a row: cost and selectivity."""


def rows(*some: Row) -> Topology:
    """Return a topology with an output after each row of boxes: a0, a1, ..., b0, ..."""
    reads: dict[str, tuple[str, ...]] = {}
    outputs = {}
    for letter, row in zip("abcdefghijklmnopqrstuvwxyz", some, strict=False):
        for at in range(len(row)):
            reads[f"{letter}{at}"] = (f"{letter}{at - 1}",) if at else ()
        outputs[letter] = f"{letter}{len(row) - 1}"
    return topology(reads, outputs)


def readings(boxes: Row, sizes: Sequence[float] | None = None, overhead: Sequence[float] | None = None) -> BoxReadings:
    """Return readings with these costs and selectivities."""
    count = len(boxes)
    many = np.full(count, MANY, np.int64)
    out = np.array([round(passed * MANY) for _, passed in boxes], np.int64)
    cost = np.array([cost for cost, _ in boxes], np.float64)
    return replace(
        Statistics(count).readings(),
        calls=many,
        tuples_in=many,
        tuples_out=out,
        busy=many,
        tuple_size=np.array(sizes or [0.0] * count, float),
        overhead=np.array(overhead or [0.0] * count, float),
        cost=cost,
        selectivity=out / many,
    )


def seen(
    where: Topology,
    boxes: BoxReadings,
    *,
    waiting: Sequence[int] | None = None,
    oldest: Sequence[int] | None = None,
    units: tuple[Unit, ...] | None = None,
    **more: Any,
) -> Snapshot:
    """Return a snapshot in which tuples wait at the boxes, one at each if nothing is said; box by box, or by units."""
    count = len(where.boxes)
    made = box_units(where) if units is None else units
    many = np.array(waiting or [1] * count, np.int64)
    stamps = np.array(oldest or [0] * count, np.int64)
    by_unit = np.array([many[list(unit.boxes)].sum() for unit in made], np.int64)
    costs = UnitCostModel(CostModel(where), [unit.boxes for unit in made]).read(boxes, many)
    plain = replace(
        snapshot([True] * len(made)),
        topology=where,
        units=made,
        ready=by_unit > 0,
        waiting=by_unit,
        oldest=np.array([stamps[list(unit.boxes)].min() for unit in made], np.int64),
        box_waiting=many,
        box_oldest=stamps,
        read_boxes=lambda: boxes,
        read_costs=lambda: costs,
    )
    return replace(plain, **more)


def order(policy: Policy, at: Snapshot) -> list[str]:
    """Return the names of the units in the order in which a policy serves them."""
    plan, _ = policy.plan(at, policy.start())
    return [at.units[step.unit].name for step in plan.steps]


micros = st.integers(1, 40).map(lambda one: one / 4_000_000)
"""Costs, so small that a plan holds many steps."""
row = st.lists(st.tuples(micros, st.sampled_from([0.0, 0.001, 0.1, 0.25, 0.5, 0.9, 1.0, 1.0, 1.5, 3.0])), min_size=1)
