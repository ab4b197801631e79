"""History that executors write and read, on real Spark: the results are as if the driver had done it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headway as hw
from headway.clock import SECOND
from headway.engines import histories
from headway.engines.spark.driver import points
from headway.engines.spark.driver.tasks import Tasks
from headway.history import NUMBER, Writers
from tests.engines.spark.test_changing import NETWORK, listed, make_rows, offline
from tests.engines.spark.test_points import COUNTED, FIELDS, SUM, TOTAL, WITH_POINTS, behind, fragment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture(autouse=True)
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let small histories be written and read by executors, soon; return what they have done."""
    monkeypatch.setattr(points, "LEAST", 100)
    monkeypatch.setattr(histories, "Writers", partial(Writers, patience=SECOND // 2))
    names: list[str] = []
    each = Tasks.each

    def spy(tasks: Tasks, work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any] | None:
        made = each(tasks, work, items)
        names.extend([work.__name__] * len(made or ()))
        return made

    monkeypatch.setattr(Tasks, "each", spy)
    return names


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_executors_write_and_read_history(
    tmp_path: Path, done: list[str], spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    rows, state = make_rows(3000), tmp_path / "state"
    folder = state / "history"
    with hw.start(WITH_POINTS, engine="spark", train=400, state=state) as run:
        run.push("s", rows[:1800])
        wait_for(lambda: done.count("write") >= 2 and any((folder / "loud").glob("*.parquet")))
        wait_for(lambda: any((folder / "arrived").glob("*.parquet")))
        every = run.attach(fragment("every", "arrived", SUM))
        run.attach(fragment("late", "loud", SUM, since="60 seconds"))
        wait_for(lambda: "copy" in done)
        assert every.seam > 0
        run.push("s", rows[1800:2400])
    seen = [row["id"] for row in _read(spark, folder / "arrived")]
    assert seen == list(range(2400))
    with hw.start(WITH_POINTS, engine="spark", train=400, state=state) as run:
        run.push("s", rows[2400:])
        run.attach(fragment("deep", "counted", TOTAL))
        result = run.stop(drain=True)
    expected = offline(NETWORK, rows)
    assert listed(result, "every/out") == behind(rows, FIELDS, SUM)
    assert listed(result, "deep/out") == behind(expected["counts"], COUNTED, TOTAL)
    high = [row for row in rows if row["v"] > 3]
    newest = [row for row in high if row["id"] < 1800][-1]["time"]
    first = next(row["id"] for row in high if row["time"] >= newest - 60)
    assert listed(result, "late/out") == behind([row for row in high if row["id"] >= first], FIELDS, SUM)
    assert [row["id"] for row in _read(spark, folder / "loud")] == [row["id"] for row in high]
    assert not [one for one in caplog.records if "executors" in one.message]


def _read(spark: SparkSession, folder: Path) -> list[Any]:
    return spark.read.parquet(str(folder / "*.parquet")).orderBy(NUMBER).collect()


@pytest.mark.parametrize("work", ["write", "copy"])
def test_the_driver_does_what_executors_cannot(
    tmp_path: Path,
    done: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    work: str,
) -> None:
    def fail(task: object) -> None:
        raise OSError("no such disk here")

    monkeypatch.setattr(points, work, fail)
    rows = make_rows(900)
    with caplog.at_level(logging.WARNING), hw.start(WITH_POINTS, engine="spark", train=300, state=tmp_path) as run:
        run.push("s", rows[:600])
        wait_for(lambda: any((tmp_path / "history" / "arrived").glob("*.parquet")))
        run.attach(fragment("every", "arrived", SUM))
        run.push("s", rows[600:])
        result = run.stop(drain=True)
    assert listed(result, "every/out") == behind(rows, FIELDS, SUM)
    told = [one.getMessage() for one in caplog.records if "executors" in one.getMessage()]
    assert ["the driver does it now" in one for one in told] == [True]
    assert work not in done
