"""Find the connector for what the user gave, and check the settings that connectors share.

Connectors register themselves here (`register_source`, `register_sink`); this module names none of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Generic, TypeGuard, TypeVar

from headway.clock import Clock
from headway.connectors.protocol import (
    TEXT_LIMIT,
    Reader,
    Request,
    SinkRequest,
    SourceFactory,
    SourceRequest,
    Writer,
)
from headway.connectors.readers import PacedReader
from headway.errors import HeadwayError, InputError, OutputError, check_known, choices, finite, unknown
from headway.network.keep import Keep, Roll
from headway.network.schema import Schema
from headway.network.secrets import mask, masked
from headway.network.trust import OWN, Trust
from headway.paths import unusable
from headway.plugins import Registry

SLOWEST, FASTEST = 1e-9, 1e18
"""The bounds of rates and speed-ups: one tuple in 31 years, and more than any clock resolves."""

_Asked = TypeVar("_Asked", SourceRequest, SinkRequest)
_Opened = TypeVar("_Opened")


class _Kinds(Generic[_Asked, _Opened]):
    """The registered kinds of sources, or of sinks, by name and by file suffix."""

    def __init__(self) -> None:
        self.factories: Registry[Callable[[_Asked], _Opened]] = Registry("connector", HeadwayError)
        self._permits: dict[str, Callable[[_Asked], object] | None] = {}
        self._suffixes: dict[str, str] = {}
        self.rolling: set[str] = set()
        """The kinds of sinks that can write parts."""

    def register(
        self,
        kind: str,
        factory: Callable[[_Asked], _Opened],
        suffixes: tuple[str, ...] = (),
        permit: Callable[[_Asked], object] | None = None,
        rolls: bool = False,
    ) -> None:
        """Register `{kind: settings}`, and paths with one of the suffixes, as a source or a sink.

        `permit` opens nothing and raises the request's error for settings that its trust does not allow. Without it, a
        stranger's file may use the kind only if the operator allows it by name. `rolls` says that a sink observes
        `roll` and `keep` of its request; the others never get them.
        """
        if rolls:
            self.rolling.add(kind)
        self.factories.register(kind, factory)
        self._permits[kind] = permit
        self._suffixes.update(dict.fromkeys(suffixes, kind))

    def names(self) -> tuple[str, ...]:
        """Return the kinds that a connector mapping may name."""
        return self.factories.names()

    def suffixes(self) -> tuple[str, ...]:
        """Return the known file suffixes."""
        return tuple(sorted(self._suffixes))

    def permit(self, request: _Asked) -> tuple[str, _Asked]:
        """Return the kind that a request names, and the request with that kind's settings, if its trust allows them."""
        settings = request.settings
        if isinstance(settings, Mapping):
            kind, settings = self._of_mapping(settings, request)
        else:
            kind = self._of_path(str(settings), request)
        request = replace(request, settings=settings)
        permit = self._permits[kind]
        if permit is not None:
            permit(request)
        elif not request.trust.own:
            request.trust.check_format(kind, (), request.who, request.error, kind="connector")
        return kind, request

    def kind_of(self, path: str) -> str | None:
        """Return the kind that a path names, if any."""
        return "directory" if path.endswith("/") else self._suffixes.get(Path(path).suffix.lower())

    def open(self, request: _Asked) -> _Opened:
        """Open the connector that a mapping or a path names."""
        kind, request = self.permit(request)
        return self.factories[kind].make(request)

    def _of_mapping(self, what: Mapping[object, object], request: Request) -> tuple[str, object]:
        for key, settings in what.items():
            if key not in self._permits:
                hint = scheme_hint(key, request.part == "sink")
                if isinstance(settings, list | tuple):
                    hint = "columns can be given as a pyarrow.Table or a DataFrame"
                message = unknown("connector", str(key), self._permits)
                raise request.error(f"{request.who}: {message}" + (f"; {hint}" if hint else ""))
        if len(what) != 1:
            kinds = choices(self.names())
            raise request.error(f"{request.who}: a connector names one kind, such as {{csv: path}}; choices: {kinds}")
        ((kind, settings),) = what.items()
        return str(kind), settings

    def _of_path(self, path: str, request: Request) -> str:
        if path == "-":
            return "jsonl"
        _refuse_address(path, request)
        suffix, sink = Path(path).suffix.lower(), request.part == "sink"
        if sink and path.endswith("/") and not suffix:
            return "directory"
        if suffix not in self._suffixes:
            raise request.error(
                f"{request.who}: '{path}' has none of the suffixes {choices(self.suffixes())}; '-' is standard "
                f"{'output' if sink else 'input'} as JSON lines"
            )
        return self._suffixes[suffix]


