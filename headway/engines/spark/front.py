"""Who runs the boxes of a unit without state: Spark itself, or Headway's kernels where the log is read."""

from __future__ import annotations

from headway.checking import CheckedNetwork
from headway.engines.spark.native import NativePlan, plan_native
from headway.engines.spark.work import Work
from headway.errors import NetworkError, unknown

FRONTS = {
    "auto": "native where Spark gives the same results and somebody reads them, otherwise kernels",
    "native": "Spark's own DataFrame operations, or an error that says why not",
    "kernels": "Headway's kernels",
}


def explain_front(checked: CheckedNetwork, work: Work) -> NativePlan | str:
    """Return how Spark itself would run a unit, or why kernels do."""
    if work.unit.stateful:
        return "its boxes feed boxes with state, and packing trains where the log is read is faster"
    if all(lane.counted for lane in work.lanes):
        return "nobody reads its results, so they are only counted"
    return plan_native(checked, work.unit, work.lanes)


def choose_front(checked: CheckedNetwork, work: Work, front: str) -> NativePlan | None:
    """Return the plan by which Spark itself runs a unit, or None for kernels."""
    if front not in FRONTS:
        raise NetworkError(f"schedule: front: {unknown('front', front, FRONTS)}")
    if front == "kernels":
        return None
    found = explain_front(checked, work)
    if isinstance(found, str):
        if front == "native" and not work.unit.stateful:
            raise NetworkError(f"schedule: front: '{work.unit.name}' cannot be native: {found}")
        return None
    return found
