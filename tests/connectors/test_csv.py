"""CSV in and out, by example."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headway.connectors import csv as csv_module
from headway.connectors import open_source
from headway.errors import InputError
from headway.schema import Schema
from tests.connectors.helpers import drain, read_text, rows, write

SCHEMA = "sid int, x double, name string"


def test_columns_by_name(tmp_path: Path) -> None:
    reader = read_text(tmp_path / "a.csv", "name,extra,X,sid\na,?,1.5,1\nb,?,,2\n", SCHEMA)
    assert reader.finite
    assert not reader.live
    assert not reader.timed
    assert rows(reader) == [{"sid": 1, "x": 1.5, "name": "a"}, {"sid": 2, "x": None, "name": "b"}]


def test_null_and_empty(tmp_path: Path) -> None:
    reader = read_text(tmp_path / "a.csv", 'sid,x,name\n,,\n"","",""\n', SCHEMA)
    assert rows(reader) == [{"sid": None, "x": None, "name": None}, {"sid": None, "x": None, "name": ""}]


@pytest.mark.parametrize("content", ["a\r\n1\r\n2\r\n", "a\n1\n2", "\ufeffa\n1\n2\n", '"a"\n"1"\n 2 \n', "a\r1\r2\r"])
def test_line_ends_and_header(tmp_path: Path, content: str) -> None:
    assert rows(read_text(tmp_path / "a.csv", content, "a int")) == [{"a": 1}, {"a": 2}]


def test_every_way_to_write_a_value(tmp_path: Path) -> None:
    content = (
        "b,t,n,d,m,l\n"
        'true,2024-01-01T10:00:00Z,2024-01-01 10:00:00.5,2024-02-29,1.50,"[1,null]"\n'
        "0,2024-01-01T12:00:00+02:00,2024-01-01,2024-02-29,1,[]\n"
        "False,2024-01-01,2024-01-01T10:00,,-2.5,\n"
    )
    schema = "b boolean, t timestamp, n timestamp_ntz, d date, m decimal(5,2), l array<int>"
    table, _, malformed = drain(read_text(tmp_path / "a.csv", content, schema))
    assert malformed == []
    assert table is not None
    assert table.column("b").to_pylist() == [True, False, False]
    assert table.column("t").cast(pa.int64()).to_pylist() == [1704103200000000, 1704103200000000, 1704067200000000]
    assert [str(value) for value in table.column("m").to_pylist()] == ["1.50", "1.00", "-2.50"]
    assert table.column("l").to_pylist() == [[1, None], [], None]


def test_malformed_rows_are_set_aside(tmp_path: Path) -> None:
    content = b'sid,x,name\n1,1,a\nx,1,b\n2,2\n\n3,1,"two\nlines"\n4,z,c\n5,5,\xff\n6,6,d,7\n99999999999,1,e\n8,8,f'
    table, _, malformed = drain(read_text(tmp_path / "a.csv", content, SCHEMA), [2])
    assert table is not None
    assert table.column("sid").to_pylist() == [1, 3, 8]
    assert [(row.where, row.reason) for row in malformed] == [
        ("a.csv line 3", "column 'sid': expected int, not 'x'"),
        ("a.csv line 4", "expected 3 values, not 2"),
        ("a.csv line 8", "column 'x': expected double, not 'z'"),
        ("a.csv line 9", "column 'name': not valid UTF-8"),
        ("a.csv line 10", "expected 3 values, not 4"),
        ("a.csv line 11", "column 'sid': 99999999999 is out of range for int"),
    ]
    assert malformed[0].text == "x,1,b"
    assert str(malformed[1]) == "source 's': a.csv line 4: expected 3 values, not 2"


def test_a_quote_that_is_not_closed_costs_its_line_only(tmp_path: Path) -> None:
    content = 'a,s\n1,x\n2,"open\n3,"fine, really"\n4,"a"b\n5,5" pipe\n6,"open again\n7,y\n'
    table, _, malformed = drain(read_text(tmp_path / "a.csv", content, "a int, s string"))
    assert table is not None
    assert table.column("a").to_pylist() == [1, 3, 5, 7]
    assert table.column("s").to_pylist() == ["x", "fine, really", '5" pipe', "y"]
    assert [row.where for row in malformed] == ["a.csv line 3", "a.csv line 5", "a.csv line 7"]
    assert "quote" in malformed[0].reason


def test_strict_stops(tmp_path: Path) -> None:
    reader = read_text(tmp_path / "a.csv", "a\n1\nx\n", "a int", strict=True)
    with pytest.raises(InputError, match=r"source 's': a\.csv line 3: column 'a': expected int, not 'x'"):
        reader.read(10)
    reader.close()


def test_blocks_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f'{i},"v{i},\n{i}"' if i % 3 else f"{i},v" for i in range(200)]
    lines[50], lines[90] = "x,bad", "1,2,3"
    content = "a,s\n" + "\n".join(lines)
    whole = drain(read_text(tmp_path / "a.csv", content, "a int, s string"))
    for block in (1, 5, 17, 64):
        monkeypatch.setattr(csv_module, "BLOCK", block)
        again = drain(open_source("s", Schema.parse("a int, s string"), tmp_path / "a.csv"), [3])
        assert again[0] is not None
        assert whole[0] is not None
        assert again[0].to_pylist() == whole[0].to_pylist()
        assert again[2] == whole[2]


def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_module, "BLOCK", 8)
    monkeypatch.setattr(csv_module, "MAX_RECORD", 32)
    content = "a,s\n1,x\n2," + "y" * 100 + "\n3,z\n"
    table, _, malformed = drain(read_text(tmp_path / "a.csv", content, "a int, s string"))
    assert table is not None
    assert table.column("a").to_pylist() == [1, 3]
    assert [(row.where, row.reason) for row in malformed] == [("a.csv line 3", "a line longer than 32 bytes")]


def test_long_rows_are_cut_in_reports(tmp_path: Path) -> None:
    _, _, malformed = drain(read_text(tmp_path / "a.csv", "a\n" + "x" * 5000 + "\n", "a int"))
    assert len(malformed[0].text) == 500


def test_many_malformed_rows_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_module, "BLOCK", 1 << 15)
    reader = read_text(tmp_path / "a.csv", "a\n" + "x\n" * 60_000, "a int")
    most = total = 0
    while reader.read(10) is not None:
        count = len(reader.malformed())
        most, total = max(most, count), total + count
    total += len(reader.malformed())
    reader.close()
    assert total == 60_000
    assert most < total


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has no header line; expected the columns sid, x, name"),
        ("\n1,2,3\n", "has no header line"),
        ("sid,x,nme\n", "has no column 'name'; did you mean 'nme'? columns: sid, x, nme"),
        (b"sid,x,\xff\n", "the header of .* is not valid UTF-8"),
    ],
)
def test_bad_headers(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        read_text(tmp_path / "a.csv", content, SCHEMA)


def test_written_text(tmp_path: Path) -> None:
    table = pa.table(
        {
            "a b": pa.array([1, None], pa.int32()),
            "x": pa.array([1.0, float("nan")]),
            "s": pa.array(['say "hi"', ""]),
            "t": pa.array([0, 1_500_000], pa.timestamp("us", tz="UTC")),
            "n": pa.array([None, 0], pa.timestamp("us")),
            "l": pa.array([[1, 2], None]),
        }
    )
    write(tmp_path / "a.csv", table)
    assert (tmp_path / "a.csv").read_text() == (
        "a b,x,s,t,n,l\n"
        '1,1.0,"say ""hi""",1970-01-01T00:00:00Z,,"[1,2]"\n'
        ',NaN,"",1970-01-01T00:00:01.500000Z,1970-01-01T00:00:00,\n'
    )


def test_header_without_tuples(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", pa.table({"a": pa.array([], pa.int32()), "b,c": pa.array([], pa.int32())}))
    assert (tmp_path / "a.csv").read_text() == 'a,"b,c"\n'
