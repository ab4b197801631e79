"""CSV and JSON lines without declared types: types are inferred so that every value stays as it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from headway.network.schema import DEEPEST

_KEPT = r"^[+-]?0[0-9xX]|\("
"""What Arrow takes for a number although it is meant as text: a leading zero, hexadecimal digits, `nan(abc)`."""
_BIGINT = range(-(1 << 63), 1 << 63)
_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*"')
_BRACKETS = re.compile(rb"[][{}]")
_KINDS = {bool: "a boolean", int: "a number", float: "a number", str: "text", list: "an array", dict: "an object"}


def infer_csv(data: bytes) -> pa.Table:
    """Return CSV with a header as a table, or raise ArrowInvalid; only an empty value without quotes is NULL."""

    def read(as_text: Sequence[str]) -> pa.Table:
        options = csv_options()
        options.include_columns = list(as_text)
        options.column_types = dict.fromkeys(as_text, pa.string())
        try:
            return pyarrow.csv.read_csv(pa.BufferReader(data), convert_options=options)
        except pa.ArrowInvalid:  # again in one thread, whose error names the line
            alone = pyarrow.csv.ReadOptions(use_threads=False)
            return pyarrow.csv.read_csv(pa.BufferReader(data), alone, convert_options=options)

    table = keep_texts(read(()), read)
    if data.count(b'"') % 2:
        _refuse_open_quote(table)
    return table


def _refuse_open_quote(table: pa.Table) -> None:
    """Raise ArrowInvalid if the last row has a text of several lines: with odd quotes, one was never closed."""
    last = table.slice(max(0, table.num_rows - 1)).to_pylist()
    for name, value in (last[0] if last else {}).items():
        if isinstance(value, str) and "\n" in value:
            raise pa.ArrowInvalid(f"column '{name}': a quote is never closed, and all behind it would be one value")


def csv_options() -> pyarrow.csv.ConvertOptions:
    """Return options by which only an empty value is NULL; by default, Arrow reads NA, Namibia's code, as NULL."""
    return pyarrow.csv.ConvertOptions(null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False)


def keep_texts(guessed: pa.Table, read: Callable[[Sequence[str]], pa.Table]) -> pa.Table:
    """Return a table with the types that Arrow inferred where they keep the values; `read` returns columns as text.

    Leading zeros, or whole numbers beyond bigint, keep a column text: as numbers they would be different keys.
    """
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_time)
    doubtful = [field.name for field in guessed.schema if any(test(field.type) for test in tests)]
    if not doubtful or len(set(guessed.column_names)) < guessed.num_columns:
        return guessed
    texts = read(doubtful)
    for name in doubtful:
        at = guessed.column_names.index(name)
        type_ = guessed.schema.field(at).type
        if pa.types.is_time(type_) or _is_text(texts[name]):
            guessed = guessed.set_column(at, name, texts[name])
        elif pa.types.is_floating(type_) and _is_whole(texts[name]):  # a plus sign, which Arrow reads only in floats
            plain = pc.replace_substring_regex(pc.utf8_trim_whitespace(texts[name]), r"^\+", "")
            guessed = guessed.set_column(at, name, plain.cast(pa.int64()))
    return guessed


def _is_whole(column: pa.ChunkedArray) -> bool:
    found = pc.all(pc.match_substring_regex(pc.utf8_trim_whitespace(column), r"^[+-]?\d+$")).as_py()
    return bool(found) and column.null_count < len(column)


def _is_text(column: pa.ChunkedArray) -> bool:
    """Whether a column of numbers has to stay text."""
    texts = pc.utf8_trim_whitespace(column)
    if pc.any(pc.match_substring_regex(texts, _KEPT)).as_py():
        return True
    if not _is_whole(column):
        return False  # with fractions: measurements, not keys
    long = pc.filter(texts, pc.greater(pc.binary_length(texts), 18)).to_pylist()
    return any(len(text) > 20 or int(text) not in _BIGINT for text in long)


def infer_json_lines(data: bytes) -> pa.Table:
    """Return JSON lines as a table, or raise ArrowInvalid with the line; text stays text, whatever it looks like."""
    rows: list[dict[str, Any]] = []
    numbers: list[int] = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            if _levels(line) > DEEPEST + 1:  # JSON parsers recurse with every level
                raise pa.ArrowInvalid(f"line {number}: arrays and objects lie more than {DEEPEST} deep in the row")
            rows.append(_object(line, number))
            numbers.append(number)
    if not rows:
        raise pa.ArrowInvalid('it has no object such as {"a": 1}')
    names = dict.fromkeys([name for row in rows for name in row])
    return pa.table({name: _column(name, [row.get(name) for row in rows], numbers) for name in names})


def _object(line: bytes, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        if not re.match(rb"\s*\{", line):
            raise pa.ArrowInvalid(f'line {number} is not an object such as {{"a": 1}}') from None
        raise pa.ArrowInvalid(f"line {number} is not valid JSON: {error.msg} at column {error.colno}") from None
    except (ValueError, RecursionError) as error:  # thousands of digits or brackets
        raise pa.ArrowInvalid(f"line {number} cannot be read: {error}") from None
    if not isinstance(row, dict):
        raise pa.ArrowInvalid(f'line {number} is not an object such as {{"a": 1}}')
    return row


def _levels(line: bytes) -> int:
    """Return how deeply a line of JSON is nested, the row itself included; 0 if it cannot be deeper than DEEPEST."""
    if line.count(b"[") + line.count(b"{") <= DEEPEST:
        return 0
    deepest = level = 0
    for bracket in _BRACKETS.findall(_TEXTS.sub(b"", line)):
        level += 1 if bracket in b"[{" else -1
        deepest = max(deepest, level)
    return deepest


def _column(name: str, values: list[Any], numbers: list[int]) -> pa.Array:
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {int} and any(value is not None and value not in _BIGINT for value in values):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    if len({_KINDS[kind] for kind in kinds}) > 1:
        raise pa.ArrowInvalid(_change(name, values, numbers))
    try:
        if kinds == {int, float}:
            return pa.array([None if value is None else float(value) for value in values], pa.float64())
        return pa.array(values)
    except (pa.ArrowException, OverflowError, ValueError) as error:
        raise pa.ArrowInvalid(f"column '{name[:40]}': {error}") from None


def _change(name: str, values: list[Any], numbers: list[int]) -> str:
    """Return a message that says where a column changes its kind."""
    first = ""
    for value, number in zip(values, numbers, strict=True):
        kind = "" if value is None else _KINDS[type(value)]
        if first and kind and kind != first:
            return f"line {number}: column '{name[:40]}' is {first} before and {kind} here"
        first = first or kind
    raise AssertionError("no change")
