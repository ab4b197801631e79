"""Plots: what is drawn, and the files that are written."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import headway
from headway.compare.plots import new_figure, save
from headway_experiments import plots
from headway_experiments.intervals import Interval
from headway_experiments.rows import Rows

ROWS = Rows(
    {"policy": policy, "load": load, "seed": seed, "latency": load * factor + seed / 100}
    for policy, factor in (("rb", 2), ("prb", 1))
    for load in (0.5, 0.9)
    for seed in (1, 2)
)


def _drawn() -> tuple[Any, Any]:
    figure = new_figure((6.4, 4.0))
    left, right = plots.panels(figure, 2, sharey=True)
    plots.curves(left, ROWS, "load", "latency", "policy", {"rb": "rate-based"})
    plots.finish(left, "load", "latency (s)", "all")
    plots.line(right, 1, "plain", [1, 2], [3.0, 4.0])
    plots.line(right, 2, "one run", [1, 2], [Interval(3.0, math.inf), Interval(4.0, math.inf)])
    plots.finish(right, "n", "", legend=False, zero=False)
    return left, right


def test_curves_have_error_bars_and_names() -> None:
    left, right = _drawn()
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["rate-based", "prb"]
    assert len(left.containers) == 2  # error bars
    assert (left.get_xlabel(), left.get_ylabel(), left.get_title()) == ("load", "latency (s)", "all")
    assert left.get_ylim()[0] == 0
    assert right.get_legend() is None
    assert not right.containers  # an interval without end is not drawn
    lines = right.get_lines()
    assert lines[0].get_color() != lines[1].get_color()
    assert lines[0].get_marker() != lines[1].get_marker()


def test_a_logarithmic_axis_does_not_begin_at_zero() -> None:
    [axes] = plots.panels(new_figure((3, 2)), 1)
    axes.set_yscale("log")
    plots.line(axes, 9, "ninth", [1, 2], [1.0, 100.0])  # styles begin again
    plots.finish(axes, "x", "y")
    assert axes.get_ylim()[0] > 0


def test_both_files_are_written_and_the_same_every_time(tmp_path: Path) -> None:
    texts = []
    for name in ("one", "two"):
        left, _ = _drawn()
        png, svg = save(left.figure, tmp_path / name)
        assert png == tmp_path / f"{name}.png"
        assert png.read_bytes().startswith(b"\x89PNG")
        texts.append(svg.read_text())
    assert texts[0].startswith("<?xml")
    assert texts[0] == texts[1]
    assert not list(tmp_path.glob(".*.partial"))


def test_a_name_may_have_a_dot(tmp_path: Path) -> None:
    png, _ = save(new_figure((1, 1)), tmp_path / "zipf-0.9")
    assert png.name == "zipf-0.9.png"


def test_a_home_that_cannot_be_written_is_not_worth_a_word() -> None:
    program = "from headway.compare.plots import new_figure; new_figure((1, 1))"
    environment = {"HOME": "/proc/nowhere", "PYTHONPATH": str(Path(headway.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
