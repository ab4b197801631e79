"""JSON lines: one object per line, in a file or on standard input and output.

Lines go through Python's parser: Arrow's own (26.0) crashes the process on a line that is `null`.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headway.connectors.input_files import TrackedFile, check_encoding, input_path, open_input
from headway.connectors.output_files import TextSink, register_files
from headway.connectors.protocol import SinkRequest, SourceRequest
from headway.connectors.readers import BatchReader, RowConverter
from headway.connectors.texts import plain, render_texts, to_json
from headway.connectors.values import show
from headway.errors import InputError
from headway.expressions.timestamps import to_python

BLOCK = 1 << 20
MAX_LINE = 1 << 24
"""The longest line in bytes; longer ones are malformed, which bounds memory."""


class _JsonLinesReader(BatchReader):
    """Reads one JSON object per line. A missing key is NULL, unknown keys are ignored, blank lines are skipped.

    Each read returns what is available: on standard input and pipes, a line is delivered as soon as it is complete.
    """

    def __init__(self, request: SourceRequest) -> None:
        """Open the file, or standard input for "-"."""
        super().__init__(request)
        if str(request.settings) == "-":
            self._place = "standard input"
            stdin: Any = sys.stdin.buffer  # never closed
            # A thread that blocks in the buffered reader holds its lock, which would keep Python from exiting.
            raw = getattr(stdin, "raw", None)
            self._read: Callable[[int], bytes] = stdin.read1 if raw is None else raw.read
            self.live, self.finite = True, False
            self.anew = _is_file(stdin)
        else:
            path = input_path(request)
            self._place = path.name
            self.finite = self.anew = stat.S_ISREG(path.stat().st_mode)
            self.live = not self.finite
            file: Any = open_input(path, request.who)
            self.file = file if self.live else TrackedFile(file, path)
            self._read = self.file.read1
        self._converter = RowConverter(request)
        exact = any(pa.types.is_decimal(type_) for type_ in request.schema.types)
        self._loads = json.JSONDecoder(parse_float=Decimal).decode if exact else json.loads
        self._load_one = json.JSONDecoder(parse_float=_exact).decode if exact else json.loads
        self._rest = b""
        self._line = 1
        self._skipping = self._begun = False

    def next_batch(self, limit: int) -> pa.RecordBatch | None:
        """Parse the lines that are available; block until there is one."""
        block = self._next_block()
        if block is None:
            self._converter.warn()
            return None
        reasons: dict[int, str] = {}
        rows, lines = self._load(block, reasons)
        batch, bad = self._converter.batch(rows)
        for position, reason in bad.items():
            reasons[lines[position] if lines else position] = reason
        texts = block.split(b"\n") if reasons else []
        for at in sorted(reasons):
            self.refuse(f"{self._place} line {self._line + at}", texts[at], reasons[at])
        self._line += block.count(b"\n")
        return batch

    def _next_block(self) -> bytes | None:
        """Return complete lines, or None at the end."""
        while True:
            try:
                data = self._read(BLOCK)
            except (OSError, ValueError) as error:
                raise InputError(f"{self._who}: {self._place} cannot be read: {error}") from error
            if not data:
                block, self._rest = self._rest, b""
                if block and isinstance(self.file, TrackedFile):
                    self.file.broken_off = True
                return self._begin(block) + b"\n" if block else None
            cut = data.rfind(b"\n") + 1
            if cut:
                if not self._skipping and len(self._rest) + data.find(b"\n") > MAX_LINE:
                    self._skip_line(self._rest + data[: data.find(b"\n")])
                block, self._rest = self._rest + data[:cut], data[cut:]
                if not self._skipping:
                    return self._begin(block)
                self._skipping = False
                self._line += 1
                block = block.partition(b"\n")[2]
                if block:
                    return block
            elif not self._skipping:
                self._rest += data
                if len(self._rest) > MAX_LINE:
                    self._skip_line(self._rest)

    def _skip_line(self, line: bytes) -> None:
        self.refuse(f"{self._place} line {self._line}", line, f"a line longer than {MAX_LINE} bytes")
        self._rest, self._skipping = b"", True

    def _begin(self, block: bytes) -> bytes:
        """Strip the byte-order mark from the first block; return later ones as they are."""
        if self._begun:
            return block
        self._begun = True
        return check_encoding(block, self._who, self._place)

    def _load(self, block: bytes, reasons: dict[int, str]) -> tuple[list[Any], list[int]]:
        """Return the objects of a block and their line indexes, which are omitted if every line has an object."""
        try:
            rows = list(map(self._loads, block.decode().split("\n")[:-1]))
            if set(map(type, rows)) <= {dict}:
                return rows, []
        except (ValueError, RecursionError, InvalidOperation):
            pass  # some line is blank or malformed: parse them one by one
        rows, lines = [], []
        for at, line in enumerate(block.split(b"\n")):
            if not line.strip():
                continue
            try:
                row = self._load_one(line.decode())
            except UnicodeDecodeError:
                reasons[at] = "not valid UTF-8"
            except (ValueError, RecursionError) as error:
                reasons[at] = f"not valid JSON: {error}"
            else:
                if isinstance(row, dict):
                    rows.append(row)
                    lines.append(at)
                else:
                    reasons[at] = f'expected an object such as {{"a": 1}}, not {show(row)}'
        return rows, lines


def _exact(text: str) -> Decimal:
    """Parse a number exactly; an exponent beyond Decimal's range gives infinity or nearly 0, as for a float."""
    try:
        return Decimal(text)
    except InvalidOperation:
        digits, _, exponent = text.lower().partition("e")
        if not digits.strip("-0."):
            return Decimal(0)
        return Decimal(digits[:1].strip("0123456789") + ("1e-999999999" if exponent.startswith("-") else "Infinity"))


