"""``headway run``: a network from its file, over files or standard input, until the inputs end."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from headway.checking import check
from headway.cli.arguments import (
    Pair,
    Parser,
    add_functions,
    add_tables,
    add_trust,
    choice,
    import_functions,
    load_tables,
    positive,
    rate,
    seconds,
    size,
    train,
    trust_of,
)
from headway.cli.printing import check_writable, emit, printable, silence, warn
from headway.cli.spark import SPARK, add_run_options, check_options, cut_of, engine_of
from headway.cli.status import StatusLine, notices
from headway.cli.summary import Preview, check_summary_path, previews_text, summary_text, write_summary
from headway.engines.base import RunResult, engine_names
from headway.engines.claims import check_files, is_standard
from headway.engines.interrupts import exit_code, orderly
from headway.errors import InputError, OutputError, unknown
from headway.files import load
from headway.network import Network, thaw
from headway.runner import DEFAULT_ENGINE
from headway.runner import run as run_network

EPILOG = """\
Paths end in .csv (with a header), .jsonl or .parquet; '-' is standard input or output as JSON lines. When every
input has ended, all windows are flushed, the outputs are complete and the summary is printed. Ctrl-C ends the
inputs: what has arrived is still processed and delivered (exit code 130). So do SIGTERM (143) and SIGHUP (129). A
second one gives up. With --state they only stop: the same command again goes on.

Of an output that goes nowhere (no --output, no 'sink:' in the file) the first ten tuples are shown; of more than five
such outputs three tuples of the first five. Of a large network the summary shows the outputs that are worst off and
the boxes that took longest; --verbose shows all, --summary writes all.

examples:
  headway run border.yaml --input positions=day.csv --output alarms=alarms.jsonl
  tail -f day.jsonl | headway run border.yaml --input positions=- --output alarms=-
  headway run border.yaml --input positions=day.parquet --rate positions=5000 --summary run.json
  headway run border.yaml --input positions=day.csv --dead-letters rejected.csv
  headway run border.yaml --engine local --input positions=day.csv --trace run.json
  headway run border.yaml --engine sim --model model.yaml --policy chain/box --workers 4
  headway run border.yaml --engine local --rate positions=50000 --shed on
  headway run border.yaml --engine sim --adaptive amos
  headway run border.yaml --state border.state --output alarms=alarms.jsonl
  headway run border.yaml --master spark://head:7077 --state hdfs://head/border --shards 16
"""


def add_arguments(parser: Parser) -> None:
    """Describe the command's options."""
    parser.add_argument("file", metavar="FILE", help="the network file, YAML or JSON")
    data = parser.add_argument_group("data")
    schedule = parser.add_argument_group("how to run it")
    spark = parser.add_argument_group("the engine 'spark' only")
    sim = parser.add_argument_group("the engine 'sim' only")
    report = parser.add_argument_group("reports")
    add_trust(parser.add_argument_group("what the file may name (docs/safety.md)"))
    data.add_argument(
        "--input",
        metavar="SOURCE=PATH",
        action=Pair,
        default={},
        help="where a source's tuples come from, instead of what the file says; may be repeated",
    )
    data.add_argument(
        "--output",
        metavar="OUTPUT=PATH",
        action=Pair,
        default={},
        help="where an output's tuples go, instead of what the file says; may be repeated",
    )
    data.add_argument(
        "--rate",
        metavar="SOURCE=N",
        action=Pair,
        default={},
        help="let a source's tuples arrive in time, N per second, instead of as fast as they are read",
    )
    add_tables(data)
    add_functions(data)
    data.add_argument(
        "--strict",
        action="store_true",
        help="stop at the first malformed row or failing tuple, instead of counting it as a dead letter",
    )
    data.add_argument(
        "--dead-letters",
        metavar="PATH",
        help="write all malformed rows and failing tuples, with their reasons, to this file",
    )
    schedule.add_argument(
        "--engine",
        metavar="ENGINE",
        help=f"what carries the network out: {', '.join(engine_names())} (default: the file's, or {DEFAULT_ENGINE}); "
        "'spark' goes on after crashes and runs on clusters, 'local' starts at once and answers in milliseconds, "
        "'sim' runs in virtual time, at modelled costs",
    )
    schedule.add_argument(
        "--policy", metavar="P", help="which box runs when, such as qos/superbox/mc/auto; 'headway policies' lists them"
    )
    schedule.add_argument(
        "--train",
        metavar="N",
        type=train,
        help="the most tuples that one step takes: small for latency, large for throughput; or another rule, such as "
        "50%%, 5ms or auto ('headway policies' lists them)",
    )
    schedule.add_argument(
        "--longest-wait",
        metavar="TIME",
        help="serve a unit that has been ready for so long, such as 10s, whatever the policy says; 'off' for never "
        "(default: 10s)",
    )
    schedule.add_argument(
        "--workers",
        metavar="N",
        type=positive,
        help="how many boxes, on Spark how many streaming queries, may run at once "
        "(default: 1; on Spark as many as cores)",
    )
    schedule.add_argument(
        "--memory",
        metavar="SIZE",
        type=size,
        help="above this much queued data the sources wait, such as 64k, 256M or 2G (default: 256M)",
    )
    schedule.add_argument(
        "--remember",
        metavar="CALLS",
        type=positive,
        help="how many calls of a box its statistics (cost, selectivity, size) remember (default: 1000)",
    )
    schedule.add_argument(
        "--half-life",
        metavar="SECONDS",
        type=seconds,
        help="after so many seconds a tuple counts half in rates and recent utilities (default: 5)",
    )
    schedule.add_argument(
        "--shed",
        metavar="HOW",
        type=choice,
        help="drop tuples when there is too much to do: on, off, a strategy (loss, uniform), or settings such as "
        "'{most: 0.5, headroom: 0.8}' (default: the file's, or off)",
    )
    schedule.add_argument(
        "--adaptive",
        metavar="LAYER",
        type=choice,
        help="change policies while it runs: amos (learns which is best), optimizer (meets goals of latency, memory "
        "and throughput), off, or settings such as '{use: amos, objectives: {latency: 1}}'",
    )
    add_run_options(spark)
    sim.add_argument(
        "--model",
        metavar="FILE",
        help="what boxes cost and what else takes time: a YAML file with costs, overheads and seed, or the summary "
        "(--summary) of a real run; default: 1us a tuple, and what universal boxes say",
    )
    report.add_argument(
        "--trace",
        metavar="FILE",
        help="record every step and why it was chosen, in a file such as run.json: open it in ui.perfetto.dev or "
        "chrome://tracing to see the schedule, or read it with 'headway explain'",
    )
    report.add_argument("--summary", metavar="PATH.json", help="write the summary as JSON too; '-' is standard output")
    report.add_argument(
        "--verbose",
        action="store_true",
        help="show all outputs, boxes and streaming queries in the summary, and the first tuples of all outputs, "
        "however many there are",
    )
    report.add_argument(
        "--quiet",
        action="store_true",
        help="no status line, no tuples, no warnings and no summary on the terminal; only errors",
    )


