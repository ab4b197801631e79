"""``headway compare``: compare policies on a network or a recorded run, and recommend one."""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from headway import __version__
from headway.checking import check
from headway.cli.arguments import (
    FILE,
    FUNCTIONS,
    TRUST,
    TRUST_TITLE,
    Command,
    UsageError,
    load_file,
    load_tables,
    of_run,
    rates_of,
)
from headway.cli.explain import kind_of
from headway.cli.printing import (
    count_text,
    emit,
    plural,
    printable,
    ratio_text,
    seconds_text,
    share_text,
    text_table,
    warn,
)
from headway.cli.run import SPARK
from headway.cli.status import StatusLine
from headway.compare import plots
from headway.compare.figures import Advice, Figures, advise, figures, parse_policies
from headway.compare.inputs import hold
from headway.compare.predicting import QUIET, Predictor, Setting, had_processor
from headway.compare.replaying import replay
from headway.engines.models import LOCAL, Model
from headway.engines.traces import read_trace
from headway.errors import InputError, OutputError, check_known
from headway.extras import has_extra
from headway.network import Network
from headway.options.kinds import Option
from headway.paths import unusable, whole
from headway.runner import check_names, model_of
from headway.scheduling.schedule import HANDFUL

SECONDS = 10.0
OUT = "compare"
ENGINES = ("sim", LOCAL)
PREDICTED, MEASURED = "predicted", "measured"
BUSY = "other programs took up to {:.0%} of the processor meanwhile: repeat this on a less busy machine"

