"""``headway explain``: what a recorded run did, step by step, and why."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from headway.cli.arguments import Parser, positive
from headway.cli.printing import emit
from headway.cli.tables import text_table
from headway.cli.texts import count_text, plural, printable, seconds_text, share_text
from headway.clock import SECOND
from headway.engines.traces import StepRecord, Trace, explain_change, read_trace
from headway.engines.traces import explain as line_of
from headway.errors import InputError, unknown

FIRST = 50

EPILOG = """\
A line says when a step began, who carried it out, which unit it was and for how long; then why: the rule, the terms
of its priority, and the units that it came before, with theirs. Times count from the run's start. The same file
opens in ui.perfetto.dev or chrome://tracing, as a timeline.

examples:
  headway run border.yaml --input positions=day.csv --policy slope-slack --trace run.json
  headway explain run.json
  headway explain run.json --unit alarms --first 10
  headway explain run.json --summary
"""


def add_arguments(parser: Parser) -> None:
    """Describe the command's options."""
    parser.add_argument("file", metavar="FILE", help="a trace, which 'headway run --trace FILE' wrote")
    parser.add_argument("--unit", metavar="NAME", help="only the steps of this unit: a box, or a superbox's output")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--first", metavar="N", type=positive, default=FIRST, help=f"how many steps to show (default: {FIRST})"
    )
    form.add_argument(
        "--summary",
        action="store_true",
        help="instead of the steps: how often each unit ran, how long it had to wait, and which rules decided",
    )


def explain(args: argparse.Namespace) -> int:
    """Print the steps of a recorded run, or their summary."""
    trace = read_trace(Path(args.file))
    steps = list(trace.steps)
    if args.unit is not None:
        if args.unit not in trace.units:
            raise InputError(f"--unit: {unknown('unit', args.unit, trace.units)}")
        steps = [step for step in steps if trace.units[step.unit] == args.unit]
    title = f"network '{trace.network}', policy {trace.policy}: {plural(len(trace.steps), 'step', 'steps')}"
    text = _summary(trace, steps) if args.summary else _steps(trace, steps, args.first)
    emit(f"{printable(title)}\n\n{text}{_left_out(trace)}")
    return 0


def _steps(trace: Trace, steps: list[StepRecord], first: int) -> str:
    shown = steps[:first]
    until = shown[-1].begin if len(steps) > first else None  # changes after the last step shown belong to what follows
    told = [(step.begin, 1, line_of(step, trace.units, trace.start)) for step in shown]
    told += [
        (change.moment, 0, explain_change(change, trace.start))
        for change in trace.changes
        if until is None or change.moment <= until
    ]
    lines = [printable(line) + "\n" for _, _, line in sorted(told, key=lambda one: one[:2])]
    if len(steps) > first:
        lines.append(f"\n{plural(len(steps) - first, 'more step', 'more steps')}; --first {len(steps)} shows all\n")
    return "".join(lines)


@dataclass(slots=True)
class _Total:
    """What a unit did."""

    steps: int = 0
    tuples: int = 0
    nanoseconds: int = 0
    ended: int | None = None
    waited: int | None = None
    """The longest time between two of its steps."""

    def add(self, step: StepRecord) -> None:
        """Count a step; they come in the order in which they began."""
        self.steps += 1
        self.tuples += step.tuples
        self.nanoseconds += step.end - step.begin
        if self.ended is not None:
            self.waited = max(self.waited or 0, step.begin - self.ended)
        self.ended = step.end


def _summary(trace: Trace, steps: Iterable[StepRecord]) -> str:
    work = sum([step.end - step.begin for step in trace.steps])
    totals: dict[int, _Total] = {}
    rules: Counter[str] = Counter()
    preempted = 0
    for step in steps:
        totals.setdefault(step.unit, _Total()).add(step)
        rules[step.reason.rule] += 1
        preempted += step.preempted
    rows = [
        (
            trace.units[unit],
            count_text(total.steps),
            count_text(total.tuples),
            f"{total.nanoseconds / SECOND:.3f}",
            share_text(total.nanoseconds, work),
            "-" if total.waited is None else seconds_text(total.waited / SECOND),
        )
        for unit, total in sorted(totals.items(), key=lambda item: -item[1].nanoseconds)
    ]
    text = text_table(("unit", "steps", "tuples", "seconds", "share", "longest gap"), rows, "lrrrrr")
    text += "\n" + text_table(("why", "steps"), [(rule, count_text(many)) for rule, many in rules.most_common()], "lr")
    if trace.changes:
        text += "\n" + "".join([printable(explain_change(one, trace.start)) + "\n" for one in trace.changes])
    if preempted:
        text += f"\n{plural(preempted, 'step was', 'steps were')} preempted\n"
    return text


def _left_out(trace: Trace) -> str:
    if not trace.left_out:
        return ""
    return (
        f"\nthe recording is not whole: {plural(trace.left_out, 'later step was', 'later steps were')} left out, "
        "to save memory\n"
    )
