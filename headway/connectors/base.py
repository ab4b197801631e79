"""What a source and a sink are, and how one is found for what the user gave.

A connector kind registers itself here (`register_source`, `register_sink`); this module names none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from headway.columns import Int64s
from headway.connectors.schemes import scheme_hint
from headway.errors import HeadwayError, InputError, OutputError, choices, finite, unknown
from headway.paths import unusable
from headway.schema import Schema
from headway.trust import OWN, Trust

TEXT_LIMIT = 500
"""At most this many characters of a malformed row are kept."""

PENDING_LIMIT = 10_000
"""A read that has met this many malformed rows hands over, so that memory does not grow with the input."""


SLOWEST, FASTEST = 1e-9, 1e18
"""The bounds of rates and speeds: a tuple in 31 years, and more than any clock tells apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Tuples that a source handed over, in arrival order.

    `batch` has exactly the source's schema. `due` holds the arrival moments of a timed source: nanoseconds
    since the start of the run, ascending. It is None for a source whose tuples arrive as soon as they are asked for.
    """

    batch: pa.RecordBatch
    due: Int64s | None = None

    def __len__(self) -> int:
        """Return the number of tuples."""
        return int(self.batch.num_rows)


@dataclass(frozen=True, slots=True)
class Malformed:
    """A row of an input that is no tuple: where it stands, how it begins, and why it was refused."""

    source: str
    where: str
    text: str
    reason: str

    def __str__(self) -> str:
        """Return one line for people."""
        return f"source '{self.source}': {self.where}: {self.reason}"


@runtime_checkable
class Reader(Protocol):
    """One open source. Used by one thread at a time; `close` may come from another."""

    @property
    def timed(self) -> bool:
        """Whether chunks carry `due` moments. The reader never sleeps: who reads it waits until they are due."""
        ...

    @property
    def finite(self) -> bool:
        """Whether the source is known to end."""
        ...

    @property
    def live(self) -> bool:
        """Whether `read` can block on the outside world, so that it needs a thread of its own."""
        ...

    def read(self, limit: int) -> Chunk | None:
        """Return the next tuples, at most `limit`, or None at the end.

        A chunk has at least one tuple, with one exception: after very many malformed rows in a row (PENDING_LIMIT)
        an empty chunk gives the caller a chance to collect them. How a source is cut into reads does not change
        its tuples.
        """
        ...

    def malformed(self) -> list[Malformed]:
        """Return the malformed rows met since the last call."""
        ...

    def close(self) -> None:
        """Release what the source holds. May be called twice."""
        ...


@runtime_checkable
class Writer(Protocol):
    """One open output. Used by one thread at a time.

    It may also have a method `prepare`, without arguments, that does beforehand what takes long in `close` or may fail.
    A run prepares all its outputs before it closes any, so that all of them appear or none. `abort` may still follow.
    """

    def write(self, batch: pa.RecordBatch) -> None:
        """Take the next tuples. It may block: that holds the run back."""
        ...

    def close(self) -> None:
        """Complete the output. Only now does a file appear under its name."""
        ...

    def abort(self) -> None:
        """Give up, so that what was written is not mistaken for a result. Does nothing after `close`."""
        ...


def prepare(writer: Writer) -> None:
    """Let a writer do beforehand what closing it takes; nothing for those that need no preparation."""
    getattr(writer, "prepare", lambda: None)()


class PipeClosedError(OutputError):
    """Whoever read the output has stopped reading, as `head` does. A reason to end quietly."""


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """What a source factory gets: who asks, for which tuples, and the settings of this kind (or the object given)."""

    name: str
    schema: Schema
    settings: object
    rate: float | None = None
    strict: bool = False
    base: Path | None = None
    trust: Trust = OWN

    @property
    def who(self) -> str:
        """The start of every message about this source."""
        return f"source '{self.name}'"


@dataclass(frozen=True, slots=True)
class SinkRequest:
    """What a sink factory gets."""

    name: str
    schema: Schema
    settings: object
    base: Path | None = None
    trust: Trust = OWN

    @property
    def who(self) -> str:
        """The start of every message about this output."""
        return f"output '{self.name}'"


SourceFactory = Callable[[SourceRequest], Reader]
SinkFactory = Callable[[SinkRequest], Writer]
SourcePermit = Callable[[SourceRequest], None]
SinkPermit = Callable[[SinkRequest], None]

_sources: dict[str, SourceFactory] = {}
_sinks: dict[str, SinkFactory] = {}
_source_permits: dict[str, SourcePermit] = {}
_sink_permits: dict[str, SinkPermit] = {}
_source_suffixes: dict[str, str] = {}
_sink_suffixes: dict[str, str] = {}
_source_objects: list[tuple[Callable[[object], bool], SourceFactory]] = []


def register_source(
    kind: str, factory: SourceFactory, suffixes: tuple[str, ...] = (), permit: SourcePermit | None = None
) -> None:
    """Make `{kind: settings}` a source, and also paths with one of the suffixes.

    `permit` raises an InputError for settings that the request's trust does not allow, and opens nothing; a kind
    without one is closed to strangers unless the operator allows it by name.
    """
    _sources[kind] = factory
    _set_permit(_source_permits, kind, permit)
    _source_suffixes.update(dict.fromkeys(suffixes, kind))


def register_sink(
    kind: str, factory: SinkFactory, suffixes: tuple[str, ...] = (), permit: SinkPermit | None = None
) -> None:
    """Make `{kind: settings}` a sink, and also paths with one of the suffixes; `permit` is as for sources."""
    _sinks[kind] = factory
    _set_permit(_sink_permits, kind, permit)
    _sink_suffixes.update(dict.fromkeys(suffixes, kind))


def register_source_object(accepts: Callable[[object], bool], factory: SourceFactory) -> None:
    """Make Python objects a source; the first registered test that accepts an object wins."""
    _source_objects.append((accepts, factory))


def source_kinds() -> tuple[str, ...]:
    """Return the kinds of sources a connector mapping may name."""
    return tuple(sorted(_sources))


def sink_kinds() -> tuple[str, ...]:
    """Return the kinds of sinks a connector mapping may name."""
    return tuple(sorted(_sinks))


def source_suffixes() -> tuple[str, ...]:
    """Return the file suffixes that can be read."""
    return tuple(sorted(_source_suffixes))


def sink_suffixes() -> tuple[str, ...]:
    """Return the file suffixes that can be written."""
    return tuple(sorted(_sink_suffixes))


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
    """Open what the user gave for a source.

    `what` is a path (by suffix; "-" is standard input as JSON lines), an Arrow table, batch or reader, an
    iterable of dicts or of tuples in field order, a connector mapping such as {csv: path}, or a Reader. With
    `rate`, tuples per second, it becomes timed. `strict` makes a malformed row an InputError. Relative paths
    count from `base`. Raises InputError for whatever cannot be opened, or is not allowed by `trust`.
    """
    who = f"source '{name}'"
    if isinstance(what, Reader):
        return _paced(what, check_rate(rate, who))
    if isinstance(what, Mapping | str | Path):
        kind, settings = _source_kind(what, who)
        request = SourceRequest(name, schema, settings, check_rate(rate, who), strict, base, trust)
        _permit(kind, request, _source_permits, InputError)
        return _paced(_sources[kind](request), request.rate)
    factory = next((factory for accepts, factory in _source_objects if accepts(what)), None)
    if factory is None:
        raise InputError(
            f"{who}: cannot read from {type(what).__name__}; give a path, an Arrow table, batch or reader, "
            f"an iterable of dicts or tuples, or a connector ({choices(source_kinds())})"
        )
    rate = check_rate(rate, who)
    return _paced(factory(SourceRequest(name, schema, what, rate, strict, base, trust)), rate)


def permit_source(name: str, schema: Schema, what: object, base: Path | None, trust: Trust) -> None:
    """Raise an InputError if a file says of a source what `trust` does not allow; opens and contacts nothing."""
    if isinstance(what, Mapping | str | Path):
        kind, settings = _source_kind(what, f"source '{name}'")
        request = SourceRequest(name, schema, settings, base=base, trust=trust)
        _permit(kind, request, _source_permits, InputError)


def permit_sink(name: str, schema: Schema, what: object, base: Path | None, trust: Trust) -> None:
    """Raise an OutputError if a file says of an output what `trust` does not allow; opens and contacts nothing."""
    if isinstance(what, Mapping | str | Path):
        kind, settings = _sink_kind(what, f"output '{name}'")
        _permit(kind, SinkRequest(name, schema, settings, base, trust), _sink_permits, OutputError)


def permit_file(request: SourceRequest) -> None:
    """Permit a source whose settings are a path to read."""
    if isinstance(request.settings, str | Path):
        request.trust.check_path(request.settings, request.base, f"{request.who}: source", InputError)


def permit_target(request: SinkRequest) -> None:
    """Permit a sink whose settings are a path to write."""
    if isinstance(request.settings, str | Path):
        request.trust.check_path(request.settings, request.base, f"{request.who}: sink", OutputError, write=True)


def permit_anyone(request: SourceRequest | SinkRequest) -> None:
    """Permit a kind that reaches nothing outside the run."""


def open_sink(name: str, schema: Schema, what: object, base: Path | None = None, trust: Trust = OWN) -> Writer:
    """Open what the user gave for an output.

    `what` is a path (by suffix; "-" is standard output as JSON lines), a function of a record batch, a
    connector mapping such as {csv: path}, a Writer, or None to discard. Raises OutputError for whatever
    cannot be opened, or is not allowed by `trust`.
    """
    who = f"output '{name}'"
    if isinstance(what, Writer):
        return what
    settings = what
    if what is None:
        kind = "discard"
    elif isinstance(what, Mapping | str | Path):
        kind, settings = _sink_kind(what, who)
    elif callable(what):
        kind = "callback"
    else:
        raise OutputError(
            f"{who}: cannot write to {type(what).__name__}; give a path, a function of a record batch, "
            f"a connector ({choices(sink_kinds())}) or None"
        )
    request = SinkRequest(name, schema, settings, base, trust)
    if isinstance(what, Mapping | str | Path):
        _permit(kind, request, _sink_permits, OutputError)
    return _sinks[kind](request)


def check_rate(rate: object, who: str) -> float | None:
    """Return a rate in tuples per second, or raise InputError."""
    if rate is None:
        return None
    number = finite(rate)
    if number is None or number <= 0:
        raise InputError(f"{who}: rate is a number of tuples per second above 0, not {rate!r}")
    if not SLOWEST <= number <= FASTEST:
        raise InputError(f"{who}: rate is from {SLOWEST:g} to {FASTEST:g} tuples per second, not {rate!r}")
    return number


def find_path(settings: object, who: str, base: Path | None, error: type[HeadwayError]) -> Path:
    """Return the path in a file connector's settings: text or a Path, relative ones from `base`."""
    if not isinstance(settings, str | Path) or not str(settings):
        raise error(f"{who}: expected a path, not {settings!r}")
    _refuse_address(settings, who, error)
    path = Path(settings) if base is None else base / settings
    wrong = unusable(path)
    if wrong:
        raise error(f"{who}: '{path}' is no path: {wrong}")
    return path


