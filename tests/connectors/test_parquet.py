"""Parquet that was not written by us; the rest is in test_roundtrip and test_opening."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headway.connectors import open_source
from headway.network.schema import Schema
from tests.connectors.helpers import drain


def _texts(values: list[bytes]) -> pa.Array:
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())


def test_text_that_is_no_text_is_a_malformed_row(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([1, 2, 3], pa.int32()), "s": _texts([b"x", b"\xff\xfe", b"z"])})
    pq.write_table(table, tmp_path / "a.parquet")
    read, _, malformed = drain(open_source("s", Schema.parse("a int, s string"), tmp_path / "a.parquet"))
    assert read is not None
    assert read.to_pylist() == [{"a": 1, "s": "x"}, {"a": 3, "s": "z"}]
    assert [(row.where, row.reason) for row in malformed] == [("a.parquet row 2", "column 's': not valid UTF-8")]


def test_so_is_such_text_in_a_list(tmp_path: Path) -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), _texts([b"x", b"\xff", b"y"]))
    pq.write_table(pa.table({"s": lists}), tmp_path / "a.parquet")
    read, _, malformed = drain(open_source("s", Schema.parse("s array<string>"), tmp_path / "a.parquet"))
    assert read is not None
    assert read.to_pylist() == [{"s": ["y"]}]
    assert [(row.where, row.reason) for row in malformed] == [("a.parquet row 1", "column 's': not valid UTF-8")]


def test_a_value_that_does_not_fit_is_a_malformed_row(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2, 2**40, 4], "s": _texts([b"x", b"\xff\xfe", b"y", b"z"])})
    pq.write_table(table, tmp_path / "a.parquet")
    read, _, malformed = drain(open_source("s", Schema.parse("a int, s string"), tmp_path / "a.parquet"))
    assert read is not None
    assert read.to_pylist() == [{"a": 1, "s": "x"}, {"a": 4, "s": "z"}]
    assert [(row.where, row.text) for row in malformed] == [
        ("a.parquet row 2", ""),
        ("a.parquet row 3", "1099511627776"),
    ]
    assert malformed[1].reason.startswith("column 'a': does not fit int: ")