EPILOG = f"""\
FILE is a network, or the trace of a real run recorded by 'headway run --trace'. A policy is given as a schedule, such
as qos/superbox/mc/auto; 'headway policies' lists the parts of one. Without --policies these are compared:
  {", ".join(HANDFUL)}

The policies are simulated as the engine 'local' would run them. The costs of boxes and of the engine itself are first
measured for a few seconds, unless --model or the file states them. The recommended policy is the one whose results are
worth most; among those within 1 % of it the one with the lowest mean latency, then with the least queued data, then
with the least overhead. With --engine local each policy is then run for real, to see whether the recommendation holds.

The table is printed; compare.csv, compare.json, and the plot as compare.png and compare.svg are written to --out.

examples:
  headway compare border.yaml
  headway compare border.yaml --policies round-robin/superbox,qos/superbox,qos/box/100
  headway compare border.yaml --input positions=day.csv --rate positions=5000 --seconds 20
  headway compare border.yaml --model measured.json --out results
  headway compare border.yaml --engine local --seconds 5
  headway compare run.json --policies fifo/box,chain/box
"""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What to compare, and how."""

    setting: Setting
    model: Model | None
    virtual: bool
    """Whether the boxes exist only as a model and cannot really run."""
    graded: bool
    """Whether any output has QoS graphs to grade it by."""
    folder: Path
    notes: tuple[str, ...]


def compare(args: argparse.Namespace) -> int:
    """Compare policies and print the result; returns the exit code."""
    if args.engine == SPARK:
        raise UsageError(
            "--engine: policies are compared for the engine local only: sim predicts (default), local also runs them; "
            "on Spark try each with 'headway run FILE --engine spark --policy P --summary P.json'"
        )
    check_known("engine", [args.engine], ENGINES, UsageError, "--engine")
    real = args.engine == LOCAL
    policies = HANDFUL if args.policies is None else parse_policies(args.policies, real)
    made = _recorded(args) if kind_of(Path(args.file)) == "trace" else _described(args)
    status = StatusLine(sys.stderr)
    try:
        predictor = Predictor(made.setting, status.say, made.model, made.virtual)
        chosen = [policy for policy in policies if policy != "threads"]
        compared = {PREDICTED: [figures(policy, predictor.predict(policy), made.graded) for policy in chosen]}
        had = predictor.processor
        if real:
            compared[MEASURED], share = _measured(made, policies, status.say)
            had = min(had, share)
        if had < QUIET:
            made = replace(made, notes=(*made.notes, BUSY.format(1 - had)))
        if not has_extra("plots"):
            made = replace(made, notes=(*made.notes, "no plot: pip install 'headway[plots]'"))
        status.say("drawing")
    finally:
        status.clear()
    advice = {how: advise(some) for how, some in compared.items() if some}
    _write(made, compared, advice)
    emit(_text(made, compared, advice))
    return 0


COMMAND = Command(
    "compare policies on a network or a recorded run, and recommend one",
    EPILOG,
    compare,
    {
        "": (
            replace(FILE, help="the network file, YAML or JSON, or a recorded trace"),
            Option(
                "which schedules to compare, each in full, such as `qos/superbox/mc/auto`",
                flag="--policies A,B,C",
                told="a few, listed below",
            ),
            Option(
                "`sim`: only predict; `local`: then also run each policy for real, to check the recommendation; in "
                "both cases the prediction is for the engine `local`",
                default="sim",
                flag="--engine ENGINE",
            ),
            Option(
                "how much of the input to use, in seconds of its own time; input without rates is read to its end, up "
                "to two million tuples per source",
                "seconds",
                SECONDS,
                flag="--seconds S",
            ),
            Option(
                "the costs of boxes and of the engine: a model, or the summary (`--summary`) of a real run; then "
                "nothing is measured, and the prediction is the same each time",
                flag="--model FILE",
                told="the file's model; without one, costs are measured",
                see="[models](guide.md#models)",
            ),
            *of_run("inputs", "rates", "tables"),
            FUNCTIONS,
            Option("the folder for the table and the plot", default=OUT, flag="--out DIR"),
        ),
        TRUST_TITLE: TRUST,
    },
)


# What is compared


def _recorded(args: argparse.Namespace) -> Comparison:
    """Prepare the comparison for a recorded run, as a network of universal boxes."""
    for option in COMMAND.flags:
        if option.name in ("inputs", "rates", "tables", "functions", "model") and getattr(args, option.name):
            raise UsageError(f"{option.long} is for a network file; '{args.file}' is a recorded run, which has its own")
    if args.engine == LOCAL:
        raise UsageError(
            f"--engine local is for a network file; '{args.file}' is a recorded run, whose boxes cannot be run for real"
        )
    again = replay(read_trace(Path(args.file)), f"'{args.file}'")
    folder = _folder(Path(args.out))
    held = hold(check(again.network), {}, {}, args.seconds)
    notes = [
        f"a recorded run, {seconds_text(min(args.seconds, again.seconds))} of it, as universal boxes",
        *again.notes,
    ]
    return Comparison(Setting(again.network, held), again.model, True, _graded(again.network), folder, tuple(notes))


def _described(args: argparse.Namespace) -> Comparison:
    """Prepare the comparison for a network file; the inputs are read once."""
    network = load_file(args)
    check_names(network, vars(args), of_run("inputs", "rates"), flags=True)
    rates = rates_of(args.rates)
    tables = load_tables(network, args.tables)
    checked = check(network, None, tables, contact=True)
    warn(checked.warnings)
    model = model_of(network, args.model)
    if model is not None:
        model.check({box.name: box for box in network.boxes})
    folder = _folder(Path(args.out))
    held = hold(checked, args.inputs, rates, args.seconds)
    if not any(one.tuples for one in held.values()):
        raise InputError(f"no tuple arrives within {seconds_text(args.seconds)}: there is nothing to compare")
    notes = [] if model is not None else ["costs were just measured on this machine"]
    notes += [
        f"source '{name}': only its first {count_text(one.tuples)} tuples are used"
        for name, one in held.items()
        if one.cut and not one.timed
    ]
    return Comparison(Setting(network, held, tables), model, False, _graded(network), folder, tuple(notes))


def _graded(network: Network) -> bool:
    return any(output.qos.latency is not None or output.qos.loss is not None for output in network.outputs)


# Running


def _measured(made: Comparison, policies: Sequence[str], say: Callable[[str], None]) -> tuple[list[Figures], float]:
    """Run each policy for real; return the figures, and the lowest share of time for which a run had a processor."""
    found, had = [], 1.0
    for number, policy in enumerate(policies, 1):
        say(f"running {policy} for real ({number} of {len(policies)})")
        summary = made.setting.run(LOCAL, policy)
        found.append(figures(policy, summary, made.graded))
        had = min(had, had_processor(summary))
    return found, had


# Reporting


def _text(made: Comparison, compared: Mapping[str, Sequence[Figures]], advice: Mapping[str, Advice]) -> str:
    parts = []
    expected = {one.policy: one.latency for one in compared[PREDICTED]}
    for how, some in compared.items():
        if len(compared) > 1:
            parts.append(f"{how}\n")
        if some:
            parts.append(_table(some, expected if how == MEASURED else None) + "\n")
    parts += [f"note: {printable(note)}\n" for note in made.notes]
    parts.append(_verdict(advice) + "\n")
    drawn = ", .png, .svg" if has_extra("plots") else ""
    parts.append(f"written: {made.folder / 'compare'}.csv, .json{drawn}\n")
    return "".join(parts)


def _title(made: Comparison, groups: Sequence[tuple[str, Sequence[Figures]]], best: str) -> str:
    """Return the title of the plot, on one line; dollars are escaped because matplotlib would parse a formula."""
    many = len({one.policy for _, some in groups for one in some})
    how = " and ".join(name for name, _ in groups)
    whose = printable(made.setting.network.name).replace("$", r"\$")
    return f"network '{whose}': {plural(many, 'policy', 'policies')}, {how} for the engine local; ➤ take {best}"


def _verdict(advice: Mapping[str, Advice]) -> str:
    predicted, measured = advice.get(PREDICTED), advice.get(MEASURED)
    if predicted is None:
        assert measured is not None
        return f"take {measured.policy}: {measured.reason} (measured)"
    if measured is None:
        return f"take {predicted.policy}: {predicted.reason}"
    if measured.policy == predicted.policy:
        return f"take {predicted.policy}: {predicted.reason}. Measured, the same policy is best: {measured.reason}"
    return (
        f"take {measured.policy}: measured, {measured.reason}. The prediction does not hold: it was for "
        f"{predicted.policy} ({predicted.reason})"
    )


def _table(some: Sequence[Figures], expected: Mapping[str, float | None] | None) -> str:
    columns = dict(_COLUMNS)
    if expected is not None:
        columns["predicted/measured latency"] = lambda one: ratio_text(_ratio(expected.get(one.policy), one.latency))
    rows = [[told(one) for told in columns.values()] for one in some]
    return text_table(list(columns), rows, "lrlrrrrrrr")


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


_COLUMNS: Mapping[str, Callable[[Figures], str]] = {
    "policy": lambda one: one.policy,
    "utility": lambda one: ratio_text(one.utility),
    "worst output": lambda one: "-" if one.worst is None else f"{ratio_text(one.worst)} {one.worst_output}",
    "latency mean": lambda one: seconds_text(one.latency),
    "p99": lambda one: seconds_text(one.p99),
    "queued mean": lambda one: bytes_text(one.queued),
    "max": lambda one: bytes_text(one.peak),
    "results/s": lambda one: count_text(round(one.throughput)),
    "overhead": lambda one: share_text(one.overhead, 1.0),
}
"""By title: a function from a policy's figures to the text of the cell."""


