"""Replay of files: at a rate, or by a field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headway.connectors import open_source
from headway.errors import InputError
from headway.network.schema import Schema
from tests.connectors.helpers import drain

SECOND = 1_000_000_000


def due(tmp_path: Path, schema: str, content: str, limits: tuple[int, ...] = (2,), **settings: object) -> list[int]:
    """Return the moments at which a CSV file's tuples are due."""
    (tmp_path / "a.csv").write_text(content)
    what = {"replay": {"file": "a.csv", **settings}}
    reader = open_source("s", Schema.parse(schema), what, base=tmp_path)
    assert reader.timed
    assert reader.finite
    return drain(reader, limits)[1]


def test_at_a_rate(tmp_path: Path) -> None:
    assert due(tmp_path, "a int", "a\n1\n1\n1\n", rate=4) == [0, SECOND // 4, SECOND // 2]


@pytest.mark.parametrize("limits", [(1,), (2,), (100,)])
def test_by_seconds(tmp_path: Path, limits: tuple[int, ...]) -> None:
    moments = due(tmp_path, "a int", "a\n100\n101\n,\n99\n105\n102\n\n110\n".replace(",", '""'), limits, by="a")
    assert moments == [0, SECOND, SECOND, SECOND, 5 * SECOND, 5 * SECOND, 5 * SECOND, 10 * SECOND]


def test_by_timestamp_with_speed(tmp_path: Path) -> None:
    content = "t,x\n2024-01-01T00:00:00Z,1\n2024-01-01T00:00:10Z,1\n2024-01-01T00:01:00.5Z,1\n"
    assert due(tmp_path, "t timestamp, x int", content, by="t", speed=10) == [0, SECOND, 6_050_000_000]


def test_by_other_types(tmp_path: Path) -> None:
    assert due(tmp_path, "d date", "d\n2024-01-01\n2024-01-02\n", by="d", speed=86400) == [0, SECOND]
    assert due(tmp_path, "x double", "x\nNaN\n0.5\n2\n-1e300\n", by="x") == [0, 0, 3 * SECOND // 2, 3 * SECOND // 2]
    huge = due(tmp_path, "x bigint", f"x\n{-(2**63)}\n{2**63 - 1}\n", by="x")
    assert huge[0] == 0
    assert huge[1] > 2**60


def test_rate_of_the_run_comes_first(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n2\n")
    what = {"replay": {"file": tmp_path / "a.csv", "by": "a"}}
    assert drain(open_source("s", Schema.parse("a int"), what, rate=2))[1] == [0, SECOND // 2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "no file"),
        ({"file": "a.csv"}, "needs rate .* or by"),
        ({"file": "a.csv", "rate": 1, "by": "a"}, "exclude each other"),
        ({"file": "a.csv", "rate": 1, "speed": 2}, "speed goes with by"),
        ({"file": "a.csv", "by": "a", "speed": 0}, "speed is a number above 0"),
        ({"file": "a.csv", "by": "b"}, "unknown field 'b'; fields: a, s"),
        ({"file": "a.csv", "by": "s"}, "cannot replay by a string"),
        ({"file": 5, "rate": 1}, "file is a path"),
        ({"file": "none.csv", "rate": 1}, "there is no file"),
        ({"path": "a.csv"}, "unknown key 'path'"),
    ],
)
def test_bad_settings(tmp_path: Path, settings: Any, message: str) -> None:
    (tmp_path / "a.csv").write_text("a,s\n1,x\n")
    with pytest.raises(InputError, match=message):
        open_source("s", Schema.parse("a int, s string"), {"replay": settings}, base=tmp_path)
