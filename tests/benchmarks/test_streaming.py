"""The comparison with plain Structured Streaming: its arithmetic, that all compute the same, and that it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headway as hw
from benchmarks.streaming import __main__ as runner
from benchmarks.streaming import processes, report
from benchmarks.streaming.apps import GRAPHS, KEYS, App, make_apps, make_batch, make_network
from benchmarks.streaming.operator import Open, process
from benchmarks.streaming.plain import merge_sql, one_app
from benchmarks.streaming.progress import done_of, parse_report, phases
from benchmarks.streaming.settings import Setting
from benchmarks.streaming.source import FIRST, Range, StreamReader
from benchmarks.streaming.utility import Done, Span, latencies, mean_utility, quantile, worth

TIGHT, LOOSE = GRAPHS["tight"], GRAPHS["loose"]
APP = App(0, "tight", False, 0)
TUPLES, WINDOW = 5_000, 700

Rows = Counter[tuple[int, int, int, int]]
"""Results as (application, window, key, count); those of stateless ones as (application, -1, -1, how many)."""


# The applications


def test_half_are_windowed_and_every_second_is_loose() -> None:
    apps = make_apps(20)
    assert sum(app.windowed for app in apps) == 10
    for windowed in (False, True):
        assert Counter(app.qos for app in apps if app.windowed == windowed) == {"tight": 5, "loose": 5}
    assert {app.level for app in make_apps(100)} == set(range(20))


def test_any_cut_of_the_stream_is_the_same_stream() -> None:
    whole = pa.Table.from_batches([make_batch(0, 1000)])
    parts = pa.Table.from_batches([make_batch(0, 1), make_batch(1, 400), make_batch(400, 1000)])
    assert parts.equals(whole)
    assert 0 < len(set(whole["k"].to_pylist())) <= KEYS


# The arithmetic


def test_a_mean_over_a_range_is_exact() -> None:
    assert mean_utility(TIGHT, 0, 2) == 1
    assert mean_utility(TIGHT, 2, 6) == pytest.approx(0.5)
    assert mean_utility(TIGHT, 0, 4) == pytest.approx((2 * 1 + 2 * 0.75) / 4)
    assert mean_utility(TIGHT, 4, 4) == pytest.approx(0.5)
    assert mean_utility(TIGHT, 6, 600) == 0
    assert mean_utility(LOOSE, 10, 50) == pytest.approx((10 * 1 + 20 * 0.5) / 40)


@given(st.floats(0, 60), st.floats(0.01, 60), st.sampled_from([TIGHT, LOOSE]))
def test_a_mean_over_a_range_is_the_mean_of_its_points(least: float, width: float, graph: Any) -> None:
    points = graph.values(least + width * (np.arange(20_000) + 0.5) / 20_000)
    assert mean_utility(graph, least, least + width) == pytest.approx(points.mean(), abs=1e-3)


def test_latency_is_from_arrival_to_the_end_of_the_batch() -> None:
    # 10 tuples per second; those of the seconds 1 to 3 count.
    ranges, missing = latencies([Done(15, 2.0), Done(30, 4.0)], 10, Span(1, 3, 9))
    assert missing == 0
    assert np.array(ranges) == pytest.approx(np.array([(5, 0.5, 1.0), (15, 1.0, 2.5)]))


def test_what_is_not_delivered_counts_with_the_latency_it_has() -> None:
    # The second batch ends after the watch: tuples 15 to 30 count as waiting at its end.
    ranges, missing = latencies([Done(15, 2.0), Done(30, 10.0)], 10, Span(1, 3, 9))
    assert missing == 15
    assert np.array(ranges[-1]) == pytest.approx(np.array((15, 6.0, 7.5)))
    found = worth([APP], {APP.name: [Done(15, 2.0)]}, 10, Span(1, 3, 9))
    assert found.utility == pytest.approx(0.25)
    assert found.delivered == pytest.approx(0.25)
    assert found.batches == 1


def test_nothing_delivered_is_worth_what_waiting_is_worth() -> None:
    found = worth([APP], {}, 100, Span(0, 4, 6))
    assert found.utility == pytest.approx(mean_utility(TIGHT, 2, 6))
    assert (found.delivered, found.batches) == (0, 0)
    assert found.mean == pytest.approx(4.0)


def test_applications_weigh_the_same() -> None:
    late = App(1, "tight", False, 0)
    found = worth([APP, late], {APP.name: [Done(10, 1.0)], late.name: [Done(10, 100.0)]}, 10, Span(0, 1, 200))
    assert found.utility == pytest.approx(0.5)
    assert found.mean == pytest.approx((0.5 + 99.5) / 2)
    assert found.p99 > 99


@given(st.lists(st.tuples(st.integers(1, 400), st.floats(0.01, 5)), max_size=8), st.floats(0, 10))
def test_every_arrival_counts_once(steps: list[tuple[int, float]], watched: float) -> None:
    done, tuples, moment = [], 0, 0.0
    for more, seconds in steps:
        tuples, moment = tuples + more, moment + seconds
        done.append(Done(tuples, moment))
    span = Span(1, 5, 5 + watched)
    ranges, missing = latencies(done, 100, span)
    assert sum(weight for weight, _, _ in ranges) == pytest.approx(400)
    assert 0 <= missing <= 400
    assert all(least <= largest for _, least, largest in ranges)


def test_quantiles_are_weighted() -> None:
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([0.02, 0.49, 0.49])
    assert quantile(values, weights, 0.4) == 1
    assert quantile(values, weights, 0.9) == 2
    assert quantile(values, weights, 0.99) == 3


# Progress reports


def _report(**changes: Any) -> str:
    found = {
        "name": "app0",
        "timestamp": "2026-11-15T10:00:00.250Z",
        "durationMs": {"triggerExecution": 500, "addBatch": 400},
        "sources": [{"endOffset": {"upto": 40}, "numInputRows": 30}],
    }
    return json.dumps({**found, **changes})


def test_a_batch_ends_when_its_trigger_does() -> None:
    one = parse_report(_report())
    assert one is not None
    start = one.ended - 2_000_000_000
    assert done_of([one], start) == [Done(40, 2.0)]
    assert one.ended % 1_000_000_000 == 750_000_000
    assert phases([one], start) == {"addBatch": 400, "triggerExecution": 500}
    assert phases([one], one.ended + 1) == {}


def test_offsets_may_be_texts_and_idle_reports_are_left_out() -> None:
    one = parse_report(_report(sources=[{"endOffset": '{"upto": 7}', "numInputRows": 0}]))
    assert one is not None
    assert one.upto == 7
    assert parse_report(_report(durationMs={"triggerExecution": 3, "latestOffset": 3})) is None


# The stream as a data source


def test_the_source_gives_what_has_arrived(tmp_path: Path) -> None:
    begin = tmp_path / "begin"
    reader = StreamReader({"begin": str(begin), "rate": "1000"})
    assert reader.latestOffset({"upto": 0}, None) == {"upto": 0}  # the stream has not begun
    begin.write_text("0")
    assert reader.latestOffset({"upto": 0}, None) == {"upto": FIRST}  # to warm up
    begin.write_text("1")
    assert reader.latestOffset({"upto": 0}, None)["upto"] > 1e9
    backlog = StreamReader({"begin": str(begin), "total": "1000", "cap": "300"})
    assert backlog.latestOffset({"upto": 0}, None) == {"upto": 300}
    assert backlog.latestOffset({"upto": 900}, None) == {"upto": 1000}


def test_tasks_cover_a_batch_and_blobs_hold_the_same_tuples() -> None:
    parts = StreamReader({}).partitions({"upto": 10}, {"upto": 1011})
    assert [parts[0].first, parts[-1].stop] == [10, 1011]
    assert parts[0].stop == parts[1].first
    expected = make_batch(10, 1011)
    rows = pa.Table.from_batches([batch for part in parts for batch in StreamReader({}).read(part)])
    assert rows.equals(pa.Table.from_batches([expected]))
    (blobs,) = StreamReader({"blob": "1"}).read(Range(10, 1011))
    trains = [pa.ipc.open_stream(train.as_py()).read_all() for train in blobs.column(1)]
    assert [set(np.unique(train["k"].to_numpy() % 2)) for train in trains] == [{0}, {1}]
    assert pa.concat_tables(trains).sort_by("i").combine_chunks().equals(pa.Table.from_batches([expected]))


# All compute the same


def _expected(apps: tuple[App, ...]) -> Rows:
    """Return what Headway's local engine finds; its last windows, which only the end closes, are left out."""
    table = pa.Table.from_batches([make_batch(0, TUPLES)])
    outputs: dict[str, list[pa.RecordBatch]] = {app.name: [] for app in apps}
    network = make_network(apps, WINDOW)
    hw.run(network, {"events": table}, engine="local", outputs={name: one.append for name, one in outputs.items()})
    found: Rows = Counter()
    for app in apps:
        results = pa.Table.from_batches(outputs[app.name])
        if not app.windowed:
            found[app.number, -1, -1, results.num_rows] += 1
            continue
        windows = (results["i"].to_numpy() // WINDOW).tolist()
        for window, key, count in zip(windows, results["k"].to_pylist(), results["n"].to_pylist(), strict=True):
            if window < (TUPLES - 1) // WINDOW:
                found[app.number, window, key, count] += 1
    return found


@pytest.mark.parametrize("cuts", [(0, TUPLES), (0, 10, 11, 2000, TUPLES)])
def test_the_query_merged_by_hand_in_python_finds_what_headway_finds(cuts: tuple[int, ...]) -> None:
    apps = make_apps(6)
    state, rows = Open.from_bytes(None, 3), []
    for first, stop in pairwise(cuts):
        middle = (first + stop) // 2
        found, state = process([make_batch(middle, stop), make_batch(first, middle)], apps, WINDOW, state)
        state = Open.from_bytes(state.to_bytes(), 3)
        rows += found
    assert _summed(rows) == _expected(apps)


def _summed(rows: list[tuple[int, int, int, int]]) -> Rows:
    """Return rows with the numbers of stateless results added up over micro-batches."""
    counts: Counter[tuple[int, int, int]] = Counter()
    for app, window, key, count in rows:
        counts[app, window, key] += count
    return Counter((*which, count) for which, count in counts.items())


@pytest.mark.slow
def test_plain_queries_find_what_headway_finds() -> None:
    from headway.engines.spark.driver.session import open_session

    apps = make_apps(6)
    stream = open_session(None).createDataFrame(make_batch(0, TUPLES).to_pandas())
    complete = (TUPLES - 1) // WINDOW
    alone: Rows = Counter()
    for app in apps:
        found = one_app(stream, app, WINDOW).toArrow().to_pylist()
        if app.windowed:
            alone.update((app.number, row["window"], row["k"], row["n"]) for row in found if row["window"] < complete)
        else:
            alone[app.number, -1, -1, len(found)] += 1
    assert alone == _expected(apps)
    rows = merge_sql(stream, apps, WINDOW).toArrow().to_pylist()
    merged: Rows = Counter()
    for app in apps:
        if not app.windowed:
            merged[app.number, -1, -1, sum(row[app.name] is True for row in rows)] += 1
        counted = [row for row in rows if app.windowed and row["window"] is not None and row["window"] < complete]
        merged.update((app.number, row["window"], row["k"], row[app.name]) for row in counted if row[app.name])
    assert merged == _expected(apps)


# Processes and reports


def test_memory_of_a_process_tree_is_summed() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, start_new_session=True) as parent:
        tree = {parent.pid}
        while len(tree) < 2:
            tree = processes.descendants(parent.pid)
        assert processes.resident(tree) > processes.resident([parent.pid]) > 1
        processes.end(tree, os.getpid())  # not our session: nothing happens
        assert parent.poll() is None
        processes.end(tree, parent.pid)
        assert parent.wait(10) < 0


