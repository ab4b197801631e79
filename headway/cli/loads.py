"""Estimate a network's load and whether it fits, for people and as JSON: part of ``headway check``.

Rates come from ``--rate`` and from sources that state theirs; costs and selectivities from universal boxes, a model, or
the summary of a real run.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.catalog import Topology
from headway.checking import CheckedNetwork
from headway.cli.arguments import rates_of
from headway.cli.printing import listed, plural, printable, ratio_text, seconds_text, share_text, text_table
from headway.columns import Floats
from headway.connectors.arrivals import parse_arrivals
from headway.connectors.registry import check_rate
from headway.costs import HEADROOM, CostModel, Loads, analyse, default_arcs, measured_arcs, shares_of
from headway.engines.models import Model
from headway.errors import HeadwayError, InputError, RunError, within
from headway.network import Source, thaw
from headway.options.kinds import Option
from headway.program import compile_program
from headway.runner import check_names, model_of
from headway.scheduling.schedule import Schedule
from headway.structure import owner

SHOWN = 10
"""How many boxes the table shows; the JSON has all."""
_TRAIN = 1000.0
"""The most tuples of a call."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A run's tuple counts: taken and made by each box, delivered by each output."""

    taken: Mapping[str, float]
    made: Mapping[str, float]
    delivered: Mapping[str, float]

    @classmethod
    def of(cls, summary: Mapping[str, Any]) -> Ran:
        """Read the counts from a summary, which may have been edited; raises a RunError if they are invalid."""
        try:
            taken, made = (
                {name: float(one[key]) for name, one in summary["boxes"].items()} for key in ("tuples_in", "tuples_out")
            )
            return cls(taken, made, {name: float(one["tuples"]) for name, one in summary["outputs"].items()})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunError(
                f"model: measured: this is not the summary of a run ({type(error).__name__}: {error})"
            ) from error


@dataclass(frozen=True, slots=True, eq=False)
class LoadReport:
    """The estimated load of a network, or what is missing for an estimate."""

    topology: Topology
    loads: Loads | None
    """None if something is missing."""
    costs: Floats
    """Seconds per tuple by box, calls included; NaN if unknown."""
    held: float
    """The processors kept busy if boxes that cannot keep up throttle the rest: the paper's least capacity."""
    workers: int
    missing: tuple[str, ...]
    notes: tuple[str, ...]
    """Assumptions, and other remarks."""
    warnings: tuple[str, ...]
    """Problems with the model named in the file."""

    @property
    def fine(self) -> bool:
        """Whether the load is known and fits, both in total and for each box on one processor."""
        return self.loads is not None and self.loads.fits and bool(self.loads.stable.all())


LOAD_OPTIONS = (
    Option(
        "the rate of a source in tuples per second, for the expected load; overrides the file",
        of="source",
        flag="--rate SOURCE=N",
        name="rates",
    ),
    Option(
        "the costs of boxes: a model, as for the engine `sim`, or the summary (`--summary`) of a real run, which "
        "also has their selectivities",
        flag="--model FILE",
        told="the file's model, and the costs of universal boxes",
        see="[models](guide.md#models)",
    ),
    Option(
        "how many processors are available for the boxes",
        "workers",
        flag="--workers N",
        told="the file's workers, or 1",
    ),
    Option(
        "the share of the processors that boxes may use; the rest is a reserve",
        "share",
        HEADROOM,
        flag="--headroom SHARE",
    ),
)
"""The options that the estimate depends on."""


