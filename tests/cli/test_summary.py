"""The summary: for people, and as JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import headway as hw
from headway.cli.printing import count_text, one_line, printable, ratio_text, seconds_text, text_table
from headway.cli.summary import Preview, check_summary_path, previews_text, summary_text, to_json, write_summary
from headway.engines import showing
from headway.errors import OutputError
from headway.network.schema import Schema
from tests.cli.helpers import BORDER, ROWS


@pytest.fixture(scope="module")
def summary() -> Any:
    rows = [*ROWS, ("x", 1, 2)]
    return hw.run(hw.load(BORDER), {"positions": rows}, engine="local").summary


def test_tables(summary: Any) -> None:
    lines = [line.split() for line in summary_text(summary).splitlines()]
    assert ["output", "tuples", "latency", "mean", "p50", "p99", "utility", "shed"] in lines
    alarms = next(line for line in lines if line[:1] == ["alarms"])
    assert alarms[1] == "3"
    assert alarms[-2:] == ["1", "0"]
    assert {alarms[3], alarms[5]} <= {"µs", "ms", "s"}
    ratio = next(line for line in lines if line[:1] == ["ratio"])
    assert ratio[2:5] == ["4", "3", "0.75"]
    assert ratio[-2:] == ["0", "1"]


def test_totals(summary: Any) -> None:
    text = summary_text(summary)
    assert f"{len(ROWS)} tuples in, 5 out, in " in text
    assert "tuples/s" in text
    for part in ("scheduler", "boxes", "storage", "sources", "sinks"):
        assert f"{part} " in text.partition("time: ")[2]
    assert "time (2 workers are 200 %): scheduler" in summary_text({**summary, "workers": 2})
    assert "malformed rows: source 'positions' 1\n" in text
    assert "dead letters: 2; the most frequent reasons:\n" in text
    assert "1 × 'ratio': division by zero" in text
    assert "interrupted" not in text
    assert "interrupted" in summary_text({**summary, "interrupted": True})


LATE = """
network: late
sources: {s: {schema: {t: int, v: int}}}
boxes:
  one: {op: aggregate, in: s, select: count(*) as n, order: {on: t, slack: 1}, size: 2}
  two: {op: aggregate, in: s, select: count(*) as n, order: {on: t}, size: 2, timeout: 5s}
  both: {op: join, in: [s, s], on: left.v = right.v, size: 1, order: [{on: t}, {on: t, slack: 7}]}
outputs: {one: {from: one}, two: {from: two}, both: {from: both}}
"""


def ignoring(summary: Any, **ignored: int) -> str:
    """Return what is said of tuples that came too late."""
    boxes = {name: {**box, "ignored": ignored.get(name, 0)} for name, box in summary["boxes"].items()}
    text = summary_text({**summary, "boxes": boxes}, network=hw.load(LATE))
    return "".join(line for line in text.splitlines() if "slack" in line)


def test_tuples_that_came_too_late() -> None:
    summary = hw.run(hw.load(LATE), {"s": [(t, 1) for t in (1, 9, 8, 3, 2)]}, engine="local").summary
    assert summary["boxes"]["one"]["ignored"] == 2
    assert ignoring(summary) == ""
    said = "ignored 9,759 tuples that came later than its slack allows"
    assert ignoring(summary, one=9759) == f"box 'one' {said} (slack 1)"
    assert ignoring(summary, two=9759) == f"box 'two' {said} (slack 0, timeout 5s)"
    assert ignoring(summary, both=1) == (
        "box 'both' ignored 1 tuple that came later than its slack allows (slack 0 and 7)"
    )
    assert ignoring(summary, one=3, both=4) == (
        "2 boxes ignored 7 tuples that came later than their slack allows: 'both' 4 (slack 0 and 7), 'one' 3 (slack 1)"
    )
    many = {f"b{at}": {**summary["boxes"]["one"], "ignored": 10 + at} for at in range(30)}
    [line] = [one for one in summary_text({**summary, "boxes": many}).splitlines() if "slack" in one]
    assert line.endswith("'b29' 39, 'b28' 38, 'b27' 37, 'b26' 36, 'b25' 35 and 25 more boxes")


def test_the_rate_of_a_run_that_goes_on(summary: Any) -> None:
    """It was that of both runs' tuples in the time of one."""
    text = summary_text({**summary, "tuples_in": 205_015, "tuples_before": 103_000, "tuples_per_second": 3312.2})
    assert "205,015 tuples in (103,000 of them before it continued), 5 out, in " in text
    assert ": 3,312 tuples/s\n" in text
    assert "before" not in summary_text({**summary, "tuples_before": 0})