def _is_file(stream: Any) -> bool:
    """Whether a stream is a regular file that the shell redirected, which the same command would reopen."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError, AttributeError):
        return False


class Tagged(str):
    """The path ``-`` of an output that shares standard output with other outputs.

    Its lines are ``{"output": NAME, "tuple": {...}}``; nesting the tuple allows a field named output.
    """

    __slots__ = ()


TAGGED = Tagged("-")


def tag_shared(destinations: Mapping[str, object]) -> dict[str, object]:
    """Return replacement destinations by output name if several share standard output; otherwise an empty dict."""
    named = {name: _kind_and_path(what) for name, what in destinations.items()}
    shared = [name for name, (_, path) in named.items() if path == "-"]
    return {name: TAGGED for name in shared if named[name][0] == "jsonl"} if len(shared) > 1 else {}


def _kind_and_path(what: object) -> tuple[object, object]:
    """Return the kind and path of a connector such as ``{jsonl: "-"}``; a bare path counts as JSON lines."""
    return next(iter(what.items())) if isinstance(what, Mapping) and len(what) == 1 else ("jsonl", what)


class JsonLinesSink(TextSink):
    """Writes one JSON object per line: all fields, NULL as null, NaN and infinities as text.

    If several outputs share standard output, each line names its output (see `Tagged`).
    """

    def __init__(self, request: SinkRequest) -> None:
        super().__init__(request)
        tagged = isinstance(request.settings, Tagged)
        self._before = f'{{"output":{to_json(request.name)},"tuple":{{' if tagged else "{"
        self._after = "}}\n" if tagged else "}\n"

    def lines(self, batch: pa.RecordBatch) -> pa.Array:
        """Return one line per tuple."""
        parts: list[Any] = []
        for at, (field, column) in enumerate(zip(self.schema, batch.columns, strict=True)):
            parts += [("," if at else self._before) + to_json(field.name) + ":", pc.fill_null(_json(column), "null")]
        return pc.binary_join_element_wise(*parts, self._after, "")


def _json(column: pa.Array) -> pa.Array:
    """Return the values of a column as JSON; NULL stays NULL."""
    type_ = column.type
    if pa.types.is_nested(type_):
        values = [None if value is None else to_json(plain(value)) for value in to_python(column)]
        return pa.array(values, pa.string())
    texts = render_texts(column)
    if pa.types.is_string(type_):
        if pc.any(pc.match_substring_regex(texts, r'[\x00-\x1f"\\]')).as_py():
            return pa.array([None if text is None else to_json(text) for text in texts.to_pylist()], pa.string())
    elif pa.types.is_floating(type_):
        if pc.all(pc.is_finite(column)).as_py() is not False:
            return texts
        return pc.if_else(pc.is_finite(column), texts, pc.binary_join_element_wise('"', texts, '"', ""))
    elif pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_decimal(type_):
        return texts
    return pc.binary_join_element_wise('"', texts, '"', "")


register_files("jsonl", _JsonLinesReader, JsonLinesSink)
