"""What a run opens: readers of sources, sinks of outputs, and the dead letters' file; no file is used twice."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import pyarrow as pa

from headway.catalog import HALF_LIFE
from headway.checking import CheckedNetwork
from headway.clock import Clock, WallClock
from headway.connectors import TableSink, open_sink, open_source
from headway.connectors.protocol import Ageing, Reader, Writer, prepare
from headway.connectors.registry import can_roll, permit_sink, permit_source
from headway.connectors.stored import open_data
from headway.engines.dead_letters import DEAD_LETTERS, DeadLetters
from headway.engines.delivery import Delivery, Listener
from headway.engines.runs import RunSettings
from headway.engines.signals import Stopping
from headway.errors import HeadwayError, InputError, NetworkError, OutputError
from headway.network import FrozenMap, Keep, Network, Output, Point, Roll, Source, Table, thaw
from headway.network.schema import Schema
from headway.network.trust import OWN, Trust
from headway.paths import unusable
from headway.tables import Statics, load_static, point_data
from headway.tables.datasets import FILES

LETTERS = "dead letters"
"""The name of the dead letters among the outputs."""


class Use(NamedTuple):
    """A file and its user, in the wording of messages."""

    who: str
    path: Path


def is_standard(what: object) -> bool:
    """Return whether a destination or an input is standard output or input."""
    if isinstance(what, Mapping) and len(what) == 1:
        what = next(iter(what.values()))
    return isinstance(what, str) and what == "-"  # an input may be an array, which compares element by element


def file_of(what: object, base: Path | None = None) -> Path | None:
    """Return the file that a connector names (a path, ``{csv: path}``, ``{replay: {file: path}}``), or None."""
    if isinstance(what, Mapping) and len(what) == 1:
        what = next(iter(what.values()))
        if isinstance(what, Mapping):
            what = what.get("file")
    if not isinstance(what, str | Path) or str(what) in ("", "-"):
        return None
    return Path(what) if base is None else base / what


def check_files(
    network: Network,
    inputs: Mapping[str, object],
    writes: Mapping[str, object],
    file: Path | None = None,
    tables: Collection[str] = (),
) -> None:
    """Raise before anything is opened if a file is both read and written, or written twice.

    `inputs` are the run's own, by source. `writes` are destinations beside the network's own sinks, by the user that
    messages name, such as ``output 'x'``. `file` is the network's file, `tables` names static tables already loaded.
    """
    reads = [] if file is None else [Use("the network file", file)]
    standard = []
    for source in network.sources:
        given = source.name in inputs
        if not given and network.streamed(source.name) is not None:
            continue  # read as a point
        what = inputs[source.name] if given else thaw(source.connector)
        path = file_of(what, None if given else network.folder)
        if path is not None:
            reads.append(_usable(Use(f"source '{source.name}'", path), InputError))
        elif is_standard(what):
            standard.append(source.name)
    if len(standard) > 1:
        raise InputError(f"only one source can read standard input, not {' and '.join(map(repr, standard))}")
    reads += [
        _usable(Use(f"table '{item.ref}'", path), NetworkError)
        for item in _tables(network)
        if item.ref not in tables and (path := _file_of_table(item, network.folder)) is not None
    ]
    for point in network.points:
        path = None if point.data is None or point.name in tables else _file_of_data(point.data, network.folder)
        if path is not None:
            reads.append(_usable(Use(f"point '{point.name}'", path), NetworkError))
    written: list[Use] = []
    sinks = {f"output '{output.name}'": thaw(output.sink) for output in network.outputs}
    for who, what in {**sinks, **writes}.items():
        path = file_of(what, None if who in writes else network.folder)
        if path is not None:
            use = _usable(Use(who, path), OutputError)
            _check_use(use, reads, "reads")
            _check_use(use, written, "writes")
            written.append(use)


def table_refs(network: Network) -> tuple[str, ...]:
    """Return the names of a network's static tables, dangling points included."""
    refs = [item.ref for item in _tables(network)]
    refs += [point.name for point in network.points if point.data is not None]
    return tuple(dict.fromkeys(refs))


def _tables(network: Network) -> list[Table]:
    return [item for box in network.boxes for item in box.inputs if isinstance(item, Table)]


def _file_of_table(table: Table, base: Path | None) -> Path | None:
    """Return the file that a static table is read from, as far as its name or description says."""
    return _file_of_data(table.ref if table.data is None else table.data, base)


def _file_of_data(data: FrozenMap | str, base: Path | None) -> Path | None:
    what = data if isinstance(data, str) else next((data[kind] for kind in FILES if kind in data), "")
    return (base or Path()) / what if Path(what).suffix else None


def _usable(use: Use, error: type[HeadwayError]) -> Use:
    wrong = unusable(use.path)
    if wrong:
        raise error(f"{use.who}: '{use.path}' is not a valid path: {wrong}")
    return use


