"""Columns as text."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from headway.connectors.texts import render_texts
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
