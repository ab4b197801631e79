"""Recorded runs as networks of universal boxes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headway as hw
from headway.boxes.universal import Universal
from headway.clock import MILLISECOND, SECOND
from headway.compare.predicting import Line
from headway.compare.replaying import Replay, line_through, phases, replay
from headway.engines.models import LOCAL
from headway.engines.traces import CallRecord, StepRecord, Trace, read_trace
from headway.errors import InputError
from tests.engines.sim.networks import arriving, box, network
from tests.test_points import LIVING


def made(spans: list[list[float]]) -> list[int]:
    """Return in which milliseconds the tuples of such phases come."""
    source = arriving(None, phases=spans)
    mapping = network({"b": box("s")}, {"o": "b"}, s=source)
    result = hw.run(mapping, engine="sim", policy="round-robin/box/1", trace=True)
    assert result.trace is not None
    return [moment for moment, count in result.trace.arrivals["s"] for _ in range(count)]


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        ([(0, 1)], [[0.001, 1000]]),
        ([(0, 2), (1, 2), (2, 2)], [[0.003, 2000]]),
        ([(3, 1), (5, 4)], [[0.003, 0], [0.001, 1000], [0.001, 0], [0.001, 4000]]),
    ],
)
def test_arrivals_as_phases(arrivals: list[tuple[int, int]], expected: list[list[float]]) -> None:
    assert phases(arrivals) == expected
    assert made(phases(arrivals)) == [moment for moment, count in arrivals for _ in range(count)]


def test_a_long_recording_is_read_in_larger_steps() -> None:
    arrivals = [(at, at % 3 + 1) for at in range(1000)]
    spans = phases(arrivals, 100)
    assert len(spans) <= 100
    assert sum(span * rate for span, rate in spans) == pytest.approx(sum(count for _, count in arrivals))
    assert sum(span for span, _ in spans) == pytest.approx(1.008)  # steps of 16 ms


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([(1, 3), (2, 4), (5, 7)], Line(2, 1)),
        ([(4, 8), (4, 8)], Line(0, 2)),  # of trains alike all is by tuple
        ([(1, 9), (9, 1)], Line(5, 0)),  # longer trains are no cheaper
        ([(0, 1), (0, 3)], Line(2, 0)),
        ([(1, 0.5), (3, 9.5)], Line(0, 2.5)),
    ],
)
def test_the_line_through_calls(points: list[tuple[float, float]], expected: Line) -> None:
    assert line_through(points) == pytest.approx(expected)


ROUTES: dict[str, Any] = {
    "network": "routes",
    "sources": {"s": {"schema": {"a": "bigint"}}, "r": {"schema": {"a": "bigint"}}},
    "boxes": {
        "split": {"op": "filter", "in": "s", "where": ["a % 4 = 0", "a % 4 = 1"]},
        "m": {"op": "map", "in": "split.1", "select": "a"},
        "n": {"op": "filter", "in": "m", "where": "a % 8 = 0"},
        "u": {"op": "union", "in": ["split.2", "r"]},
        "w": {"op": "aggregate", "in": "u", "select": "count(*) as n", "order": {"on": "a"}, "size": 10},
        "j": {"op": "join", "in": ["n", {"table": "t"}], "on": "left.a = right.a", "select": "left.a as a"},
    },
    "outputs": {
        "o": {
            "from": "n",
            "qos": {
                "latency": [[0, 1], [1, 0]],
                "loss": [[100, 1], [0, 0]],
                "value": {"field": "a", "graph": [[0, 0], [9, 1]]},
            },
        },
        "rest": {"from": "split.else"},
        "windows": {"from": "w"},
        "joined": {"from": "j", "sink": "joined.csv"},
    },
    "schedule": {"engine": "sim", "policy": "qos", "train": 7, "shed": "off", "model": {"default": "1us"}},
}


def recorded(policy: str = "round-robin/superbox", engine: str = "sim", **more: Any) -> Trace:
    inputs = {"s": [{"a": at} for at in range(400)], "r": [{"a": at} for at in range(100)]}
    settings: dict[str, Any] = {
        "engine": engine,
        "policy": policy,
        "rates": {"s": 1000, "r": 250},
        "trace": True,
        **more,
    }
    if engine == "sim":
        settings["model"] = {"costs": {"split": "100us", "m": "50us"}, "default": "10us"}
    tables, nowhere = {"t": pa.table({"a": range(0, 400, 16)})}, dict.fromkeys(ROUTES["outputs"])
    result = hw.run(ROUTES, inputs, tables=tables, outputs=nowhere, **settings)
    assert result.trace is not None
    return result.trace


@pytest.mark.parametrize("engine", ["sim", "local"])
@pytest.mark.parametrize("policy", ["round-robin/superbox", "fifo/box/10"])
def test_tuples_flow_as_they_did(policy: str, engine: str, tmp_path: Path) -> None:
    recorded(policy, engine).write(tmp_path / "run.json")
    trace = read_trace(tmp_path / "run.json")
    again = replay(trace)
    summary = hw.run(again.network, engine="sim", policy=policy, model=again.model).summary
    boxes, outputs = summary["boxes"], summary["outputs"]
    assert set(boxes) == {"split-1", "split-2", "split-else", "m", "n", "u", "w", "j"}
    assert [boxes[name]["tuples_in"] for name in ("split-1", "split-2", "m", "n", "u", "w")] == [
        *(400, 400, 100, 100, 200, 200)
    ]
    assert {name: one["tuples"] for name, one in outputs.items()} == pytest.approx(
        {"o": 50, "rest": 200, "windows": trace.flows["w"], "joined": 25}, abs=1
    )
    assert again.seconds == pytest.approx(0.4, abs=0.05)


def cost(again: Replay, name: str) -> float:
    spec = again.network.box(name).spec
    assert isinstance(spec, Universal)
    return spec.cost.mean


def test_costs_come_from_the_recording() -> None:
    again = replay(recorded("round-robin/box/10"))
    for name in ("split-1", "split-2", "split-else"):
        assert cost(again, name) == pytest.approx(100e-6 / 3, rel=0.01)
    assert cost(again, "m") == pytest.approx(50e-6, rel=0.01)
    assert again.model.calls["m"] == pytest.approx(0, abs=1e-6)
    assert again.model.like == LOCAL


def test_what_is_kept_of_the_network() -> None:
    again = replay(recorded())
    mapping = again.network.to_mapping()
    assert mapping["network"] == "routes"
    assert mapping["schedule"] == {"train": 7, "shed": "off", "workers": 1}
    assert mapping["outputs"]["o"]["qos"] == {"latency": [[0, 1], [1, 0]], "loss": [[100, 1], [0, 0]]}
    assert mapping["outputs"]["joined"] == {"from": "j"}
    assert mapping["boxes"]["j"]["in"] == "n"
    assert again.notes == (
        "'w': a recording holds no data, so the time that tuples wait there for others is not in the latencies",
        "value graphs are left out: a recording holds no values",
    )


def call(boxes: tuple[int, ...], begin: int, end: int, many: int, out: int) -> CallRecord:
    return CallRecord(boxes, begin * MILLISECOND, end * MILLISECOND, many, out)


def test_boxes_that_were_called_as_one_share_the_time() -> None:
    trace = recorded()
    at = {name: trace.boxes.index(name) for name in ("m", "n")}
    reason = trace.steps[0].reason
    calls = (call((at["m"], at["n"]), 10, 30, 10, 5), call((at["m"], at["n"]), 30, 70, 20, 10))
    steps = (StepRecord(0, 0, 0, 90 * MILLISECOND, 30, calls, reason, False, 1),)
    again = replay(replace(trace, steps=steps))
    # As many tuples come to 'n' as to 'm', so each has half of 2 ms a tuple.
    assert (cost(again, "m"), cost(again, "n")) == pytest.approx((0.001, 0.001))
    assert again.model.overheads.storage == pytest.approx(0.030 / 2)  # 90 ms, of which 60 in two calls


def test_a_recording_that_was_full_counts_as_far_as_it_goes() -> None:
    trace = recorded("fifo/box/1")
    early = tuple(step for step in trace.steps if step.end - trace.start < SECOND // 10)
    again = replay(replace(trace, steps=early, left_out=5))
    assert 0.05 < again.seconds <= 0.1
    assert again.notes[0] == "the recording was full before the run ended: only its beginning is compared"
    summary = hw.run(again.network, engine="sim", policy="fifo/box", model=again.model).summary
    assert summary["sources"]["s"]["tuples"] <= 101


def test_a_source_from_which_nothing_came() -> None:
    trace = recorded()
    again = replay(replace(trace, arrivals={"s": trace.arrivals["s"], "r": ()}))
    assert hw.run(again.network, engine="sim", model=again.model).summary["sources"]["r"]["tuples"] == 0


def test_several_workers_stay_several() -> None:
    again = replay(recorded("round-robin/box/1", workers=2))
    assert again.network.to_mapping()["schedule"]["workers"] == 2


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"description": None}, "does not hold the network.*older version or Spark.*--trace"),
        ({"arrivals": {}}, "does not hold the network"),
        ({"flows": {}}, "does not hold the network"),
        ({"steps": ()}, "holds no box calls.*record it again"),
        ({"boxes": ("stranger",) * 9}, "its network has no box 'stranger', which was called.*record it again"),
    ],
)
def test_recordings_that_do_not_tell_enough(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        replay(replace(recorded(), **change), "'run.json'")


def test_names_that_are_taken() -> None:
    mapping = {
        "network": "n",
        "sources": {"s": {"schema": {"a": "bigint"}}},
        "boxes": {
            "f": {"op": "filter", "in": "s", "where": ["a > 1", "a > 0"]},
            "f-1": {"op": "filter", "in": "f.2", "where": "a > 0"},
        },
        "outputs": {"o": {"from": "f.1"}, "p": {"from": "f-1"}},
    }
    result = hw.run(mapping, {"s": [{"a": at} for at in range(4)]}, engine="sim", trace=True)
    assert result.trace is not None
    boxes = replay(result.trace).network.to_mapping()["boxes"]
    assert set(boxes) == {"f-1-", "f-2", "f-1"}
    assert boxes["f-1"]["in"] == "f-2"


def test_points_and_views_are_replayed(tmp_path: Path) -> None:
    """A view is an output, and stored data that was streamed in is a source."""
    (tmp_path / "sectors.txt").write_text("sid,name\n1,north\n2,south\n")
    path = tmp_path / "border.yaml"
    path.write_text(LIVING)
    rows = [{"sid": at % 3, "time": at * 30, "pos": at * 10} for at in range(90)]
    trace = hw.run(path, {"positions": rows}, engine="local", trace=True).trace
    assert trace is not None
    again = replay(trace)
    assert [source.name for source in again.network.sources] == ["positions", "sectors"]
    assert {output.name: output.input for output in again.network.outputs} == {
        "alarms": "counts",
        "named": "named",
        "once": "once",
        "busy": "counts",
    }
    assert again.network.output("busy").qos.latency is not None
