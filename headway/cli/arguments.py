"""Command-line arguments: a parser built from the table of options, and the readers of option values."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from headway.connectors import source_suffixes
from headway.connectors.registry import check_rate
from headway.durations import Duration
from headway.engines.opening import table_refs
from headway.engines.runs import engine_names
from headway.errors import HeadwayError, NetworkError, check_known, choices, unknown
from headway.files import load
from headway.functions import load_functions
from headway.network import Network
from headway.network.trust import LEVELS, Trust
from headway.network.yamls import read_text
from headway.options.kinds import KINDS, SPREAD_RULES, Option
from headway.options.table import OPTIONS
from headway.runner import DEFAULT_ENGINE, check_names
from headway.scheduling.trains import parse_train
from headway.sizes import parse_size
from headway.tables import load_table

READ_ONLY = ":ro"
_OPTION = re.compile(r"--[a-z][a-z-]*")


class UsageError(HeadwayError):
    """Arguments that do not form a valid command."""


class Parser(argparse.ArgumentParser):
    """An argument parser that raises UsageError, and leaves the examples in its help unwrapped."""

    def __init__(self, **settings: Any) -> None:
        """Take argparse's settings; abbreviations are off, so that a new option cannot break existing scripts."""
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage and exiting."""
        raise UsageError(f"{message} (see '{self.prog} --help')")

    def refuse(self, extra: Sequence[str]) -> None:
        """Raise for the first of the arguments that no option consumed, if there are any."""
        for word in extra:
            if word.startswith("-") and word != "-":
                self.error(unknown("option", word.partition("=")[0], _OPTION.findall(self.format_usage())))
        if extra:
            self.error(f"unexpected argument '{extra[0]}'")


class Pair(argparse.Action):
    """Collects ``NAME=VALUE`` options into a dictionary; a duplicate name is an error."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Add one pair."""
        name, equals, value = str(values).partition("=")
        if not equals or not name.strip() or not value:
            parser.error(f"{option}: expected {self.metavar}, not '{values}'")
        taken = dict(getattr(namespace, self.dest) or {})
        name = name.strip()
        if name in taken:
            parser.error(f"{option}: '{name}' is given twice, as '{taken[name]}' and as '{value}'")
        setattr(namespace, self.dest, {**taken, name: value})


def _number(kind: str, make: Callable[[str], float]) -> Callable[[str], float]:
    """Return a reader for finite numbers of a kind."""

    def read(text: str) -> float:
        try:
            number = make(text)
        except ValueError:
            number = math.nan
        if number == math.inf or not KINDS[kind].fits(number):
            raise UsageError(f"expected {KINDS[kind].expected}, not '{text}'")
        return number

    return read


def _train(text: str) -> str:
    """Return a train rule unchanged after validating it."""
    parse_train(text)
    return text


def _choice(text: str) -> str | dict[str, Any]:
    """Return a name unchanged, or settings in braces as a mapping."""
    return dict(read_text(text)) if text.lstrip().startswith("{") else text


def _size(text: str) -> int:
    """Parse a size in bytes: ``1000000``, ``64k``, ``256M`` or ``1.5GiB``; the letters are powers of 1,024."""
    try:
        return parse_size(text)
    except NetworkError:
        raise UsageError(f"expected a size such as 64k, 256M or 2G, not '{text}'") from None


def _spread(text: str) -> str | list[str]:
    """Return a rule, or the list of named boxes."""
    if text in SPREAD_RULES:
        return text
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise UsageError(f"expected auto, none, or boxes separated by commas, not '{text}'")
    return names


READERS: Mapping[str, Callable[[str], Any]] = {
    "positive": _number("positive", int),
    "workers": _number("workers", int),
    "calls": _number("calls", int),
    "bytes": _size,
    "seconds": _number("seconds", float),
    "duration": lambda text: Duration.parse(text).seconds,
    "train": _train,
    "spread": _spread,
    "share": _number("share", float),
    "folder": Path,
    "shed": _choice,
    "adaptive": _choice,
}
"""By kind of option: a function that parses its text or raises a HeadwayError; other kinds stay text."""


