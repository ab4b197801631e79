"""Arguments: a parser whose errors are Headway's, and the kinds of values that options take."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from headway.connectors import source_suffixes
from headway.connectors.base import FASTEST, SLOWEST
from headway.engines.claims import table_refs
from headway.errors import HeadwayError, NetworkError, PolicyError, choices, unknown
from headway.functions import load_functions
from headway.network import Network
from headway.scheduling.trains import parse_train
from headway.tables import load_table
from headway.trust import LEVELS, Trust
from headway.yamls import read_text

READ_ONLY = ":ro"
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_OPTION = re.compile(r"--[a-z][a-z-]*")
_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class UsageError(HeadwayError):
    """Arguments that make no command."""


class Parser(argparse.ArgumentParser):
    """An argument parser that raises UsageError and keeps examples in its help as they are written."""

    def __init__(self, **settings: Any) -> None:
        """Take argparse's settings; options cannot be abbreviated, so that new ones break nobody's scripts."""
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage and leaving."""
        raise UsageError(f"{message} (see '{self.prog} --help')")

    def refuse(self, extra: Sequence[str]) -> None:
        """Raise for the first of the arguments that nobody took, if there are any."""
        for word in extra:
            if word.startswith("-") and word != "-":
                self.error(unknown("option", word.partition("=")[0], _OPTION.findall(self.format_usage())))
        if extra:
            self.error(f"one argument too many: '{extra[0]}'")


class Pair(argparse.Action):
    """Collects ``NAME=VALUE`` options into a dictionary; a name that is given twice is an error."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Take one pair."""
        name, equals, value = str(values).partition("=")
        if not equals or not name.strip() or not value:
            parser.error(f"{option}: expected {self.metavar}, not '{values}'")
        taken = dict(getattr(namespace, self.dest) or {})
        name = name.strip()
        if name in taken:
            parser.error(f"{option}: '{name}' is given twice, as '{taken[name]}' and as '{value}'")
        setattr(namespace, self.dest, {**taken, name: value})


def positive(text: str) -> int:
    """Return a whole number above 0."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, not '{text}'")
    return number


def train(text: str) -> str:
    """Return a rule for trains as it is, once it is known to be one."""
    try:
        parse_train(text)
    except PolicyError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def choice(text: str) -> str | dict[str, Any]:
    """Return a name as it is, or the settings that stand in braces as a mapping."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        found = read_text(text)
    except HeadwayError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return dict(found)


def seconds(text: str) -> float:
    """Return a number of seconds above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number <= 0:
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, not '{text}'")
    return number


def rate(source: str, text: str) -> float:
    """Return tuples per second for a source."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number <= 0:
        raise UsageError(f"--rate: source '{source}': expected tuples per second, a number above 0, not '{text}'")
    if not SLOWEST <= number <= FASTEST:
        raise UsageError(
            f"--rate: source '{source}': expected {SLOWEST:g} to {FASTEST:g} tuples per second, not '{text}'"
        )
    return number


def size(text: str) -> int:
    """Return bytes, from ``1000000``, ``64k``, ``256M`` or ``1.5GiB``; the letters are powers of 1,024."""
    match = _SIZE.fullmatch(text.strip())
    number = 0 if match is None else int(float(match[1]) * _FACTORS[match[2].lower()])
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a size such as 64k, 256M or 2G, not '{text}'")
    return number


def add_functions(parser: argparse._ActionsContainer) -> None:
    """Add the option that names modules with users' functions."""
    parser.add_argument(
        "--functions",
        metavar="MODULE",
        action="append",
        default=[],
        help="import this Python module first, because it registers functions that the network names "
        "(@hw.function, @hw.aggregate); dotted name, also from the current folder; may be repeated",
    )


def add_tables(parser: argparse._ActionsContainer) -> None:
    """Add the option that gives static tables."""
    parser.add_argument(
        "--table",
        metavar="NAME=PATH",
        action=Pair,
        default={},
        help="the file (.csv, .jsonl, .parquet) behind a static table that the network names; may be repeated",
    )


def add_trust(parser: argparse._ActionsContainer) -> None:
    """Add the options that say who wrote the network file, and what it may name."""
    parser.add_argument(
        "--trust",
        choices=LEVELS,
        default=LEVELS[0],
        help="who wrote FILE: 'own' may name any path and host (default), 'stranger' only what the options below allow",
    )
    parser.add_argument(
        "--allow-path",
        metavar="DIR[:ro]",
        action="append",
        default=[],
        help="a stranger's file may read and write in this folder, or with ':ro' only read; also a URI such as "
        "s3://bucket/day, and '-' for standard input and output; may be repeated",
    )
    parser.add_argument(
        "--allow-host",
        metavar="HOST[:PORT]",
        action="append",
        default=[],
        help="a stranger's file may contact this host or bucket ('*' in it is any text); 'check' contacts no other; "
        "may be repeated",
    )
    parser.add_argument(
        "--allow-table",
        metavar="NAME",
        action="append",
        default=[],
        help="a stranger's file may use this table of Spark's catalog; may be repeated",
    )
    parser.add_argument(
        "--allow-format",
        metavar="NAME",
        action="append",
        default=[],
        help="files may use this format of Spark or connector, beside those known to be harmless; may be repeated",
    )
    parser.add_argument(
        "--allow-option",
        metavar="NAME",
        action="append",
        default=[],
        help="files may give Spark's formats this option, beside those known to be harmless; may be repeated",
    )


def trust_of(args: argparse.Namespace, *, hosts: bool = False) -> Trust:
    """Return the trust that the options say; with `hosts`, --allow-host also means something for one's own files."""
    own = args.trust == LEVELS[0]
    strangers = {"--allow-path": args.allow_path, "--allow-table": args.allow_table}
    if not hosts:
        strangers["--allow-host"] = args.allow_host
    for option, given in strangers.items():
        if own and given:  # silence would look like protection
            raise UsageError(f"{option} says what a stranger's file may name: add --trust stranger")
    return Trust(
        own,
        paths=tuple(one for one in args.allow_path if not one.endswith(READ_ONLY)),
        read_only=tuple(one.removesuffix(READ_ONLY) for one in args.allow_path if one.endswith(READ_ONLY)),
        formats=tuple(args.allow_format),
        options=tuple(args.allow_option),
        hosts=tuple(args.allow_host),
        tables=tuple(args.allow_table),
    )


def import_functions(modules: Sequence[str]) -> None:
    """Import the modules that the user named; the current folder counts, last, as it does for python -m."""
    here = str(Path.cwd())
    if modules and here not in sys.path:
        sys.path.append(here)
    for module in modules:
        load_functions(module)


def load_tables(network: Network, given: Mapping[str, str]) -> dict[str, pa.Table]:
    """Return the static tables that the command line gives; paths count from the current folder."""
    refs = table_refs(network)
    tables: dict[str, Any] = {}
    for name, path in given.items():
        if name not in refs:
            raise NetworkError(f"--table: {unknown('table', name, refs)}")
        if Path(path).suffix.lower() not in source_suffixes():
            raise NetworkError(f"--table: table '{name}': '{path}' ends in none of {choices(source_suffixes())}")
        tables[name] = load_table(path)
    return tables
