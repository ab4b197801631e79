"""Quick forms of the benchmarks: all contenders agree, and the scripts run. Speed is not tested here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks import __main__ as everything
from benchmarks import calls, consumers, guarded, history, latency, loads, memory, throughput
from benchmarks.contenders import HEADWAY, Contender, contenders
from benchmarks.workloads import KEYS, QUERIES, WORKLOADS, make_table

TUPLES = 100_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return make_table(TUPLES)


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_all_contenders_agree(name: str, table: pa.Table) -> None:
    everybody = contenders(WORKLOADS[name], table)
    assert [one.name for one in everybody][-len(HEADWAY) :] == list(HEADWAY)
    results = throughput.verify(WORKLOADS[name], everybody)
    expected = {"W1": 0.9**5 * TUPLES, "W2": 10 * KEYS, "W3": 10 * KEYS * QUERIES}[name]
    assert results == pytest.approx(expected, rel=0.05)


def test_a_disagreement_is_found(table: pa.Table) -> None:
    honest = contenders(WORKLOADS["W2"], table)[0]
    (result,) = honest.collect()
    wrong = Contender("liar", honest.run, lambda: [result.set_column(2, "mean", pa.array([0.5] * result.num_rows))])
    with pytest.raises(throughput.DisagreementError, match="W2, output 0: liar against pyarrow: different values"):
        throughput.verify(WORKLOADS["W2"], [honest, wrong])
    short = Contender("short", honest.run, lambda: [result.slice(1)])
    with pytest.raises(throughput.DisagreementError, match="short against pyarrow: 999 results, not 1000"):
        throughput.verify(WORKLOADS["W2"], [honest, short])


def test_throughput_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rates.json"
    assert throughput.main(["--tuples", "20000", "--repeats", "1", "--workload", "W1", "--json", str(path)]) == 0
    assert "| headway |" in capsys.readouterr().out
    speeds = json.loads(path.read_text())["results"]["W1"]
    assert speeds["headway"]["rate"] > 0.01  # million tuples per second: a very loose floor


def test_calls_run(capsys: pytest.CaptureFixture[str]) -> None:
    results = calls.report(200, 1)
    assert len(results) == len(calls.NETWORKS) * len(calls.POLICIES)
    assert all(one.box_calls > 100 for one in results)
    assert "box calls/s" in capsys.readouterr().out


def test_forty_boxes_run(capsys: pytest.CaptureFixture[str]) -> None:
    results = consumers.report(300, 1)
    assert sum(1 for _ in consumers.make_network().build().boxes) == 40
    alone, trains, superboxes, default = results
    # Decisions, not seconds: those are the same on every machine.
    assert trains.plans < consumers.PAPER_TRAINS * alone.plans
    assert superboxes.plans < consumers.PAPER_SUPERBOXES * trains.plans
    assert default.plans < superboxes.plans
    assert "Boxes per second" in capsys.readouterr().out


def test_the_qos_policy_pays_under_load(capsys: pytest.CaptureFixture[str]) -> None:
    results = loads.report((0.9, 1.2), 4.0, "sim")
    assert loads.check(results) == []
    assert "All as promised" in capsys.readouterr().out
    worse = [replace(one, utility=0.5 if one.policy == "QoS" else 0.4) for one in results]
    assert len(loads.check(worse)) == 2


def test_latency_is_measured_from_the_closing_tuple() -> None:
    found = latency.measure("round-robin/superbox", seconds=2.2)
    assert found.results > 50
    assert -1 < found.p50 < 500  # milliseconds; the QoS latency includes the window's second
    assert found.qos_p50 > 500


def test_memory_runs(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    memory.main(["--tuples", "200000", "--single", "1000", "--json", str(path)])
    long, single = json.loads(path.read_text())
    assert long["results"] > 0
    assert single["train"] == 1
    assert single["last"] > 0


def test_the_guard_is_measured_against_the_bare_kernel() -> None:
    bare, both = guarded.measure(10, 50)
    assert 0 < bare < both


def test_history_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert history.main(["--tuples", "30000", "--rate", "20000", "--seconds", "1", "--lookups", "2"]) == 0
    printed = capsys.readouterr().out
    for line in ("written, as fast as possible", "share of one core at 20,000", "| plan | key lookup in 1 of 1 files"):
        assert line in printed


@pytest.mark.slow
def test_all_parts_run_in_their_quick_form(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{everything.BEGIN}\n{everything.END}\n")
    assert everything.main(["--quick", "--write", str(page)]) == 0
    written = page.read_text()
    for title in (
        "## Throughput",
        "## Trains of one",
        "## Planning",
        "## Forty boxes",
        "## Utility over load",
        "## Latency",
        "## Memory",
    ):
        assert title in written
    assert "failed with exit code" not in written


def test_results_go_between_the_marks() -> None:
    page = f"before\n{everything.BEGIN}\nold\n{everything.END}\nafter\n"
    written = everything.replace_results(page, "new\n")
    assert written == f"before\n{everything.BEGIN}\n\nnew\n\n{everything.END}\nafter\n"
    with pytest.raises(ValueError, match="the page needs the lines"):
        everything.replace_results("no marks", "new")