def _reader(kind: str) -> Callable[[str], Any]:
    """Wrap a kind's reader for argparse, which adds the option's name to the error."""

    def read(text: str) -> Any:
        try:
            return READERS[kind](text)
        except HeadwayError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


FILE = Option("the network file, YAML or JSON", flag="FILE")
FUNCTIONS = Option(
    "import this Python module first, to register functions that the network uses (`@hw.function`, "
    "`@hw.aggregate`); a dotted module name; the current folder is searched as well",
    "names",
    flag="--functions MODULE",
)
TRUST = (
    Option(
        "how far to trust the file: `own` (yours) may name any path and host, `stranger` only what the options below "
        "allow",
        "trust",
        LEVELS[0],
        flag="--trust LEVEL",
        see="[safety](safety.md)",
        call=False,
    ),
    Option(
        "let a stranger's file read and write in this folder, or with `:ro` only read; also a URI such as "
        "`s3://bucket/day`, or `-` for standard input and output",
        "names",
        flag="--allow-path DIR[:ro]",
    ),
    Option(
        "let a stranger's file contact this host or bucket (`*` matches any text); `check` contacts no other",
        "names",
        flag="--allow-host HOST[:PORT]",
    ),
    Option("let a stranger's file use this table of Spark's catalog", "names", flag="--allow-table NAME"),
    Option(
        "let any file use this Spark format or connector, in addition to those known to be harmless",
        "names",
        flag="--allow-format NAME",
        see="[formats and options](safety.md#formats-and-options)",
    ),
    Option(
        "let any file set this option of Spark's formats, in addition to those known to be harmless",
        "names",
        flag="--allow-option NAME",
    ),
)
TRUST_TITLE = "what the file may name (docs/safety.md)"

Groups = Mapping[str, Sequence[Option]]
"""A command's options by the heading in its help; those under the empty title come first, without a heading."""
OR = "or"
"""The title of a group of mutually exclusive options."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its one-line description, the epilog of its help, its function and its options.

    An option whose flag has no dashes is positional: ``FILE``, ``[NAME]`` or ``[NAME ...]``.
    """

    about: str
    epilog: str
    call: Callable[[argparse.Namespace], int]
    groups: Groups

    @property
    def flags(self) -> tuple[Option, ...]:
        """All options except positional ones."""
        return tuple(one for options in self.groups.values() for one in options if one.flag.startswith("-"))


def of_run(*names: str) -> tuple[Option, ...]:
    """Return options of a run by name, from the table."""
    return tuple(OPTIONS[name] for name in names)


def run_group(heading: str) -> tuple[Option, ...]:
    """Return the options of `headway run` under a heading, from the table."""
    return tuple(option for option in OPTIONS.values() if option.flag and option.heading == heading)


def add_options(parser: argparse.ArgumentParser, groups: Groups) -> None:
    """Add options to a command; each is stored under its name in the table."""
    for title, options in groups.items():
        target: argparse._ActionsContainer = parser
        if title:
            target = parser.add_mutually_exclusive_group() if title == OR else parser.add_argument_group(title)
        for option in options:
            _add(target, option)


def _add(parser: argparse._ActionsContainer, option: Option) -> None:
    flag, _, metavar = option.flag.partition(" ")
    if not flag.startswith("-"):
        nargs = None if flag[0] != "[" else "*" if metavar else "?"
        parser.add_argument(option.name, metavar=flag.strip("[]"), nargs=nargs, help=option.help.replace("`", "'"))
        return
    help_text, default = option.help, option.default_text
    if default:
        help_text += f" (default: {default})"
    # The run applies the defaults of its options itself, because the file comes before them.
    settings: dict[str, Any] = {"dest": option.name, "default": None if option in _OF_RUN else option.default}
    if not metavar:
        settings |= {"action": "store_true", "default": False}
    else:
        settings["metavar"] = metavar
        if "=" in metavar:
            settings |= {"action": Pair, "default": {}}
            help_text += "; may be repeated"
        elif option.kind == "names":
            settings |= {"action": "append", "default": []}
            help_text += "; may be repeated"
        elif option.kind in READERS:
            settings["type"] = _reader(option.kind)
        elif option.kind in KINDS and KINDS[option.kind].names:
            settings["choices"] = KINDS[option.kind].names
    parser.add_argument(flag, help=help_text.replace("`", "'").replace("%", "%%"), **settings)