_sources = _Kinds[SourceRequest, Reader]()
_sinks = _Kinds[SinkRequest, Writer]()
_objects: list[tuple[Callable[[object], bool], SourceFactory]] = []

register_source, source_kinds, source_suffixes = _sources.register, _sources.names, _sources.suffixes
register_sink, sink_kinds, sink_suffixes = _sinks.register, _sinks.names, _sinks.suffixes


def register_source_object(accepts: Callable[[object], bool], factory: SourceFactory) -> None:
    """Register a source made from Python objects; the first registered test that accepts an object wins."""
    _objects.append((accepts, factory))


def open_source(
    name: str,
    schema: Schema,
    what: object,
    *,
    rate: float | None = None,
    strict: bool = False,
    base: Path | None = None,
    trust: Trust = OWN,
) -> Reader:
    """Open a source from what the user gave.

    `what` is a path (by suffix; "-" is standard input as JSON lines), an Arrow table, batch or reader, an
    iterable of dicts or of tuples in field order, a connector mapping such as {csv: path}, or a Reader. With
    `rate`, in tuples per second, it becomes timed. `strict` makes a malformed row an InputError. Relative paths
    are resolved against `base`. Raises InputError if it cannot be opened or `trust` does not allow it.
    """
    who = f"source '{name}'"
    request = SourceRequest(name, schema, what, base, trust, check_rate(rate, who), strict)
    if isinstance(what, Reader):
        reader = what
    elif isinstance(what, Mapping | str | Path):
        reader = _sources.open(request)
    else:
        factory = next((factory for accepts, factory in _objects if accepts(what)), None)
        if factory is None:
            raise InputError(
                f"{who}: cannot read from {type(what).__name__}; give a path, an Arrow table, batch or reader, "
                f"an iterable of dicts or tuples, or a connector ({choices(source_kinds())})"
            )
        reader = factory(request)
    return reader if request.rate is None or reader.timed else PacedReader(reader, request.rate)


def open_sink(
    name: str,
    schema: Schema,
    what: object,
    base: Path | None = None,
    trust: Trust = OWN,
    *,
    roll: Roll | None = None,
    keep: Keep | None = None,
    clock: Clock | None = None,
) -> Writer:
    """Open an output from what the user gave.

    `what` is a path (by suffix; "-" is standard output as JSON lines), a function of a record batch, a
    connector mapping such as {csv: path}, a Writer, or None to discard. Relative paths are resolved against `base`.
    With `roll`, an output to files becomes parts, each complete when it appears, by `clock` (default: the wall's); with
    `keep`, old parts are deleted. Raises OutputError if it cannot be opened or `trust` does not allow it.
    """
    request = SinkRequest(name, schema, what, base, trust, roll, keep, clock)
    if (roll is not None or (keep is not None and not keep.all)) and not can_roll(what):
        kinds, key = choices(sorted(_sinks.rolling)), "keep" if roll is None else "roll"
        raise OutputError(f"{request.who}: {key}: only outputs to files roll over ({kinds}), and this is none")
    if roll is None and keep is not None and not keep.all:
        raise OutputError(f"{request.who}: keep: nothing is deleted from a file; with roll, whole files are")
    if isinstance(what, Writer):
        return what
    if isinstance(what, Mapping | str | Path):
        return _sinks.open(request)
    if what is None or callable(what):
        return _sinks.factories["discard" if what is None else "callback"].make(request)
    raise OutputError(
        f"{request.who}: cannot write to {type(what).__name__}; give a path, a function of a record batch, "
        f"a connector ({choices(sink_kinds())}) or None"
    )


def can_roll(what: object) -> bool:
    """Whether an output to this destination can be written in parts."""
    if isinstance(what, Mapping):
        return next(iter(what), None) in _sinks.rolling and not any(str(one) == "-" for one in what.values())
    return isinstance(what, str | Path) and _sinks.kind_of(str(what)) in _sinks.rolling


def permit_source(name: str, schema: Schema, what: object, base: Path | None, trust: Trust) -> None:
    """Raise an InputError if a file's source is not allowed by `trust`; opens and contacts nothing."""
    if isinstance(what, Mapping | str | Path):
        _sources.permit(SourceRequest(name, schema, what, base, trust))


def permit_sink(name: str, schema: Schema, what: object, base: Path | None, trust: Trust) -> None:
    """Raise an OutputError if a file's output is not allowed by `trust`; opens and contacts nothing."""
    if isinstance(what, Mapping | str | Path):
        _sinks.permit(SinkRequest(name, schema, what, base, trust))


def permit_path(request: Request) -> None:
    """Check the trust for a connector whose settings are a path."""
    permit_file(request, request.settings)


def permit_file(request: Request, path: object, kind: str = "") -> None:
    """Check the trust for a path that a source would read, or a sink write; messages name the `kind` of connector."""
    if isinstance(path, str | Path):
        who = f"{request.who}: {request.part}" + (f": {kind}" if kind else "")
        request.trust.check_path(path, request.base, who, request.error, write=request.part == "sink")


