"""Types of tables that nobody has declared: every value stays as it is written."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headway.tables import infer_csv, infer_json_lines


@pytest.mark.parametrize(
    ("texts", "type_", "values"),
    [
        (
            ["DE", "NA", "null", "NaN", "N/A", "nan", "NULL", ""],
            pa.string(),
            [*["DE", "NA", "null", "NaN", "N/A", "nan", "NULL"], None],
        ),
        (["x", '""', ""], pa.string(), ["x", "", None]),
        (["01234", "99999"], pa.string(), ["01234", "99999"]),
        (["-01", "2"], pa.string(), ["-01", "2"]),
        (["007.5", "2"], pa.string(), ["007.5", "2"]),
        (["0", "10", "-5", ""], pa.int64(), [0, 10, -5, None]),
        (["0.5", "0"], pa.float64(), [0.5, 0.0]),
        (["12345678901234567890", "1"], pa.string(), ["12345678901234567890", "1"]),
        (["9223372036854775807"], pa.int64(), [2**63 - 1]),
        (["9" * 5000], pa.string(), ["9" * 5000]),
        (["12345678901234567890", "1.5"], pa.float64(), [12345678901234567890.0, 1.5]),
        (["0x1F", "7"], pa.string(), ["0x1F", "7"]),
        (["nan(abc)", "7"], pa.string(), ["nan(abc)", "7"]),
        (["10:30", "11:00"], pa.string(), ["10:30", "11:00"]),
        (["true", "false"], pa.bool_(), [True, False]),
        (["+9007199254740993", "-1", ""], pa.int64(), [9007199254740993, -1, None]),
        (["+5", "0.5"], pa.float64(), [5.0, 0.5]),
    ],
)
def test_csv(texts: list[str], type_: pa.DataType, values: list[object]) -> None:
    table = infer_csv("".join(["k,n\n", *(f"{text},1\n" for text in texts)]).encode())
    assert table.schema.field("k").type == type_
    assert table.column("k").to_pylist() == values
    assert table.column_names == ["k", "n"]


def test_a_quote_that_is_never_closed() -> None:
    with pytest.raises(pa.ArrowInvalid, match="column 'name': a quote is never closed"):
        infer_csv(b'k,name\n1,"Ada\n2,Ben\n3,Cleo\n')
    assert infer_csv(b'k,name\n1,"Ada\nB."\n2,5" pipe\n').num_rows == 2
    assert infer_csv(b"k,name\n").num_rows == 0


def test_a_row_with_too_few_values_is_named_by_its_line() -> None:
    with pytest.raises(pa.ArrowInvalid, match="Row #3: Expected 2 columns, got 1"):
        infer_csv(b"a,b\n1,2\n3\n4,5\n")


@pytest.mark.parametrize(
    ("written", "type_", "values"),
    [
        (['"2024-01-01"', '"2024-01-02 10:00:00"'], pa.string(), ["2024-01-01", "2024-01-02 10:00:00"]),
        (["12345678901234567890", "1", "null"], pa.string(), ["12345678901234567890", "1", None]),
        (["1", "null"], pa.int64(), [1, None]),
        (["1", "2.5"], pa.float64(), [1.0, 2.5]),
        (["true"], pa.bool_(), [True]),
        (["[1,2]", "[]"], pa.list_(pa.int64()), [[1, 2], []]),
    ],
)
def test_json_lines(written: list[str], type_: pa.DataType, values: list[object]) -> None:
    table = infer_json_lines("".join(f'{{"k":{text}}}\n\n' for text in written).encode())
    assert table.schema.field("k").type == type_
    assert table.column("k").to_pylist() == values


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ('{"a":1}\n{"a":2} junk\n', "line 2 is not valid JSON: Extra data at column 9"),
        ('{"a":1}{"a":2}\n', "line 1 is not valid JSON: Extra data at column 8"),
        ('{"a":1\n', "line 1 is not valid JSON: Expecting ',' delimiter at column 7"),
        ('{"a":1}\n\nnull\n', 'line 3 is not an object such as {"a": 1}'),
        ("oops\n", 'line 1 is not an object such as {"a": 1}'),
        ('{"a":null}\n{"a":1}\n{"a":"x"}\n', "line 3: column 'a' is a number before and text here"),
        ('{"a":[1]}\n{"a":["x"]}\n', "column 'a': "),
        ('{"a":[1' + "0" * 30 + "]}\n", "column 'a': "),
        ('{"a":"\\ud800"}\n', "column 'a': "),
        ('{"a":' + "[" * 100_000 + "\n", "line 1: arrays and objects lie more than 30 deep in the row"),
        ('{"a":' + "1" * 5000 + "}\n", "line 1 cannot be read: "),
        ("\n", 'it has no object such as {"a": 1}'),
    ],
)
def test_json_lines_that_are_no_table(data: str, message: str) -> None:
    with pytest.raises(pa.ArrowInvalid) as raised:
        infer_json_lines(data.encode())
    assert str(raised.value).startswith(message)
