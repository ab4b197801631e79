"""Static tables: small data from CSV, JSON lines or Parquet files, or given in Python, to join streams with.

Types that are not declared are inferred so that every value stays as it is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from headway.errors import NetworkError, SchemaError, choices, did_you_mean, first_line
from headway.network.schema import DEEPEST, Schema, normalise
from headway.network.trust import OWN, Trust
from headway.paths import unusable

SUFFIXES = (".csv", ".jsonl", ".parquet")

FORMATS = ("avro", "csv", "delta", "json", "orc", "parquet", "text", "xml")
"""What ``format.`path``` may name."""
_NAME = re.compile(r"\w+(?:\.\w+){0,2}")
_QUOTED = re.compile(r"(\w+)\.`([^`]+)`")
_SHOWN = 120
_KEPT = r"^[+-]?0[0-9xX]|\("
"""What Arrow takes for a number although it is meant as text: a leading zero, hexadecimal digits, `nan(abc)`."""
_BIGINT = range(-(1 << 63), 1 << 63)
_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*"')
_BRACKETS = re.compile(rb"[][{}]")
_KINDS = {bool: "a boolean", int: "a number", float: "a number", str: "text", list: "an array", dict: "an object"}

Loader = Callable[[str, Path | None], pa.Table | None]
_loaders: list[Loader] = []


def register_table_loader(loader: Loader) -> None:
    """Register a function that finds tables that are neither given nor files.

    It gets the reference and the folder for relative paths, and returns None for a table it does not know. Loaders are
    asked in the order of their registration.
    """
    _loaders.append(loader)


def load_table(
    ref: str,
    tables: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    trust: Trust = OWN,
    format_: str | None = None,
) -> pa.Table:
    """Return a static table with Headway's types: one of `tables` by name, a file, or what a loader finds.

    A relative path is resolved against `folder`, the network file's, or else the current one. `format_` is that of the
    file if its name does not say so: ``csv``, ``jsonl`` or ``parquet``. A CSV file has a header, and its types are
    inferred. Raises a NetworkError that says what is missing, or what `trust` does not allow.
    """
    given = dict(tables or {})
    if ref in given:
        table = given[ref]
        if isinstance(table, str | Path):
            return load_table(str(table), None, None)  # given in Python: any file, from the current folder
        return _convert(_given(table, ref), ref, lenient=False)
    path = Path(ref) if folder is None else folder / ref
    suffix = path.suffix.lower() if format_ is None else f".{format_}"
    wrong = unusable(path)
    if wrong and trust.own:  # strangers learn nothing of files that they may not name
        raise NetworkError(f"table '{ref}': '{path}' is not a valid path: {wrong}")
    check_allowed(ref, folder, trust)
    if wrong:
        raise NetworkError(f"table '{ref}': '{path}' is not a valid path: {wrong}")
    if suffix not in SUFFIXES or not path.is_file():
        for loader in _loaders:
            found = loader(ref, folder)
            if found is not None:
                return _convert(found, ref, lenient=False)
    if suffix not in SUFFIXES:
        raise NetworkError(
            f"table '{ref}': no table of this name is given{did_you_mean(ref, given) or ';'} "
            f"tables: {choices(sorted(given))}; give one with tables= in Python or with --table, or name a file, which "
            f"ends in {choices(SUFFIXES)}"
        )
    if not path.is_file():
        raise NetworkError(f"table '{ref}': no such file: {path}")
    try:
        table = _read(path, suffix)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise NetworkError(f"table '{ref}': cannot read {path}: {first_line(error)}") from error
    return _convert(table, ref, lenient=suffix != ".parquet")


def _given(table: object, ref: str) -> pa.Table:
    """Return a table that was given in Python in one of the usual forms."""
    try:
        found = _as_table(table)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise NetworkError(f"table '{ref}': {first_line(error)}") from None
    if found is not None and found.num_columns:
        return found
    kind = f"{type(table).__name__}{'' if found is None else ' without columns'}"
    if isinstance(table, pa.RecordBatchReader):
        kind += ", which can be read only once"
    raise NetworkError(
        f"table '{ref}': a table is a path, a pyarrow.Table, a DataFrame (pandas, polars), a mapping of columns or "
        f"a list of rows such as {{'a': 1}}, not {kind}"
    )


def _as_table(table: Any) -> pa.Table | None:
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, Mapping):
        return pa.table(dict(table))
    if isinstance(table, list | tuple):
        if not all(isinstance(row, Mapping) for row in table):
            return None
        names = dict.fromkeys([name for row in table for name in row])
        return pa.table({name: [row.get(name) for row in table] for name in names})
    if isinstance(table, pa.RecordBatchReader) or not hasattr(table, "__arrow_c_stream__"):
        return pa.table(table) if isinstance(table, pa.RecordBatch) else None
    found = pa.table(table)
    return found.select([name for name in found.column_names if not name.startswith("__index_level_")])


def table_schema(
    ref: str, tables: Mapping[str, Any] | None = None, folder: Path | None = None, trust: Trust = OWN
) -> Schema:
    """Return a static table's schema; `tables` may hold schemas instead of tables."""
    given = (tables or {}).get(ref)
    if isinstance(given, Schema):
        return given
    return Schema.from_arrow(load_table(ref, tables, folder, trust).schema)


