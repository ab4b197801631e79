"""What `headway experiment` does: list experiments, or carry some out, with a table, a plot and a verdict each.

Headway finds this by its entry point; `headway.cli.experiment` has the options.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import headway_experiments.catalogue  # noqa: F401  (it registers them)
from headway.cli.arguments import UsageError
from headway.cli.printing import emit, one_line, plural, text_table
from headway.cli.status import notices
from headway.errors import HeadwayError, unknown
from headway.extras import need_extra
from headway_experiments.experiment import FAILED, PAPERS, REGISTRY, Experiment
from headway_experiments.page import check_page_path, write_page
from headway_experiments.progress import Progress, span_text
from headway_experiments.results import Verdict, make_folder, verdict_text, write_results
from headway_experiments.running import Failure, Outcome, carry_out_each, processes

LIST, ALL = "list", "all"
FAILED_CODE = 1
ERROR = "ERROR"


def experiment(args: argparse.Namespace) -> int:
    """List experiments, or carry some out and report; returns the exit code."""
    if LIST in args.names and len(args.names) > 1:
        raise UsageError(f"'{LIST}' stands alone, without other names")
    if args.names == [LIST] or not (args.names or args.page):
        emit(list_text(REGISTRY))
        return 0
    chosen = choose(args.names, REGISTRY)
    need_extra("plots", "headway experiment")
    if any(one.engine == "spark" for one in chosen):
        need_extra("spark", "an experiment on Spark")
    if args.page is not None:
        check_page_path(args.page)
    code = carry_out_all(chosen, args.quick, args.out, args.jobs) if chosen else 0
    if args.page is not None:
        _write_page(args.page, args.out, REGISTRY)
    return code


def choose(names: Sequence[str], registry: Mapping[str, Experiment]) -> list[Experiment]:
    """Return the experiments that names, papers and 'all' stand for, each once; raises UsageError with the choices."""
    chosen: dict[str, Experiment] = {}
    for name in names:
        found = [one for one in registry.values() if name in (ALL, one.paper, one.name, *one.aliases)]
        if not found:
            papers = dict.fromkeys(one.paper for one in registry.values())
            raise UsageError(unknown("experiment", name, [*registry, *papers, ALL, LIST]))
        chosen |= {one.name: one for one in found}
    return list(chosen.values())


def list_text(registry: Mapping[str, Experiment]) -> str:
    """Return all experiments, paper by paper."""
    parts = []
    for key, paper in PAPERS.items():
        own = [one for one in registry.values() if one.paper == key]
        rows = [(", ".join((one.name, *one.aliases)), ", ".join(one.figures), one.title, one.engine) for one in own]
        if rows:
            title = f"{key}: {paper.title} ({paper.where})\n\n"
            parts.append(title + text_table(("name", "reproduces", "what", "engine"), rows))
    return "\n".join(parts) if parts else "there are no experiments\n"


def carry_out_all(experiments: Sequence[Experiment], quick: bool, out: Path, jobs: int | None) -> int:
    """Carry experiments out, write and print what came of each, and return the exit code.

    What could not be carried out is said in one line; a HeadwayError is raised if it is the only experiment.
    """
    make_folder(out)
    progress = Progress(sys.stderr, len(experiments))
    seen = sys.stdout.isatty() and sys.stderr.isatty()  # who reads the verdicts needs no line on each of them
    ended: dict[str, Verdict | Failure] = {}

    def count(one: Experiment, done: int, total: int) -> None:
        progress.count(one.name, one.engine, done, total)

    try:
        simulated = any(one.engine == "sim" for one in experiments)
        with notices(sys.stderr, progress.line), processes(jobs if simulated else 1) as pool:
            for result in carry_out_each(experiments, quick, pool, count, progress.show):
                name, found = result.experiment.name, _written(result, out)
                if isinstance(found, Failure) and isinstance(found.error, HeadwayError) and len(experiments) == 1:
                    raise found.error
                ended[name] = found
                if isinstance(found, Failure):
                    progress.end(name, error_text(found))
                else:
                    progress.end(name, "" if seen else f"{found['verdict']}, {found['seconds']:.1f} s")
                    emit(_report(found, out))
                progress.show()
    finally:
        progress.clear()
        if len(experiments) > 1 and ended:
            emit(_table(ended, len(experiments), progress.seconds()))
    return _code(ended)


def _written(result: Outcome | Failure, out: Path) -> Verdict | Failure:
    if isinstance(result, Failure):
        return result
    try:
        return write_results(result, out)
    except Exception as error:  # of what draws, or of a full disk
        return Failure(result.experiment, error, result.seconds)


def _report(verdict: Verdict, out: Path) -> str:
    return f"{verdict_text(verdict)}files: {out / verdict['name']}.csv, .png, .svg, .json, .txt\n\n"


def error_text(failure: Failure) -> str:
    """Return in one line why an experiment could not be carried out."""
    error = failure.error
    if isinstance(error, HeadwayError):
        return one_line(str(error))
    return one_line(f"{type(error).__name__}: {error} ({failure.where})")


def _code(verdicts: Mapping[str, Verdict | Failure]) -> int:
    bad = [one for one in verdicts.values() if not isinstance(one, dict) or one["verdict"] == FAILED]
    return FAILED_CODE if bad else 0


def _table(verdicts: Mapping[str, Verdict | Failure], wanted: int, seconds: float) -> str:
    rows = []
    counts: dict[str, int] = {}
    for name, one in verdicts.items():
        if isinstance(one, dict):
            verdict, took = one["verdict"], one["seconds"]
            held = f"{sum(check['holds'] for check in one['checks'])} of {len(one['checks'])}"
        else:
            verdict, took, held = ERROR, one.seconds, "-"
        counts[verdict] = counts.get(verdict, 0) + 1
        rows.append((name, verdict, held, f"{took:.1f}"))
    told = "; ".join(f"{count} {verdict}" for verdict, count in counts.items())
    left = "" if len(verdicts) == wanted else f" of {wanted}"
    total = f"{plural(len(verdicts), 'experiment')}{left} in {span_text(seconds)}: {told}\n"
    return text_table(("experiment", "verdict", "checks that hold", "seconds"), rows, "llrr") + "\n" + total


def _write_page(page: Path, out: Path, registry: Mapping[str, Experiment]) -> None:
    for name in write_page(page, out, registry):
        emit(f"headway: '{out / name}.json' was left out: there is no such experiment any more\n", to_stderr=True)
    emit(f"page: {page}\n")
