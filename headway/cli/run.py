"""``headway run``: run a network file on files or standard input until the inputs end."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import cast

from headway.checking import check
from headway.cli.arguments import (
    FILE,
    FUNCTIONS,
    TRUST,
    TRUST_TITLE,
    Command,
    check_options,
    engine_of,
    load_file,
    load_tables,
    rates_of,
    run_group,
)
from headway.cli.printing import emit, printable, warn
from headway.cli.status import StatusLine, notices
from headway.cli.summary import Preview, check_summary_path, previews_text, summary_text, write_summary
from headway.connectors.output_files import silence
from headway.engines.opening import check_files, is_standard
from headway.engines.signals import exit_code, orderly
from headway.errors import OutputError
from headway.network import Network, thaw
from headway.options.kinds import Option
from headway.options.table import CUT_KEYS, RunOptions
from headway.paths import check_writable
from headway.runner import run as run_network

SPARK = "spark"
GROUPS = {
    "": (FILE,),
    "data": (*run_group("data"), FUNCTIONS),
    **{title: run_group(title) for title in ("execution", "engine 'spark' only", "engine 'sim' only")},
    "reports": (
        *run_group("reports"),
        Option(
            "also write the summary as JSON; `-` is standard output",
            flag="--summary PATH.json",
            see="[its keys](api.md#the-summary)",
        ),
        Option(
            "show all outputs, boxes and streaming queries in the summary, and the first tuples of all outputs, "
            "however many there are",
            flag="--verbose",
        ),
        Option("no status line, no tuples, no warnings and no summary on the terminal; only errors", flag="--quiet"),
    ),
    TRUST_TITLE: TRUST,
}

EPILOG = """\
Paths end in .csv (with a header), .jsonl or .parquet; '-' is standard input or output as JSON lines. When every
input has ended, all windows are flushed, the outputs are completed and the summary is printed. Ctrl-C ends the
inputs: what has arrived is still processed and delivered (exit code 130). So do SIGTERM (143) and SIGHUP (129). A
second signal aborts. With --state they only stop the run: the same command continues it.

For an output without a destination (no --output, no 'sink:' in the file) the first ten tuples are shown; if there are
more than five such outputs, three tuples each of the first five. For a large network the summary shows only the
outputs with the lowest worth and the boxes that took longest; --verbose shows all, --summary writes all.

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


def run_file(args: argparse.Namespace) -> int:
    """Run a network file and report; returns the exit code."""
    with orderly():
        return _run_file(args)


COMMAND = Command("run a network until its inputs end", EPILOG, run_file, GROUPS)


def _run_file(args: argparse.Namespace) -> int:
    network = load_file(args)
    engine = engine_of(args, network)
    check_options(args, network, engine, COMMAND.flags)
    _check_writes(args, network)
    options = cast(RunOptions, {name: getattr(args, name) for name in RunOptions.__annotations__ if name in args})
    options["tables"] = load_tables(network, args.tables)
    options["rates"] = rates_of(args.rates)
    options["cut"] = {name: getattr(args, name) for name in CUT_KEYS if getattr(args, name) is not None}
    options["trace"] = args.trace is not None
    options["functions"] = None
    options["trust"] = None
    destinations = {output.name: args.outputs.get(output.name, thaw(output.sink)) for output in network.outputs}
    checked = check(network, None, options["tables"], contact=True)
    if not args.quiet:
        warn(checked.warnings)
    previews = {
        name: Preview(name, checked.output_schema(name)) for name, where in destinations.items() if where is None
    }
    options["outputs"] = {**args.outputs, **previews}
    uses_stdout = any(is_standard(where) for where in (*destinations.values(), args.dead_letters, args.summary))
    status = None if args.quiet or (uses_stdout and sys.stdout.isatty()) else StatusLine(sys.stderr)
    if status is not None:
        options["on_status"] = status.show
        if engine == SPARK:
            status.begin("starting Spark")
    try:
        with notices(sys.stderr, status):
            result = run_network(network, args.inputs, **options)
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
            texts = [previews_text(list(previews.values()), args.verbose)] if previews else []
            texts.append(f"network '{printable(network.name)}'\n" + summary_text(result.summary, args.verbose, network))
            emit("\n".join(texts), to_stderr=uses_stdout)
        except OutputError:
            if by != "SIGHUP":
                raise
            silence(sys.stdout)  # the terminal is gone, and so is the reader of the report
    return 0 if by is None else exit_code(by)


def _check_writes(args: argparse.Namespace, network: Network) -> None:
    """Check before a long run that all files can be written, and that nothing would be damaged by it."""
    writes: dict[str, object] = {f"output '{name}'": path for name, path in args.outputs.items()}
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
    check_files(network, args.inputs, writes, Path(args.file))
