"""``headway check``: whether a network is valid, and the schema of every arc."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.adaptive.layer import parse_adaptive
from headway.checking import CheckedNetwork, check
from headway.cli.arguments import (
    FILE,
    FUNCTIONS,
    OR,
    TRUST,
    TRUST_TITLE,
    Command,
    UsageError,
    check_options,
    engine_of,
    load_file,
    load_tables,
    of_run,
)
from headway.cli.loads import LOAD_OPTIONS, load_mapping, load_text, report_load, verdict
from headway.cli.printing import emit, plural, printable, text_table, warning_lines
from headway.cli.run import SPARK
from headway.connectors import open_source
from headway.connectors.registry import permit_sink, permit_source
from headway.engines.opening import file_of
from headway.engines.runs import engine_names
from headway.engines.spark.driver.cut import Cut, choose_front, cut, make_work
from headway.engines.spark.wire.messages import Placement
from headway.errors import InputError, unknown
from headway.mermaid import mermaid
from headway.network import thaw
from headway.network.schema import Schema, type_name
from headway.options.kinds import Option
from headway.options.table import CUT_KEYS
from headway.paths import unusable
from headway.program import compile_program
from headway.runner import DEFAULT_ENGINE
from headway.scheduling.schedule import Schedule
from headway.shedding.settings import ShedSettings
from headway.structure import owner

_MOST_SHARDS = 64

EPILOG = """\
Nothing runs, no input is read (except static tables, for their fields), and no other machine is contacted. For an
invalid file, one line names the box, the field and the choices, and the exit code is 2.

examples:
  headway check border.yaml                    the schema of every arc
  headway check border.yaml --mermaid          a diagram, for GitHub and many editors
  headway check border.yaml --json             for programs
  headway check sensors.yaml --functions mine  with functions that mine.py registers
  headway check border.yaml --engine spark     how Spark would run it: queries, shards, and why
  headway check border.yaml --engine spark --units one --shards 8
  headway check border.yaml --rate positions=50000 --model run.json   the load, with a run's --summary
"""


def check_file(args: argparse.Namespace) -> int:
    """Check a network file and print the findings."""
    network = load_file(args, hosts=True)
    checked = check(network, None, load_tables(network, args.tables))
    schedule: Mapping[str, Any] = network.schedule or {}
    Schedule.parse(schedule.get("policy"), schedule.get("train"))
    shed = ShedSettings.parse(thaw(schedule.get("shed")))
    if shed is not None:
        shed.limits([output.name for output in network.outputs], [output.qos for output in network.outputs])
    warnings = [*checked.warnings, *check_connectors(checked)]
    if args.engine is None and schedule.get("engine", DEFAULT_ENGINE) not in engine_names():
        warnings.append(f"schedule: engine: {unknown('engine', schedule['engine'], engine_names())}")
        report = None
    else:
        report = _cut(args, checked)
    load_report = report_load(checked, args)
    warnings += load_report.warnings
    if args.mermaid:
        emit(mermaid(checked))
    elif args.json:
        if load_report.loads is not None and not load_report.fine:
            warnings.append(f"load: {verdict(load_report)}")
        findings = as_mapping(checked, warnings) | {"load": load_mapping(load_report)}
        if report is not None:
            findings["spark"] = cut_mapping(report)
        emit(json.dumps(findings, indent=2, ensure_ascii=False) + "\n")
    else:
        parts = [as_text(checked, warnings), load_text(load_report)]
        if report is not None:
            parts.append(cut_text(report))
        emit("\n".join(parts))
    return 0


COMMAND = Command(
    "check a network file and show the schema of every arc",
    EPILOG,
    check_file,
    {
        "": (
            FILE,
            FUNCTIONS,
            *of_run("tables"),
            Option(
                "check for this engine; with `spark`, show how the network is cut into streaming queries, and why",
                flag="--engine ENGINE",
            ),
            *of_run(*CUT_KEYS),
        ),
        OR: (
            Option("print only a diagram, as Mermaid text", flag="--mermaid"),
            Option("print the findings as JSON, for programs", flag="--json"),
        ),
        "expected load": LOAD_OPTIONS,
        TRUST_TITLE: TRUST,
    },
)


def _cut(args: argparse.Namespace, checked: CheckedNetwork) -> CutReport | None:
    """Return the cut if --engine spark asks for it; an impossible cut is an error if Spark would run it."""
    asked = {name: getattr(args, name) for name in CUT_KEYS if getattr(args, name) is not None}
    if asked and args.engine is None:
        raise UsageError(f"--{next(iter(asked))} has an effect only with --engine spark")
    engine = engine_of(args, checked.network)
    check_options(args, checked.network, engine, of_run(*CUT_KEYS))
    report = report_cut(checked, asked) if engine == SPARK else None
    return report if args.engine == SPARK else None


def check_connectors(checked: CheckedNetwork) -> list[str]:
    """Raise for connectors that cannot work, and return warnings about input files that do not exist yet."""
    network, warnings = checked.network, []
    for source in network.sources:
        if network.streamed(source.name) is not None:
            continue  # its fields are those of the data, which was looked at
        what = thaw(source.connector)
        permit_source(source.name, source.schema, what, network.folder, network.trust)
        if isinstance(what, dict) and "generate" in what:
            open_source(source.name, source.schema, what).close()  # reads nothing, but checks every field
        path = file_of(what, network.folder)
        wrong = "" if path is None else unusable(path)
        if wrong:
            raise InputError(f"source '{source.name}': '{path}' is not a valid path: {wrong}")
        if path is not None and not path.is_file():
            warnings.append(f"source '{source.name}': there is no file '{path}' yet")
    for output in network.outputs:
        permit_sink(output.name, checked.output_schema(output.name), thaw(output.sink), network.folder, network.trust)
    return warnings


def as_text(checked: CheckedNetwork, warnings: list[str]) -> str:
    """Format the findings for people."""
    network = checked.network
    counts = [
        plural(len(network.sources), "source"),
        plural(len(network.boxes), "box", "boxes"),
        plural(len(network.outputs), "output"),
    ]
    ops = {source.name: "source" for source in network.sources} | {box.name: box.spec.op for box in network.boxes}
    arcs = [
        (
            arc,
            ops[owner(arc)],
            ", ".join(dict.fromkeys(_reader(one) for one in checked.consumers[arc])) or "-",
            str(schema),
        )
        for arc, schema in checked.arcs.items()
    ]
    text = f"network '{network.name}' is well formed: {', '.join(counts)}\n\n"
    text += text_table(("arc", "made by", "read by", "schema"), arcs)
    if checked.tables:
        text += "\n" + text_table(("table", "schema"), [(ref, str(schema)) for ref, schema in checked.tables.items()])
    if warnings:
        text += "\n" + warning_lines(warnings)
    return text


def as_mapping(checked: CheckedNetwork, warnings: list[str]) -> dict[str, Any]:
    """Return the findings for JSON."""
    network = checked.network
    return {
        "network": network.name,
        "sources": [source.name for source in network.sources],
        "boxes": {box.name: box.spec.op for box in network.boxes},
        "outputs": dict(checked.outputs),
        "arcs": {arc: _fields(schema) for arc, schema in checked.arcs.items()},
        "tables": {ref: _fields(schema) for ref, schema in checked.tables.items()},
        "warnings": warnings,
    }


def _fields(schema: Schema) -> dict[str, str]:
    return {field.name: type_name(field.type) for field in schema}


def _reader(consumer: Any) -> str:
    return consumer.name if consumer.kind == "box" else f"output {consumer.name}"


# The cut, shown by --engine spark


@dataclass(frozen=True)
class CutReport:
    """A cut, and for each unit why kernels run it; None if Spark's own operations do."""

    cut: Cut
    kernels: Mapping[str, str | None]


