"""``headway experiment``: its options. The experiments are a separate package, which is not in the wheel.

It is found by its entry point if installed, otherwise, as in a clone, by its name.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path
from typing import cast

from headway.cli.arguments import Command
from headway.errors import RunError
from headway.options.kinds import Option

GROUP = "headway.experiments"
"""The entry point group; each entry is a function from the command's arguments to the exit code."""
PACKAGE = "headway_experiments"

EPILOG = """\
NAME is an experiment such as prb-fig3 (or another figure from the same runs), a paper such as prb for all of its
experiments, or 'all'. Each experiment writes NAME.csv (all runs), NAME.png and NAME.svg (the plot), NAME.json and
NAME.txt (the verdict) to the folder --out. The verdicts are: confirmed; holds, not certain (true for the mean, but a
confidence interval crosses its bound); differs, explained (a claim of the paper does not hold here, and there is
evidence for the reason); FAILED. Simulated experiments share all cores; those that measure real time run after them,
one by one.

examples:
  headway experiment list
  headway experiment prb-fig3
  headway experiment scheduling-fig6 aurora --out results
  headway experiment all --quick
  headway experiment all --page docs/experiments.md
  headway experiment --out results --page results.md      only the page, from existing results

exit codes: 0 no verdict is FAILED; 1 one FAILED or could not be run; 2 an error that you can fix, reported in one line;
130 interrupted (finished results are kept).
"""


def experiment(args: argparse.Namespace) -> int:
    """List or run experiments; returns the exit code. Raises a RunError if the experiments are not installed."""
    return find_command()(args)


def find_command() -> Callable[[argparse.Namespace], int]:
    """Return the function that runs the command, or raise a RunError that says how to install it."""
    for entry in entry_points(group=GROUP):
        with suppress(ModuleNotFoundError):  # a package may be gone while its metadata is still there
            return cast(Callable[[argparse.Namespace], int], entry.load())
    if importlib.util.find_spec(PACKAGE) is None:
        raise RunError(
            f"headway experiment needs the package {PACKAGE}, which is not installed: in a clone of Headway "
            "'make setup' or 'pip install ./experiments'"
        )
    return cast(Callable[[argparse.Namespace], int], importlib.import_module(f"{PACKAGE}.command").experiment)


COMMAND = Command(
    "repeat the papers' experiments: a table, a plot and a verdict for each",
    EPILOG,
    experiment,
    {
        "": (
            Option(
                "what to run: experiments, papers, or `all`; `list` (default) lists them",
                flag="[NAME ...]",
                name="names",
            ),
            Option(
                "the same checks with the same bounds on fewer and shorter runs: seconds instead of minutes",
                flag="--quick",
            ),
            Option("the folder for results, created if missing", "folder", Path("experiments"), flag="--out DIR"),
            Option(
                "how many simulated runs to execute at once, each in a process of its own",
                "positive",
                flag="--jobs N",
                told="the number of cores",
            ),
            Option(
                "afterwards write a page about all results in `--out`, with the plots in a folder next to it",
                "folder",
                flag="--page FILE.md",
            ),
        )
    },
)
