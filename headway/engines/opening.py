"""What a run opens: readers of sources, sinks of outputs, and the dead letters' file; no file is used twice."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from headway.checking import CheckedNetwork
from headway.clock import Clock
from headway.connectors import TableSink, open_sink, open_source
from headway.connectors.protocol import Reader, Writer, prepare
from headway.connectors.registry import permit_sink, permit_source
from headway.engines.control import Stopping
from headway.engines.dead_letters import DEAD_LETTERS, DeadLetters
from headway.engines.delivery import Delivery
from headway.engines.runs import RunSettings
from headway.errors import HeadwayError, InputError, NetworkError, OutputError
from headway.network import Network, Table, thaw
from headway.network.schema import Schema
from headway.paths import unusable

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
        what = inputs[source.name] if given else thaw(source.connector)
        path = file_of(what, None if given else network.folder)
        if path is not None:
            reads.append(_usable(Use(f"source '{source.name}'", path), InputError))
        elif is_standard(what):
            standard.append(source.name)
    if len(standard) > 1:
        raise InputError(f"only one source can read standard input, not {' and '.join(map(repr, standard))}")
    reads += [
        _usable(Use(f"table '{ref}'", (network.folder or Path()) / ref), NetworkError)
        for ref in table_refs(network)
        if Path(ref).suffix and ref not in tables
    ]
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
    """Return the names of a network's static tables."""
    refs = [item.ref for box in network.boxes for item in box.inputs if isinstance(item, Table)]
    return tuple(dict.fromkeys(refs))


def _usable(use: Use, error: type[HeadwayError]) -> Use:
    wrong = unusable(use.path)
    if wrong:
        raise error(f"{use.who}: '{use.path}' is no path: {wrong}")
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
        if source.name not in settings.inputs:
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
        given = settings.inputs.get(source.name, thaw(source.connector))
        if given is None:
            raise InputError(
                f"source '{source.name}' has no input: give one for it, or a 'source:' in the network file"
            )
        own = source.name in settings.inputs
        reader = open_source(
            source.name,
            source.schema,
            given,
            rate=settings.rates.get(source.name),
            strict=settings.strict,
            base=None if own else network.folder,
            trust=network.trust.by_operator() if own else network.trust,
        )
        stack.callback(reader.close)
        readers.append(reader)
    return readers


def open_letters(settings: RunSettings) -> tuple[DeadLetters, Writer | None]:
    """Return the run's dead letters, and the writer of their file if the user wants one."""
    sink = None
    if settings.dead_letters is not None:
        sink = open_sink(LETTERS, Schema.from_arrow(DEAD_LETTERS), settings.dead_letters)
    return DeadLetters(settings.strict, None if sink is None else sink.write), sink


class Outlets:
    """Deliveries by output, and the dead letters."""

    def __init__(
        self,
        checked: CheckedNetwork,
        settings: RunSettings,
        clock: Clock,
        stack: contextlib.ExitStack,
        stopping: Stopping | None = None,
    ) -> None:
        """Open all sinks; if `stack` is closed before `complete`, they are aborted."""
        self._stopping = stopping or Stopping()
        self._tables: dict[str, TableSink] = {}
        self._writers: list[Writer] = []
        self.deliveries: dict[str, Delivery] = {}
        stack.callback(self._abort)
        network = checked.network
        with self._stopping.held():  # a signal must not come between opening a file and registering it for cleanup
            for output in network.outputs:
                name, schema, sink = output.name, checked.output_schema(output.name), thaw(output.sink)
                writer: Writer
                if name in settings.outputs:
                    writer = open_sink(name, schema, settings.outputs[name], trust=network.trust.by_operator())
                elif sink is not None:
                    writer = open_sink(name, schema, sink, network.folder, network.trust)
                else:
                    writer = self._tables[name] = TableSink(schema)
                self._writers.append(writer)
                self.deliveries[name] = Delivery(output, schema, writer, clock, settings.half_life)
            self.letters, letter_sink = open_letters(settings)
            self._writers += [] if letter_sink is None else [letter_sink]

    def complete(self) -> dict[str, pa.Table]:
        """Complete all outputs, or none; return the tables of outputs without a sink.

        Slow and fallible work comes first and can be interrupted. Then all files get their names together.
        """
        for writer in self._writers:
            prepare(writer)
        self._stopping.shield()
        for writer in self._writers:
            writer.close()
        self._writers.clear()
        return {name: sink.table for name, sink in self._tables.items()}

    def _abort(self) -> None:
        for writer in self._writers:
            writer.abort()
