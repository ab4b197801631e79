"""Recorders and traces: what is kept, how it reads, and that files come back as they were."""

from __future__ import annotations

import json
import math
import threading
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headway as hw
from headway.clock import MILLISECOND, SECOND
from headway.columns import Column
from headway.connectors.registry import open_source
from headway.engines import chrome
from headway.engines.ingest import Feed
from headway.engines.reasons import Reason
from headway.engines.traces import (
    CallRecord,
    Change,
    Queued,
    Recorder,
    StepRecord,
    Trace,
    explain,
    read_trace,
)
from headway.errors import InputError, OutputError
from headway.network.schema import Schema
from headway.scheduling.policy import Plan, Policy, Step
from headway.scheduling.slope_slack import SlopeSlack
from headway.scheduling.snapshot import Snapshot
from headway.trains import Train
from tests.scheduling.snapshots import measured, replace, snapshot

NOW = 100 * SECOND
LATE = ((0.0, 1.0), (1.0, 1.0), (3.0, 0.6), (4.0, 0.1), (5.0, 0.0))


def refuse(word: str) -> NoReturn:
    raise AssertionError(f"JSON has no {word}")


def strict(text: str) -> Any:
    return json.loads(text, parse_constant=refuse)


def recorder(**more: Any) -> Recorder:
    return Recorder("border", ["alarms", "counts", "pairs"], ["x", "y", "z"], "slope-slack/box", **{"start": 0, **more})


def recorded() -> Trace:
    """Return one plan of three steps, two of which were carried out."""
    made = recorder(start=NOW - 10 * MILLISECOND)
    seen = measured([[LATE]] * 3, [3.5, 2.0, 4.5])
    plan, _ = SlopeSlack().plan(seen, None)
    made.plan(seen, SlopeSlack(), None, plan)
    calls = [
        CallRecord((0,), NOW + 100_000, NOW + 300_000, 100, 40),
        CallRecord((1, 2), NOW + 300_001, NOW + 800_000, 40, 7),
    ]
    made.step(0, 0, NOW + 100_000, NOW + 900_000, 100, calls, False, 1)
    made.queued(NOW, 200, 1600)
    made.step(1, 1, NOW + 50_000, NOW + 60_000, 1, [], True, 1)
    return made.trace()


def test_steps_in_the_order_in_which_they_began() -> None:
    trace = recorded()
    assert [(step.unit, step.worker, step.tuples, step.plan) for step in trace.steps] == [(1, 1, 1, 1), (0, 0, 100, 1)]
    assert [step.preempted for step in trace.steps] == [True, False]
    assert trace.steps[1].reason.rule == "largest utility"
    assert trace.left_out == 0
    assert trace.start == NOW - 10 * MILLISECOND


def test_a_step_in_one_line() -> None:
    trace = recorded()
    assert list(trace.lines()) == [
        "10.050 ms  worker 1  'counts' on 1 tuple, 10 µs, preempted: largest utility; utility 0.2, slack 1 s, "
        "oldest 2 s ago; before 'pairs' (utility 0.1, slack inf, oldest 4.5 s ago)",
        "10.100 ms  worker 0  'alarms' on 100 tuples, 0.8 ms: largest utility; utility 0.5, slack 0.5 s, "
        "oldest 3.5 s ago; before 'counts' (utility 0.2, slack 1 s, oldest 2 s ago), "
        "'pairs' (utility 0.1, slack inf, oldest 4.5 s ago)",
    ]
    step = StepRecord(0, 3, 12_345_000, 13_345_000, 1000, (), Reason("", "next in turn"), False, 1)
    assert explain(step, ["a"]) == "12.345 ms  worker 3  'a' on 1,000 tuples, 1 ms: next in turn"


def test_as_a_table() -> None:
    table = recorded().table()
    assert table.column_names == ["moment", "worker", "unit", "tuples", "seconds", "preempted", "plan", "reason"]
    row = table.to_pylist()[1]
    assert row["moment"] == pytest.approx(0.0101)
    assert row["seconds"] == pytest.approx(0.0008)
    assert (row["unit"], row["worker"], row["tuples"], row["plan"]) == ("alarms", 0, 100, 1)
    assert row["reason"].startswith("largest utility; utility 0.5")
    assert recorder().trace().table().num_rows == 0