def bytes_text(number: float | None) -> str:
    """Format a number of bytes with three digits and a suitable unit; a dash for None."""
    if number is None:
        return "-"
    for factor, unit in ((1, "B"), (1e3, "kB"), (1e6, "MB")):
        if number < 999.5 * factor:
            return f"{number / factor:.3g} {unit}"
    return f"{number / 1e9:,.3g} GB"


# Files


def _folder(path: Path) -> Path:
    """Check the folder for results before the long part starts, or raise an OutputError."""
    wrong = unusable(path)
    if wrong:
        raise OutputError(f"--out: '{path}' is not a valid path: {wrong}")
    there = next(one for one in (path, *path.absolute().parents) if one.exists())
    if not there.is_dir():
        raise OutputError(f"--out: '{there}' is a file; expected a folder, or one that can be created")
    if not os.access(there, os.W_OK):
        raise OutputError(f"--out: '{there}' cannot be written to: no permission")
    return path


def _write(made: Comparison, compared: Mapping[str, Sequence[Figures]], advice: Mapping[str, Advice]) -> None:
    folder = made.folder
    rows = [one.row(how) for how, some in compared.items() for one in some]
    table = io.StringIO()
    writer = csv.DictWriter(table, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    told: dict[str, Any] = {
        "headway": __version__,
        "network": made.setting.network.name,
        **{how: [asdict(one) for one in some] for how, some in compared.items()},
        "advice": {how: one._asdict() for how, one in advice.items()},
        "holds": None if len(advice) < 2 else advice[PREDICTED].policy == advice[MEASURED].policy,
        "notes": list(made.notes),
    }
    figure = None
    if has_extra("plots"):
        groups = [(how, some) for how, some in compared.items() if some]
        figure = plots.new_figure(plots.size(max(len(some) for _, some in groups), len(groups)))
        best = advice.get(MEASURED, next(iter(advice.values()))).policy
        plots.draw(figure, groups, best, _title(made, groups, best))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"--out: '{folder}' cannot be written to: {error.strerror or error}") from error
    for name, text in (("csv", table.getvalue()), ("json", json.dumps(told, indent=2, ensure_ascii=False) + "\n")):
        with whole(folder / f"compare.{name}", "--out") as partial:
            partial.write_text(text, "utf-8")
    if figure is not None:
        plots.save(figure, folder / "compare")
