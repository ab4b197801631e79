"""Columns as text."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest

from headway.connectors.texts import parse_text, parse_texts, render_texts
from headway.network.schema import parse_type
from tests.connectors.helpers import write

FAR = pa.array([0, -8979658473708551616, None, 2**63 - 1], pa.int64()).cast(pa.timestamp("us", "UTC"))
TEXTS = ["1970-01-01T00:00:00Z", "-282585-12-14T15:58:11.448384Z", None, "+294247-01-10T04:00:54.775807Z"]


def test_times_beyond_the_range_of_arrow() -> None:
    assert render_texts(FAR).to_pylist() == TEXTS
    days = pa.array([1, 2**31 - 1, None], pa.int32()).cast(pa.date32())
    assert render_texts(days).to_pylist() == ["1970-01-02", "+5881580-07-11", None]
    nested = pa.ListArray.from_arrays([0, 2, 4], FAR)
    assert [json.loads(text) for text in render_texts(nested).to_pylist()] == [TEXTS[:2], TEXTS[2:]]


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_such_times_in_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"far.{suffix}"
    lists = pa.ListArray.from_arrays([0, 1, 2, 3, 4], FAR)
    write(path, pa.table({"ts": FAR, "l": lists}))
    text = path.read_text()
    assert "range" not in text
    assert all(text.count(one) == 2 for one in TEXTS if one)


WRITTEN = {
    "int": ["0x1F", "0XFFFFFFFF", "-0x1", "+5", "-0", "007", "2147483648", "1.0", "1e2", "--5", "1_0"],
    "bigint": ["0xFFFFFFFFFFFFFFFF", "9223372036854775808", "-9223372036854775808"],
    "tinyint": ["0xFF", "-128", "128"],
    "double": ["nan(abc)", "NaN()", "-nan", "INF", "1.", ".5", "1e400", "1e-400", "+1.5", "0x1p3", "1d"],
    "float": ["1.000000059604644775390625001", "3.4028236e38", "1e39", "nan(1)", "0.1", "1e-46"],
    "date": ["0000-01-01", "0001-01-01", "9999-12-31", "+10000-01-01", "20241231", "2024-02-30"],
    "timestamp": [
        *("0000-05-01T00:00:00", "9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00", "0001-01-01T00:00:00-01:00"),
        *("2024-12-31T23:59:59.1234567", "2024-12-31", "2024-12-31 23:59Z", "2024-12-31T23:59:59+05:30"),
        *("2024-12-31T23:59:59+14:60", "2024-12-31T23:59:59-0199"),
    ],
    "decimal(6,2)": ["1e2", "1e+-2", "100e0x1", "1.555", "12345", "1234.50", "1.5000", ".5", "-0", "00001.5"],
    "decimal(38,18)": ["7e20", "1E-93", "123456789012456789012345789012345678", "1e-18", "0.5"],
    "decimal(38,0)": ["11e38", "1e37", "9" * 38, "9" * 39],
    "boolean": ["TRUE", "0", "yes"],
}
"""Texts of which Arrow reads some by itself, and some wrongly: 11e38 in 38 digits as another number."""
WRITTEN["timestamp_ntz"] = WRITTEN["timestamp"]


@pytest.mark.parametrize(
    ("type_name", "text"),
    [
        *(("timestamp", f"2024-12-31T23:59:59{zone}") for zone in ("+14:60", "-01:99", "+0160", "+25:00")),
        ("double", "\u0661"),
        ("int", "\u0661"),
    ],
)
def test_what_is_no_value(type_name: str, text: str) -> None:
    assert list(parse_texts(pa.array([text]), parse_type(type_name))[1]) == [0]


def _mutated(text: str, draw: random.Random) -> str:
    letters = list(text)
    for _ in range(draw.randint(0, 2)):
        at = draw.randrange(len(letters) + 1)
        letters[at : at + draw.randint(0, 1)] = draw.choice("0123456789+-.:eExXnaTZ()_ ")
    return "".join(letters).strip() or "0"


@pytest.mark.parametrize("type_name", list(WRITTEN))
def test_a_text_stands_for_the_same_whatever_stands_beside_it(type_name: str) -> None:
    type_ = parse_type(type_name)
    draw = random.Random(1)
    texts = WRITTEN[type_name] + [_mutated(draw.choice(WRITTEN[type_name]), draw) for _ in range(400)]
    for text in texts:
        alone, bad = parse_texts(pa.array([text]), type_)
        beside, worse = parse_texts(pa.array([text, "<bad>"]), type_)
        assert (0 in bad) == (0 in worse), text
        assert str(alone) == str(beside.slice(0, 1)), text
        if 0 not in bad:
            assert str(pa.array([parse_text(text, type_)], type_)) == str(alone), text


@pytest.mark.parametrize(
    ("type_name", "text"),
    [
        ("int", "0x1F"),
        ("double", "nan(abc)"),
        ("date", "0000-01-01"),
        ("timestamp", "9999-12-31T23:59:59-01:00"),
        ("timestamp_ntz", "0001-01-01T00:00:00+01:00"),
        ("decimal(38,0)", "11e38"),
        ("decimal(38,18)", "1E-93"),
    ],
)
def test_what_only_arrow_reads_is_no_value(type_name: str, text: str) -> None:
    assert list(parse_texts(pa.array([text]), parse_type(type_name))[1]) == [0]