def report_load(checked: CheckedNetwork, args: argparse.Namespace) -> LoadReport:
    """Estimate the load; raise a HeadwayError for invalid options."""
    schedule: Mapping[str, Any] = checked.network.schedule or {}
    topology = compile_program(checked).topology
    check_names(checked.network, vars(args), LOAD_OPTIONS, flags=True)
    asked = rates_of(args.rates)
    rates = {source.name: mean_rate(source, asked.get(source.name)) for source in checked.network.sources}
    model, ran, warnings = _model(args, checked)
    costs, overheads = _costs(checked, model, ran)
    selectivity, guessed = _selectivities(checked, ran)
    arcs = {} if ran is None else measured_arcs(checked, ran.taken, ran.made, ran.delivered)
    shared = CostModel(topology, shares_of(checked, arcs))
    silent = [name for name, found in rates.items() if found is None and checked.consumers[name]]
    missing = _unknown("rate", silent, "source", "sources", f"--rate {''.join(silent[:1])}=1000")
    flow = np.array([found or 0.0 for found in rates.values()])
    if not missing:  # the cost of a box that gets no tuples does not matter
        costs[np.isnan(costs) & (shared.rates(flow, selectivity) <= 0)] = 0.0
    free = [name for name, cost in zip(topology.boxes, costs, strict=True) if math.isnan(cost)]
    missing += _unknown("cost", free, "box", "boxes", "--model FILE: a model, or the summary of a real run")
    costs += overheads / min(_TRAIN, Schedule.parse(schedule.get("policy"), schedule.get("train")).most)
    workers = args.workers or schedule.get("workers") or 1
    loads, held = None, 0.0
    if not missing:
        known: dict[str, Any] = {"capacity": workers, "headroom": args.headroom}
        loads = analyse(shared, flow, costs, selectivity, **known)
        held = analyse(shared, flow, costs, selectivity, **known, throttled=True).min_cap
    notes = []
    if guessed:
        notes.append(f"selectivity not known, assumed to be 1: {_listed(guessed)}")
    alike = list(dict.fromkeys(owner(arc) for arc in default_arcs(checked) if arc not in arcs))
    if alike:
        notes.append(f"division of tuples over outputs not known, assumed to be equal: {_listed(alike)}")
    if loads is not None and held < loads.min_cap * (1 - 1e-9):
        slow = _listed([topology.boxes[at] for at in loads.ranking if not loads.stable[at]])
        notes.append(
            f"{slow} cannot keep up: the queue in front would grow without bound, boxes downstream would "
            f"get less, and only {ratio_text(held)} processors would be busy"
        )
    return LoadReport(topology, loads, costs, held, workers, tuple(missing), tuple(notes), tuple(warnings))


def mean_rate(source: Source, asked: float | None = None) -> float | None:
    """Return a source's long-term rate in tuples per second, or that of its fastest phase; None if not stated.

    `asked` overrides the rate of the file; for on-off bursts it is the rate while they are on.
    """
    what = thaw(source.connector)
    kind, settings = next(iter(what.items())) if isinstance(what, Mapping) and what else ("", None)
    if kind not in ("generate", "replay") or not isinstance(settings, Mapping):
        return asked
    who = f"source '{source.name}': {kind}"
    rate = check_rate(settings.get("rate"), who) if asked is None else asked
    if kind == "replay":
        return rate
    with within(who, InputError):
        arrivals = parse_arrivals(settings, rate)
    return None if arrivals is None else arrivals.rate


def _model(args: argparse.Namespace, checked: CheckedNetwork) -> tuple[Model | None, Ran | None, list[str]]:
    """Return the model, the counts of the run that it was measured in, if any, and warnings.

    The check does not require the model that the file names, so its problems are only warnings.
    """
    try:
        model = model_of(checked.network, args.model)
        if model is None:
            return None, None, []
        model.check({box.name: box for box in checked.order})
        return model, None if model.summary is None else Ran.of(model.summary), []
    except HeadwayError as error:
        if args.model is not None:
            raise
        return None, None, [f"schedule: {str(error).removeprefix('schedule: ')}"]


def _costs(checked: CheckedNetwork, model: Model | None, ran: Ran | None) -> tuple[Floats, Floats]:
    """Return by box the cost per tuple, NaN if unknown, and the cost per call."""
    costs: Floats = np.full(len(checked.order), np.nan)
    overheads: Floats = np.zeros(len(checked.order))
    for at, box in enumerate(checked.order):
        if model is not None:
            overheads[at] = model.calls.get(box.name, 0.0) + model.overheads.call
        if model is not None and box.name in model.costs:
            # A box without tuples in the run was not measured, unless the model states its cost explicitly.
            if ran is None or box.name not in model.calls or ran.taken[box.name] > 0:
                costs[at] = model.costs[box.name].mean
        elif box.spec.modelled is not None:
            costs[at] = box.spec.modelled.cost.mean
        elif model is not None and (ran is None or model.default != Model().default):
            costs[at] = model.default.mean
    return costs, overheads


