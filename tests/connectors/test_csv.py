"""CSV in and out, by example."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.connectors import csv as csv_module
from headway.connectors import open_source
from headway.connectors.readers import SkippingReader
from headway.errors import InputError
from headway.network.schema import Schema
from tests.connectors.helpers import drain, read_text, rows, write
from tests.searching import examples

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


def test_two_stray_quotes_cost_their_lines_only(tmp_path: Path) -> None:
    lines = [f"{at},{at}.5,n{at}" for at in range(40)]
    lines[2], lines[38] = '2,"2.5,n2', '38,38.5",n38'
    table, _, malformed = drain(read_text(tmp_path / "a.csv", "sid,x,name\n" + "\n".join(lines), SCHEMA))
    assert table is not None
    assert table.column("sid").to_pylist() == [at for at in range(40) if at not in (2, 38)]
    assert [row.where for row in malformed] == ["a.csv line 4", "a.csv line 40"]
    assert malformed[0].reason.startswith(
        "a quote opened here makes lines 4 to 40 one row, which is malformed: column 'x'"
    )
    assert malformed[0].text == '2,"2.5,n2'


def test_a_row_over_two_lines_that_hides_no_other_stays_one(tmp_path: Path) -> None:
    content = 'sid,x,name\nx,1,"two\nlines"\n1,1,"two\nlines"\n'
    table, _, malformed = drain(read_text(tmp_path / "a.csv", content, SCHEMA))
    assert table is not None
    assert table.to_pylist() == [{"sid": 1, "x": 1.0, "name": "two\nlines"}]
    assert [(row.where, row.text) for row in malformed] == [("a.csv line 2", 'x,1,"two\nlines"')]


def test_rows_between_quotes_that_make_text_are_text(tmp_path: Path) -> None:
    content = 'sid,x,name\n1,1,"a\n2,2,b\n3,3,c"\n'  # RFC 4180: nobody can know that this was not meant
    assert rows(read_text(tmp_path / "a.csv", content, SCHEMA)) == [{"sid": 1, "x": 1.0, "name": "a\n2,2,b\n3,3,c"}]


_good_texts = st.text('ab ,"\n', max_size=6)
_strays = st.tuples(st.sampled_from((0, 1, 3)), st.sampled_from(('"{}', '{}"', '"{}"x', 'x"{}', '""{}')))


@given(
    st.lists(_good_texts | _strays, max_size=25), st.sampled_from((1, 2, 5, 30, 1000)), st.sampled_from(("\n", "\r\n"))
)
@examples(120)
def test_no_good_row_is_lost_to_a_stray_quote(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[Any], block: int, ending: str
) -> None:
    """Quotes stray into numbers: what they open is no number, so every other row is good beyond doubt."""
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    lines, good = [], []
    for at, one in enumerate(drawn):
        if isinstance(one, str):
            quoted = '"' + one.replace('"', '""') + '"'
            good.append({"a": at, "b": at * 2, "s": one, "c": at * 3})
            lines.append(f"{at},{at * 2},{quoted},{at * 3}")
        else:
            cells = [str(at), str(at * 2), "text", str(at * 3)]
            cells[one[0]] = one[1].format(cells[one[0]])
            lines.append(",".join(cells))
    path.write_bytes(("a,b,s,c" + ending + ending.join(lines)).encode())
    schema = Schema.parse("a int, b int, s string, c int")
    whole = drain(open_source("s", schema, path))
    found = [] if whole[0] is None else whole[0].to_pylist()
    left = iter(found)
    assert all(any(row == one for one in left) for row in good)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_module, "BLOCK", block)
        again = drain(open_source("s", schema, path), [3])
        rest = drain(SkippingReader(open_source("s", schema, path), "s", len(found) // 2), [2])
    assert ([] if again[0] is None else again[0].to_pylist()) == found
    assert again[2] == whole[2]
    assert ([] if rest[0] is None else rest[0].to_pylist()) == found[len(found) // 2 :]


def test_a_record_that_is_too_long_does_not_hang_on_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_module, "MAX_RECORD", 64)
    for length in range(40, 90):
        content = f'a,s\n1,x\n2,"{"y" * 20}\n{"z" * (length - 20)}"\n3,z\n4,{"v" * (length - 20)}\n5,5'
        results = []
        for block in (1, 7, 31):  # reads are shorter than half of the longest record
            monkeypatch.setattr(csv_module, "BLOCK", block)
            table, _, malformed = drain(read_text(tmp_path / "a.csv", content, "a int, s string"))
            assert table is not None
            results.append((table.to_pylist(), malformed))
        assert all(one == results[0] for one in results)
        assert {1, 3, 5} <= {row["a"] for row in results[0][0]}


def test_lines_that_are_not_utf8_leave_no_traceback(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    content = b"sid,x,name\n1,1,a\n2,\xff\n3,3,\xff\n4,4,b\n5,5,c,\xff\n6,6,d\n"
    table, _, malformed = drain(read_text(tmp_path / "a.csv", content, SCHEMA))
    assert table is not None
    assert table.column("sid").to_pylist() == [1, 4, 6]
    assert [row.reason for row in malformed] == [
        "expected 3 values, not 2",
        "column 'name': not valid UTF-8",
        "expected 3 values, not 4",
    ]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_other_encodings_are_named(tmp_path: Path, encoding: str) -> None:
    with pytest.raises(InputError, match=rf"a\.csv' is in {encoding.upper()}, by its byte-order mark; expected UTF-8"):
        read_text(tmp_path / "a.csv", "a\n1\n".encode(encoding), "a int")


def test_a_header_of_one_huge_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the header of .* cannot be read: field larger"):
        read_text(tmp_path / "a.csv", "a," + "b" * 200_000 + "\n1,2\n", "a int")


@pytest.mark.parametrize(
    ("type_name", "text"),
    [
        *(("int", "0x1F"), ("int", "0XFFFFFFFF"), ("tinyint", "0xFF"), ("bigint", "0xFFFFFFFFFFFFFFFF")),
        *(("double", "nan(abc)"), ("float", "NAN()"), ("date", "0000-01-01"), ("decimal(38,0)", "11e38")),
        *(("timestamp", "9999-12-31T23:59:59-01:00"), ("timestamp_ntz", "0001-01-01T00:00:00+01:00")),
    ],
)
def test_what_only_arrow_reads_is_malformed_whatever_stands_beside_it(
    tmp_path: Path, type_name: str, text: str
) -> None:
    for pad in ("", " "):  # at even and at odd places
        for others in ("", "oops,oops\n"):
            content = f"v,s\n,{pad}\n{text},a\n,0x n(\n{others}"
            table, _, malformed = drain(read_text(tmp_path / "a.csv", content, f"v {type_name}, s string"))
            assert table is not None
            assert table.column("s").to_pylist() == [pad or None, "0x n("]
            assert [row.where for row in malformed] == ["a.csv line 3", "a.csv line 5"][: 2 if others else 1]


def test_numbers_beside_text_that_looks_hexadecimal(tmp_path: Path) -> None:
    reader = read_text(tmp_path / "a.csv", "a,x,s\n7,1.5,0x1F\n 8 ,NaN,fn(x)\n,,\n", "a int, x double, s string")
    assert str(rows(reader)) == str(
        [{"a": 7, "x": 1.5, "s": "0x1F"}, {"a": 8, "x": float("nan"), "s": "fn(x)"}, {"a": None, "x": None, "s": None}]
    )
