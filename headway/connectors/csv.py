"""CSV files with a header, read in blocks and written in UTF-8.

Each block goes through Arrow's CSV parser with the schema's types. Only a block in which a value does not convert is
parsed again as text, to separate the malformed rows from the good ones.
"""

from __future__ import annotations

import csv
import io
import stat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from headway.columns import Int64s
from headway.connectors.casting import match_columns
from headway.connectors.input_files import TrackedFile, check_encoding, input_path, open_input
from headway.connectors.output_files import TextSink, register_files
from headway.connectors.protocol import SinkRequest, SourceRequest
from headway.connectors.readers import BatchReader
from headway.connectors.records import OPEN, STRAY, Records, filled, first_break, part, scan, several_lines
from headway.connectors.texts import parse_texts, render_texts
from headway.connectors.values import Bad, is_utf8, without
from headway.errors import InputError, choices
from headway.expressions.timestamps import in_python

BLOCK = 1 << 20
MAX_RECORD = 1 << 22
"""The longest record in bytes; if a quoted value makes it longer, its quote is treated as never closed."""

_PARTS = 4
"""How often a multi-line record is split before each of its lines is parsed separately."""


class _CsvReader(BatchReader):
    """Reads a CSV file; columns are matched by name, extra ones are ignored.

    An unquoted empty value is NULL; `""` is an empty string, or NULL for types other than string and binary.
    """

    def __init__(self, request: SourceRequest) -> None:
        """Open the file and match its header; raises InputError if a column is missing."""
        super().__init__(request)
        path = input_path(request)
        self._path, self._place = path, path.name
        self._schema = request.schema.to_arrow()
        self.anew = stat.S_ISREG(path.stat().st_mode)
        self.file = TrackedFile(open_input(path, request.who), path)
        self._rest = b""
        self._line = 1
        self._end = False
        try:
            self._header = self._read_header(request)
            self._positions = match_columns(request.schema, self._header, request.who, f"'{path}'")
        except InputError:
            self.file.close()
            raise
        self._labels = [str(at) for at in range(len(self._header))]
        self._single = len(self._header) == 1

    def next_batch(self, limit: int) -> pa.RecordBatch | None:
        """Parse the next block; the batch is empty if all its rows are malformed."""
        found = self._next_block()
        if found is None:
            return None
        block, records = found
        if records is not None and records.broken:
            batch, used = self._isolate(block, records)
        else:
            batch, used = self._parse(block, records)
        self._line += block.count(b"\n", 0, used)
        self._rest = block[used:] + self._rest
        return batch

    def _read(self) -> bytes:
        try:
            data: bytes = self.file.read(BLOCK)
        except OSError as error:
            raise InputError(f"{self._who}: '{self._path}' cannot be read: {error.strerror or error}") from error
        if not data and not self._end:
            self._end = True
            if self._rest and not self._rest.endswith(b"\n"):
                self.file.broken_off = True
                return b"\n"
        return data

    def _next_block(self) -> tuple[bytes, Records | None] | None:
        """Return bytes that end with a record, plus the record bounds if they had to be found; None at the end."""
        while True:
            data = self._rest = self._rest if len(self._rest) > BLOCK else self._rest + self._read()
            if not data:
                if self._end:
                    return None
                continue
            cut, records = data.rfind(b"\n") + 1, None
            full = len(data) > MAX_RECORD
            if full and first_break(data[:MAX_RECORD]) < 0:  # the first line alone exceeds the limit
                self._drop_line()
                continue
            if b'"' in data or (cut == 0 and (self._end or full)):
                records = scan(data, False)
                if not len(records.ends) and self._end:
                    self.file.broken_off = True
                    records = scan(data, True)
                cut = int(records.ends[-1]) + 1 if len(records.ends) else 0
                if full:
                    cut, records = _bounded(data, records)
            if cut:
                self._rest = data[cut:]
                return data[:cut], records
            if self._end:
                self._drop_line()
            else:
                self._rest = data + self._read()

    def _drop_line(self) -> None:
        """Report the line that fills the buffer as malformed, and skip to its end."""
        self.refuse(
            f"{self._place} line {self._line}", self._rest[:MAX_RECORD], f"a line longer than {MAX_RECORD} bytes"
        )
        self._line += 1
        data = self._rest
        while (at := first_break(data)) < 0 and not self._end:
            self._rest = b""
            data = self._read()
        self._rest = data[at + 1 :] if at >= 0 else b""

    def _read_header(self, request: SourceRequest) -> list[str]:
        names = choices(request.schema.names)
        data = self._read()
        while not self._end and not len(scan(data, False).ends) and len(data) < MAX_RECORD:
            self._rest = data
            data += self._read()
        data = check_encoding(data, self._who, f"'{self._path}'")
        ends = scan(data, True).ends
        if not len(ends) or not data[: ends[0]].strip():
            raise InputError(f"{self._who}: '{self._path}' has no header line; expected the columns {names}")
        self._rest = data[int(ends[0]) + 1 :]
        self._line += data[: int(ends[0]) + 1].count(b"\n")
        try:
            header = data[: ends[0]].decode().rstrip("\r")
            return [name.strip() for name in next(csv.reader([header]))]
        except UnicodeDecodeError:
            raise InputError(f"{self._who}: the header of '{self._path}' is not valid UTF-8") from None
        except csv.Error as error:
            raise InputError(f"{self._who}: the header of '{self._path}' cannot be read: {error}") from None

    def _parse(self, block: bytes, records: Records | None) -> tuple[pa.RecordBatch, int]:
        """Return the good rows of a block, and the number of bytes consumed."""
        if not self._single and not block.strip(b"\r\n"):
            return pa.RecordBatch.from_pylist([], schema=self._schema), len(block)
        try:
            columns = self._arrays(block, _native(self._schema.types, block))
        except pa.ArrowInvalid:
            return self._isolate(block, records)
        arrays = []
        for array, type_ in zip(columns, self._schema.types, strict=True):
            parsed, bad = (array, {}) if array.type == type_ else parse_texts(array, type_)
            if bad or (pa.types.is_date(type_) and not in_python(parsed)):
                return self._isolate(block, records)
            arrays.append(parsed)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema), len(block)

    def _arrays(self, block: bytes, types: list[pa.DataType], invalid: list[Any] | None = None) -> list[pa.Array]:
        """Run Arrow's parser; a row with a wrong number of values goes to `invalid`, or raises ArrowInvalid without it.

        With `invalid`, the block must be UTF-8: Arrow decodes a row to report it, and prints a traceback if it cannot.
        """

        def skip(row: Any) -> str:
            assert invalid is not None
            invalid.append(row)
            return "skip"

        wanted = [self._labels[at] for at in self._positions]
        table = arrow_csv.read_csv(
            io.BytesIO(block),
            read_options=arrow_csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=self._labels),
            parse_options=arrow_csv.ParseOptions(
                newlines_in_values=b'"' in block,
                ignore_empty_lines=not self._single,
                invalid_row_handler=None if invalid is None else skip,
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

    def _isolate(self, block: bytes, records: Records | None) -> tuple[pa.RecordBatch, int]:
        """Parse a block with malformed rows: refuse those, and return the good rows and the number of bytes consumed.

        A malformed record that spans lines is split: its first line, whose quote is not closed on that line, is
        refused, and the lines after it are parsed again. If none of them is a good row, the record is refused as a
        whole instead.
        """
        records = records or scan(block, True)
        breaks = np.flatnonzero(np.frombuffer(block, np.uint8) == 10)
        used = len(block)
        taken: dict[int, tuple[int, str]] = {}
        for attempt in range(_PARTS + 1):
            records = records if self._single else filled(block, records)
            batch, reasons = self._sort_out(block, records)
            ends = dict(zip(records.starts.tolist(), records.ends.tolist(), strict=True))
            wide = {
                start: (ends[start], reason)
                for start, reason in reasons.items()
                if several_lines(block, start, ends[start])
            }
            if not wide:
                break
            taken = taken or wide
            told = {start: self._opened(breaks, start, *wide[start]) for start in wide}
            records, length = part(block, records, told, by_line=attempt == _PARTS - 1)
            used = min(used, length)
        good = np.array(sorted(ends.keys() - reasons.keys()), np.int64)
        known = 0
        for start in sorted(reasons):
            if start < known:
                continue
            end, reason = ends[start], reasons[start]
            if start in taken and taken[start][0] < used:
                first, last = np.searchsorted(good, (start, taken[start][0]))
                if first == last:  # no good row within
                    end, reason = taken[start]
            known = end
            self.refuse(f"{self._place} line {self._line_of(breaks, start)}", block[start:end], reason)
        return batch, used

    def _line_of(self, breaks: Int64s, at: int) -> int:
        return self._line + int(np.searchsorted(breaks, at))

    def _opened(self, breaks: Int64s, start: int, end: int, reason: str) -> str:
        first, last = self._line_of(breaks, start), self._line_of(breaks, end)
        return f"a quote opened here makes lines {first} to {last} one row, which is malformed: {reason}"

    def _sort_out(self, block: bytes, records: Records) -> tuple[pa.RecordBatch, dict[int, str]]:
        """Split the records of a block into good rows, and the starts of the others with their reasons."""
        starts, ends = records.starts, records.ends
        reasons = {int(np.searchsorted(starts, start)): reason for start, reason in records.broken.items()}
        whole = np.setdiff1d(np.arange(len(starts)), np.fromiter(reasons, np.int64, len(reasons)))
        parts = [block[starts[at] : ends[at] + 1] for at in whole]
        batch = self._good(b"".join(parts), whole, reasons)
        if batch is None:  # Arrow found different records than `scan`: parse them one at a time
            each = [self._good(text, whole[at : at + 1], reasons) for at, text in enumerate(parts)]
            good = pa.Table.from_batches([part for part in each if part is not None], self._schema)
            reasons |= {int(at): STRAY for at, part in zip(whole, each, strict=True) if part is None}
            batch = next(iter(good.combine_chunks().to_batches()), pa.RecordBatch.from_pylist([], schema=self._schema))
        return batch, {int(starts[at]): reason for at, reason in reasons.items()}

    def _good(self, block: bytes, records: Int64s, reasons: dict[int, str]) -> pa.RecordBatch | None:
        """Return the good rows of these records, and add reasons for the others; None if Arrow counts other records."""
        if not len(records):
            return pa.RecordBatch.from_pylist([], schema=self._schema)
        foreign = not is_utf8(block)
        block = block.decode("latin-1").encode() if foreign else block  # one character per byte, so same fields
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
        wrong: set[int] = set()
        arrays = []
        for field, column in zip(self._schema, columns, strict=True):
            texts, undecodable = _decode(column, foreign)
            array, bad = parse_texts(texts, field.type)
            arrays.append(array)
            for position, reason in {**bad, **undecodable}.items():
                wrong.add(position)
                reasons.setdefault(int(rows[position]), f"column '{field.name}': {reason}")
        return without(pa.RecordBatch.from_arrays(arrays, schema=self._schema), wrong)


def _native(types: list[pa.DataType], block: bytes) -> list[pa.DataType]:
    """Return the types, with string in place of those for which Arrow accepts text that we do not.

    For integers that is hexadecimal, for floats forms such as `nan(abc)`; only if the block may contain one.
    """
    integers = any(map(pa.types.is_integer, types)) and not (_has(block, b"0x") or _has(block, b"0X"))
    floats = any(map(pa.types.is_floating, types)) and not (_has(block, b"n(") or _has(block, b"N("))
    return [
        type_
        if pa.types.is_date(type_)
        or (integers and pa.types.is_integer(type_))
        or (floats and pa.types.is_floating(type_))
        else pa.string()
        for type_ in types
    ]


def _has(block: bytes, pair: bytes) -> bool:
    """Whether `pair` occurs in the block; at least ten times as fast as `pair in block`."""
    if pair[1:] not in block:
        return False
    wanted = int.from_bytes(pair, "little")
    views = (np.frombuffer(block, "<u2", (len(block) - at) // 2, at) for at in (0, 1))
    return any(bool((view == wanted).any()) for view in views)


def _decode(column: pa.Array, foreign: bool) -> tuple[pa.Array, Bad]:
    """Decode a column of bytes, and report undecodable ones; with `foreign`, each byte was widened to a character."""
    if not foreign:
        return column.cast(pa.string()), {}
    bad: Bad = {}
    texts: list[str | None] = []
    for position, value in enumerate(column.to_pylist()):
        try:
            texts.append(None if value is None else value.decode().encode("latin-1").decode())
        except UnicodeDecodeError:
            bad[position] = "not valid UTF-8"
            texts.append(None)
    return pa.array(texts, pa.string()), bad


def _bounded(data: bytes, records: Records) -> tuple[int, Records]:
    """Return the records before the first overlong one, and their length; if there are none, its first line, broken.

    This treats the quote as never closed regardless of where reads split the file.
    """
    long = np.flatnonzero(records.ends - records.starts >= MAX_RECORD)
    count = int(long[0]) if len(long) else len(records.ends)
    if count:
        kept = Records(records.starts[:count], records.ends[:count], records.broken)
        cut = int(kept.ends[-1]) + 1
        return cut, Records(kept.starts, kept.ends, {at: why for at, why in kept.broken.items() if at < cut})
    line = first_break(data)
    return line + 1, Records(np.zeros(1, np.int64), np.array([line], np.int64), {0: OPEN})


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks) if column.num_chunks else None


class _CsvSink(TextSink):
    """Writes CSV with a header. NULL is empty; text is quoted where necessary, and if it is empty."""

    def __init__(self, request: SinkRequest) -> None:
        names = _quote(pa.array(request.schema.names, pa.string()))
        super().__init__(request, (",".join(names.to_pylist()) + "\n").encode())

    def lines(self, batch: pa.RecordBatch) -> pa.Array:
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


register_files("csv", _CsvReader, _CsvSink)
