"""``headway experiment``: its options. The experiments are a package of their own, which the wheel does not carry.

It is found by its entry point where it is installed, and else, as in a clone, by its name.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import cast

from headway.cli.arguments import Parser, positive
from headway.errors import RunError

GROUP = "headway.experiments"
"""Of entry points: each is a function that takes the command's arguments and returns the exit code."""
PACKAGE = "headway_experiments"
Command = Callable[[argparse.Namespace], int]

EPILOG = """\
NAME is an experiment such as prb-fig3 (or another figure of the same runs), a paper such as prb for all of its
experiments, or 'all'. Each experiment leaves NAME.csv (all runs), NAME.png and NAME.svg (the plot), NAME.json and
NAME.txt (the verdict) in the folder --out. Verdicts are: confirmed; holds, not certain (in the mean, but an interval
reaches over its bound); differs, explained (a claim of the paper does not hold here, and the evidence for the reason
does); FAILED. Simulated experiments share all cores; those that measure
real time run after them, one by one.

examples:
  headway experiment list
  headway experiment prb-fig3
  headway experiment scheduling-fig6 aurora --out results
  headway experiment all --quick
  headway experiment all --page docs/experiments.md
  headway experiment --out results --page results.md      only the page, from results that are there

exit codes: 0 no verdict is FAILED; 1 one FAILED or could not be carried out;
2 something to mend, said in one line; 130 interrupted (what was finished is kept).
"""


def add_arguments(parser: Parser) -> None:
    """Describe the command's options."""
    parser.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        help="what to run: experiments, papers, or 'all'; 'list' (default) lists them",
    )
    parser.add_argument(
        "--quick", action="store_true", help="the same checks on fewer and shorter runs: seconds instead of minutes"
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("experiments"),
        help="the folder for results, created if missing (default: experiments)",
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=positive,
        help="how many simulated runs may be under way at once (default: the cores)",
    )
    parser.add_argument(
        "--page",
        metavar="FILE.md",
        type=Path,
        help="afterwards write a page on all results in --out, with their plots in a folder beside it",
    )


def experiment(args: argparse.Namespace) -> int:
    """List experiments, or carry some out and report; returns the exit code. Raises a RunError if there are none."""
    return find_command()(args)


def find_command() -> Command:
    """Return what carries the command out; raises a RunError that says how to install it."""
    for entry in entry_points(group=GROUP):
        return cast(Command, entry.load())
    if importlib.util.find_spec(PACKAGE) is None:
        raise RunError(
            f"headway experiment needs the package {PACKAGE}, which is not installed: in a clone of Headway "
            "'make setup' or 'pip install ./experiments'"
        )
    return cast(Command, importlib.import_module(f"{PACKAGE}.command").experiment)