def report_cut(checked: CheckedNetwork, asked: Mapping[str, Any]) -> CutReport:
    """Cut a network as a run would: `asked` has priority over the file's schedule, and that over the defaults."""
    schedule: Mapping[str, Any] = checked.network.schedule or {}
    said = {name: thaw(schedule[name]) for name in CUT_KEYS if name in schedule} | dict(asked)
    shards = said.get("shards") or default_shards()
    shedding = ShedSettings.parse(thaw(schedule.get("shed"))) is not None
    program = compile_program(checked)
    made = cut(program, shards, said.get("units", "loss" if shedding else "qos"), said.get("spread", "auto"))
    front = said.get("front", "auto")
    if shedding or parse_adaptive(thaw(schedule.get("adaptive"))) is not None:
        counted = "shed tuples must be counted"
        return CutReport(made, {unit.name: counted for unit in made.units})
    works = {unit.name: make_work(program, unit, shards, frozenset(), {}, "") for unit in made.units}
    found = {name: choose_front(program, work, front) for name, work in works.items()}
    return CutReport(made, {name: why if isinstance(why, str) else None for name, why in found.items()})


def default_shards() -> int:
    """Return the number of shards of a run on all cores of this machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(_MOST_SHARDS, cores or 1))


def cut_text(report: CutReport) -> str:
    """Format the cut for people."""
    made = report.cut
    queries = plural(len(made.units), "streaming query", "streaming queries")
    title = f"on Spark: {queries}, {plural(made.shards, 'shard')}\n\n"
    units = [
        (f"{at}", ", ".join(unit.outputs) or "-", ", ".join(unit.sources), unit.why)
        for at, unit in enumerate(made.units, 1)
    ]
    boxes = [
        (f"{at}", name, where(unit.placements[name], made.shards), unit.placements[name].why)
        for at, unit in enumerate(made.units, 1)
        for name in unit.boxes
    ]
    text = title + text_table(("unit", "outputs", "sources", "why grouped"), units)
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
        return "in the front"
    if place.spread:
        return f"spread over {shards} by {', '.join(place.by)}"
    return f"shard {(place.shard or 0) + 1} of {shards}"


def cut_mapping(report: CutReport) -> dict[str, Any]:
    """Return the cut for JSON."""
    units = [
        {
            "name": unit.name,
            "outputs": list(unit.outputs),
            "sources": list(unit.sources),
            "why": unit.why,
            "native": report.kernels[unit.name] is None,
            "why_kernels": report.kernels[unit.name],
            "boxes": {name: _place(place) for name, place in unit.placements.items()},
        }
        for unit in report.cut.units
    ]
    return {"shards": report.cut.shards, "units": units}


def _place(place: Placement) -> dict[str, Any]:
    kind = "front" if place.front else "spread" if place.spread else "shard"
    return {"runs": kind, "shard": place.shard, "by": list(place.by), "why": place.why}
