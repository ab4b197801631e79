"""CSV files with a header, read by blocks and written in UTF-8.

Each block goes through Arrow's CSV parser with the schema's types. Only a block in which something does not
convert is read again as text, to tell the malformed rows from the others.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from headway.columns import Int64s
from headway.connectors.base import (
    Reader,
    SinkRequest,
    SourceRequest,
    Writer,
    permit_file,
    permit_target,
    register_sink,
    register_source,
)
from headway.connectors.casting import match_columns
from headway.connectors.cutting import BatchReader
from headway.connectors.files import input_path, open_input
from headway.connectors.texts import parse_texts, render_texts
from headway.connectors.values import Bad
from headway.connectors.writers import TextSink
from headway.errors import InputError, choices

BLOCK = 1 << 20
MAX_RECORD = 1 << 22
"""A quoted value may not make a record longer than this; then its quote is taken for one that is never closed."""

_QUOTED = re.compile(rb'(?:(?<=[,\n\r])|\A)"[^"]*+(?:""[^"]*+)*+(?:"(?:(?=[,\n\r])|\Z|())|())')
"""A quoted field; with group 1 when other text follows it, with group 2 when the bytes end before its last quote."""

_BREAK = re.compile(rb"[\r\n]")
_OPEN = "a quote is opened but not closed"
_STRAY = "a quote stands where it does not belong"


@dataclass(frozen=True, slots=True)
class Records:
    """Where the complete records of some CSV start and end (at their line break), and which ones are broken."""

    starts: Int64s
    ends: Int64s
    broken: dict[int, str]
    """Start of a broken record to the reason."""


def scan(data: bytes, final: bool) -> Records:
    """Find the records in bytes that start with one. A line break inside a quoted field does not end a record.

    A quoted field that other text follows breaks its line, and only this line: most often a quote was not
    closed, and the next quote belongs to another record. An open quote stops the scan unless the bytes are
    `final`: its end may still come.
    """
    view = np.frombuffer(data, np.uint8)
    breaks = view == 10
    lone = view == 13
    lone[:-1] &= ~breaks[1:]
    lone[-1:] &= final  # else its line feed may still come
    ends: Int64s = np.flatnonzero(breaks | lone)
    spans: list[tuple[int, int]] = []
    wrong: dict[int, str] = {}
    stop = at = 0
    while match := _QUOTED.search(data, at):
        at = match.end()
        if match.lastindex is None:
            spans.append(match.span())
        elif match.lastindex == 2 and not final:
            stop = match.start()
            ends = ends[ends < stop]
            break
        else:
            wrong[match.start()] = _STRAY if match.lastindex == 1 else _OPEN
            line = _BREAK.search(data, match.start())
            if line is None:
                break
            at = line.start()
    if spans:
        begin, end = np.array(spans, np.int64).T
        within = np.searchsorted(begin, ends, "right") - 1
        ends = ends[(within < 0) | (ends >= end[within])]
    starts: Int64s = np.concatenate([np.zeros(1, np.int64), ends + 1])[: len(ends)]
    broken: dict[int, str] = {}
    for quote, reason in wrong.items():
        record = int(np.searchsorted(starts, quote, "right")) - 1
        if record >= 0 and quote < ends[record]:  # else it is in the part that is not complete
            broken.setdefault(int(starts[record]), reason)
    return Records(starts, ends, broken)


class CsvReader(BatchReader):
    """Reads a CSV file; columns are matched by name, extra ones are ignored.

    Without quotes an empty value is NULL; `""` is an empty string, and NULL for types other than string and binary.
    """

    def __init__(self, request: SourceRequest) -> None:
        """Open the file and match its header; raises InputError if a column is missing."""
        super().__init__(request.name, request.strict)
        path = input_path(request)
        self._who, self._path, self._place = request.who, path, path.name
        self._schema = request.schema.to_arrow()
        self._file = open_input(path, request.who)
        self._rest = b""
        self._line = 1
        self._end = False
        try:
            self._header = self._read_header(request)
            self._positions = match_columns(request.schema, self._header, request.who, f"'{path}'")
        except InputError:
            self._file.close()
            raise
        self._labels = [str(at) for at in range(len(self._header))]
        self._single = len(self._header) == 1

    def next_batch(self, limit: int) -> pa.RecordBatch | None:
        """Parse the next block; an empty batch if all its rows are malformed."""
        found = self._next_block()
        if found is None:
            return None
        block, records = found
        batch = self._isolate(block, records) if records and records.broken else self._parse(block)
        self._line += block.count(b"\n")
        return batch

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self) -> bytes:
        try:
            data = self._file.read(BLOCK)
        except OSError as error:
            raise InputError(f"{self._who}: '{self._path}' cannot be read: {error.strerror or error}") from error
        if not data and not self._end:
            self._end = True
            return b"\n" if self._rest and not self._rest.endswith(b"\n") else b""
        return data

    def _next_block(self) -> tuple[bytes, Records | None] | None:
        """Return bytes that end with a record, with its records if they had to be found, or None at the end."""
        while True:
            data = self._rest = self._rest if len(self._rest) > BLOCK else self._rest + self._read()
            if not data:
                if self._end:
                    return None
                continue
            cut, records = data.rfind(b"\n") + 1, None
            final = self._end or len(data) >= MAX_RECORD
            if b'"' in data or (cut == 0 and self._end):
                records = scan(data, False)
                if not len(records.ends) and final:
                    records = scan(data, True)
                cut = int(records.ends[-1]) + 1 if len(records.ends) else 0
            if cut:
                self._rest = data[cut:]
                return data[:cut], records
            if final:
                self._drop_line()
            else:
                self._rest = data + self._read()

    def _drop_line(self) -> None:
        """Refuse the line that fills the rest, and skip to its end."""
        text = self._rest[:4096].decode("utf-8", "replace")
        self.refuse(f"{self._place} line {self._line}", text, f"a line longer than {MAX_RECORD} bytes")
        self._line += 1
        self._rest = b""
        while not self._rest and not self._end:
            self._rest = self._read().partition(b"\n")[2]

    def _read_header(self, request: SourceRequest) -> list[str]:
        names = choices(request.schema.names)
        data = self._read()
        while not self._end and not len(scan(data, False).ends) and len(data) < MAX_RECORD:
            self._rest = data
            data += self._read()
        data = data.removeprefix(b"\xef\xbb\xbf")
        ends = scan(data, True).ends
        if not len(ends) or not data[: ends[0]].strip():
            raise InputError(f"{self._who}: '{self._path}' has no header line; expected the columns {names}")
        self._rest = data[int(ends[0]) + 1 :]
        self._line += data[: int(ends[0]) + 1].count(b"\n")
        try:
            header = data[: ends[0]].decode().rstrip("\r")
        except UnicodeDecodeError:
            raise InputError(f"{self._who}: the header of '{self._path}' is not valid UTF-8") from None
        return [name.strip() for name in next(csv.reader([header]))]

    def _parse(self, block: bytes) -> pa.RecordBatch:
        """Return the good rows of a block."""
        if not self._single and not block.strip(b"\r\n"):
            return pa.RecordBatch.from_pylist([], schema=self._schema)
        types = [type_ if _native(type_) else pa.string() for type_ in self._schema.types]
        invalid: list[Any] = []
        try:
            columns = self._arrays(block, types, invalid)
        except pa.ArrowInvalid:
            return self._isolate(block, None)
        if invalid:
            return self._isolate(block, None)
        arrays = []
        for array, type_ in zip(columns, self._schema.types, strict=True):
            parsed, bad = (array, {}) if array.type == type_ else parse_texts(array, type_)
            if bad:
                return self._isolate(block, None)
            arrays.append(parsed)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _arrays(self, block: bytes, types: list[pa.DataType], invalid: list[Any]) -> list[pa.Array]:
        """Run Arrow's parser; rows with a wrong number of values go to `invalid`."""

        def skip(row: Any) -> str:
            invalid.append(row)
            return "skip"

        wanted = [self._labels[at] for at in self._positions]
        table = arrow_csv.read_csv(
            io.BytesIO(block),
            read_options=arrow_csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=self._labels),
            parse_options=arrow_csv.ParseOptions(
                newlines_in_values=b'"' in block, ignore_empty_lines=not self._single, invalid_row_handler=skip
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict(zip(wanted, types, strict=True)),
                include_columns=wanted,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        return [_whole(column) for column in table.columns]

    def _isolate(self, block: bytes, records: Records | None) -> pa.RecordBatch:
        """Return the good rows of a block that has malformed ones, and refuse those."""
        records = records or scan(block, True)
        starts, ends = records.starts, records.ends
        if not self._single:
            filled = np.array([bool(block[s:e].strip(b"\r\n")) for s, e in zip(starts, ends, strict=True)], np.bool_)
            starts, ends = starts[filled], ends[filled]
        reasons = {int(np.searchsorted(starts, start)): reason for start, reason in records.broken.items()}
        whole = np.setdiff1d(np.arange(len(starts)), np.fromiter(reasons, np.int64, len(reasons)))
        parts = [block[starts[at] : ends[at] + 1] for at in whole] if reasons else [block]
        batch = self._good(b"".join(parts), whole, reasons)
        if batch is None:  # the parser sees other records than we do: give it one at a time
            each = [
                self._good(block[starts[at] : ends[at] + 1], whole[k : k + 1], reasons) for k, at in enumerate(whole)
            ]
            good = pa.Table.from_batches([part for part in each if part is not None], self._schema)
            reasons |= {int(at): _STRAY for at, part in zip(whole, each, strict=True) if part is None}
            batch = next(iter(good.combine_chunks().to_batches()), pa.RecordBatch.from_pylist([], schema=self._schema))
        breaks = np.flatnonzero(np.frombuffer(block, np.uint8) == 10)
        lines = self._line + np.searchsorted(breaks, starts)
        for record in sorted(reasons):
            start, line = int(starts[record]), int(lines[record])
            text = block[start : int(ends[record])].decode("utf-8", "replace").rstrip("\r")
            self.refuse(f"{self._place} line {line}", text, reasons[record])
        return batch

    def _good(self, block: bytes, records: Int64s, reasons: dict[int, str]) -> pa.RecordBatch | None:
        """Return the good rows of a block with these records; the others get a reason. None if they do not agree."""
        if not len(records):
            return pa.RecordBatch.from_pylist([], schema=self._schema)
        invalid: list[Any] = []
        try:
            columns = self._arrays(block, [pa.binary()] * len(self._schema), invalid)
        except pa.ArrowInvalid:
            return None
        if len(columns[0]) + len(invalid) != len(records):
            return None
        for row in invalid:
            reasons[int(records[row.number - 1])] = f"expected {row.expected_columns} values, not {row.actual_columns}"
        rows = np.delete(records, [row.number - 1 for row in invalid])
        keep = np.ones(len(rows), np.bool_)
        arrays = []
        for field, column in zip(self._schema, columns, strict=True):
            texts, undecodable = _decode(column)
            array, bad = parse_texts(texts, field.type)
            arrays.append(array)
            for position, reason in {**bad, **undecodable}.items():
                keep[position] = False
                reasons.setdefault(int(rows[position]), f"column '{field.name}': {reason}")
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema).filter(pa.array(keep))


