"""One Spark session for all tests of a process: starting it takes longer than most of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session on two cores that the engine 'spark' finds, too."""
    from headway.engines.spark.session import open_session

    session = open_session("local[2]")
    yield session
    session.stop()
