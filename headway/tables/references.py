"""Tables by reference: a CSV, JSON lines or Parquet file, or what a loader finds (a directory, a table of Spark)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from headway.errors import NetworkError, SchemaError, choices, did_you_mean, first_line
from headway.network.schema import Schema, normalise
from headway.network.trust import Trust
from headway.paths import unusable
from headway.tables.inferring import infer_csv, infer_json_lines

SUFFIXES = (".csv", ".jsonl", ".parquet")

FORMATS = ("avro", "csv", "delta", "json", "orc", "parquet", "text", "xml")
"""What ``format.`path``` may name."""
_NAME = re.compile(r"\w+(?:\.\w+){0,2}")
_QUOTED = re.compile(r"(\w+)\.`([^`]+)`")

Loader = Callable[[str, Path | None], pa.Table | None]
_loaders: list[Loader] = []


def register_table_loader(loader: Loader) -> None:
    """Register a function that finds tables that are neither given nor files.

    It gets the reference and the folder for relative paths, and returns None for a table it does not know. Loaders are
    asked in the order of their registration.
    """
    _loaders.append(loader)


def find_table(ref: str, folder: Path | None, trust: Trust, who: str, given: Iterable[str] = ()) -> pa.Table:
    """Return the table that a reference names, with Headway's types.

    A relative path is resolved against `folder`, or else the current one. `who` begins messages, and `given` are the
    names that would have been known. Raises a NetworkError that says what is missing, or what `trust` does not allow.
    """
    path = permit_reference(ref, folder, trust, who)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES or not path.is_file():
        for loader in _loaders:
            found = loader(ref, folder)
            if found is not None:
                return with_types(found, who, lenient=False)
    if suffix not in SUFFIXES:
        raise NetworkError(
            f"{who}: no table of this name is given{did_you_mean(ref, given) or ';'} "
            f"tables: {choices(sorted(given))}; give one with tables= in Python or with --table, or name a file, which "
            f"ends in {choices(SUFFIXES)}"
        )
    return read_file(path, suffix[1:], who)


def read_file(path: Path, kind: str, who: str) -> pa.Table:
    """Return the contents of a file of a kind (csv, jsonl, parquet), with Headway's types."""
    if not path.is_file():
        raise NetworkError(f"{who}: no such file: {path}")
    try:
        table = _read(path, kind)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise NetworkError(f"{who}: cannot read {path}: {first_line(error)}") from error
    return with_types(table, who, lenient=kind != "parquet")


def permit_reference(ref: str, folder: Path | None, trust: Trust, who: str) -> Path:
    """Return the path that a reference names, if it is one; raise a NetworkError if a file may not name it."""
    path = Path(ref) if folder is None else folder / ref
    wrong = unusable(path)
    if not (wrong and trust.own):  # strangers learn nothing of files that they may not name
        _check_trust(ref, folder, trust, who)
    if wrong:
        raise NetworkError(f"{who}: '{path}' is not a valid path: {wrong}")
    return path


def split_quoted(ref: str) -> tuple[str, str] | None:
    """Return format and path of ``format.`path```, SQL's notation for files, or None for any other text."""
    found = _QUOTED.fullmatch(ref)
    return None if found is None else (found[1], found[2])


def is_name(ref: str) -> bool:
    """Whether a reference is a plain name, such as that of a view: nothing else is looked up in Spark's catalog."""
    return _NAME.fullmatch(ref) is not None


def _check_trust(ref: str, folder: Path | None, trust: Trust, who: str) -> None:
    """Raise a NetworkError unless a network file may name this table, be it a file, a directory or in a catalog."""
    path, here = ref, (folder or Path()) / ref
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


def _read(path: Path, kind: str) -> pa.Table:
    """Return what a file holds; raise ArrowInvalid for text that is not UTF-8, which Arrow accepts or crashes on."""
    if kind == "parquet":
        table = pyarrow.parquet.read_table(path)
        table.validate(full=True)
        return table
    data = path.read_bytes()
    try:
        data.decode()
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise pa.ArrowInvalid(f"line {number} is not valid UTF-8") from None
    return infer_csv(data) if kind == "csv" else infer_json_lines(data)


def with_types(table: pa.Table, who: str, lenient: bool) -> pa.Table:
    """Cast to Headway's types; if `lenient`, for inferred types, those without a Spark SQL name become text."""
    fields = []
    for field in table.schema:
        try:
            type_ = normalise(field.type, field.name)
        except SchemaError as error:
            if not lenient:
                raise SchemaError(f"{who}: {error}") from error
            type_ = pa.string()
        fields.append((field.name, type_))
    try:
        Schema.from_arrow(pa.schema(fields))
        return table.cast(pa.schema(fields))
    except SchemaError as error:
        raise SchemaError(f"{who}: {error}") from error
    except pa.ArrowException as error:
        raise NetworkError(f"{who}: {first_line(error)}") from error
