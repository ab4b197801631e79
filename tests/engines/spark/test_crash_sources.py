"""kill -9 of runs with several sources of each kind: at the start, in mid-stream, at the end, and again and again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.engines.spark.fleets import KINDS, Fleet, Kills

PARTS = 13
"""Parts of the campaign; each is a test of its own, so that it can be run, and run again, by itself."""
MIDDLE = 16
"""Runs that a part kills in mid-stream. Each of its processes has a run of every kind in it."""

LOGGED = "log/commits/*"
PLANNED = "checkpoints/*/offsets/[0-9]*"
DELIVERED = "results/*/*.arrow"
COMMITTED = "checkpoints/*/commits/[0-9]*"


def test_kills_in_mid_stream(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, ["mixed"], scale=1.0, seed=1)
    fleet.crash(DELIVERED)
    assert fleet.kills.middle >= 1
    fleet.complete()


@pytest.mark.slow
def test_kills_at_the_start_and_at_the_end(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, list(KINDS), scale=1.0, seed=2)
    fleet.crash("plan.json", every=False)
    fleet.crash(LOGGED, every=False)
    fleet.crash(PLANNED)
    fleet.crash_at_the_end()
    assert fleet.kills.start >= 3
    assert fleet.kills.end >= 1
    fleet.complete()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_campaign(tmp_path: Path, part: int) -> None:
    """Thirteen parts kill 208 runs in mid-stream and more; HEADWAY_KILLS may name a file for the counts."""
    fleet = Fleet(tmp_path, list(KINDS), scale=5.0 + part % 3, seed=part, train=(40, 100, 250)[part % 3])
    chance, pattern, count = fleet.chance, DELIVERED, 1
    while fleet.kills.middle < MIDDLE:
        assert fleet.left, f"all runs ended before enough were killed: {fleet.kills}"
        fleet.crash(pattern, count, chance.choice((0.0, chance.uniform(0.0, 1.0))))
        print(f"part {part}: {fleet.kills}, left: {fleet.left}", flush=True)
        pattern, count = chance.choice((DELIVERED, DELIVERED, COMMITTED, PLANNED, LOGGED)), chance.randint(1, 2)
    fleet.complete()
    note(part, fleet.kills)


def note(part: int, kills: Kills) -> None:
    """Write down what a part has seen."""
    place = os.environ.get("HEADWAY_KILLS")
    if place is not None:
        with Path(place).open("a") as file:
            file.write(f"part {part}: {kills}\n")
