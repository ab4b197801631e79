"""Failures on Spark in plain words."""

from __future__ import annotations

import pytest

from headway.engines.spark.failures import describe_failure, is_loss, is_slow


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("headway.errors.RunError: box 'a': no", "box 'a': no"),
        (
            "org.apache.spark.SparkException: Job aborted\nTraceback:\nValueError: wrong\nCaused by: more",
            "'u' failed on Spark: ValueError: wrong",
        ),
        (
            "ValueError: first\nRuntimeError: the driver has gone",
            "'u' failed on Spark: RuntimeError: the driver has gone",
        ),
        ("something else\nand more", "'u' failed on Spark: something else"),
        ("", "'u' failed on Spark: no reason"),
    ],
)
def test_failures_in_plain_words(error: str, said: str) -> None:
    assert describe_failure("u", error) == said


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        ("Query terminated with exception: (no cause message)\ncaused by java.io.EOFException", True),
        ("caused by org.apache.spark.SparkException: Python worker failed to connect back.", True),
        ("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)", True),
        ("Job aborted.\nheadway.errors.RunError: box 'a': division by zero\ncaused by java.io.EOFException", False),
        ("ValueError: Broken pipe", False),
        ("", False),
    ],
)
def test_lost_processes(error: str, lost: bool) -> None:
    assert is_loss(error) is lost


@pytest.mark.parametrize(
    ("error", "slow"),
    [
        ("caused by org.apache.spark.SparkException: Python worker failed to connect back.", True),
        ("Timed out while waiting for the Python worker to connect back", True),
        ("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)", False),
        ("headway.errors.RunError: box 'a': failed to connect back", False),
    ],
)
def test_processes_that_start_slowly(error: str, slow: bool) -> None:
    assert is_slow(error) is slow
    assert is_loss(error) or not slow