def test_the_events() -> None:
    made = recorded().to_chrome()
    events = made["traceEvents"]
    names = [(event["name"], event["tid"], event["args"]) for event in events if event["ph"] == "M"]
    assert names == [
        ("process_name", 1, {"name": "headway border"}),
        ("thread_name", 1, {"name": "worker 0"}),
        ("thread_sort_index", 1, {"sort_index": 0}),
        ("thread_name", 2, {"name": "worker 1"}),
        ("thread_sort_index", 2, {"sort_index": 1}),
    ]
    spans = [(event["cat"], event["name"], event["tid"]) for event in events if event["ph"] == "X"]
    assert spans == [("step", "counts", 2), ("step", "alarms", 1), ("call", "x", 1), ("call", "y+z", 1)]
    step = next(event for event in events if event["name"] == "alarms")
    assert (step["ts"], step["dur"]) == (10_100.0, 800.0)
    assert step["args"]["tuples"] == 100
    assert step["args"]["plan"] == 1
    assert step["args"]["preempted"] is False
    assert step["args"]["why"] == "largest utility"
    assert step["args"]["terms"] == pytest.approx({"utility": 0.5, "slack": 0.5, "oldest": -3.5})
    assert [one["unit"] for one in step["args"]["competitors"]] == ["counts", "pairs"]
    assert step["args"]["competitors"][1]["terms"]["slack"] == "inf"
    call = next(event for event in events if event["name"] == "y+z")
    assert (call["ts"], call["dur"]) == (10_300.001, 499.999)
    assert call["args"] == {"in": 40, "out": 7, "boxes": [1, 2]}
    counters = [(event["name"], event["ts"], event["args"]) for event in events if event["ph"] == "C"]
    assert counters == [("queued tuples", 10_000.0, {"tuples": 200}), ("queued bytes", 10_000.0, {"bytes": 1600})]


