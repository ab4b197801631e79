"""Random networks that change on real Spark, again and again: results are those of the reference."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from headway.engines.spark.driver.queries import warm
from tests.living.driving import Drive, Way

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def _warm(spark: SparkSession) -> None:
    """Let no number be used for warming up: the reference counts them."""
    warm.add(spark.sparkContext.applicationId)


SEAMS = 40
"""The seams of the long form."""


class OnSpark(Drive):
    """A run on Spark, where single boxes are not paused, and queries take seconds to start."""

    def __init__(self, seed: int, boxes: int, steps: int) -> None:
        super().__init__(seed, boxes, steps, "spark")
        self.way = Way("slope-slack", random.Random(seed).choice((10, 40, 2000)), 2, 1 << 28)

    def pause(self) -> None:
        """Push instead."""
        self.push()

    def step(self) -> None:
        """Push instead."""
        self.push()


@pytest.mark.parametrize("seed", [1])
def test_a_random_network_that_changes(seed: int) -> None:
    assert OnSpark(seed, 4, 8).go() >= 2


@pytest.mark.slow
def test_dozens_of_seams() -> None:
    seams, seed = 0, 100
    while seams < SEAMS:
        drive = OnSpark(seed, 1 + seed % 6, 6 + seed % 8)
        try:
            seams += drive.go()
        except BaseException as error:
            error.add_note(f"OnSpark({seed}, {drive.boxes}, {drive.steps}): {drive.did}")
            raise
        seed += 1