def _check_use(use: Use, others: list[Use], verb: str) -> None:
    for other in others:
        if _same(use.path, other.path):
            raise OutputError(f"{use.who} would write to '{use.path}', which {other.who} {verb}; give it another path")


def _same(one: Path, other: Path) -> bool:
    try:
        if one.exists() and other.exists():
            return one.samefile(other)
    except (OSError, ValueError):
        return False  # opening the file reports the problem
    return os.path.realpath(one) == os.path.realpath(other)


def permit(checked: CheckedNetwork, settings: RunSettings) -> None:
    """Raise, before anything is opened, for what the network file may not name; the run's own settings are trusted."""
    network = checked.network
    for source in network.sources:
        if source.name not in settings.inputs and network.streamed(source.name) is None:  # a point's was read already
            permit_source(source.name, source.schema, thaw(source.connector), network.folder, network.trust)
    for output in network.outputs:
        if output.name not in settings.outputs:
            schema = checked.output_schema(output.name)
            permit_sink(output.name, schema, thaw(output.sink), network.folder, network.trust)


def open_readers(checked: CheckedNetwork, settings: RunSettings, stack: contextlib.ExitStack) -> list[Reader]:
    """Return a reader for each source, from the run's inputs or else the network file; `stack` closes them."""
    network = checked.network
    readers: list[Reader] = []
    for source in network.sources:
        reader = open_reader(network, source, settings)
        stack.callback(reader.close)
        readers.append(reader)
    return readers


def open_reader(network: Network, source: Source, settings: RunSettings) -> Reader:
    """Return the reader of a source, from the run's inputs or else the network file."""
    own = source.name in settings.inputs
    point = None if own else network.streamed(source.name)
    if point is not None:
        return _open_stored(network, source, point, settings)
    given = settings.inputs.get(source.name, thaw(source.connector))
    if given is None and source.push:
        raise InputError(
            f"source '{source.name}' is pushed to while the network runs: start it with headway.start, "
            "or give it an input"
        )
    if given is None:
        raise InputError(
            f"source '{source.name}' has no input: give one for it, or a 'source:' in the network file; or "
            "callers push to it (`push: true`), while the network runs"
        )
    return open_source(
        source.name,
        source.schema,
        given,
        rate=settings.rates.get(source.name),
        strict=settings.strict,
        base=None if own else network.folder,
        trust=network.trust.by_operator() if own else network.trust,
    )


def _open_stored(network: Network, source: Source, point: Point, settings: RunSettings) -> Reader:
    """Return a reader of a point's stored data: as it was read to be looked up, if it was, or as it is."""
    name, rate, tables = source.name, settings.rates.get(source.name), Statics.of_run(settings.tables)
    if point.name not in tables and not isinstance(tables.read(network, point.name), pa.Table):
        data = point_data(point, network.folder, network.trust)
        return open_data(name, data, schema=source.schema, rate=rate)
    return open_source(name, source.schema, load_static(network, Table(point.name), tables), rate=rate, strict=True)


class Destination(NamedTuple):
    """An output and where it goes: where the run says, otherwise where the network file says."""

    output: Output
    schema: Schema
    what: object
    """What the user gave as its sink; None: a table in memory."""
    base: Path | None = None
    trust: Trust = OWN
    given: bool = False
    """Whether the run says where it goes."""
    listener: Listener | None = None
    """Who gets what it delivers, from the first tuple on."""
    writer: Writer | None = None
    """Its sink, if it was opened before."""

    def open(self, clock: Clock) -> Writer:
        """Return the sink, opened; what it keeps, and when its files are complete, goes by the clock."""
        if self.writer is not None:
            return self.writer
        keep, roll = self.output.keep, self.output.roll
        if self.what is None:
            return TableSink(self.schema, keep, clock)
        if self.given:  # the file's `keep` and `roll` may be about a sink of another kind
            roll = roll if can_roll(self.what) else None
            keep = None if roll is None else keep
        return open_sink(
            self.output.name, self.schema, self.what, self.base, self.trust, roll=roll, keep=keep, clock=clock
        )


def destination_of(checked: CheckedNetwork, settings: RunSettings, output: Output) -> Destination:
    """Return where an output goes."""
    network, schema = checked.network, checked.output_schema(output.name)
    if output.view:  # its results are kept as history
        return Destination(output, schema, {"discard": None})
    if output.name not in settings.outputs:
        return Destination(output, schema, thaw(output.sink), network.folder, network.trust)
    what = settings.outputs[output.name]
    what = {"discard": None} if what is None else what
    return Destination(output, schema, what, None, network.trust.by_operator(), given=True)


