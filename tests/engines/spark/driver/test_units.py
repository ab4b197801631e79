"""What micro-batches tell of the work that tuples make."""

from __future__ import annotations

import pytest

from headway.engines.spark.driver.queries import Batch, BatchWork


def test_nothing_is_known_at_first() -> None:
    work = BatchWork()
    assert (work.fixed, work.cost) == (0.0, 0.0)


def test_boxes_that_do_most_know_best() -> None:
    work = BatchWork()
    for seconds in (1.3, 1.5, 2.4):  # the last one shared the machine with others
        work.add(Batch(seconds, 1.0, 1000))
    assert work.fixed == pytest.approx(0.3)
    assert work.cost == pytest.approx(0.001)


def test_what_lasts_long_without_boxes_is_work_too_once_there_are_enough() -> None:
    work = BatchWork()
    for _ in range(5):
        work.add(Batch(3.2, 0.01, 1000))
    assert work.cost == pytest.approx(0.00001), "the first ones load classes"
    work.add(Batch(0.2, 0.0, 10))
    assert work.fixed == pytest.approx(0.2)
    assert work.cost == pytest.approx(5 * (3.2 - 4 * 0.2) / 5010)
