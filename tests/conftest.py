"""What all tests share: how long property tests search, and one Spark session, which takes seconds to start."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from scripts.run_tests import SPARK, mentioning
from tests.postgres import Postgres, installed, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


settings.register_profile("ci", max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_configure() -> None:
    """Let signals be as at a terminal, where a shell or nohup may have them ignored, and numpy as in a run."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
    # Kernels and expressions rely on what whatever runs them has entered: `headway.columns.quiet`.
    np.seterr(over="ignore", invalid="ignore", divide="ignore")


_ON_SPARK = ("benchmarks/test_streaming.py", "connectors/test_sessions.py")
"""Tests that start Spark in a process of their own, beside those with Spark in their names."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests on Spark: `make test` runs those that share a session in one process, the others in another."""
    for item in items:
        shares = "spark" in getattr(item, "fixturenames", ())
        if shares:
            item.add_marker(pytest.mark.session)
        named = SPARK in item.nodeid.partition("[")[0] or any(one in item.nodeid for one in _ON_SPARK)
        if shares or named:
            item.add_marker(pytest.mark.spark)
        if (shares or named) and item.path not in _mentioning(SPARK):
            raise pytest.UsageError(f"'{item.nodeid}' is on Spark, and its file does not mention '{SPARK}'")
        if item.get_closest_marker("alone") is not None and item.path not in _mentioning("mark.alone"):
            raise pytest.UsageError(f"'{item.nodeid}' has the mark 'alone' from elsewhere: make test would not find it")


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: the garbage collector need not walk through them again and again."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let Python clear up as ever: compiled modules print what they take for leaks."""
    gc.unfreeze()


@cache
def _mentioning(word: str) -> frozenset[Path]:
    return frozenset(mentioning(word))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session on two cores that the engine 'spark' finds, too."""
    from headway.engines.spark.driver.session import open_session

    session = open_session("local[2]")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server of the tests' own."""
    if not installed():
        pytest.skip("PostgreSQL is not installed on this machine")
    with serving() as server:
        yield server
