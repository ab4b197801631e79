"""``headway explain``: what a recorded run did, step by step, and why."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.cli.arguments import OR, Command
from headway.cli.printing import count_text, emit, plural, printable, seconds_text, share_text, text_table
from headway.cli.summary import Told, together, told
from headway.clock import MILLISECOND, SECOND
from headway.engines.traces import StepRecord, Trace, read_trace
from headway.engines.traces import explain as line_of
from headway.errors import InputError, check_known
from headway.options.kinds import Option

FIRST = 50
_HEAD = 1 << 16
UNITS, GROUPS = 30, 20
"""How many units, and how many changes with different reasons, a summary shows."""

EPILOG = """\
Each line says when a step began, which worker ran it, which unit it was and how long it took; then why: the rule, the
terms of the unit's priority, and the units that it was preferred to, with their terms. Times count from the start of
the run. The same file opens as a timeline in ui.perfetto.dev or chrome://tracing.

examples:
  headway run border.yaml --input positions=day.csv --policy slope-slack --trace run.json
  headway explain run.json
  headway explain run.json --unit alarms --first 10
  headway explain run.json --summary
"""


def explain(args: argparse.Namespace) -> int:
    """Print the steps of a recorded run, or their summary."""
    trace = _trace(Path(args.file))
    steps = list(trace.steps)
    if args.unit is not None:
        check_known("unit", [args.unit], trace.units, InputError, "--unit")
        steps = [step for step in steps if trace.units[step.unit] == args.unit]
    title = f"network '{trace.network}', policy {trace.policy}: {plural(len(trace.steps), 'step')}"
    text = _summary(trace, steps) if args.summary else _steps(trace, steps, args.first)
    if trace.left_out:
        later = plural(trace.left_out, "later step was", "later steps were")
        text += f"\nthe recording is incomplete: {later} left out, to save memory\n"
    emit(f"{printable(title)}\n\n{text}")
    return 0


COMMAND = Command(
    "explain what a recorded run did, step by step, and why",
    EPILOG,
    explain,
    {
        "": (
            Option("a trace written by `headway run --trace FILE`", flag="FILE"),
            Option("only the steps of this unit: a box, or the output of a superbox", flag="--unit NAME"),
        ),
        OR: (
            Option("how many steps to show", "positive", FIRST, flag="--first N"),
            Option(
                "instead of the steps: how often each unit ran, on how many tuples and for how long, the longest time "
                "between two of its steps, and which rules decided",
                flag="--summary",
            ),
        ),
    },
)


def _trace(path: Path) -> Trace:
    """Read a trace; if the file is another kind of Headway file, say so and how to record a trace."""
    try:
        return read_trace(path)
    except InputError:
        record = "to record a trace: headway run NETWORK --trace run.json, then: headway explain run.json"
        kind = kind_of(path)
        if kind == "network":
            record = record.replace("NETWORK", str(path))
            raise InputError(f"'{path}' is a network file, and explain reads a trace of a run; {record}") from None
        if kind == "summary":
            raise InputError(f"'{path}' is the summary of a run, and explain reads its trace; {record}") from None
        raise


def kind_of(path: Path) -> str:
    """Guess a file's kind from its first lines: trace, summary or network; empty if unknown."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            head = file.read(_HEAD)
    except (OSError, ValueError):  # such as an impossible file name
        return ""
    keys = set(re.findall(r"""(?:^|[{,\n])\s*["']?(\w+)["']?\s*:""", head))
    if {"otherData", "traceEvents"} & keys and head.lstrip().startswith(("{", "[")):
        return "trace"
    if {"network", "engine", "tuples_in"} <= keys:
        return "summary"
    return "network" if {"sources", "network"} <= keys or {"sources", "boxes"} <= keys else ""


def _steps(trace: Trace, steps: list[StepRecord], first: int) -> str:
    shown = steps[:first]
    until = shown[-1].begin if len(steps) > first else None  # later changes belong to steps not shown
    said = [(step.begin, 1, line_of(step, trace.units, trace.start)) for step in shown]
    seen = [change for change in _changes(trace) if until is None or change.moment <= until]
    said += [(group[0].moment, 0, _change(group, trace.start)) for group in together(seen)]
    lines = [printable(line) + "\n" for _, _, line in sorted(said, key=lambda one: one[:2])]
    if len(steps) > first:
        lines.append(f"\n{plural(len(steps) - first, 'more step')}; --first {len(steps)} shows all\n")
    return "".join(lines)


@dataclass(slots=True)
class _Total:
    """Totals of one unit."""

    steps: int = 0
    tuples: int = 0
    nanoseconds: int = 0
    ended: int | None = None
    waited: int | None = None
    """The longest time between two of its steps."""

    def add(self, step: StepRecord) -> None:
        """Count a step; steps must come in the order in which they began."""
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
    text = text_table(("unit", "steps", "tuples", "seconds", "share", "longest gap"), rows[:UNITS], "lrrrrr")
    if len(rows) > UNITS:
        text += f"… and {plural(len(rows) - UNITS, 'more unit')}; --unit NAME shows one\n"
    text += "\n" + text_table(("why", "steps"), [(rule, count_text(many)) for rule, many in rules.most_common()], "lr")
    groups = together(_changes(trace), across=True)
    if groups:
        text += "\n" + "".join([printable(_change(group, trace.start)) + "\n" for group in groups[:GROUPS]])
        left = sum(map(len, groups[GROUPS:]))
        text += f"… and {plural(left, 'more change')}, between the steps\n" if left else ""
    if preempted:
        text += f"\n{plural(preempted, 'step was', 'steps were')} preempted\n"
    return text


def _changes(trace: Trace) -> list[Told]:
    return [Told(one.moment, one.kind, f"'{one.subject}'", one.what, one.reason) for one in trace.changes]


def _change(group: Sequence[Told], start: int) -> str:
    """Format changes with the same reason as one line, with the time span in which they were made."""
    first, last = ((one.moment - start) / MILLISECOND for one in (group[0], group[-1]))
    span = f"{first:,.3f} ms" if last == first else f"{first:,.3f} to {last:,.3f} ms"
    return f"{span}  {group[0].kind} {told(group)}"
