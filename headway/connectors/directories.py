"""Files and directories as outputs: a path that ends in "/" gets one whole file for every micro-batch."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa

from headway.connectors.csv import CsvSink
from headway.connectors.jsonl import JsonLinesSink
from headway.connectors.output_files import GatheringSink
from headway.connectors.parquet import ParquetSink
from headway.connectors.protocol import SinkFactory, SinkRequest, Writer
from headway.connectors.registry import check_keys, find_path, permit_path, register_sink
from headway.errors import OutputError, unknown
from headway.storage.filesystems import is_uri

_FORMATS: dict[str, SinkFactory] = {"csv": CsvSink, "jsonl": JsonLinesSink, "parquet": ParquetSink}


class DirectorySink(GatheringSink):
    """Writes files into a directory, each complete when it appears; files of other runs stay.

    An engine with micro-batches calls `begin` before `write`: the file is named by unit and batch, and writing it
    again, after a crash, replaces it by the same. Without `begin` tuples are gathered, files are numbered, and
    `abort` takes this run's files away again.
    """

    def __init__(self, request: SinkRequest, path: str | Path, format_: str) -> None:
        """Make the directory if its parent exists; raises OutputError if that fails."""
        super().__init__()
        self._request, self._format = request, format_
        who = request.who
        if is_uri(str(path)):
            raise OutputError(
                f"{who}: '{path}' is no directory of this machine; {{spark: {{format, path}}}} writes there"
            )
        self._folder = find_path(request, path)
        if self._folder.exists() and not self._folder.is_dir():
            raise OutputError(f"{who}: '{self._folder}' is a file; expected a directory")
        try:
            self._folder.mkdir(exist_ok=True)
        except FileNotFoundError:
            raise OutputError(f"{who}: the folder '{self._folder.parent}' does not exist") from None
        except OSError as error:
            raise OutputError(f"{who}: '{self._folder}' cannot be made: {error.strerror or error}") from error
        self._run = f"run-{secrets.token_hex(4)}"
        self._part = 0
        self._written: list[Path] = []
        self._begun: str | None = None
        self._closed = False

    def begin(self, unit: str, batch: int) -> None:
        """Name the file of what is written next; an earlier one of this name is replaced."""
        self._begun, self._part = f"{unit}-{batch:010d}", 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a file, or gather."""
        if self._begun is None:
            super().write(batch)
            return
        more = f"_{self._part}" if self._part else ""  # sorts behind the first
        self._part += 1
        self._save([batch], self._path(self._begun + more))

    def prepare(self) -> None:
        """Write what is gathered."""
        if not self._closed:
            self.flush()

    def close(self) -> None:
        """Write what is gathered, and keep it."""
        self.prepare()
        self._closed = True

    def abort(self) -> None:
        """Delete the files of a run without micro-batches; a run with micro-batches can continue with its files."""
        if not self._closed:
            self._closed = True
            for path in self._written:
                with contextlib.suppress(OSError):
                    path.unlink()

    def save(self, batches: list[pa.RecordBatch]) -> None:
        """Write a file of what is gathered."""
        path = self._path(f"{self._run}-{len(self._written):010d}")
        self._written.append(path)  # known before it is there
        self._save(batches, path)

    def _path(self, name: str) -> Path:
        return (self._folder / f"{name}.{self._format}").absolute()

    def _save(self, batches: list[pa.RecordBatch], path: Path) -> None:
        writer = _FORMATS[self._format](SinkRequest(self._request.name, self._request.schema, path))
        try:
            for batch in batches:
                writer.write(batch)
            writer.close()
        except BaseException:
            writer.abort()
            raise


def _open_directory(request: SinkRequest) -> Writer:
    settings, who = request.settings, f"{request.who}: directory"
    if isinstance(settings, str | Path):
        settings = {"path": settings}
    if not isinstance(settings, Mapping):
        raise OutputError(f"{who} expects a path or {{path, format}}, not {settings!r}")
    settings = check_keys(settings, ("path", "format"), request.who, "directory", OutputError)
    path, format_ = settings.get("path"), settings.get("format", "parquet")
    if not isinstance(path, str | Path) or not str(path):
        raise OutputError(f"{who}: expected a path, not {path!r}")
    if format_ not in _FORMATS:
        raise OutputError(f"{who}: {unknown('format', str(format_), _FORMATS)}")
    return DirectorySink(request, path, str(format_))


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


for _kind in _FORMATS:
    register_sink(_kind, _opener(_kind), (f".{_kind}",), permit_path)
register_sink("directory", _open_directory, permit=_permit)
