"""A source of made-up tuples: repeatable from a seed, whichever way it is read.

Tuples are made in blocks of 65,536. Each field of each block has its own counter-based random stream (Philox),
keyed by seed and field, so a block does not depend on what was read before it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from headway.columns import Column, Int64s
from headway.connectors.arrivals import Arrivals, parse_arrivals
from headway.connectors.base import (
    Chunk,
    Malformed,
    Reader,
    SourceRequest,
    check_keys,
    check_rate,
    permit_anyone,
    register_source,
)
from headway.connectors.distributions import FieldMaker, parse_field
from headway.errors import InputError, choices, did_you_mean

BLOCK = 1 << 16
KEYS = ("rate", "arrivals", "seed", "count", "burst", "phases", "fields")


class GenerateReader:
    """Makes tuples from a description of each field: `count` of them, until its phases end, or without end."""

    live = False

    def __init__(self, request: SourceRequest) -> None:
        """Check the settings; raises InputError that names the key or the field."""
        who = f"{request.who}: generate"
        settings = check_keys(request.settings, KEYS, request.who, "generate")
        seed, count = settings.get("seed", 1), settings.get("count")
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise InputError(f"{who}: seed is a whole number from 0, not {seed!r}")
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0):
            raise InputError(f"{who}: count is a whole number from 0, not {count!r}; leave it out for no end")
        rate = request.rate if request.rate is not None else check_rate(settings.get("rate"), who)
        self._arrivals: Arrivals | None = parse_arrivals(settings, rate, who)
        self._seed = seed
        self._count: int | None = count
        self._schema = request.schema.to_arrow()
        self._makers = _makers(request, settings.get("fields"), self.timed, who)
        self._number = 0
        self._batch: pa.RecordBatch | None = None
        self._due: Int64s | None = None

    @property
    def timed(self) -> bool:
        """Whether a rate, bursts or phases give the tuples arrival moments."""
        return self._arrivals is not None

    @property
    def finite(self) -> bool:
        """Whether there is a count, or phases that end."""
        return self._count is not None or (self._arrivals is not None and self._arrivals.finite)

    def read(self, limit: int) -> Chunk | None:
        """Return the next tuples; at most to the end of a block."""
        if self._number == self._count:
            return None
        at = self._number % BLOCK
        if at == 0 or self._batch is None:
            self._make(self._number // BLOCK)
            if self._number == self._count:  # the phases ended with the block before
                return None
        assert self._batch is not None
        size = min(limit, self._batch.num_rows - at)
        self._number += size
        due = None if self._due is None else self._due[at : at + size]
        return Chunk(self._batch.slice(at, size), due)

    def malformed(self) -> list[Malformed]:
        """Return nothing: what is made is well formed."""
        return []

    def close(self) -> None:
        """Let go of the current block."""
        self._batch = self._due = None

    def _make(self, block: int) -> None:
        start = block * BLOCK
        size = BLOCK if self._count is None else min(BLOCK, self._count - start)
        numbers: Int64s = np.arange(start, start + size, dtype=np.int64)
        seconds = None
        if self._arrivals is not None:
            self._due = self._arrivals.due(numbers, self._stream(block, len(self._makers)))
            if len(self._due) < size:  # that was the last tuple
                size = len(self._due)
                numbers, self._count = numbers[:size], start + size
                if size == 0:
                    return
            seconds = Column(self._due / 1e9)
        columns = [Column(numbers), seconds]
        arrays = [make(columns, size, self._stream(block, at)) for at, make in enumerate(self._makers)]
        self._batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _stream(self, block: int, field: int) -> np.random.Generator:
        key = np.array([self._seed % 2**64, field], np.uint64)
        return np.random.Generator(np.random.Philox(key=key, counter=np.array([0, 0, block, 0], np.uint64)))


def _makers(request: SourceRequest, fields: object, timed: bool, who: str) -> list[FieldMaker]:
    names = request.schema.names
    if not isinstance(fields, Mapping):
        raise InputError(f"{who}: fields maps each field ({choices(names)}) to how its values are made, not {fields!r}")
    for name in fields:
        if name not in names:
            raise InputError(
                f"{who}: unknown field '{name}'{did_you_mean(str(name), names) or ';'} fields: {choices(names)}"
            )
    makers = []
    for field in request.schema:
        if field.name not in fields:
            raise InputError(f"{who}: field '{field.name}' is not defined; define all of {choices(names)}")
        makers.append(parse_field(fields[field.name], field.type, timed, f"{who}: field '{field.name}'"))
    return makers


def _open(request: SourceRequest) -> Reader:
    return GenerateReader(request)


register_source("generate", _open, permit=permit_anyone)
