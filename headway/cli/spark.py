"""What concerns the engine ``spark`` only: its options, and how it cuts a network. No Spark is started for it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.adaptive.layer import parse_adaptive
from headway.boxes.durations import Duration
from headway.checking import CheckedNetwork
from headway.cli.arguments import Pair, UsageError, positive
from headway.cli.printing import plural, printable, text_table
from headway.engines.base import engine_names
from headway.engines.spark.driver.cut import Cut, cut
from headway.engines.spark.driver.shipping import choose_front, explain_front, make_work
from headway.engines.spark.driver.state import CUT_KEYS
from headway.engines.spark.wire.work import CutUnit, Placement
from headway.errors import NetworkError, unknown
from headway.files import FRONTS, SPREAD_RULES, UNIT_RULES
from headway.network import Network, thaw
from headway.program import Program, compile_program
from headway.runner import DEFAULT_ENGINE
from headway.shedding.settings import ShedSettings

SPARK = "spark"
_MOST_SHARDS = 64
_CUT = ("units", "spread", "shards", "front")


def add_cut_options(parser: argparse._ActionsContainer) -> None:
    """Add the options that say how a network is cut into streaming queries."""
    parser.add_argument(
        "--units",
        metavar="RULE",
        choices=UNIT_RULES,
        help="which outputs share a streaming query: 'qos', those with common inputs and the same latency graph "
        "(default); 'loss', as 'qos', with the same loss and value graphs, too (default where load is shed); 'one', "
        "all with common inputs: the least work; 'output', each by itself: the most freedom for the scheduler, at "
        "0.3 s and more per micro-batch",
    )
    parser.add_argument(
        "--spread",
        metavar="BOX[,BOX]",
        type=spread,
        help="which aggregates run in all shards at once, each for its share of the partitions: 'auto', all that can "
        "(default); 'none'; or boxes by name",
    )
    parser.add_argument(
        "--shards",
        metavar="N",
        type=positive,
        help="how many keys the stateful operator of a query has, and so how many cores it can use "
        "(default: all cores; a state that goes on keeps its number)",
    )
    parser.add_argument(
        "--front",
        metavar="WHO",
        choices=FRONTS,
        help="who runs queries without state: 'native', Spark's own operations, where they give the same results; "
        "'kernels', Headway's; 'auto' chooses (default)",
    )


def add_run_options(parser: argparse._ActionsContainer) -> None:
    """Add the options of a run on Spark."""
    parser.add_argument(
        "--master", metavar="URL", help="where Spark runs: local[*], all cores of this machine (default), or a cluster"
    )
    parser.add_argument(
        "--state",
        metavar="DIR",
        help="keep everything here that the run needs to go on: after Ctrl-C or a crash, the same command again "
        "continues with nothing lost and nothing twice; a directory, or a URI that a cluster's machines reach",
    )
    parser.add_argument(
        "--keep",
        metavar="DURATION",
        type=duration,
        help="how long the log in --state keeps what every query has read, such as 10m or '2 hours' (default: 0s)",
    )
    parser.add_argument(
        "--restart",
        metavar="BOX",
        action="append",
        default=[],
        help="begin this box anew although --state has a state for it, because the box has changed; may be repeated",
    )
    add_cut_options(parser)
    parser.add_argument(
        "--conf",
        metavar="NAME=VALUE",
        action=Pair,
        default={},
        help="a setting of the Spark session, such as spark.executor.memory=4g; may be repeated",
    )


def duration(text: str) -> float:
    """Return seconds from a duration such as ``90s`` or ``2 hours``."""
    try:
        return Duration.parse(text).seconds
    except NetworkError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def spread(text: str) -> str | list[str]:
    """Return a rule, or the boxes that are named."""
    if text in SPREAD_RULES:
        return text
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"expected auto, none, or boxes with commas between, not '{text}'")
    return names


def engine_of(args: argparse.Namespace, network: Network) -> str:
    """Return the engine of a command, or raise a UsageError for one that nobody knows."""
    schedule: Mapping[str, Any] = network.schedule or {}
    engine: str = args.engine or schedule.get("engine") or DEFAULT_ENGINE
    if engine not in engine_names():
        raise UsageError(unknown("engine", engine, engine_names()))
    return engine


def check_options(args: argparse.Namespace, network: Network, engine: str) -> None:
    """Raise a UsageError for options that the engine does not know, or that need others."""
    given = vars(args)
    if engine != SPARK:
        if given.get("state") is not None:
            raise UsageError(f"--state: only the engine 'spark' keeps state yet; the engine here is '{engine}'")
        for name in ("master", "keep", "restart", "conf", *_CUT):
            if given.get(name) not in (None, [], {}):
                raise UsageError(f"--{name} is for the engine 'spark'; the engine here is '{engine}'")
        return
    boxes = [box.name for box in network.boxes]
    for name in given.get("restart") or ():
        if name not in boxes:
            raise UsageError(f"--restart: {unknown('box', name, boxes)}")
    for name in ("keep", "restart"):
        if given.get(name) not in (None, []) and given["state"] is None:
            raise UsageError(f"--{name} is about a state that is kept; give --state DIR too")


def cut_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return how the command line wants the network cut; what it leaves out, the file or the rules say."""
    return {name: getattr(args, name) for name in _CUT if getattr(args, name) is not None}


# The cut, for `headway check`


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
    program = compile_program(checked)
    made = cut(program, shards, said.get("units", "loss" if shedding else "qos"), said.get("spread", "auto"))
    front = said.get("front", "auto")
    if shedding or parse_adaptive(thaw(schedule.get("adaptive"))) is not None:
        counted = "what is shed has to be counted"
        return CutReport(made, {unit.name: counted for unit in made.units})
    return CutReport(made, {unit.name: _why_kernels(program, unit, shards, front) for unit in made.units})


def default_shards() -> int:
    """Return how many shards a run on all cores of this machine has."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(_MOST_SHARDS, cores or 1))


def _why_kernels(program: Program, unit: CutUnit, shards: int, front: str) -> str | None:
    work = make_work(program, unit, shards, frozenset(), {}, "")
    if choose_front(program, work, front) is not None:
        return None
    found = explain_front(program, work)
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