SPARK = {
    "engine": "spark",
    "master": "local[2]",
    "units": {"a+b": {"batches": 7, "tuples": 1234, "seconds": 3.5, "cost_per_batch": 0.45, "cost_per_tuple": 2e-6}},
}


def test_units(summary: Any) -> None:
    text = summary_text({**summary, **SPARK})
    [unit] = [line.split() for line in text.splitlines() if line.startswith("a+b")]
    assert unit == ["a+b", "7", "1,234", "3.500", "450", "ms", "2.00", "µs"]
    assert "engine spark on local[2], policy " in text
    assert "streaming query" not in summary_text(summary)


def large(summary: Any, many: int) -> dict[str, Any]:
    """Return the summary of a large network: box n took n seconds, output 7 is worst off."""
    output, box = summary["outputs"]["alarms"], summary["boxes"]["across"]
    return {
        **summary,
        **SPARK,
        "outputs": {f"o{at}": {**output, "worth": 0.5 if at == 7 else 1.0} for at in range(many)},
        "boxes": {f"b{at}": {**box, "seconds": float(at), "dead_letters": int(at == 3)} for at in range(many)},
        "units": {f"u{at}": {**SPARK["units"]["a+b"], "seconds": float(at)} for at in range(many)},  # type: ignore[index]
        "sources": {f"s{at}": {"tuples": 1, "malformed": at} for at in range(many)},
    }


@pytest.mark.parametrize("many", [30, 1000])
def test_a_large_network_has_a_short_summary(summary: Any, many: int) -> None:
    text = summary_text(large(summary, many))
    lines = text.splitlines()
    assert len(lines) < 65
    assert max(map(len, lines)) < 200
    assert lines[2].split()[0] == "o7", "the output that is worst off comes first"
    boxes = [
        line.split()[0] for line in lines if line.startswith("b") and line.split()[0] in large(summary, many)["boxes"]
    ]
    assert boxes[:3] == ["b3", f"b{many - 1}", f"b{many - 2}"], "dead letters first, then what took longest"
    assert f"… and {many - 20:,} more outputs, none worse off than these; --verbose shows all" in text
    assert f"… and {many - 10:,} more boxes, which took " in text
    assert f"… and {many - 10:,} more streaming queries; --verbose" in text
    assert f"malformed rows: source 's{many - 1}' {many - 1}," in text


def test_all_of_a_large_network_is_shown_if_wanted(summary: Any) -> None:
    text = summary_text(large(summary, 30), verbose=True)
    assert "more" not in text.partition("malformed")[0]
    for kind in "obu":
        names = [line.split()[0] for line in text.splitlines() if line[:1] == kind and line[1:2].isdigit()]
        assert names == [f"{kind}{at}" for at in range(30)], "in the file's order"


def test_a_few_lines_more_are_not_left_out(summary: Any) -> None:
    assert "more" not in summary_text({**large(summary, 12), "sources": {}})


def previewed(many: int, empty: int = 0) -> list[Preview]:
    schema = Schema.parse("a int, b string")
    previews = [Preview(f"o{at}", schema) for at in range(many + empty)]
    for preview in previews[:many]:
        preview.write(pa.record_batch({"a": pa.array(range(100), pa.int32()), "b": ["x"] * 100}))
    return previews


def test_previews_of_many_outputs_have_a_bound() -> None:
    text = previews_text(previewed(30, 4))
    assert len(text.splitlines()) < 45
    assert "output 'o0': 100 tuples" in text
    assert "… and 97 more; --output o0=PATH keeps them all" in text
    assert text.endswith(
        "… and 25 more outputs with tuples, 4 outputs without any; --output NAME=PATH keeps one, --verbose shows all\n"
    )
    assert previews_text(previewed(30), verbose=True).count("… and 90 more") == 30
    assert previews_text(previewed(5)).count("… and 90 more") == 5