_OF_RUN = tuple(OPTIONS.values())


def rates_of(given: Mapping[str, str]) -> dict[str, float]:
    """Parse rates in tuples per second, by source."""
    rates = {}
    for source, text in given.items():
        try:
            number: object = float(text)
        except ValueError:
            number = text
        rate = check_rate(number, f"--rate: source '{source}'", text)
        assert rate is not None  # because a rate was given
        rates[source] = rate
    return rates


def engine_of(args: argparse.Namespace, network: Network) -> str:
    """Return a command's engine, or raise a UsageError if it is unknown."""
    schedule: Mapping[str, Any] = network.schedule or {}
    engine: str = args.engine or schedule.get("engine") or DEFAULT_ENGINE
    check_known("engine", [engine], engine_names(), UsageError)
    return engine


def check_options(args: argparse.Namespace, network: Network, engine: str, options: Iterable[Option]) -> None:
    """Raise a UsageError for options that do not apply to the engine, or that require others."""
    given = [option for option in options if getattr(args, option.name) not in (None, [], {})]
    for option in given:
        if option.engine not in ("", engine):
            raise UsageError(f"{option.long} is for the engine '{option.engine}'; the engine here is '{engine}'")
        if option.name in ("keep", "restart") and args.state is None:
            raise UsageError(f"{option.long} needs a saved state; give --state DIR too")
    check_names(network, vars(args), given, flags=True)


def trust_of(args: argparse.Namespace, *, hosts: bool = False) -> Trust:
    """Return the trust that the options specify; with `hosts`, --allow-host also applies to one's own files."""
    own = args.trust == LEVELS[0]
    strangers = {"--allow-path": args.allow_path, "--allow-table": args.allow_table}
    if not hosts:
        strangers["--allow-host"] = args.allow_host
    for option, given in strangers.items():
        if own and given:  # ignoring it would suggest protection
            raise UsageError(f"{option} applies to a stranger's file only: add --trust stranger")
    return Trust(
        own,
        paths=tuple(one for one in args.allow_path if not one.endswith(READ_ONLY)),
        read_only=tuple(one.removesuffix(READ_ONLY) for one in args.allow_path if one.endswith(READ_ONLY)),
        formats=tuple(args.allow_format),
        options=tuple(args.allow_option),
        hosts=tuple(args.allow_host),
        tables=tuple(args.allow_table),
    )


def load_file(args: argparse.Namespace, *, hosts: bool = False) -> Network:
    """Load the network file with the trust that the options specify (see `trust_of`).

    Modules given with --functions are imported first; the current folder comes last in the search path.
    """
    here = str(Path.cwd())
    if args.functions and here not in sys.path:
        sys.path.append(here)
    for module in args.functions:
        load_functions(module)
    return load(Path(args.file), trust=trust_of(args, hosts=hosts))


def load_tables(network: Network, given: Mapping[str, str]) -> dict[str, pa.Table]:
    """Load the static tables given on the command line; paths are relative to the current folder."""
    refs = table_refs(network)
    tables: dict[str, Any] = {}
    check_known("table", given, refs, NetworkError, "--table")
    for name, path in given.items():
        if Path(path).suffix.lower() not in source_suffixes():
            raise NetworkError(f"--table: table '{name}': '{path}' ends in none of {choices(source_suffixes())}")
        tables[name] = load_table(path)
    return tables
