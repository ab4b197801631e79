"""What an experiment leaves on disk: NAME.csv, NAME.png, NAME.svg, and the verdict, NAME.json and NAME.txt.

Each file appears under its name when it is whole, and NAME.json comes last: where it is, the others are.
"""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import secrets
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict, cast

from headway import __version__
from headway.clock import SECOND, WallClock
from headway.compare.plots import new_figure, save
from headway.errors import InputError, OutputError
from headway.paths import whole
from headway_experiments.checks import Check
from headway_experiments.disturbance import MOST
from headway_experiments.experiment import PAPERS, Finding
from headway_experiments.rows import Rows
from headway_experiments.running import Outcome

FORMAT = "headway experiment, 1"
"""How a verdict is known among other JSON files."""
WIDTH = 100
"""Of readable verdicts, in characters."""


class Judged(TypedDict):
    """A check, as in NAME.json."""

    key: str
    claim: str
    holds: bool
    evidence: str
    certain: bool
    given: bool


class Explained(TypedDict):
    """A finding, as in NAME.json."""

    check: str
    reason: str
    shown_by: list[str]
    holds: bool
    """Whether all its evidence holds."""
    needed: bool
    """Whether the check does not hold in these runs, so that there is something to explain."""


class Verdict(TypedDict):
    """What NAME.json says."""

    format: str
    name: str
    paper: str
    figures: list[str]
    title: str
    label: str
    claim: str
    setting: list[str]
    chosen: list[str]
    engine: str
    quick: bool
    runs: int
    seeds: list[int | float | str]
    seconds: float
    stolen: float
    """In real time: which share of the processors' time other machines took meanwhile."""
    headway: str
    machine: str
    day: str
    checks: list[Judged]
    findings: list[Explained]
    notes: str
    verdict: str


def verdict_of(outcome: Outcome) -> Verdict:
    """Return all that is to be said of an outcome but its rows."""
    experiment, rows = outcome.experiment, outcome.rows
    held = {check.key: check.holds for check in outcome.checks}
    return {
        "format": FORMAT,
        "name": experiment.name,
        "paper": experiment.paper,
        "figures": list(experiment.figures),
        "title": experiment.title,
        "label": experiment.label,
        "claim": experiment.claim,
        "setting": list(experiment.setting),
        "chosen": list(experiment.chosen),
        "engine": experiment.engine,
        "quick": outcome.quick,
        "runs": outcome.runs,
        "seeds": rows.levels("seed"),
        "seconds": round(outcome.seconds, 1),
        "stolen": round(outcome.stolen, 3),
        "headway": __version__,
        "machine": machine(),
        "day": today(),
        "checks": [_judged(check) for check in outcome.checks],
        "findings": [_explained(finding, held) for finding in experiment.findings],
        "notes": experiment.notes(rows).strip() if experiment.notes is not None else "",
        "verdict": outcome.verdict,
    }


def _judged(check: Check) -> Judged:
    # Comparisons of numpy's numbers give numpy's booleans, which JSON does not know.
    return {
        "key": check.key,
        "claim": check.claim,
        "holds": bool(check.holds),
        "evidence": check.evidence,
        "certain": bool(check.certain),
        "given": bool(check.given),
    }


def _explained(finding: Finding, held: dict[str, bool]) -> Explained:
    return {
        "check": finding.check,
        "reason": finding.reason,
        "shown_by": list(finding.shown_by),
        "holds": all(held[key] for key in finding.shown_by),
        "needed": not held[finding.check],
    }


def machine() -> str:
    """Return what belongs beside every number: cores, processor and Python."""
    return f"{os.cpu_count()} cores, {processor()}, Python {platform.python_version()}"


def today() -> str:
    """Return the date, as 2026-03-01."""
    return datetime.fromtimestamp(WallClock().now() / SECOND, UTC).date().isoformat()