def test_a_file_is_strict_json_and_comes_back(tmp_path: Path) -> None:
    trace, path = recorded(), tmp_path / "run.json"
    trace.write(path)
    text = path.read_text("utf-8")
    assert strict(text) == trace.to_chrome()
    assert read_trace(path) == trace
    assert len(text.splitlines()) == len(trace.to_chrome()["traceEvents"]) + 2
    assert [one.name for one in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_file_that_another_program_laid_out_anew(tmp_path: Path, indent: int | None) -> None:
    trace, path = recorded(), tmp_path / "run.json"
    path.write_text(json.dumps(trace.to_chrome(), indent=indent))
    assert read_trace(path) == trace


def test_a_trace_without_steps(tmp_path: Path) -> None:
    trace = recorder().trace()
    trace.write(tmp_path / "none.json")
    assert strict((tmp_path / "none.json").read_text()) == trace.to_chrome()
    assert read_trace(tmp_path / "none.json") == trace


def test_a_failing_write_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("old")
    broken = replace(recorded(), units=("alarms",))  # a step names a unit that is not there
    with pytest.raises(IndexError):
        broken.write(path)
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["run.json"]
    with pytest.raises(OutputError, match=r"trace: .*nowhere.* cannot be written"):
        recorded().write(tmp_path / "nowhere" / "run.json")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is not a trace"),
        ("hello", "is not a trace"),
        ("[]", 'does not say "format"'),
        ('{"traceEvents": []}', 'does not say "format"'),
        ('{"otherData": {"format": "headway trace 1"}}', 'does not say "format"'),
        ('{"otherData": {"format": "headway trace 1"}, "traceEvents": []}', "KeyError"),
        ("[" * 100_000, "is not a trace"),
    ],
)
def test_files_that_are_no_traces(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(InputError, match=expected):
        read_trace(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file .*x\.json.*headway run --trace"):
        read_trace(tmp_path / "x.json")
    with pytest.raises(InputError, match="is a directory"):
        read_trace(tmp_path)
    (tmp_path / "x.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        read_trace(tmp_path / "x.json")


def test_damaged_traces(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    recorded().write(path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    with pytest.raises(InputError, match="cut off"):
        read_trace(path)
    path.write_text("".join([*lines[:4], '{"name": \n', *lines[5:]]))
    with pytest.raises(InputError, match="damaged"):
        read_trace(path)
    for wrong in ('{"ph": "X"},\n', '{"ph": "C", "ts": 1, "args": {"tuples": "many"}},\n', "7,\n"):
        path.write_text("".join([lines[0], wrong, *lines[1:]]))
        with pytest.raises(InputError, match="is not a trace"):
            read_trace(path)


class InTurn(Policy):
    def rule(self, snapshot: Snapshot, memory: Any, unit: int) -> str:
        return "next in turn"

    def start(self) -> None:
        return None

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        return Plan(()), memory


def asked(made: Recorder, seen: Snapshot, *units: int) -> None:
    made.plan(seen, InTurn(), None, Plan(tuple([Step(unit, 1) for unit in units])))


def plans_of(made: Recorder) -> list[tuple[int, int, int]]:
    return [(step.unit, step.plan, len(step.reason.others)) for step in made.trace().steps]


def test_every_step_finds_the_reason_of_its_plan() -> None:
    made, seen = recorder(start=0), snapshot([True] * 3)
    asked(made, seen, 0, 1, 2)
    made.step(0, 0, 1, 2, 1, plan=1)
    asked(made, seen, 1, 2)  # unit 1 was refused the first time
    made.step(1, 0, 3, 4, 1, plan=2)
    asked(made, seen, 2, 2)
    made.step(2, 0, 5, 6, 1, plan=3)
    made.step(2, 0, 7, 8, 1, plan=3)
    made.step(2, 0, 9, 10, 1, plan=3)  # nobody asked for it
    assert plans_of(made) == [(0, 1, 2), (1, 2, 1), (2, 3, 0), (2, 3, 0), (2, 3, 0)]
    assert [step.reason.rule for step in made.trace().steps] == ["next in turn"] * 4 + ["not told"]


def test_a_long_step_keeps_its_reason_while_plans_go_on() -> None:
    made, seen = recorder(start=0), snapshot([True] * 3)
    asked(made, seen, 0, 1, 2)
    busy = replace(seen, busy=np.array([True, False, False]))
    for _ in range(1000):
        asked(made, busy, 0, 1)
    made.step(0, 0, 1, 2, 1, plan=1)
    made.step(0, 0, 3, 4, 1, plan=1001)
    assert plans_of(made) == [(0, 1, 2), (0, 1001, 1)]


def test_what_does_not_fit_is_counted() -> None:
    made = recorder(start=0, most=5)
    call = CallRecord((0,), 0, 1, 1, 1)
    made.step(0, 0, 0, 1, 1, [call, call])
    made.queued(0, 1, 8)
    made.step(0, 0, 1, 2, 1, [call])  # does not fit
    made.step(0, 0, 2, 3, 1)  # would fit, but a gap would mislead
    made.queued(5 * MILLISECOND, 2, 16)
    asked(made, snapshot([True] * 3), 0)
    trace = made.trace()
    assert (len(trace.steps), trace.left_out, trace.counters) == (1, 2, (Queued(0, 1, 8),))
    assert trace.to_chrome()["otherData"]["left_out"] == 2


SWITCH = Change(NOW + 5 * MILLISECOND, "switch", "all", "fifo -> chain", "chain scores 1.1, fifo 0.9")
INSERTED = Change(NOW + 2 * MILLISECOND, "shed", "s -> b", "inserted: keeps 54%, at random", "needs 1.3 s/s of work")


def test_changes_survive_a_file(tmp_path: Path) -> None:
    made, path = recorder(start=NOW), tmp_path / "run.json"
    made.step(0, 0, NOW, NOW + MILLISECOND, 1)
    for change in (INSERTED, SWITCH):
        made.change(change)
    trace = made.trace()
    assert trace.changes == (INSERTED, SWITCH)
    trace.write(path)
    assert read_trace(path) == trace
    assert strict(path.read_text("utf-8")) == trace.to_chrome()
    first, second = [event for event in trace.to_chrome()["traceEvents"] if event["ph"] == "i"]
    assert (first["name"], first["cat"], first["ts"]) == ("s -> b: inserted: keeps 54%, at random", "shed", 2000.0)
    assert first["args"]["reason"] == "needs 1.3 s/s of work"
    assert (second["cat"], second["ts"]) == ("switch", 5000.0)


def test_changes_need_room_like_everything_else() -> None:
    made = recorder(start=NOW, most=2)
    for _ in range(5):
        made.change(SWITCH)
    assert made.trace().changes == (SWITCH, SWITCH)
    made.step(0, 0, NOW, NOW + 1, 1)
    assert (made.trace().steps, made.trace().left_out) == ((), 1)


def test_of_each_millisecond_the_last_count_is_kept() -> None:
    made = recorder(start=500)
    for moment in range(0, 3 * MILLISECOND, 100_000):
        made.queued(500 + moment, moment, 8)
    counters = made.trace().counters
    assert [one.tuples for one in counters] == [900_000, 1_900_000, 2_900_000]


def test_numbers_of_numpy_become_plain(tmp_path: Path) -> None:
    made = recorder(start=0)
    made.step(0, 0, np.int64(1), np.int64(2), np.int64(3))  # type: ignore[arg-type]
    made.queued(np.int64(0), np.int64(1), np.int64(8))  # type: ignore[arg-type]
    made.trace().write(tmp_path / "run.json")
    assert read_trace(tmp_path / "run.json") == made.trace()


def feeds() -> tuple[list[Feed], list[int]]:
    """Return two sources, and the tuples that were let in."""
    seen: list[int] = []
    empty = Train.empty(Schema.parse({"a": "int"}))
    reader = open_source("s", Schema.parse({"a": "int"}), [])
    return [Feed(name, reader, lambda train: seen.append(len(train)), lambda _: None, empty) for name in "sr"], seen


def arriving(moments: list[float]) -> Train:
    """Return a train whose tuples arrived at these milliseconds after NOW."""
    stamps = np.array([NOW + round(moment * MILLISECOND) for moment in moments], np.int64)
    return Train((Column(np.zeros(len(moments), np.int32)),), stamps, np.arange(len(moments)), len(moments))


def test_arrivals_by_the_millisecond() -> None:
    made, (some, seen) = recorder(start=NOW), feeds()
    made.hear(some)
    some[0].push(arriving([0, 0.4, 0.999, 1.0, 7.5]))
    some[0].push(arriving([7.9, 8.1]))
    some[0].push(arriving([]))
    some[1].push(arriving([3.0]))
    assert made.trace().arrivals == {"s": ((0, 3), (1, 1), (7, 2), (8, 1)), "r": ((3, 1),)}
    assert seen == [5, 2, 0, 1], "trains go on as they were"


def test_what_arrived_before_the_start_counts_for_the_first_millisecond() -> None:
    made, (some, _) = recorder(start=NOW + MILLISECOND), feeds()
    made.hear(some)
    some[0].push(arriving([0.2, 1.2]))
    assert made.trace().arrivals["s"] == ((0, 2),)


def test_arrivals_need_room_like_everything_else() -> None:
    made, (some, seen) = recorder(start=NOW, most=3), feeds()
    made.hear(some)
    some[0].push(arriving([0, 1, 2, 2.5, 3]))
    assert made.trace().arrivals["s"] == ((0, 1), (1, 1), (2, 2))
    made.step(0, 0, NOW, NOW + 1, 1)  # does not fit: from now on nothing is kept
    some[0].push(arriving([0]))
    assert made.trace().arrivals["s"][0] == (0, 1)
    assert seen == [5, 1]


@pytest.mark.parametrize("engine", ["local", "sim"])
@pytest.mark.parametrize("policy", ["round-robin/superbox", "fifo/box/7"])
def test_a_trace_holds_its_network_and_what_came(tmp_path: Path, engine: str, policy: str) -> None:
    source = {"generate": {"rate": 5000, "count": 200, "fields": {"a": "i"}}}
    network = {
        "network": "n",
        "sources": {"s": {"schema": {"a": "int"}, "source": source}},
        "boxes": {
            "routes": {"op": "filter", "in": "s", "where": ["a % 4 = 0", "a % 4 = 1"]},
            "m": {"op": "map", "in": "routes.1", "select": "a"},
            "f": {"op": "filter", "in": "m", "where": "a % 8 = 0"},
        },
        "outputs": {"o": {"from": "f", "qos": {"latency": [[0, 1], [1, 0]]}}, "p": {"from": "routes.else"}},
    }
    result = hw.run(network, engine=engine, policy=policy, trace=True)
    trace = result.trace
    assert trace is not None
    assert trace.description is not None
    assert hw.load(trace.description) == hw.load(network)
    assert trace.flows == {"s": 200, "routes.1": 50, "routes.else": 100, "m": 50, "f": 25}
    assert sum(count for _, count in trace.arrivals["s"]) == 200
    assert max(moment for moment, _ in trace.arrivals["s"]) == pytest.approx(39, abs=5)
    trace.write(tmp_path / "run.json")
    assert read_trace(tmp_path / "run.json") == trace


def test_a_trace_of_an_older_version_has_no_network(tmp_path: Path) -> None:
    trace, path = recorded(), tmp_path / "run.json"
    old = trace.to_chrome()
    for key in ("description", "arrivals", "flows"):
        del old["otherData"][key]
    path.write_text(json.dumps(old))
    assert read_trace(path) == trace
    assert (trace.description, trace.arrivals, trace.flows) == (None, {}, {})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("description", "text"),
        ("arrivals", 7),
        ("arrivals", {"s": [[1]]}),
        ("flows", {"s": "many"}),
        ("flows", [1]),
        ("boxes", []),
        ("flows", {"s": -1}),
        ("arrivals", {"s": [[-1, 1]]}),
    ],
)
def test_a_network_that_somebody_damaged(tmp_path: Path, key: str, value: Any) -> None:
    damaged, path = recorded().to_chrome(), tmp_path / "run.json"
    damaged["otherData"][key] = value
    path.write_text(json.dumps(damaged))
    with pytest.raises(InputError, match="is not a trace"):
        read_trace(path)


def test_workers_may_tell_of_steps_at_once() -> None:
    made, many = recorder(start=0, most=1500), 500

    def work(worker: int) -> None:
        for at in range(many):
            made.step(worker, worker, at, at + 1, 1)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trace = made.trace()
    assert len(trace.steps) == 1500
    assert trace.left_out == 0


numbers = st.one_of(st.integers(-5, 5), st.floats(allow_nan=False))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
moments = st.integers(0, 10**15)
few = st.integers(0, 2)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    units = tuple(draw(st.lists(texts, min_size=1, max_size=4, unique=True)))
    boxes = tuple(draw(st.lists(texts, min_size=1, max_size=3)))
    start = draw(st.integers(0, 2 * 10**18))
    unit, box = st.integers(0, len(units) - 1), st.integers(0, len(boxes) - 1)
    steps = []
    for _ in range(draw(st.integers(0, 4))):
        names = tuple(draw(st.lists(texts, max_size=3, unique=True)))
        values = st.tuples(*[numbers] * len(names))
        reason = Reason(
            "p", draw(texts), names, draw(values), tuple(draw(st.lists(st.tuples(unit, values), max_size=3)))
        )
        begin = start + draw(moments)
        calls = [
            CallRecord(tuple(draw(st.lists(box, min_size=1, max_size=2))), begin, begin + draw(moments), 3, 4)
            for _ in range(draw(st.integers(0, 2)))
        ]
        end = begin + draw(moments)
        steps.append(
            StepRecord(draw(unit), draw(st.integers(0, 3)), begin, end, 5, tuple(calls), reason, draw(st.booleans()), 6)
        )
    counters = tuple([Queued(start + draw(moments), 1, 2) for _ in range(draw(st.integers(0, 2)))])
    kinds = st.sampled_from(["switch", "shed", "overload"])
    changes = tuple(
        [Change(start + draw(moments), draw(kinds), draw(texts), draw(texts), draw(texts)) for _ in range(draw(few))]
    )
    counts = st.dictionaries(texts, st.integers(0, 9), max_size=2)
    description = draw(st.none() | st.dictionaries(texts, texts | st.lists(few), max_size=2))
    pairs = st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 9)), max_size=3).map(tuple)
    told = description, draw(st.dictionaries(texts, pairs, max_size=2)), draw(counts)
    left_out = draw(st.integers(0, 9))
    return Trace(draw(texts), "p", units, boxes, start, tuple(steps), counters, left_out, changes, *told)


@settings(deadline=None)
@given(trace=traces())
def test_every_trace_comes_back(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("traces") / "run.json"
    trace.write(path)
    assert strict(path.read_text("utf-8")) == trace.to_chrome()
    assert read_trace(path) == trace


def test_numbers_that_json_does_not_have() -> None:
    for number in (math.inf, -math.inf, 0.0, 1, -2.5):
        assert chrome.from_json(strict(json.dumps(chrome.to_json(number)))) == number
    assert math.isnan(chrome.from_json(chrome.to_json(math.nan)))


def test_terms_that_are_no_numbers(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    recorded().write(path)
    whole = json.loads(path.read_text())
    step = next(event for event in whole["traceEvents"] if event.get("cat") == "step" and event["args"]["terms"])
    step["args"]["terms"] = {name: {} for name in step["args"]["terms"]}
    path.write_text("\ufeff" + json.dumps(whole))
    with pytest.raises(InputError, match=r"is not a trace .*TypeError: a number is expected, not {}"):
        read_trace(path)
