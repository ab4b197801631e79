"""What the behaviour suite runs on."""

from __future__ import annotations

import importlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.behaviour import sharded  # noqa: F401  (it registers itself)
from tests.streams import RANDOM_POLICY, TABLE

if RANDOM_POLICY:
    importlib.import_module("tests.policies")

ENGINES = ("local", "sharded", "sim")
"""On Spark itself all tests run together: see test_on_spark."""


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """The engine under test."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The static table as a file."""
    path: Path = tmp_path_factory.mktemp("tables") / "names.parquet"
    pq.write_table(pa.Table.from_pylist(TABLE, pa.schema([("k", pa.int32()), ("name", pa.string())])), path)
    return path
