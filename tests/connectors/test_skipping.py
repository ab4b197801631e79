"""Skipping: what is left of an input is what comes behind, moments and malformed rows included."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.connectors import open_source
from headway.connectors.readers import SkippingReader
from headway.errors import InputError
from headway.network.schema import Schema
from tests.connectors.helpers import drain, read_text

SCHEMA = Schema.parse("a int")

rows = st.lists(st.booleans(), max_size=20).map(
    lambda good: [{"a": at} if fine else {"a": "bad"} for at, fine in enumerate(good)]
)


@given(rows, st.data())
def test_reported_rows_are_forgotten_by_number(given_rows: list[dict[str, object]], data: st.DataObject) -> None:
    good = [row for row in given_rows if row["a"] != "bad"]
    bad = [f"index {at}" for at, row in enumerate(given_rows) if row["a"] == "bad"]
    tuples, refused = data.draw(st.integers(0, len(good))), data.draw(st.integers(0, len(bad)))
    limit = data.draw(st.integers(1, 5))
    table, _, malformed = drain(SkippingReader(open_source("s", SCHEMA, given_rows), "s", tuples, refused), [limit])
    assert ([] if table is None else table.to_pylist()) == good[tuples:]
    assert [one.where for one in malformed] == bad[refused:]


def test_a_block_that_was_read_ahead(tmp_path: Path) -> None:
    text = "a\n1\nx\n2\ny\n3\n"
    reader = SkippingReader(read_text(tmp_path / "s.csv", text, "a int"), "s", 2, 1)
    table, _, malformed = drain(reader)
    assert table is not None
    assert (table.to_pylist(), [one.text for one in malformed]) == ([{"a": 3}], ["y"])


@given(st.integers(0, 6), st.integers(1, 4))
def test_moments_stay_as_they_are(tuples: int, limit: int) -> None:
    reader = SkippingReader(open_source("s", SCHEMA, [{"a": at} for at in range(6)], rate=10), "s", tuples)
    assert reader.timed
    assert reader.finite
    assert not reader.live
    _, due, _ = drain(reader, [limit])
    assert due == [at * 100_000_000 for at in range(tuples, 6)]


def test_an_input_that_is_too_short() -> None:
    message = r"source 'x' has fewer tuples \(3\) than the saved run took from it \(5\): give the same input, or"
    with pytest.raises(InputError, match=message):
        SkippingReader(open_source("x", SCHEMA, [{"a": at} for at in range(3)]), "x", 5).read(10)
    with pytest.raises(InputError, match="source 'named'"):
        SkippingReader(open_source("x", SCHEMA, [{"a": 1}], rate=5), "named", 5).read(10)


def test_nothing_to_skip() -> None:
    table, _, malformed = drain(SkippingReader(open_source("x", SCHEMA, [{"a": 1}, {"a": "bad"}]), "x", 0))
    assert table is not None
    assert (table.to_pylist(), len(malformed)) == ([{"a": 1}], 1)