def _found(system: str, rate: float, utility: float, **setting: Any) -> dict[str, Any]:
    side = {"utility": utility, "mean": 1.0, "p50": 1.0, "p99": 2.0, "delivered": 1.0, "batches": 40}
    return {
        "setting": json.loads(Setting(system, rate=rate, **setting).to_json()),
        "queries": 2,
        "ready": 9.0,
        "first": 10.0,
        "all": 12.0,
        "peak_mb": 900.0,
        "processes": 5,
        "utility": utility,
        "tight": side,
        "loose": side,
    }


def test_the_report_says_what_is_reached() -> None:
    found = [
        _found("headway", 200_000, 0.99),
        _found("headway", 400_000, 0.91),
        _found("headway", 800_000, 0.5),
        _found("plain", 2_000, 0.3),
        _found("merged, SQL", 400_000, 0.95),
        _found("merged, Python", 800_000, 0.95),
    ]
    text = report.render(found)
    said = "headway 400,000 tuples/s, plain (best) none, merged by hand (best) 800,000 tuples/s"
    assert f"highest rate with a mean utility above 0.9: {said}" in text
    assert "headway's is 0.50 of the one merged by hand; promised 0.5: reached" in text
    assert "tight utility at 200,000 tuples/s is 0.990; promised 0.95: reached" in text
    assert "| headway | 2 | 9.0 s | 10.0 s | 12.0 s | 900 | 5 |" in text
    worse = report.render([_found("headway", 200_000, 0.9), *found[3:]])
    assert "headway's is 0.00 of the one merged by hand; promised 0.5: missed" in worse


