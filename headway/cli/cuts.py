"""How the engine ``spark`` cuts a network, for people and for programs. No Spark is started for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.adaptive.base import parse_adaptive
from headway.checking import CheckedNetwork
from headway.cli.tables import text_table
from headway.cli.texts import plural, printable
from headway.engines.spark.driver.cut import Cut, cut
from headway.engines.spark.driver.shipping import choose_front, explain_front, make_work
from headway.engines.spark.driver.state import CUT_KEYS
from headway.engines.spark.wire.work import CutUnit, Placement
from headway.network import thaw
from headway.shedding.settings import ShedSettings

_MOST_SHARDS = 64


@dataclass(frozen=True)
class CutReport:
    """A cut, and by unit why kernels run it; None where Spark's own operations do."""

    cut: Cut
    kernels: Mapping[str, str | None]


def report_cut(checked: CheckedNetwork, asked: Mapping[str, Any]) -> CutReport:
    """Cut a network as a run would: `asked` first, then the file's schedule, then the rules."""
    schedule: Mapping[str, Any] = checked.network.schedule or {}
    said = {name: thaw(schedule[name]) for name in CUT_KEYS if name in schedule} | dict(asked)
    shards = said.get("shards") or default_shards()
    shedding = ShedSettings.parse(thaw(schedule.get("shed"))) is not None
    made = cut(checked, shards, said.get("units", "loss" if shedding else "qos"), said.get("spread", "auto"))
    front = said.get("front", "auto")
    if shedding or parse_adaptive(thaw(schedule.get("adaptive"))) is not None:
        counted = "what is shed has to be counted"
        return CutReport(made, {unit.name: counted for unit in made.units})
    return CutReport(made, {unit.name: _why_kernels(checked, unit, shards, front) for unit in made.units})


def default_shards() -> int:
    """Return how many shards a run on all cores of this machine has."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(_MOST_SHARDS, cores or 1))


def _why_kernels(checked: CheckedNetwork, unit: CutUnit, shards: int, front: str) -> str | None:
    work = make_work(checked, unit, shards, frozenset(), {}, "")
    if choose_front(checked, work, front) is not None:
        return None
    found = explain_front(checked, work)
    return found if isinstance(found, str) else "as asked"


def cut_text(report: CutReport) -> str:
    """Return the cut for people."""
    made = report.cut
    queries = plural(len(made.units), "streaming query", "streaming queries")
    title = f"on Spark: {queries}, {plural(made.shards, 'shard', 'shards')}\n\n"
    units = [
        (f"{at}", ", ".join(unit.outputs) or "-", ", ".join(unit.sources), unit.why)
        for at, unit in enumerate(made.units, 1)
    ]
    boxes = [
        (f"{at}", name, where(unit.placements[name], made.shards), unit.placements[name].why)
        for at, unit in enumerate(made.units, 1)
        for name in unit.boxes
    ]
    text = title + text_table(("unit", "outputs", "sources", "why together"), units)
    if boxes:
        text += "\n" + text_table(("unit", "box", "runs", "why there"), boxes)
    for at, unit in enumerate(made.units, 1):
        reason = report.kernels[unit.name]
        how = "Spark's own operations" if reason is None else f"kernels ({printable(reason)})"
        text += f"{'' if at > 1 else chr(10)}unit {at} is run by {how}\n"
    return text


def where(place: Placement, shards: int) -> str:
    """Return where a box runs."""
    if place.front:
        return "in front"
    if place.spread:
        return f"spread over {shards} by {', '.join(place.by)}"
    return f"shard {(place.shard or 0) + 1} of {shards}"


def cut_mapping(report: CutReport) -> dict[str, Any]:
    """Return the cut for programs."""
    return {"shards": report.cut.shards, "units": [_unit(unit, report) for unit in report.cut.units]}


def _unit(unit: CutUnit, report: CutReport) -> dict[str, Any]:
    return {
        "name": unit.name,
        "outputs": list(unit.outputs),
        "sources": list(unit.sources),
        "why": unit.why,
        "native": report.kernels[unit.name] is None,
        "why_kernels": report.kernels[unit.name],
        "boxes": {name: _place(place) for name, place in unit.placements.items()},
    }


def _place(place: Placement) -> dict[str, Any]:
    kind = "front" if place.front else "spread" if place.spread else "shard"
    return {"runs": kind, "shard": place.shard, "by": list(place.by), "why": place.why}
