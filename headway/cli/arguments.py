"""Arguments: a parser whose errors are Headway's, fed from the table of options, and what reads their values."""

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
from headway.errors import HeadwayError, NetworkError, choices, unknown
from headway.files import load
from headway.functions import load_functions
from headway.network import Network
from headway.network.trust import LEVELS, Trust
from headway.network.yamls import read_text
from headway.options.kinds import KINDS, SPREAD_RULES, Option
from headway.options.table import OPTIONS
from headway.runner import DEFAULT_ENGINE, check_names
from headway.scheduling.trains import parse_train
from headway.tables import load_table

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


def _number(kind: str, make: Callable[[str], float]) -> Callable[[str], float]:
    """Return what reads a finite number of a kind."""

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
    """Return a rule for trains as it is, once it is known to be one."""
    parse_train(text)
    return text


def _choice(text: str) -> str | dict[str, Any]:
    """Return a name as it is, or the settings that stand in braces as a mapping."""
    return dict(read_text(text)) if text.lstrip().startswith("{") else text


def _size(text: str) -> int:
    """Return bytes, from ``1000000``, ``64k``, ``256M`` or ``1.5GiB``; the letters are powers of 1,024."""
    match = _SIZE.fullmatch(text.strip())
    number = 0 if match is None else int(float(match[1]) * _FACTORS[match[2].lower()])
    if number < 1:
        raise UsageError(f"expected a size such as 64k, 256M or 2G, not '{text}'")
    return number


def _spread(text: str) -> str | list[str]:
    """Return a rule, or the boxes that are named."""
    if text in SPREAD_RULES:
        return text
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise UsageError(f"expected auto, none, or boxes with commas between, not '{text}'")
    return names


READERS: Mapping[str, Callable[[str], Any]] = {
    "positive": _number("positive", int),
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
"""By kind of option: what reads its text, or raises a HeadwayError; the others stay text."""


def _reader(kind: str) -> Callable[[str], Any]:
    """Return what reads a kind's text as argparse wants it, which names the option in the error."""

    def read(text: str) -> Any:
        try:
            return READERS[kind](text)
        except HeadwayError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


FILE = Option("the network file, YAML or JSON", flag="FILE", name="file")
FUNCTIONS = Option(
    "import this Python module first, because it registers functions that the network names (`@hw.function`, "
    "`@hw.aggregate`); dotted name, also from the current folder",
    "names",
    flag="--functions MODULE",
    name="functions",
)
TRUST = (
    Option(
        "who wrote the file: `own` may name any path and host, `stranger` only what the options below allow",
        "trust",
        LEVELS[0],
        flag="--trust LEVEL",
        see="[safety](safety.md)",
        name="trust",
        call=False,
    ),
    Option(
        "a stranger's file may read and write in this folder, or with `:ro` only read; also a URI such as "
        "`s3://bucket/day`, and `-` for standard input and output",
        "names",
        flag="--allow-path DIR[:ro]",
        name="allow_path",
    ),
    Option(
        "a stranger's file may contact this host or bucket (`*` in it is any text); `check` contacts no other",
        "names",
        flag="--allow-host HOST[:PORT]",
        name="allow_host",
    ),
    Option(
        "a stranger's file may use this table of Spark's catalog",
        "names",
        flag="--allow-table NAME",
        name="allow_table",
    ),
    Option(
        "files may use this format of Spark or connector, beside those known to be harmless",
        "names",
        flag="--allow-format NAME",
        name="allow_format",
        see="[formats and options](safety.md#formats-and-options)",
    ),
    Option(
        "files may give Spark's formats this option, beside those known to be harmless",
        "names",
        flag="--allow-option NAME",
        name="allow_option",
    ),
)
TRUST_TITLE = "what the file may name (docs/safety.md)"

Groups = Mapping[str, Sequence[Option]]
"""A command's options, by the title under which its help shows them. Those of the empty title stand by themselves."""
OR = "or"
"""The title of options of which only one can be given."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: what it does, what its help says at the end, what carries it out, and its options.

    An option whose flag has no dashes is an argument by its place: ``FILE``, ``[NAME]`` or ``[NAME ...]``.
    """

    about: str
    epilog: str
    call: Callable[[argparse.Namespace], int]
    groups: Groups

    @property
    def flags(self) -> tuple[Option, ...]:
        """All options with a flag."""
        return tuple(one for options in self.groups.values() for one in options if one.flag.startswith("-"))


def of_run(*names: str) -> tuple[Option, ...]:
    """Return options of a run by their names in the table."""
    return tuple(OPTIONS[name] for name in names)


def add_options(parser: argparse.ArgumentParser, groups: Groups) -> None:
    """Add options to a command; each is found under its name in the table."""
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
    # A run knows its defaults itself, and what nobody says is the file's to say.
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
    """Return tuples per second by source."""
    rates = {}
    for source, text in given.items():
        try:
            number: object = float(text)
        except ValueError:
            number = text
        rate = check_rate(number, f"--rate: source '{source}'", text)
        assert rate is not None  # as it was given
        rates[source] = rate
    return rates


def engine_of(args: argparse.Namespace, network: Network) -> str:
    """Return the engine of a command, or raise a UsageError for one that nobody knows."""
    schedule: Mapping[str, Any] = network.schedule or {}
    engine: str = args.engine or schedule.get("engine") or DEFAULT_ENGINE
    if engine not in engine_names():
        raise UsageError(unknown("engine", engine, engine_names()))
    return engine


def check_options(args: argparse.Namespace, network: Network, engine: str, options: Iterable[Option]) -> None:
    """Raise a UsageError for options that the engine does not know, or that need others."""
    given = [option for option in options if getattr(args, option.name) not in (None, [], {})]
    for option in given:
        if option.engine not in ("", engine):
            raise UsageError(f"{option.long} is for the engine '{option.engine}'; the engine here is '{engine}'")
        if option.name in ("keep", "restart") and args.state is None:
            raise UsageError(f"{option.long} is about a state that is kept; give --state DIR too")
    check_names(network, vars(args), given, flags=True)


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


def load_file(args: argparse.Namespace, *, hosts: bool = False) -> Network:
    """Read the network file with the trust that the options say, for which see `trust_of`.

    Before that, modules that the user named are imported; the current folder counts, last, as for python -m.
    """
    here = str(Path.cwd())
    if args.functions and here not in sys.path:
        sys.path.append(here)
    for module in args.functions:
        load_functions(module)
    return load(Path(args.file), trust=trust_of(args, hosts=hosts))


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