class Outlet:
    """One output: its sink, and the measurements of what is delivered there."""

    def __init__(
        self, to: Destination, clock: Clock, half_life: float = HALF_LIFE, writer: Writer | None = None
    ) -> None:
        """Deliver to a destination, or for now to another writer."""
        self.to = to
        self.writer = to.open(clock) if writer is None else writer
        self.delivery = Delivery(to.output, to.schema, self.writer, clock, half_life)
        if to.listener is not None:
            self.delivery.listen(to.listener)

    @property
    def table(self) -> pa.Table | None:
        """The results, if there is no sink for them."""
        return self.writer.table if self.to.what is None and isinstance(self.writer, TableSink) else None

    def prepare(self) -> None:
        """Do everything needed to complete the output, except making it visible."""
        prepare(self.writer)


def _open_letters(what: object, keep: Keep | None, roll: Roll | None, clock: Clock) -> Writer:
    """Open the sink of the dead letters."""
    keep = None if roll is None else keep  # without parts, only what is in memory is bounded
    return open_sink(LETTERS, Schema.from_arrow(DEAD_LETTERS), what, roll=roll, keep=keep, clock=clock)


def _look_of(writer: Writer) -> Callable[[], None] | None:
    """Return what has to be called several times a second, if time has an effect on a writer."""
    return writer.look if isinstance(writer, Ageing) and writer.ageing else None


AnOutlet = TypeVar("AnOutlet", bound=Outlet)


class Outlets(Generic[AnOutlet]):
    """The outputs of a run by name, and its dead letters: completed together, or none of them."""

    def __init__(
        self,
        checked: CheckedNetwork,
        settings: RunSettings,
        stack: contextlib.ExitStack,
        stopping: Stopping,
        make: Callable[[Destination], AnOutlet],
        clock: Clock | None = None,
        letters_keep: Keep | None = None,
        letters_roll: Roll | None = None,
    ) -> None:
        """Open all outputs with `make`; if `stack` is closed before `complete`, they are aborted.

        How many dead letters are kept (None: the first ones in memory, all in files), and when their files are
        complete, goes by the clock (default: that of the settings).
        """
        clock = clock or settings.clock or WallClock()
        self._stopping, self._settings, self._make = stopping, settings, make
        self.retired: dict[str, AnOutlet] = {}
        """The outputs that were removed while it ran, by name."""
        self._letters: list[Writer] = []  # the writer of their file, if the user wants one
        self._complete = False
        self.outlets: dict[str, AnOutlet] = {}
        stack.callback(self._abort)
        with stopping.held():  # a signal must not come between opening a file and registering it for cleanup
            for output in checked.network.outputs:
                self.outlets[output.name] = make(destination_of(checked, settings, output))
            if settings.dead_letters is not None:
                self._letters = [_open_letters(settings.dead_letters, letters_keep, letters_roll, clock)]
            write = self._letters[0].write if self._letters else None
            look = next((_look_of(writer) for writer in self._letters), None)
            self.letters = DeadLetters(settings.strict, write, letters_keep, clock, look)
        self._ageing = self._aged()

    def exchange(self, checked: CheckedNetwork, destinations: Mapping[str, Destination]) -> None:
        """Deliver to the outputs of another network: some are new, some go on, and the others are complete."""
        before, self.outlets = self.outlets, {}
        for output in checked.network.outputs:
            name = output.name
            with self._stopping.held():
                one = self._make(destinations[name]) if name in destinations else before.pop(name)
                self.outlets[name] = one
            one.delivery.judge(output.qos)
            if isinstance(one.writer, TableSink):
                one.writer.limit(output.keep)
        for name, one in before.items():
            one.prepare()
            one.writer.close()
            one.delivery.end(f"output '{name}' {'begins anew' if name in self.outlets else 'was removed'}")
            self.retired[name] = one
        self._ageing = self._aged()

    def _aged(self) -> list[Delivery]:
        return [one.delivery for one in self.outlets.values() if _look_of(one.writer) is not None]

    @property
    def deliveries(self) -> dict[str, Delivery]:
        """The deliveries by output, in the network's order."""
        return {name: one.delivery for name, one in self.outlets.items()}

    def complete(self) -> dict[str, pa.Table]:
        """Complete all outputs, or none; return the tables of outputs without a sink.

        Slow and fallible work comes first and can be interrupted. Then all files get their names together.
        """
        for one in self.outlets.values():
            one.prepare()
        for letters in self._letters:
            prepare(letters)
        self._stopping.shield()
        for writer in self._writers():
            writer.close()
        self._complete = True
        every = {**self.retired, **self.outlets}
        return {name: table for name, one in every.items() if (table := one.table) is not None}

    @property
    def ageing(self) -> bool:
        """Whether time has an effect on an output, also while nothing is delivered."""
        return bool(self._ageing) or self.letters.ageing

    def look(self) -> None:
        """Complete the files that are due, and drop what is too old; cheap where there is nothing of the kind."""
        for delivery in self._ageing:
            delivery.look()
        self.letters.look()

    def _writers(self) -> list[Writer]:
        return [*(one.writer for one in self.outlets.values()), *self._letters]

    def _abort(self) -> None:
        for writer in () if self._complete else self._writers():
            writer.abort()