def permit_anyone(request: Request) -> None:
    """Allow a kind that accesses nothing outside the run."""


def check_rate(rate: object, who: str, given: str | None = None) -> float | None:
    """Return a rate in tuples per second, or raise InputError; `given` is the rate as the user wrote it."""
    if rate is None:
        return None
    number, said = finite(rate), rate if given is None else given
    if number is None or number <= 0:
        raise InputError(f"{who}: rate is a number of tuples per second above 0, not {said!r}")
    if not SLOWEST <= number <= FASTEST:
        raise InputError(f"{who}: rate is from {SLOWEST:g} to {FASTEST:g} tuples per second, not {said!r}")
    return number


def find_path(request: Request, path: object) -> Path:
    """Return the path in a file connector's settings, text or a Path; a relative one is resolved against the base."""
    if not isinstance(path, str | Path) or not str(path):
        raise request.error(f"{request.who}: expected a path, not {masked(path)!r}")
    _refuse_address(path, request)
    found = Path(path) if request.base is None else request.base / path
    wrong = unusable(found)
    if wrong:
        raise request.error(f"{request.who}: '{found}' is not a valid path: {wrong}")
    return found


def check_keys(
    settings: object, allowed: tuple[str, ...], what: str, error: type[HeadwayError] = InputError
) -> Mapping[str, object]:
    """Return settings if they are a mapping with allowed keys only, or raise `error`; `what` is what takes them."""
    if not isinstance(settings, Mapping):
        raise error(f"{what} expects a mapping with the keys {choices(allowed)}, not {masked(settings)!r}")
    check_known("key", settings, allowed, error, what)
    return {str(key): value for key, value in settings.items()}


def is_whole(value: object, least: int) -> TypeGuard[int]:
    """Whether a setting is a whole number of at least `least`."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _refuse_address(what: str | Path, request: Request) -> None:
    """Raise if a path is an address such as ``kafka://host``, and say what to write instead."""
    sink = request.part == "sink"
    hint = scheme_hint(what, sink) if ":" in str(what) else ""
    if hint:
        verb = "written" if sink else "read"
        raise request.error(f"{request.who}: '{mask(str(what)[:TEXT_LIMIT])}' cannot be {verb}: {hint}")


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/?/")
_FILES = ("s3", "s3a", "s3n", "gs", "hdfs", "abfs", "abfss", "wasb", "wasbs", "adl", "oss", "dbfs")
_OTHERS = ("amqp", "amqps", "mqtt", "mqtts", "nats", "pulsar", "redis", "rediss", "ws", "wss", "tcp", "udp", "zmq")


def scheme_hint(what: object, sink: bool) -> str:
    """Return what to write instead of an address or a bare system name; empty if it is neither."""
    text = str(what)
    found = _SCHEME.match(text)
    scheme, side = (found[1] if found else text).lower(), "sink" if sink else "source"
    if scheme == "file" and found:
        return "write the path without file://"
    hint = "it is an address, not a file; Spark's formats are reached by {spark: {format: ...}}" if found else ""
    if scheme == "kafka":
        topic = "topic: TOPIC" if sink else "subscribe: TOPIC"
        options = f'options: {{kafka.bootstrap.servers: "HOST:9092", {topic}}}'
        hint = f"Kafka is reached through Spark: {side}: {{spark: {{format: kafka, {options}}}}}"
    elif scheme in _FILES and found:
        hint = f"such files are reached through Spark: {side}: {{spark: {{format: parquet, path: '{text[:200]}'}}}}"
    elif scheme == "jdbc" or text.lower().startswith("jdbc:"):
        hint = "the tables of a database are read by {sql: {url: URL, table: TABLE}}, without jdbc:"
        if sink:
            hint = "sink: {spark: {format: jdbc, options: {url: URL, dbtable: TABLE}}}"
    elif scheme.partition("+")[0] in ("postgresql", "postgres", "sqlite", "mysql", "mariadb") and not sink:
        hint = "the tables of a database are read by {sql: {url: URL, table: TABLE}}"
    elif scheme in ("http", "https", "ftp", "ftps"):
        way = "fetch it: curl URL | headway run ... --input NAME=-"
        if sink:
            way = "pipe it: headway run ... --output NAME=- | curl"
        hint = f"nothing here speaks {scheme.upper()}; {way}"
    elif scheme in _OTHERS:
        way = "--output NAME=- gives JSON lines to pipe on" if sink else "pipe JSON lines in with --input NAME=-"
        hint = f"there is no connector for it; {way}, or write your own {side}"
    return f"{hint}; see docs/connectors.md" if hint else ""
