"""Directories as outputs: a path that ends in "/" gets one whole file for every micro-batch."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa

from headway.connectors.base import SinkRequest, Writer, find_path, permit_target, register_sink
from headway.connectors.csv import CsvSink
from headway.connectors.heaps import Heap
from headway.connectors.jsonl import JsonLinesSink
from headway.connectors.parquet import ParquetSink
from headway.errors import OutputError, unknown
from headway.storage.filesystems import is_uri

_FORMATS: dict[str, Callable[[SinkRequest], Writer]] = {
    "csv": CsvSink,
    "jsonl": JsonLinesSink,
    "parquet": ParquetSink,
}
_KEYS = ("path", "format")


class DirectorySink:
    """Writes files into a directory, each complete when it appears; files of other runs stay.

    An engine with micro-batches calls `begin` before `write`: the file is named by unit and batch, and writing it
    again, after a crash, replaces it by the same. Without `begin` tuples are gathered, files are numbered, and
    `abort` takes this run's files away again.
    """

    def __init__(self, request: SinkRequest, path: str | Path, format_: str) -> None:
        """Make the directory if its parent is there; raises OutputError if it cannot be."""
        self._request, self._format = request, format_
        who = request.who
        if is_uri(str(path)):
            raise OutputError(
                f"{who}: '{path}' is no directory of this machine; {{spark: {{format, path}}}} writes there"
            )
        self._folder = find_path(path, who, request.base, OutputError)
        if self._folder.exists() and not self._folder.is_dir():
            raise OutputError(f"{who}: '{self._folder}' is a file; expected a directory")
        try:
            self._folder.mkdir(exist_ok=True)
        except FileNotFoundError:
            raise OutputError(f"{who}: the folder '{self._folder.parent}' does not exist") from None
        except OSError as error:
            raise OutputError(f"{who}: '{self._folder}' cannot be made: {error.strerror or error}") from error
        self._run = f"run-{secrets.token_hex(4)}"
        self._heap = Heap()
        self._part = 0
        self._written: list[Path] = []
        self._begun: str | None = None
        self._closed = False

    def begin(self, unit: str, batch: int) -> None:
        """Name the file of what is written next; an earlier one of this name is replaced."""
        self._begun, self._part = f"{unit}-{batch:010d}", 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a file, or gather."""
        if self._begun is not None:
            more = f"_{self._part}" if self._part else ""  # sorts behind the first
            self._part += 1
            self._save([batch], self._begun + more)
            return
        if self._heap.add(batch):
            self._flush()

    def prepare(self) -> None:
        """Write what is gathered."""
        if not self._closed:
            self._flush()

    def close(self) -> None:
        """Write what is gathered, and keep it."""
        self.prepare()
        self._closed = True

    def abort(self) -> None:
        """Take back the files of a run that has no micro-batches; those of one that has can be continued."""
        if not self._closed:
            self._closed = True
            for path in self._written:
                with contextlib.suppress(OSError):
                    path.unlink()

    def _flush(self) -> None:
        batches = self._heap.take()
        if batches:
            name = f"{self._run}-{len(self._written):010d}"
            self._written.append((self._folder / f"{name}.{self._format}").absolute())  # known before it is there
            self._save(batches, name)

    def _save(self, batches: list[pa.RecordBatch], name: str) -> None:
        path = (self._folder / f"{name}.{self._format}").absolute()
        writer = _FORMATS[self._format](SinkRequest(self._request.name, self._request.schema, path))
        try:
            for batch in batches:
                writer.write(batch)
            writer.close()
        except BaseException:
            writer.abort()
            raise


def _open_directory(request: SinkRequest) -> Writer:
    settings = request.settings
    if isinstance(settings, str | Path):
        settings = {"path": settings}
    if not isinstance(settings, Mapping):
        raise OutputError(f"{request.who}: directory expects a path or {{path, format}}, not {settings!r}")
    for key in settings:
        if key not in _KEYS:
            raise OutputError(f"{request.who}: directory: {unknown('key', str(key), _KEYS)}")
    path, format_ = settings.get("path"), settings.get("format", "parquet")
    if not isinstance(path, str | Path) or not str(path):
        raise OutputError(f"{request.who}: directory: expected a path, not {path!r}")
    if format_ not in _FORMATS:
        raise OutputError(f"{request.who}: directory: {unknown('format', str(format_), _FORMATS)}")
    return DirectorySink(request, path, format_)


def _permit(request: SinkRequest) -> None:
    settings = request.settings
    path = settings.get("path") if isinstance(settings, Mapping) else settings
    if isinstance(path, str | Path):
        request.trust.check_path(path, request.base, f"{request.who}: sink: directory", OutputError, write=True)


def _opener(kind: str) -> Callable[[SinkRequest], Writer]:
    def open_sink(request: SinkRequest) -> Writer:
        path = request.settings
        if isinstance(path, str) and path.endswith("/"):
            return DirectorySink(request, path, kind)
        return _FORMATS[kind](request)

    return open_sink


for _kind in _FORMATS:  # the single files stay as they are; only a "/" at the end means something new
    register_sink(_kind, _opener(_kind), (f".{_kind}",), permit_target)
register_sink("directory", _open_directory, permit=_permit)
