"""Load shedding and adaptive layers on Spark: dropped before it costs anything, the same again after a crash."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.feather as feather
import pytest

import headway as hw
from tests.engines.spark.crashing import PROGRAMS, Process
from tests.engines.spark.overloads import overloaded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
@pytest.mark.alone  # what is too much for the machine must be what this sends, and not what others do
def test_tolerant_outputs_give_way(spark: SparkSession) -> None:
    phases: list[list[float]] = [[3, 300], [7, 5000], [6, 300]]
    result = hw.run(overloaded(phases), engine="spark")
    summary = result.summary
    strict, lax, counts = (summary["outputs"][name] for name in ("strict", "lax", "counts"))
    came = summary["sources"]["s"]["tuples"]
    assert (strict["shed"], strict["tuples"], strict["kept"]) == (0, came, 1.0)
    assert lax["shed"] > 5000
    assert lax["shed_by"] == {"random": lax["shed"]}
    assert lax["tuples"] + lax["shed"] == came
    assert lax["kept"] == pytest.approx(lax["tuples"] / came, abs=0.01)
    assert summary["shedding"]["active"] == {}, "in the end nothing is dropped any more"
    names = {change["subject"] for change in summary["shedding"]["changes"]}
    assert names == {"s -> lax+counts"}
    numbers = np.asarray(result.outputs["lax"]["n"])
    assert (np.diff(numbers) > 0).all()
    assert summary["boxes"]["b"]["tuples_in"] == lax["tuples"], "what is dropped never gets to a box"
    _assert_estimates(result.outputs["counts"].to_pylist(), phases)
    assert counts["shed"] == lax["shed"]


def _assert_estimates(rows: Sequence[dict[str, float]], phases: list[list[float]]) -> None:
    """Of most windows the estimate is within its error of the truth, also of those that lost most."""
    edges = np.cumsum([0.0, *[span for span, _ in phases]])
    rates = [rate for _, rate in phases]
    inside = close = 0
    for row in rows:
        overlap = [
            max(0.0, min(row["time"] + 2, high) - max(row["time"], low)) for low, high in itertools.pairwise(edges)
        ]
        truth = sum(span * rate for span, rate in zip(overlap, rates, strict=True))
        inside += abs(row["n"] - truth) <= row["n_error"] + 2
        close += abs(row["n"] - truth) <= 0.2 * truth + 2
    assert inside >= 0.7 * len(rows)
    assert close >= 0.8 * len(rows)
    assert any(row["n_error"] > 10 for row in rows), "some windows were estimated"


def test_layers_change_the_policy(spark: SparkSession) -> None:
    rows = {"s": [(at, float(at), at % 100) for at in range(1500)]}
    network = {**overloaded([[1, 1]]), "schedule": {}}
    network["sources"] = {"s": {"schema": {"n": "bigint", "time": "double", "v": "int"}}}
    plain = hw.run(network, rows, engine="local")
    layer = {"use": "amos", "policies": ["fifo", "round-robin"], "delay": "300ms"}
    result = hw.run(network, rows, engine="spark", rates={"s": 500.0}, adaptive=layer, trace=True)
    assert result.outputs["strict"].num_rows == plain.outputs["strict"].num_rows == 1500
    assert result.outputs["counts"].to_pylist() == plain.outputs["counts"].to_pylist()
    found = result.summary["adaptive"]
    assert found["layer"] == "amos"
    assert found["switches"] >= 1
    assert found["changes"][0]["change"] == "fifo -> round-robin"
    assert result.trace is not None
    assert next(change.kind for change in result.trace.changes) == "switch"


@pytest.mark.slow
def test_after_a_crash_the_same_tuples_are_dropped(tmp_path: Path) -> None:
    """Killed while tuples are dropped, and started again: every result once, and nothing that was not to be lost."""
    state, out = tmp_path / "state", tmp_path / "out"
    out.mkdir()
    command = [sys.executable, PROGRAMS / "overloaded.py", state, out]
    results = state / "results"
    with Process(command, log=tmp_path / "said") as process:
        assert process.wait_for(lambda: (state / "sieves.json").exists() and any(results.glob("*/*.arrow")))
        known = len(list(results.glob("*/*.arrow")))  # what was delivered before anything was dropped
        assert process.wait_for(lambda: len(list(results.glob("*/*.arrow"))) >= known + 2)
    with Process(command, log=tmp_path / "said") as process:
        assert process.wait() == 0, process.said
    strict, lax = (np.asarray(feather.read_table(out / f"{name}.arrow")["n"]) for name in ("strict", "lax"))
    assert strict.tolist() == list(range(len(strict)))
    assert len(np.unique(lax)) == len(lax)
    assert (np.diff(lax) > 0).all()
    assert len(lax) < len(strict)
    assert json.loads((out / "summary.json").read_text())["active"] == {}