def test_a_state_that_can_go_on(summary: Any) -> None:
    state = {"path": "dir", "can_continue": True}
    text = summary_text({**summary, **SPARK, "interrupted": True, "state": state})
    assert "stopped: 'dir' holds everything up to this point" in text
    assert "--state dir" in text
    assert "cut off" not in text


def test_json_has_no_nan() -> None:
    made = {"a": math.nan, "b": [math.inf, 1.5], "c": np.float64(2.0), "d": np.int64(3), "e": (None, True, "µ")}
    text = to_json(made)
    assert json.loads(text, parse_constant=lambda name: pytest.fail(name)) == {
        "a": None,
        "b": [None, 1.5],
        "c": 2.0,
        "d": 3,
        "e": [None, True, "µ"],
    }


def test_json_of_a_run(summary: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text("old")
    write_summary(path, summary)
    assert json.loads(path.read_text()) == json.loads(json.dumps(summary))
    assert [entry.name for entry in tmp_path.iterdir()] == ["s.json"]


def test_a_device_is_not_replaced(tmp_path: Path) -> None:
    null = tmp_path / "null"
    null.symlink_to("/dev/null")
    check_summary_path(null)
    write_summary(null, {"a": 1})
    assert null.is_symlink()
    assert null.is_char_device()


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is a directory"):
        check_summary_path(tmp_path)
    with pytest.raises(OutputError, match="does not exist"):
        check_summary_path(tmp_path / "nowhere" / "s.json")
    with pytest.raises(OutputError, match="cannot be written"):
        write_summary(tmp_path / "nowhere" / "s.json", {})


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (math.nan, "-"),
        (0.0, "0.00 µs"),
        (2.5e-6, "2.50 µs"),
        (0.00099949, "999 µs"),
        (0.0009999, "1.00 ms"),
        (0.0123, "12.3 ms"),
        (0.9999, "1.00 s"),
        (75.0, "75.0 s"),
        (4000.0, "4,000 s"),
    ],
)
def test_seconds(seconds: float | None, text: str) -> None:
    assert seconds_text(seconds) == text


def test_other_texts() -> None:
    assert count_text(1234567) == "1,234,567"
    assert (ratio_text(7.38e-05), ratio_text(0.000738), ratio_text(0.0)) == ("<0.0001", "0.000738", "0")
    assert (ratio_text(None), ratio_text(0.12345), ratio_text(1.0), ratio_text(12345.6)) == (
        "-",
        "0.123",
        "1",
        "12,346",
    )
    assert printable("a\x1b[0m\n\ud800é") == r"a\x1b[0m\n\ud800é"
    assert one_line("first\n  second\n") == "first; second"


def test_text_table() -> None:
    table = text_table(("name", "n"), [("日本", "5"), ("x", "1,000")], "lr")
    assert table == "name      n\n----  -----\n日本      5\nx     1,000\n"
    bracketed = text_table(("a [b]", "n"), [("[red]x[/red]", "1")], "lr")
    assert bracketed == "a [b]         n\n------------  -\n[red]x[/red]  1\n"


def test_a_table_on_a_narrow_terminal_wraps_words_and_loses_nothing() -> None:
    header, rows = ("policy", "what it does", "n"), [("chain", "boxes whose queues shrink fastest first", "1,234 ms")]
    narrow = showing.text_table(header, rows, "llr", 40)
    assert max(map(len, narrow.splitlines())) <= 40
    for columns in (40, 5):
        table = showing.text_table(header, rows, "llr", columns)
        assert set(" ".join(rows[0]).split()) <= set(table.split())
        assert "1,234 ms" in table, "a number stays in one line"
    assert len(showing.text_table(("a",), [("word " * 1000,)]).splitlines()) == 3, "without a terminal it is wide"


def test_preview_keeps_ten_of_many() -> None:
    preview = Preview("o", Schema.parse("a int, b string"))
    for start in range(0, 1000, 4):
        values = list(range(start, start + 4))
        preview.write(pa.record_batch({"a": pa.array(values, pa.int32()), "b": ["x" * 100, None, "", "y"]}))
    assert preview.count == 1000
    assert len(preview._rows) == 10
    text = preview.text()
    assert "… and 990 more" in text
    assert "NULL" in text
    assert "x" * 41 not in text