def _selectivities(checked: CheckedNetwork, ran: Ran | None) -> tuple[Floats, list[str]]:
    """Return the selectivity by box, and the boxes where it is unknown and taken as 1."""
    found: Floats = np.ones(len(checked.order))
    guessed = []
    divided = {owner(arc) for arc in default_arcs(checked)}
    for at, box in enumerate(checked.order):
        known = box.spec.selectivity
        if box.spec.modelled is None and ran is not None and ran.taken.get(box.name, 0) > 0:
            found[at] = ran.made[box.name] / ran.taken[box.name]
        elif known is not None:
            found[at] = known
        elif box.name not in divided:
            guessed.append(box.name)
    return found, guessed


def _unknown(what: str, names: Sequence[str], one: str, many: str, hint: str) -> list[str]:
    return [f"no {what} for {one if len(names) == 1 else many} {_listed(names)} ({hint})"] if names else []


def _listed(names: Sequence[str]) -> str:
    return listed([f"'{name}'" for name in names], SHOWN)


def load_text(report: LoadReport) -> str:
    """Format the load for people."""
    loads, names = report.loads, report.topology.boxes
    if loads is None:
        return printable(f"load: unknown: {'; '.join(report.missing)}") + "\n"
    total = loads.min_cap
    rows = [
        (
            names[at],
            ratio_text(loads.rate_in[at]),
            ratio_text(loads.rate_out[at]),
            seconds_text(report.costs[at]),
            ratio_text(loads.load[at]),
            share_text(loads.load[at], total),
        )
        for at in loads.ranking[:SHOWN]
    ]
    header = ("box", "tuples/s in", "out", "cost per tuple", "processors", "share")
    text = text_table(header, rows, "lrrrrr") if rows else ""
    if len(names) > SHOWN:
        rest = float(loads.load[list(loads.ranking[SHOWN:])].sum())
        text += f"and {plural(len(names) - SHOWN, 'more box', 'more boxes')}: {share_text(rest, total)}\n"
    outputs = [f"{name} {ratio_text(one)}" for name, one in zip(report.topology.outputs, loads.outputs, strict=True)]
    lines = [f"results per second: {listed(outputs, SHOWN, end=',')}"]
    lines += [f"note: {note}" for note in report.notes]
    lines += [f"{'' if report.fine else 'warning: '}load: {verdict(report)}"]
    return text + "".join(printable(line) + "\n" for line in lines)


def verdict(report: LoadReport) -> str:
    """Return one sentence on whether the load fits, and what to do if not."""
    loads, names = report.loads, report.topology.boxes
    assert loads is not None
    needs = loads.min_cap
    text = f"needs {ratio_text(needs)} processors; {report.workers} × {loads.headroom:g} headroom: "
    if report.fine:
        if needs <= 0:
            return text + "fits"
        # The total must fit, and so must the slowest box on its own.
        most = min(loads.usable / needs, 1 / float(loads.load.max()))
        return text + f"fits, up to {ratio_text(most)} times these rates"
    text += "fits" if loads.fits else f"{'overloaded' if loads.overloaded else 'short'} by {ratio_text(loads.excess)}"
    first = loads.ranking[0]
    text += f"; '{names[first]}' alone needs {ratio_text(loads.load[first])}"
    slow = [names[at] for at in loads.ranking if not loads.stable[at]]
    if slow:
        text += f"; more workers do not help {_listed(slow)}, because only Spark can spread a box over several"
    else:
        text += f"; {math.ceil(needs / loads.headroom * (1 - 1e-9))} workers would be enough"
    return f"{text}; or make boxes cheaper, or shed load (schedule: shed)"


def load_mapping(report: LoadReport) -> dict[str, Any]:
    """Return the load for JSON."""
    loads, names = report.loads, report.topology.boxes
    found: dict[str, Any] = {"known": loads is not None, "missing": list(report.missing), "notes": list(report.notes)}
    if loads is None:
        return found
    return found | {
        "needs": loads.min_cap,
        "held_back": report.held,
        "workers": report.workers,
        "headroom": loads.headroom,
        "fits": loads.fits,
        "overloaded": loads.overloaded,
        "excess": loads.excess,
        "sources": dict(zip(report.topology.sources, loads.sources.tolist(), strict=True)),
        "outputs": dict(zip(report.topology.outputs, loads.outputs.tolist(), strict=True)),
        "boxes": {
            names[at]: {
                "rate_in": float(loads.rate_in[at]),
                "rate_out": float(loads.rate_out[at]),
                "cost_per_tuple": float(report.costs[at]),
                "load": float(loads.load[at]),
                "stable": bool(loads.stable[at]),
            }
            for at in loads.ranking
        },
    }