def split_quoted(ref: str) -> tuple[str, str] | None:
    """Return format and path of ``format.`path```, SQL's notation for files, or None for any other text."""
    found = _QUOTED.fullmatch(ref)
    return None if found is None else (found[1], found[2])


def is_name(ref: str) -> bool:
    """Whether a reference is a plain name, such as that of a view: nothing else is looked up in Spark's catalog."""
    return _NAME.fullmatch(ref) is not None


def check_allowed(ref: str, folder: Path | None, trust: Trust) -> None:
    """Raise a NetworkError unless a network file may name this table, be it a file, a directory or in a catalog."""
    who, path, here = f"table '{ref[:_SHOWN]}'", ref, (folder or Path()) / ref
    if "`" in ref:
        parts = split_quoted(ref)
        if parts is None:
            raise NetworkError(f"{who}: expected a name, a path, or format.`path`")
        format_, path = parts
        trust.check_format(format_, FORMATS, who, NetworkError)
    elif is_name(ref) and (unusable(here) or not here.exists()):
        trust.check_table(ref, who, NetworkError)
        return
    trust.check_pattern(path, who, NetworkError)
    trust.check_path(path, folder, who, NetworkError)


def _read(path: Path, suffix: str) -> pa.Table:
    """Return what a file holds; raise ArrowInvalid for text that is not UTF-8, which Arrow accepts or crashes on."""
    if suffix == ".parquet":
        table = pyarrow.parquet.read_table(path)
        table.validate(full=True)
        return table
    data = path.read_bytes()
    try:
        data.decode()
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise pa.ArrowInvalid(f"line {number} is not valid UTF-8") from None
    return infer_csv(data) if suffix == ".csv" else infer_json_lines(data)


def _convert(table: pa.Table, ref: str, lenient: bool) -> pa.Table:
    """Cast to Headway's types; if `lenient`, for inferred types, those without a Spark SQL name become text."""
    fields = []
    for field in table.schema:
        try:
            type_ = normalise(field.type, field.name)
        except SchemaError as error:
            if not lenient:
                raise SchemaError(f"table '{ref}': {error}") from error
            type_ = pa.string()
        fields.append((field.name, type_))
    try:
        Schema.from_arrow(pa.schema(fields))
        return table.cast(pa.schema(fields))
    except SchemaError as error:
        raise SchemaError(f"table '{ref}': {error}") from error
    except pa.ArrowException as error:
        raise NetworkError(f"table '{ref}': {first_line(error)}") from error


# CSV and JSON lines without declared types


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
