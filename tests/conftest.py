"""One Spark session for all tests of a process: starting it takes longer than most of them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_configure() -> None:
    """Let Ctrl-C be what it is at a terminal: what a shell starts in the background begins with it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


_ON_SPARK = ("spark", "test_streaming", "test_sessions", "README.md")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests that need Spark: `make test` runs them in a process of their own, beside all others."""
    for item in items:
        if any(word in item.nodeid for word in _ON_SPARK) or "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session on two cores that the engine 'spark' finds, too."""
    from headway.engines.spark.session import open_session

    session = open_session("local[2]")
    yield session
    session.stop()
