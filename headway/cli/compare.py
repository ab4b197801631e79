"""``headway compare``: its options. What it does is in `comparison`.

Predictions, and what draws them, are imported when the command runs: other commands start faster without them.
"""

from __future__ import annotations

import argparse

from headway.cli.arguments import Pair, Parser, add_functions, add_tables, add_trust, seconds
from headway.scheduling.schedule import HANDFUL

SECONDS = 10.0
OUT = "compare"

EPILOG = f"""\
FILE is a network, or a trace that 'headway run --trace' recorded of a real run. A policy is a whole schedule, such as
qos/superbox/mc/auto; 'headway policies' lists what can stand in one. Without --policies these are compared:
  {", ".join(HANDFUL)}

The policies are simulated, as the engine 'local' would run them. What boxes and the engine itself cost is measured for
some seconds before that, unless --model or the file says it. The policy to take is the one whose results are worth
most; among those within 1 % of it the one with the lowest mean latency, then with the least in queues, then with the
least overhead. With --engine local each policy is then run for real, and it is said whether the advice holds.

The table is printed; DIR gets compare.csv, compare.json, and the plot, compare.png and compare.svg.

examples:
  headway compare border.yaml
  headway compare border.yaml --policies round-robin/superbox,qos/superbox,qos/box/100
  headway compare border.yaml --input positions=day.csv --rate positions=5000 --seconds 20
  headway compare border.yaml --model measured.json --out results
  headway compare border.yaml --engine local --seconds 5
  headway compare run.json --policies fifo/box,chain/box
"""


def add_arguments(parser: Parser) -> None:
    """Describe the command's options."""
    parser.add_argument("file", metavar="FILE", help="the network file, YAML or JSON, or a recorded trace")
    parser.add_argument(
        "--policies", metavar="A,B,C", help="which schedules to compare (default: a handful, see below)"
    )
    parser.add_argument(
        "--engine",
        metavar="ENGINE",
        default="sim",
        help="sim: only predict (default); local: then also run each policy for real, to check the advice; both are "
        "about the engine local",
    )
    parser.add_argument(
        "--seconds",
        metavar="S",
        type=seconds,
        default=SECONDS,
        help=f"how much of the input to compare by, in seconds of its own time (default {SECONDS:g}); input without "
        "rates is read to its end",
    )
    parser.add_argument(
        "--model",
        metavar="FILE",
        help="what boxes cost and what else takes time: a model, or the summary (--summary) of a real run; then "
        "nothing is measured, and the prediction is the same each time",
    )
    parser.add_argument(
        "--input",
        metavar="SOURCE=PATH",
        action=Pair,
        default={},
        help="where a source's tuples come from, instead of what the file says; may be repeated",
    )
    parser.add_argument(
        "--rate",
        metavar="SOURCE=N",
        action=Pair,
        default={},
        help="let a source's tuples arrive in time, N per second; may be repeated",
    )
    add_tables(parser)
    add_functions(parser)
    add_trust(parser.add_argument_group("what the file may name (docs/safety.md)"))
    parser.add_argument("--out", metavar="DIR", default=OUT, help=f"the folder for table and plot (default {OUT})")


def compare(args: argparse.Namespace) -> int:
    """Compare policies and print what was found; returns the exit code."""
    from headway.cli.comparison import compare as carry_out

    return carry_out(args)