def processor() -> str:
    """Return the processor's model name."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def held_text(check: Judged) -> str:
    """Return whether a check holds, in a word or two."""
    doubt = ", by construction" if check["given"] else "" if check["certain"] else ", not certain"
    return ("yes" if check["holds"] else "NO") + doubt


def why_text(finding: Explained) -> str:
    """Return what a finding is about: these runs, or others, such as those of the full form."""
    return "Why it differs" if finding["needed"] else "Differs elsewhere, not in these runs"


def runs_text(verdict: Verdict) -> str:
    """Return what was run: engine, runs, seeds, and how long it took."""
    runs, seeds = verdict["runs"], len(verdict["seeds"])
    parts = [f"engine {verdict['engine']}", f"{runs:,} {'run' if runs == 1 else 'runs'}"]
    if seeds:
        parts.append(f"{seeds} {'seed' if seeds == 1 else 'seeds'}")
    parts.append(f"{verdict['seconds']:,.1f} s")
    if verdict["stolen"] > MOST:
        parts.append(f"in which other machines took {verdict['stolen']:.0%} of the processors' time")
    return ", ".join(parts)


def verdict_text(verdict: Verdict) -> str:
    """Return a verdict for people, as in NAME.txt."""
    paper = PAPERS[verdict["paper"]]
    lines = [
        *_wrapped(f"{verdict['name']}: {verdict['title']}"),
        *_wrapped(f"{', '.join(verdict['figures'])} of '{paper.title}' ({paper.where})", "  "),
        "",
        *(_wrapped(f"Note: {verdict['label']}") if verdict["label"] else ()),
        *_wrapped(f"The paper: {verdict['claim']}"),
        *_wrapped(f"Here: {runs_text(verdict)}{'; QUICK FORM' if verdict['quick'] else ''}"),
        "",
    ]
    claims = {check["key"]: check["claim"] for check in verdict["checks"]}
    for check in verdict["checks"]:
        lines += _wrapped(f"{'yes' if check['holds'] else 'NO ':<5}{check['claim']}", "     ", "")
        doubt = "" if check["certain"] else " (not certain: the interval reaches beyond the bound)"
        doubt = " (by construction: it cannot fail)" if check["given"] else doubt
        lines += _wrapped(check["evidence"] + doubt, "     ")
    for finding in verdict["findings"]:
        lines += ["", *_wrapped(f"{why_text(finding)}: {claims[finding['check']]}")]
        lines += _wrapped(finding["reason"], "  ")
        shown = "; ".join(claims[key].rstrip(".") for key in finding["shown_by"])
        lines += _wrapped(f"{'Shown by' if finding['holds'] else 'NOT shown by'}: {shown}", "  ")
    if verdict["notes"]:
        lines += ["", verdict["notes"]]
    return "\n".join([*lines, "", f"verdict: {verdict['verdict']}"]) + "\n"


def _wrapped(text: str, indent: str = "", first: str | None = None) -> list[str]:
    begin = indent if first is None else first
    return textwrap.wrap(text, WIDTH, initial_indent=begin, subsequent_indent=indent, break_on_hyphens=False)


def csv_text(rows: Rows) -> str:
    """Return rows as CSV: columns in the order in which they first appear, nothing where a row has no such column."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: str(one).lower() if isinstance(one, bool) else one for name, one in row.items()})
    return text.getvalue()


def make_folder(folder: Path) -> None:
    """Create the folder for results, if it is missing; raises OutputError if nothing can be written there.

    This is for the beginning: nobody wants to hear of it after the runs.
    """
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"--out: '{folder}' is a file; expected a folder")
    trial = folder / f".{secrets.token_hex(4)}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise OutputError(f"--out: the folder '{folder}' cannot be written: {error.strerror or error}") from error


def write_results(outcome: Outcome, folder: Path) -> Verdict:
    """Write all five files of an outcome and return the verdict; raises OutputError."""
    experiment, verdict = outcome.experiment, verdict_of(outcome)
    figure = new_figure(experiment.size)
    experiment.draw(outcome.rows, figure)
    save(figure, folder / experiment.name)
    write_whole(folder / f"{experiment.name}.csv", csv_text(outcome.rows))
    write_whole(folder / f"{experiment.name}.txt", verdict_text(verdict))
    text = json.dumps(verdict, indent=2, ensure_ascii=False, allow_nan=False)
    write_whole(folder / f"{experiment.name}.json", text + "\n")
    return verdict


def write_whole(path: Path, text: str, option: str = "--out") -> None:
    """Write a file, which appears under its name when it is whole; raises OutputError, which begins with the option."""
    with whole(path, option) as partial:
        partial.write_text(text, "utf-8", newline="\n")


def read_verdicts(folder: Path) -> list[Verdict]:
    """Return all verdicts of a folder by name; other JSON files are passed over. Raises InputError."""
    if not folder.is_dir():
        raise InputError(f"there is no folder '{folder}' with results; 'headway experiment NAME' makes them")
    found = [_read(path) for path in sorted(folder.glob("*.json"))]
    return [one for one in found if one is not None]


def _read(path: Path) -> Verdict | None:
    try:
        data: Any = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise InputError(f"'{path}' is not JSON: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        return None
    missing: Sequence[str] = [key for key in Verdict.__annotations__ if key not in data]
    if missing:
        raise InputError(f"'{path}' has no '{missing[0]}'; 'headway experiment {path.stem}' writes it anew")
    return cast(Verdict, data)