def _native(type_: pa.DataType) -> bool:
    """Whether Arrow's CSV parser reads the type as we do."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_date(type_))


def _decode(column: pa.Array) -> tuple[pa.Array, Bad]:
    try:
        return column.cast(pa.string()), {}
    except pa.ArrowInvalid:
        bad: Bad = {}
        texts: list[str | None] = []
        for position, value in enumerate(column.to_pylist()):
            try:
                texts.append(None if value is None else value.decode())
            except UnicodeDecodeError:
                bad[position] = "not valid UTF-8"
                texts.append(None)
        return pa.array(texts, pa.string()), bad


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks) if column.num_chunks else None


class CsvSink(TextSink):
    """Writes CSV with a header. NULL is empty; text is quoted where it must be, and where it is empty."""

    def head(self) -> bytes:
        """Return the header line."""
        names = pa.array(self.schema.names, pa.string())
        return (",".join(_quote(names).to_pylist()) + "\n").encode()

    def lines(self, batch: pa.RecordBatch) -> pa.Array:
        """Return one line per tuple."""
        cells: list[Any] = []
        for column in batch.columns:
            text = render_texts(column)
            if not pa.types.is_primitive(column.type):
                text = _quote(text)
            cells += [pc.fill_null(text, ""), ","]
        return pc.binary_join_element_wise(*cells[:-1], "\n", "")


def _quote(texts: pa.Array) -> pa.Array:
    needed = pc.or_(pc.match_substring_regex(texts, '[",\r\n]'), pc.equal(texts, ""))
    if not pc.any(needed).as_py():
        return texts
    quoted = pc.binary_join_element_wise('"', pc.replace_substring(texts, '"', '""'), '"', "")
    return pc.if_else(needed, quoted, texts)


def _open_source(request: SourceRequest) -> Reader:
    return CsvReader(request)


def _open_sink(request: SinkRequest) -> Writer:
    return CsvSink(request)


register_source("csv", _open_source, (".csv",), permit_file)
register_sink("csv", _open_sink, (".csv",), permit_target)
