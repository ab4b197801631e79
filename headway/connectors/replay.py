"""Replay a file at a given rate, or by the times in a field, at a given speed-up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headway.clock import MICROSECOND, SECOND
from headway.columns import Int64s, from_arrow
from headway.connectors.protocol import Chunk, Reader, SourceRequest
from headway.connectors.readers import LONGEST, PacedReader, Wrapped
from headway.connectors.registry import (
    FASTEST,
    SLOWEST,
    check_keys,
    check_rate,
    open_source,
    permit_source,
    register_source,
)
from headway.errors import InputError, SchemaError, finite
from headway.network.schema import Schema, type_name

KEYS = ("file", "rate", "by", "speed")
DAY = 86_400 * SECOND


class _ReplayReader(Wrapped):
    """A source whose due times come from a field, `speed` times as fast as recorded.

    The first value is the start of the run. A tuple whose value is NULL, not finite or smaller than an earlier one is
    due together with its predecessor. Numbers are seconds.
    """

    def __init__(self, reader: Reader, schema: Schema, field: str, speed: float) -> None:
        super().__init__(reader)
        self.timed = True
        self._at = schema.index(field)
        self._unit = _unit(schema.fields[self._at].type)
        self._speed = speed
        self._first: int | float | None = None
        self._last = 0

    def read(self, limit: int) -> Chunk | None:
        chunk = self._reader.read(limit)
        if chunk is None:
            return None
        column = from_arrow(chunk.batch.column(self._at))
        known = column.is_valid() & np.isfinite(column.values)
        if self._first is None and known.any():
            self._first = column.values[np.argmax(known)].item()
        return Chunk(chunk.batch, self._due(column.values, known))

    def _due(self, values: npt.NDArray[np.generic], known: npt.NDArray[np.bool_]) -> Int64s:
        # Convert before subtracting, or distant 64-bit values would wrap around.
        since = np.where(known, values, 0).astype(np.float64) - float(self._first or 0)
        near = np.abs(since) < 2.0**52
        if values.dtype.kind == "i" and self._first is not None:
            exact = np.where(known & near, values, self._first).astype(np.int64) - np.int64(self._first)
            since = np.where(near, exact, since)
        factor = self._unit / self._speed
        moments = np.clip(since, 0, LONGEST / factor) * factor
        due: Int64s = np.where(known, np.rint(moments), 0).astype(np.int64)
        due = np.maximum.accumulate(np.maximum(due, self._last))
        self._last = int(due[-1]) if len(due) else self._last
        return due


def _unit(type_: object) -> float:
    """Return the nanoseconds of one unit of the type, or raise SchemaError."""
    name = type_name(type_)
    if name.startswith("timestamp"):
        return MICROSECOND
    if name == "date":
        return DAY
    if name in ("tinyint", "smallint", "int", "bigint", "float", "double"):
        return SECOND
    raise SchemaError(f"cannot replay by a {name}; expected a timestamp, a date or a number of seconds")


def _open(request: SourceRequest) -> Reader:
    who = f"{request.who}: replay"
    settings = check_keys(request.settings, KEYS, who)
    rate = request.rate if request.rate is not None else check_rate(settings.get("rate"), who)
    by, speed = settings.get("by"), settings.get("speed", 1)
    if "file" not in settings:
        raise InputError(f"{who}: no file; write {{file: path, rate: 100}} or {{file: path, by: field, speed: 10}}")
    if rate is None and by is None:
        raise InputError(f"{who}: needs rate (tuples per second) or by (a field)")
    if by is not None and settings.get("rate") is not None:
        raise InputError(f"{who}: rate and by exclude each other")
    if "speed" in settings and by is None:
        raise InputError(f"{who}: speed goes with by, not with rate")
    if not isinstance(speed, int | float) or finite(speed) is None or not SLOWEST <= speed <= FASTEST:
        raise InputError(f"{who}: speed is a number above 0, from {SLOWEST:g} to {FASTEST:g}, not {speed!r}")
    path = settings["file"]
    if not isinstance(path, str) and not hasattr(path, "__fspath__"):
        raise InputError(f"{who}: file is a path, not {path!r}")
    reader = open_source(
        request.name, request.schema, path, strict=request.strict, base=request.base, trust=request.trust
    )
    if rate is not None:
        return PacedReader(reader, rate)
    try:
        return _ReplayReader(reader, request.schema, str(by), float(speed))
    except SchemaError as error:
        reader.close()
        raise InputError(f"{who}: {error}") from None


def _permit(request: SourceRequest) -> None:
    settings = request.settings
    path = settings.get("file") if isinstance(settings, Mapping) else None
    if isinstance(path, str | Path):
        permit_source(request.name, request.schema, path, request.base, request.trust)


register_source("replay", _open, permit=_permit)
