"""The command `headway`."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from headway import __version__
from headway.cli import check, compare, experiment, explain, policies, prepare, run
from headway.cli.arguments import Parser, UsageError, add_options
from headway.cli.printing import one_line, printing_checks
from headway.connectors import PipeClosedError
from headway.connectors.output_files import silence
from headway.engines.signals import TerminatedError, exit_code
from headway.errors import HeadwayError, check_known, shorten

BAD = 2
PRINTED = 2_900
"""The most characters of an error that are printed, counted after control characters are escaped."""
CLOSED_PIPE = 141

EPILOG = """\
examples:
  headway check border.yaml
  headway run border.yaml --input positions=day.csv --output alarms=alarms.jsonl
  headway run --help

exit codes: 0 done; 1 an experiment failed; 2 an error that you can fix, reported in one line; 129, 130, 143 ended by
SIGHUP, Ctrl-C, SIGTERM; 141 standard output was closed.
"""


COMMANDS = {
    "check": check.COMMAND,
    "run": run.COMMAND,
    "policies": policies.COMMAND,
    "explain": explain.COMMAND,
    "compare": compare.COMMAND,
    "prepare": prepare.COMMAND,
    "experiment": experiment.COMMAND,
}


def make_parser() -> tuple[Parser, dict[str, Parser]]:
    """Return the parser, and the commands' parsers by name."""
    parser = Parser(
        prog="headway",
        description="Runs networks of operators over live streams, scheduled by the value of their results.",
        epilog=EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"headway {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    made: dict[str, Parser] = {}
    for name, one in COMMANDS.items():
        description = f"{one.about[0].upper()}{one.about[1:]}."
        made[name] = commands.add_parser(name, help=one.about, description=description, epilog=one.epilog)
        add_options(made[name], one.groups)
        made[name].set_defaults(command=one.call)
    return parser, made


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments, or raise a UsageError with a hint."""
    parser, commands = make_parser()
    command = next((word for word in argv if not word.startswith("-")), None)
    check_known("command", [] if command is None else [command], commands, UsageError)
    args, extra = parser.parse_known_args(argv)
    (parser if command is None else commands[command]).refuse(extra)
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. A user's error is one line on standard error and exit code 2."""
    _open_streams()
    with contextlib.suppress(AttributeError):
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    path = list(sys.path)  # --functions extends it
    try:
        args = parse(sys.argv[1:] if argv is None else list(argv))
        with printing_checks():
            code: int = args.command(args)
        sys.stdout.flush()
        return code
    except TerminatedError as end:
        _say(f"headway: aborted by {end.signal.name}")
        return exit_code(end.signal.name)
    except SystemExit as end:  # --help and --version
        return end.code if isinstance(end.code, int) else 0
    except (PipeClosedError, BrokenPipeError):
        silence(sys.stdout)
        return CLOSED_PIPE
    except (HeadwayError, OSError) as error:  # an unforeseen OSError still has the system's message
        _say(f"headway: error: {shorten(one_line(str(error)), PRINTED)}")
        return BAD
    except KeyboardInterrupt:
        _say("headway: interrupted")
        return exit_code("SIGINT")
    finally:
        sys.path[:] = path


def _open_streams() -> None:
    """Open the null device for standard streams that the parent process closed, as daemons do."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  (stays open)


def _say(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # the terminal may be gone
        print(line, file=sys.stderr, flush=True)