def test_backlogs_are_compared_with_plain() -> None:
    def drained(system: str, throughput: float) -> dict[str, Any]:
        setting = json.loads(Setting(system, total=1000).to_json())
        return {"setting": setting, "throughput": throughput, "seconds": 1000 / throughput, "whole": 2000 / throughput}

    table, ratios = report.single_table([drained("headway", 85.0), drained("plain", 80.0), drained("plain", 100.0)])
    assert ratios == {"filter and map": pytest.approx(0.85)}
    assert "promised 0.9: missed" in report.render([drained("headway", 85.0), drained("plain", 100.0)])
    assert table.count("| plain |") == 1


def test_failures_are_shown_and_end_in_an_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = tmp_path / "lines.json"
    broken = {"setting": json.loads(Setting("plain").to_json()), "error": "it broke"}
    lines.write_text(f"{json.dumps({'machine': '- a machine'})}\n{json.dumps(broken)}\n")
    assert runner.main(["--read", str(lines)]) == 1
    assert "failed: it broke" in capsys.readouterr().out


def test_rates_rise_until_two_have_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    worths = {1: 1.0, 2: 0.8, 3: 0.95, 4: 0.5, 5: 1.0}
    monkeypatch.setattr(runner, "carry_out", lambda setting: {"utility": worths[int(setting.rate)]})
    assert [one["utility"] for one in runner.rising(Setting("plain"), [5, 4, 3, 2, 1])] == [1.0, 0.8, 0.95, 0.5]


@pytest.mark.slow
def test_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- results: written by `python -m benchmarks --write` -->\n<!-- end of results -->\n")
    quick = ["--quick", "--systems", "headway;merged, Python", "--backlog", "0", "--write", str(page)]
    assert runner.main(quick) == 0
    assert "## 4 applications over one stream" in page.read_text()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    ours, merged = lines[1:]
    assert ours["queries"] == 2  # a query for each latency graph
    assert merged["queries"] == 1
    for one in (ours, merged):
        assert one["tight"]["delivered"] > 0
        assert 0 <= one["utility"] <= 1
        assert one["peak_mb"] > 200
        assert one["ready"] > 0
        assert 0 < one["first"] <= one["all"]
    assert ours["summary"]["tuples_in"] == 500 * 7