def run_file(args: argparse.Namespace) -> int:
    """Run a network file and report; returns the exit code."""
    with orderly():
        return _run_file(args)


def _run_file(args: argparse.Namespace) -> int:
    import_functions(args.functions)
    network = load(Path(args.file), trust=trust_of(args))
    engine = engine_of(args, network)
    check_options(args, network, engine)
    _check_names(args, network)
    writes: dict[str, object] = {f"output '{name}'": path for name, path in args.output.items()}
    if args.dead_letters is not None:
        writes["--dead-letters"] = args.dead_letters
    if args.summary is not None:
        writes["--summary"] = args.summary
        check_summary_path(Path(args.summary))
    if args.trace is not None:
        writes["--trace"] = args.trace
        if args.trace == "-":
            raise OutputError(
                "trace: expected a file such as run.json, not '-'; a trace does not go to standard output"
            )
        check_writable(Path(args.trace), "trace", "run.json")
    check_files(network, args.input, writes, Path(args.file))
    rates = {source: rate(source, text) for source, text in args.rate.items()}
    tables = load_tables(network, args.table)
    destinations = {output.name: args.output.get(output.name, thaw(output.sink)) for output in network.outputs}
    checked = check(network, None, tables, contact=True)
    if not args.quiet:
        warn(checked.warnings)
    previews = {
        name: Preview(name, checked.output_schema(name)) for name, where in destinations.items() if where is None
    }
    uses_stdout = any(is_standard(where) for where in (*destinations.values(), args.dead_letters, args.summary))
    status = None if args.quiet or (uses_stdout and sys.stdout.isatty()) else StatusLine(sys.stderr)
    if status is not None and engine == SPARK:
        status.begin("starting Spark")
    try:
        with notices(sys.stderr, status):
            result = run_network(
                network,
                args.input,
                engine=args.engine,
                policy=args.policy,
                train=args.train,
                workers=args.workers,
                outputs={**args.output, **previews},
                rates=rates,
                tables=tables,
                strict=args.strict,
                memory=args.memory,
                dead_letters=args.dead_letters,
                on_status=None if status is None else status.show,
                wait=args.longest_wait,
                remember=args.remember,
                half_life=args.half_life,
                trace=args.trace is not None,
                model=args.model,
                shed=args.shed,
                adaptive=args.adaptive,
                master=args.master,
                state=args.state,
                keep=args.keep or 0.0,
                restart=args.restart,
                cut=cut_of(args),
                spark=args.conf,
            )
    finally:
        if status is not None:
            status.clear()
    if args.trace is not None and result.trace is not None:
        result.trace.write(Path(args.trace))
    if args.summary is not None:
        write_summary(Path(args.summary), result.summary)
    by = result.summary.get("stopped_by")
    if not args.quiet:
        try:
            _report(result, network, previews, args.verbose, to_stderr=uses_stdout)
        except OutputError:
            if by != "SIGHUP":
                raise
            silence()  # the terminal is gone, and with it who would have read the report
    return 0 if by is None else exit_code(by)


def _report(result: RunResult, network: Network, previews: dict[str, Preview], verbose: bool, to_stderr: bool) -> None:
    texts = [previews_text(list(previews.values()), verbose)] if previews else []
    title = f"network '{printable(result.summary['network'])}'\n"
    emit("\n".join([*texts, title + summary_text(result.summary, verbose, network)]), to_stderr)


def _check_names(args: argparse.Namespace, network: Network) -> None:
    sources = [source.name for source in network.sources]
    outputs = [output.name for output in network.outputs]
    for option, given in (("--input", args.input), ("--rate", args.rate)):
        for name in given:
            if name not in sources:
                raise InputError(f"{option}: {unknown('source', name, sources)}")
    for name in args.output:
        if name not in outputs:
            raise OutputError(f"--output: {unknown('output', name, outputs)}")