def check_keys(settings: object, allowed: tuple[str, ...], who: str, what: str) -> Mapping[str, object]:
    """Return settings that are a mapping with known keys only, or raise InputError."""
    if not isinstance(settings, Mapping):
        raise InputError(f"{who}: {what} expects a mapping with the keys {choices(allowed)}, not {settings!r}")
    for key in settings:
        if key not in allowed:
            raise InputError(f"{who}: {what}: {unknown('key', str(key), allowed)}")
    return {str(key): value for key, value in settings.items()}


_Request = TypeVar("_Request", SourceRequest, SinkRequest)
_Permit = TypeVar("_Permit", SourcePermit, SinkPermit)


def _set_permit(permits: dict[str, _Permit], kind: str, permit: _Permit | None) -> None:
    permits.pop(kind, None)
    if permit is not None:
        permits[kind] = permit


def _permit(
    kind: str, request: _Request, permits: Mapping[str, Callable[[_Request], None]], error: type[HeadwayError]
) -> None:
    """Ask the kind itself; one that has no answer is closed to strangers."""
    permit = permits.get(kind)
    if permit is not None:
        permit(request)
    elif not request.trust.own:
        request.trust.check_format(kind, (), request.who, error, kind="connector")


def _source_kind(what: Mapping[Any, Any] | str | Path, who: str) -> tuple[str, object]:
    if isinstance(what, Mapping):
        return _connector(what, who, _sources, InputError)
    return _kind_of_path(what, who, _source_suffixes, InputError, "standard input"), what


