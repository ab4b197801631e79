"""Python rows, mappings or sequences, to batches of a schema; and a warning of fields that no row has."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.connectors.protocol import SourceRequest
from headway.connectors.texts import parse_texts
from headway.connectors.values import Bad, show, to_array
from headway.errors import did_you_mean

LOOKED_AT = 1000
"""Only so many rows of a source are checked for missing fields."""

_KEYS = 1000
_log = logging.getLogger("headway")


class RowConverter:
    """Turns a source's Python rows into batches of its schema, and tells which rows do not convert.

    Looks at the keys of the first rows, and warns once of each field that is in none of them.
    """

    def __init__(self, request: SourceRequest) -> None:
        """Start with no row seen."""
        self._arrow, self._names = request.schema.to_arrow(), request.schema.names
        self._who = request.who
        self._unseen = set(self._names)
        self._keys: dict[str, None] = {}
        self._looked = self._rows = 0

    def batch(self, rows: Sequence[Any]) -> tuple[pa.RecordBatch, dict[int, str]]:
        """Return a batch of the rows that convert, in order, and the reasons why the others do not."""
        self.look(rows)
        bad: dict[int, str] = {}
        columns = self._columns(rows, bad)
        arrays = []
        for name, type_, values in zip(self._names, self._arrow.types, columns, strict=True):
            array, wrong = _column(values, type_)
            arrays.append(array)
            for position, reason in wrong.items():
                bad.setdefault(position, f"field '{name}': {reason}")
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._arrow)
        if bad:
            keep = np.ones(len(rows), np.bool_)
            keep[list(bad)] = False
            batch = batch.filter(pa.array(keep))
        return batch, bad

    def _columns(self, rows: Sequence[Any], bad: dict[int, str]) -> Sequence[Sequence[Any]]:
        if set(map(type, rows)) == {dict}:
            return [[row.get(name) for row in rows] for name in self._names]
        width = len(self._names)
        if set(map(type, rows)) <= {tuple, list} and all(len(row) == width for row in rows):
            return list(zip(*rows, strict=True)) if rows else [()] * width
        nothing = (None,) * width
        table = []
        for position, row in enumerate(rows):
            if isinstance(row, Mapping):
                table.append(tuple([row.get(name) for name in self._names]))
            elif isinstance(row, Sequence) and not isinstance(row, str | bytes):
                if len(row) == width:
                    table.append(tuple(row))
                    continue
                bad[position] = f"expected {width} values ({', '.join(self._names)}), not {len(row)}"
                table.append(nothing)
            else:
                bad[position] = f"expected a dict or a tuple, not {show(row)}"
                table.append(nothing)
        return list(zip(*table, strict=True))

    def look(self, rows: Iterable[Any]) -> None:
        """Look at the keys of the next rows, as far as necessary; rows without keys are passed over."""
        if not self._unseen:
            return
        for row in islice(rows, LOOKED_AT - self._looked):
            self._looked += 1
            if isinstance(row, Mapping):
                self._rows += 1
                self._unseen.difference_update(row)
                if not self._unseen:
                    return
                if len(self._keys) < _KEYS:
                    self._keys.update(dict.fromkeys(row))
        if self._looked >= LOOKED_AT:
            self.warn(" so far")

    def warn(self, so_far: str = "") -> None:
        """Say which fields no row had, once; to be called when there are no more rows."""
        others = [str(key) for key in self._keys if key not in self._names]
        for field in self._names:
            if field in self._unseen and self._rows:
                _log.warning("%s: no row%s has the field '%s'%s", self._who, so_far, field, did_you_mean(field, others))
        self._unseen = set()


def _column(values: Sequence[Any], type_: pa.DataType) -> tuple[pa.Array, Bad]:
    """Convert a column; times that all come as text, as in JSON, are parsed together."""
    if pa.types.is_temporal(type_) and set(map(type, values)) <= {str, type(None)}:
        try:
            texts = pc.utf8_trim_whitespace(pa.array(values, pa.string()))
        except UnicodeError:
            return to_array(values, type_)
        if not pc.any(pc.equal(texts, "")).as_py():  # NULL in CSV only
            return parse_texts(texts, type_)
    return to_array(values, type_)
