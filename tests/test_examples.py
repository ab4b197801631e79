"""Every example gives what its `expected` folder says, however it is scheduled."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

import headway as hw
from headway.clock import ManualClock
from tests.behaviour import sharded  # noqa: F401  (it registers itself)

EXAMPLES = Path(__file__).parent.parent / "examples"
FOLDERS = sorted(path.parent for path in EXAMPLES.glob("*/network.yaml"))
SMALL = [folder for folder in FOLDERS if folder.name != "border-watch"]
STRAYS = 524
"""How many tuples the demo's largest output has after half a second."""
ENGINES = ("local", "sharded")
WAYS = [("round-robin/superbox", 65_536), ("round-robin/superbox", 2), ("round-robin/box", 1)]


@pytest.fixture(autouse=True)
def _functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let query2 find its functions; a module registers them once in a process."""
    monkeypatch.syspath_prepend(str(EXAMPLES.parent))
    hw.load_functions("examples.query2.functions")


def _run(folder: Path, out: Path, network: Any = None, engine: str = "local", **settings: Any) -> hw.RunResult:
    """Run an example with its outputs as CSV files in `out`, and compare them with the expected ones."""
    expected = sorted((folder / "expected").glob("*.csv"))
    outputs = {path.stem: str(out / path.name) for path in expected}
    result = hw.run(network or folder / "network.yaml", outputs=outputs, engine=engine, **settings)
    for path in expected:
        assert (out / path.name).read_text() == path.read_text(), f"{folder.name}: output '{path.stem}'"
    return result


@pytest.mark.parametrize(("policy", "train"), WAYS)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("folder", SMALL, ids=lambda folder: folder.name)
def test_the_example_gives_what_is_expected(folder: Path, engine: str, policy: str, train: int, tmp_path: Path) -> None:
    result = _run(folder, tmp_path, engine=engine, policy=policy, train=train, clock=ManualClock())
    assert result.outputs == {}, "every output has an expected file"
    assert result.dead_letters.num_rows == 0


ON_SPARK = ("query1", "soldiers-join")
"""Those of the others are slow: their boxes are tested on Spark in tests/behaviour, too."""


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    "folder",
    [pytest.param(folder, marks=() if folder.name in ON_SPARK else pytest.mark.slow) for folder in SMALL],
    ids=[folder.name for folder in SMALL],
)
def test_the_example_gives_the_same_on_spark(folder: Path, tmp_path: Path) -> None:
    result = _run(folder, tmp_path, engine="spark", train=20, clock=ManualClock())
    assert result.outputs == {}
    assert result.dead_letters.num_rows == 0
    if folder.name == "query2":
        assert result.summary["boxes"]["centers"]["ignored"] == 1


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_example_is_complete_and_explained(folder: Path) -> None:
    checked = hw.check(hw.load(folder / "network.yaml"))
    assert not checked.warnings
    readme = (folder / "README.md").read_text()
    for name in checked.outputs:
        assert f"`{name}`" in readme, f"{folder.name}/README.md says nothing about output '{name}'"
    listed = (EXAMPLES / "README.md").read_text()
    assert f"({folder.name}/)" in listed


@pytest.mark.parametrize("engine", ENGINES)
def test_query1_ignores_the_report_that_comes_too_late(engine: str, tmp_path: Path) -> None:
    result = _run(EXAMPLES / "query1", tmp_path, engine=engine)
    assert result.summary["boxes"]["counts"]["ignored"] == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_the_late_quote_counts_only_with_slack(engine: str, tmp_path: Path) -> None:
    boxes = _run(EXAMPLES / "stocks", tmp_path, engine=engine).summary["boxes"]
    assert (boxes["patient"]["ignored"], boxes["strict"]["ignored"]) == (0, 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_query2_answers_before_the_third_report_because_of_its_timeout(engine: str, tmp_path: Path) -> None:
    result = _run(EXAMPLES / "query2", tmp_path, engine=engine, clock=ManualClock())
    assert result.summary["boxes"]["centers"]["ignored"] == 1
    assert result.summary["outputs"]["centers"]["latency"]["max"] == pytest.approx(0.3, rel=0.05)


@pytest.mark.parametrize("engine", ENGINES)
def test_query2_with_patience_waits_for_all_reports(engine: str) -> None:
    mapping = yaml.safe_load((EXAMPLES / "query2" / "network.yaml").read_text())
    mapping["boxes"]["centers"]["timeout"] = "1h"
    inputs = {"positions": EXAMPLES / "query2" / "positions.csv"}
    result = hw.run(mapping, inputs, rates={"positions": 100}, engine=engine, clock=ManualClock())
    assert result.summary["boxes"]["centers"]["ignored"] == 0
    assert [row["reports"] for row in result.outputs["centers"].to_pylist()] == [3] * 6


def border_watch(seconds: float) -> Any:
    """Return the demo's network, cut to its first seconds, with its table's path made absolute."""
    folder = EXAMPLES / "border-watch"
    mapping = yaml.safe_load((folder / "network.yaml").read_text())
    for source in mapping["sources"].values():
        made = source["source"]["generate"]
        made["count"] = int(made["rate"] * seconds)
    mapping["boxes"]["alarms"]["in"][1]["table"] = str(folder / "sectors.csv")
    return mapping


@pytest.mark.parametrize(
    ("engine", "policy", "train"),
    [
        ("local", *WAYS[0]),
        ("local", "round-robin/box", 500),
        ("sharded", *WAYS[0]),
        pytest.param("spark", "slope-slack", 5000, marks=pytest.mark.slow),
    ],
)
def test_the_first_half_second_of_the_demo(
    engine: str, policy: str, train: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    watch = border_watch(0.5)
    result = _run(EXAMPLES / "border-watch", tmp_path, watch, engine, policy=policy, train=train)
    assert result.outputs["strays"].num_rows == STRAYS
    assert {box["ignored"] for box in result.summary["boxes"].values()} == {0}


def test_a_day_in_the_life_of_a_network() -> None:
    """The reports are the same every day, so what the day gives can be counted without Headway."""
    day = runpy.run_path(str(EXAMPLES / "living" / "day.py"))
    told = day["main"]()
    rows = [row for hour in (8, 9) for row in day["reports"](hour)]
    assert told["in"] == 4 * 4 * 3600 + 500
    assert told["trail"] == sum(1 for sid, _, _, pos in rows if sid == 7 and pos >= 30)
    later = [row for row in [*rows, *day["reports"](10)] if row[3] >= 30]
    passed = {(time // 600, sector) for _, time, sector, _ in later if time >= 36_000 - 1 - 1800}
    still_open = {(max(window for window, one in passed if one == sector), sector) for _, sector in passed}
    assert told["busiest"] == len(passed - still_open)