def _sink_kind(what: Mapping[Any, Any] | str | Path, who: str) -> tuple[str, object]:
    if isinstance(what, Mapping):
        return _connector(what, who, _sinks, OutputError)
    _refuse_address(what, who, OutputError)
    if str(what).endswith("/") and not Path(what).suffix:
        return "directory", what
    return _kind_of_path(what, who, _sink_suffixes, OutputError, "standard output"), what


def _paced(reader: Reader, rate: float | None) -> Reader:
    if rate is None or reader.timed:
        return reader
    from headway.connectors.pacing import PacedReader

    return PacedReader(reader, rate)


def _connector(
    what: Mapping[object, object], who: str, kinds: Mapping[str, object], error: type[HeadwayError]
) -> tuple[str, object]:
    named = [str(key) for key in what]
    for key in named:
        if key not in kinds:
            hint = scheme_hint(key, error is OutputError)
            if isinstance(what[key], list | tuple):
                hint = "columns can be given as a pyarrow.Table or a DataFrame"
            raise error(f"{who}: {unknown('connector', key, kinds)}" + (f"; {hint}" if hint else ""))
    if len(named) != 1:
        raise error(f"{who}: a connector names one kind, such as {{csv: path}}; choices: {choices(sorted(kinds))}")
    return named[0], what[named[0]]


def _kind_of_path(what: str | Path, who: str, suffixes: Mapping[str, str], error: type[HeadwayError], dash: str) -> str:
    if str(what) == "-":
        return "jsonl"
    _refuse_address(what, who, error)
    kind = suffixes.get(Path(what).suffix.lower())
    if kind is None:
        raise error(
            f"{who}: '{what}' has none of the suffixes {choices(sorted(suffixes))}; '-' is {dash} as JSON lines"
        )
    return kind


def _refuse_address(what: str | Path, who: str, error: type[HeadwayError]) -> None:
    """Raise if a path is an address such as ``kafka://host``, with what to write instead."""
    hint = scheme_hint(what, error is OutputError) if ":" in str(what) else ""
    if hint:
        raise error(
            f"{who}: '{str(what)[:TEXT_LIMIT]}' cannot be {'written' if error is OutputError else 'read'}: {hint}"
        )
