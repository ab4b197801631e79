"""A standalone cluster runs an example; a worker that dies in the middle with its executor changes nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.feather as feather
import pytest

from headway.clock import ManualClock
from tests.engines.spark.clusters import cluster, run_border_watch, write_settings
from tests.engines.spark.crashing import PROGRAMS, Process, members
from tests.engines.spark.test_crash import assert_rows

SECONDS, RATE, TRAIN = 3.0, 1000.0, 600


def test_a_worker_dies(tmp_path: Path) -> None:
    state, out = tmp_path / "state", tmp_path / "out"
    out.mkdir()
    environment = write_settings(tmp_path / "conf")
    with cluster(tmp_path) as running:
        program = [sys.executable, str(PROGRAMS / "border_watch.py"), running.url, state, out, SECONDS, RATE, TRAIN]
        with Process(program, log=tmp_path / "said", environment=environment) as process:
            assert process.wait_for(lambda: len(list(state.glob("checkpoints/*/commits/[0-9]*"))) >= 3), process.said
            victim = running.workers[0]
            assert len(members(victim.group)) >= 3, "no executor with Python workers runs there"
            victim.kill()
            assert not process.ended
            assert process.wait() == 0, process.said
            process.assert_alone()
        assert process.said.splitlines()[-1] == "complete"
        assert not running.workers[1].ended
    expected = run_border_watch(SECONDS, RATE, engine="local", clock=ManualClock())
    for name, table in expected.items():
        assert table.num_rows, f"'{name}' shows nothing"
        assert_rows(name, feather.read_table(out / f"{name}.arrow"), table)


@pytest.mark.slow
def test_a_cluster_without_workers_says_what_it_waits_for(tmp_path: Path) -> None:
    (tmp_path / "n.yaml").write_text(
        "network: idle\nsources: {s: {schema: {a: int}, source: {csv: s.csv}}}\noutputs: {o: {from: s}}\n"
    )
    (tmp_path / "s.csv").write_text("a\n1\n")
    with cluster(tmp_path, workers=0) as running:
        command = [sys.executable, "-m", "headway", "run", "n.yaml", "--master", running.url]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            said = next((line for line in process.stderr if "executor" in line), "")
            process.kill()
    assert f"headway: '{running.url}' has not started any executor for this run yet" in said
