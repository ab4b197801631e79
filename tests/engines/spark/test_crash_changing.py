"""kill -9 around the seams of a network that changes while it runs: it is the old one or the new one, never both."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest

import headway as hw
from headway.history import NUMBER
from headway.network.schema import Schema
from headway.storage.log import Log
from tests.engines.spark.crashing import PROGRAMS, Process
from tests.engines.spark.programs.changing import STEPS, network
from tests.engines.spark.test_changing import both_of

COUNT, RATE = 14_000, 400.0
Row = dict[str, Any]


class Changing:
    """A run that changes, in one process after the other."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        chance = random.Random(seed)
        self.rows: list[Row] = [
            {"id": at, "time": at // 3, "k": chance.randrange(4), "v": chance.randrange(12)} for at in range(COUNT)
        ]
        lines = ["id,time,k,v", *(",".join(map(str, row.values())) for row in self.rows)]
        (folder / "events.csv").write_text("\n".join(lines) + "\n")

    def start(self, pause: float = 0.5) -> Process:
        folder = self.folder
        arguments = [folder / "events.csv", folder / "state", folder, RATE, pause]
        return Process([sys.executable, PROGRAMS / "changing.py", *arguments], log=folder / "said")

    def crash(self, step: int, delay: float) -> None:
        """Kill it a moment after a change was asked for."""
        with self.start() as process:
            assert process.wait_for((self.folder / f"asked-{step}").exists), process.said
            time.sleep(delay)
            assert not process.ended, process.said

    def complete(self) -> None:
        """Let it run to the end."""
        with self.start() as process:
            assert process.wait() == 0, process.said
            process.assert_alone()

    def seams(self) -> list[int]:
        """Return how many tuples came before each seam."""
        log = Log(str(self.folder / "state" / "log"), {"s": Schema.parse("id int, time bigint, k int, v int")})
        return [log.count(["s"], -1, commit.issued) for commit in log.commits if commit.seam is not None]

    def judge(self) -> None:
        """Compare with runs of the old networks on what came before a seam, and of the new ones on what came after."""
        seams = self.seams()
        assert len(seams) == len(STEPS) - 1
        assert self.found("plain") == offline(network(3, 0), self.rows)["plain"]
        spans = list(zip([0, *seams], [*seams, COUNT], STEPS, strict=True))
        passed = [row for start, stop, (least, *_) in spans for row in self.rows[start:stop] if row["v"] > least]
        assert self.found("counts") == offline(network(-1, 0), passed)["counts"]
        carried = [row for row in passed if seams[1] <= row["id"] < seams[3]]
        reached = carried[-1]["time"]
        late = [row for row in offline(network(-1, 5), carried)["late"] if row["time"] + 5 <= reached]
        last = [row for row in passed if seams[3] <= row["id"] < seams[4]]
        assert self.found("late") == late + offline(network(-1, 9), last)["late"]
        assert self.found("both") == both_of(self.found("again"))
        assert self.history() == list(range(COUNT))

    def history(self) -> list[int]:
        """Return which tuples the point has kept, in the order of arrival."""
        files = (self.folder / "state" / "history" / "arrived").rglob("*.parquet")
        tables = [parquet.read_table(file) for file in files]
        table = pa.concat_tables(tables).sort_by(NUMBER)
        ids: list[int] = table.column("id").to_pylist()
        return ids

    def found(self, output: str) -> list[Row]:
        rows: list[Row] = feather.read_table(str(self.folder / f"{output}.arrow")).to_pylist()
        return rows


def offline(network: dict[str, Any], rows: list[Row]) -> dict[str, list[Row]]:
    found = hw.run(network, {"s": rows}, engine="local").outputs
    return {name: table.to_pylist() for name, table in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_kills_around_seams(tmp_path: Path, seed: int) -> None:
    run, chance = Changing(tmp_path, seed), random.Random(seed)
    for step in sorted(chance.sample(range(1, len(STEPS)), 3)):
        if not (tmp_path / f"done-{step}").exists():
            run.crash(step, chance.choice((0.0, 0.02, chance.uniform(0, 0.5), chance.uniform(0.5, 3.0))))
    run.complete()
    run.judge()
