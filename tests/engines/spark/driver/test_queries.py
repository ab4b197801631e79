"""Failures on Spark in plain words. What micro-batches tell of the work that tuples make."""

from __future__ import annotations

import pytest

from headway.engines.spark.driver.failures import describe_failure, is_damage, is_loss, is_slow
from headway.engines.spark.driver.queries import Batch, StepCost


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


_LOADING = """An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "/x/headway/engines/spark/driver/queries.py", line 118, in take
py4j.protocol.Py4JJavaError: An error occurred while calling o272.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
Caused by: org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading.
Caused by: {}
~WriteToMicroBatchDataSourceV1 ForeachBatchSink, 4440, [queryName=a, checkpointLocation=/s/checkpoints/0s], Append
"""
"""How Spark speaks of a state that it cannot load."""


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (_LOADING.format("java.io.IOException: Stream is corrupted"), "/s/checkpoints/0s"),
        (_LOADING.format("java.io.EOFException"), "/s/checkpoints/0s"),
        (
            _LOADING.format("java.io.FileNotFoundException: File file:/s/checkpoints/0s/state/0/0/5.changelog is gone"),
            "/s/checkpoints/0s/state/0/0/5.changelog",
        ),
        (
            "org.apache.hadoop.fs.ChecksumException: Checksum error: file:/s/checkpoints/0s/offsets/7 at 0 exp: 1",
            "/s/checkpoints/0s/offsets/7",
        ),
        ("java.lang.IllegalStateException\n at org.apache.spark.sql.HDFSMetadataLog.get(H.scala:1)", "checkpoints"),
        (
            "[STDS_FAILED_TO_READ_OPERATOR_METADATA] Failed to read the operator metadata for checkpointLocation="
            "file:/s/checkpoints/0s/state/0 and batchId=4.",
            "/s/checkpoints/0s/state/0",
        ),
        (
            "FileNotFoundException: File file:/s/checkpoints/0s/rtate/0/_stateSchema/default/0_ee does not exist",
            "/s/checkpoints/0s/rtate/0/_stateSchema/default/0_ee",
        ),
        (
            "Multiple streaming queries are concurrently using file:/s/checkpoints/0s/offsets.",
            "/s/checkpoints/0s/offsets",
        ),
    ],
)
def test_a_checkpoint_that_spark_cannot_read_is_no_lost_process(error: str, named: str) -> None:
    assert is_damage(error)
    assert not is_loss(error)
    said = describe_failure("u", error)
    assert f"{named}'" in said
    assert said.endswith("missing or damaged; restore it, or give another --state")
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    "error",
    [
        "caused by org.apache.spark.SparkException: Python worker failed to connect back.",
        "at org.apache.spark.sql.HDFSMetadataLog.add(H.scala:1)\njava.io.IOException: No space left on device",
        "[CANNOT_LOAD_STATE_STORE.UNRELEASED_THREAD_ERROR] could not be acquired by task 3",
        _LOADING.format("x") + "\nheadway.errors.RunError: the state of shard 1 of 'u' is damaged",
    ],
)
def test_what_is_no_damage_to_a_checkpoint(error: str) -> None:
    assert not is_damage(error)


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


def test_nothing_is_known_at_first() -> None:
    cost = StepCost()
    assert (cost.fixed, cost.work) == (0.0, 0.0)


def test_boxes_that_do_most_know_best() -> None:
    cost = StepCost()
    for seconds in (9.9, 1.3, 1.5, 2.4):  # the first one loads classes, the last one shared the machine with others
        cost.learn(Batch(seconds, 1.0, 1000))
    assert cost.fixed == pytest.approx(0.3)
    assert cost.work == pytest.approx(0.001)


def test_what_lasts_long_without_boxes_is_work_too_once_there_are_enough() -> None:
    cost = StepCost()
    cost.learn(Batch(9.9, 0.0, 10))
    for _ in range(5):
        cost.learn(Batch(3.2, 0.01, 1000))
    assert cost.work == pytest.approx(0.00001), "the first ones load classes"
    cost.learn(Batch(0.2, 0.0, 10))
    assert cost.fixed == pytest.approx(0.2)
    assert cost.work == pytest.approx(5 * (3.2 - 4 * 0.2) / 5010)
