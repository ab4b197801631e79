"""Models for the simulator: mappings, files, and summaries of real runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import headway as hw
from headway.boxes.costs import Constant, Uniform, Zipf, parse_cost
from headway.clock import ManualClock
from headway.engines.models import Model, Overheads, model_of_summary, parse_model
from headway.errors import HeadwayError, RunError
from tests.engines.sim.networks import arriving, at_once, box, every, network, simulate

SUMMARY: dict[str, Any] = {
    "engine": "local",
    "boxes": {"b": {"cost_per_tuple": 2e-6, "cost_per_call": 1e-5}, "c": {"cost_per_tuple": 0, "cost_per_call": 0.25}},
    "time": {"scheduler": 0.5, "boxes": 9, "storage": 0.25},
    "plans": 100,
    "box_calls": 50,
}
"""What a model needs of a summary."""


def test_nothing_said() -> None:
    assert parse_model({}) == Model()
    assert Model().default == Constant(1e-6)
    assert Model().overheads == Overheads(0, 0, 0, 0)


def test_everything_said() -> None:
    model = parse_model(
        {
            "costs": {"b": "2ms", "c": {"uniform": ["1ms", "3ms"]}, "d": {"zipf": [2, 10, "10us"]}},
            "default": 0.5,
            "overheads": {"call": "1us", "scheduler": "2us", "preemption": "3us", "storage": "4us"},
            "seed": 7,
        }
    )
    assert model.costs == {"b": Constant(0.002), "c": Uniform(0.001, 0.003), "d": Zipf(2, 10, 1e-5)}
    assert model.default == Constant(0.5)
    assert model.overheads == Overheads(1e-6, 2e-6, 3e-6, 4e-6)
    assert model.seed == 7
    assert parse_model(model) is model


def test_a_model_may_follow_the_local_engine() -> None:
    model = parse_model({"like": "local", "overheads": {"round": "1us", "arrival": "2us", "wake": "3us"}})
    assert model.like == "local"
    assert model.overheads == Overheads(round=1e-6, arrival=2e-6, wake=3e-6)
    assert parse_model({"like": None}).like == ""


def test_rounds_of_a_run_share_what_sources_and_sinks_took() -> None:
    summary = {**SUMMARY, "time": {**SUMMARY["time"], "sources": 1.0, "sinks": 0.5}}
    assert model_of_summary(summary).overheads.round == pytest.approx(0.015)
    other = model_of_summary({**summary, "engine": "spark"})
    assert (other.like, other.overheads.round) == ("", 0)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ({"like": "spark"}, "^model: like: must be 'local', the only engine that can be followed, not 'spark'$"),
        ({"like": 7}, "^model: like: must be 'local'"),
        ({"overheads": {"wake": "1ms"}}, "^model: overheads: wake: needs 'like: local'"),
    ],
)
def test_what_cannot_be_followed(model: Any, expected: str) -> None:
    with pytest.raises(HeadwayError, match=expected):
        parse_model(model)


def test_a_file_may_be_yaml_or_json(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("costs: {b: 2ms}\n")
    (tmp_path / "m.json").write_text('{"costs": {"b": "2ms"}}')
    for path in (tmp_path / "m.yaml", str(tmp_path / "m.json")):
        assert parse_model(path) == Model({"b": Constant(0.002)})
    assert parse_model("m.yaml", tmp_path) == Model({"b": Constant(0.002)})


def test_a_summary_is_a_model(tmp_path: Path) -> None:
    model = Model(
        {"b": Constant(2e-6), "c": Constant(0)},
        {"b": 1e-5, "c": 0.25},
        overheads=Overheads(scheduler=0.005, storage=0.005),
        like="local",
    )
    assert model_of_summary(SUMMARY) == model
    (tmp_path / "run.json").write_text(json.dumps(SUMMARY))
    assert parse_model(tmp_path / "run.json") == model
    assert parse_model({"measured": "run.json"}, tmp_path) == model
    assert parse_model({"measured": SUMMARY}) == model


def test_what_is_said_counts_before_what_was_measured(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(SUMMARY))
    (tmp_path / "m.yaml").write_text(
        "measured: run.json\ncosts: {b: 1s}\noverheads: {call: 1us, storage: 0}\ndefault: 2s\n"
    )
    model = parse_model(tmp_path / "m.yaml")  # its paths count from its own folder
    assert model.costs == {"b": Constant(1), "c": Constant(0)}
    assert model.calls == {"c": 0.25}  # a cost that is said is the whole cost
    assert model.overheads == Overheads(call=1e-6, scheduler=0.005, storage=0)
    assert model.default == Constant(2)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (7, r"^model: must be a mapping or the path of a file, not 7$"),
        ({"cost": {}}, r"^model: unknown key 'cost'.*costs, default, learned, like, measured, overheads, seed$"),
        ({"costs": 3}, r"^model: costs: must be a mapping from boxes to costs, not 3"),
        ({"costs": {"b": "-1ms"}}, r"^model: costs: box 'b': must be zero or more"),
        ({"costs": {"b": {"normal": [1, 2]}}}, r"^model: costs: box 'b': unknown distribution 'normal'.*uniform.*zipf"),
        ({"default": "soon"}, r"^model: default: .*soon"),
        ({"overheads": 3}, r"^model: overheads: must be a mapping such as"),
        (
            {"overheads": {"calls": 1}},
            r"^model: overheads: unknown key 'calls'.*arrival, call, preemption, round, scheduler, storage, wake$",
        ),
        ({"overheads": {"call": "x"}}, r"^model: overheads: call: "),
        ({"seed": -1}, r"^model: seed: must be a whole number"),
        ({"seed": True}, r"^model: seed: must be a whole number"),
        ({"measured": {"boxes": {}}}, r"^model: measured: this is not the summary of a run \(KeyError: 'time'\)$"),
        ({"measured": [1]}, r"^model: measured: this is not the summary of a run"),
        ({**SUMMARY, "plans": "many"}, r"^model: measured: this is not the summary of a run \(TypeError"),
    ],
)
def test_what_is_wrong_is_said(value: object, message: str) -> None:
    with pytest.raises(HeadwayError, match=message):
        parse_model(value)


@pytest.mark.parametrize("cost", [-1, float("nan"), float("inf"), 1e9])
@pytest.mark.parametrize("name", ["cost_per_tuple", "cost_per_call"])
def test_a_measured_cost_that_cannot_be(name: str, cost: float) -> None:
    summary = {**SUMMARY, "boxes": {"b": {**SUMMARY["boxes"]["b"], name: cost}}}
    with pytest.raises(HeadwayError, match=r"^model: measured: box 'b': "):
        parse_model(summary)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), 10**400])
@pytest.mark.parametrize("name", ["scheduler", "storage"])
def test_measured_overheads_that_cannot_be(name: str, seconds: float) -> None:
    with pytest.raises(HeadwayError, match=r"^model: measured: "):
        parse_model({**SUMMARY, "time": {**SUMMARY["time"], name: seconds}})


@pytest.mark.parametrize("cost", [float("inf"), 10**400, "9" * 5000 + "s", {"zipf": [10**400, 5, "1us"]}])
def test_costs_without_end(cost: Any) -> None:
    with pytest.raises(HeadwayError, match=r"^model: default: "):
        parse_model({"default": cost})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.yaml", None, "cannot be read: No such file"),
        ("m.json", b"{", "m.json: Expecting property name"),
        ("m.json", b"[" * 100_000, "m.json: .*recursion"),
        ("m.yaml", b"default: !!timestamp x", "m.yaml: line 1: unknown tag '!!timestamp'"),
        ("m.yaml", b"costs: [", "m.yaml: "),
        ("m.yaml", b"\xff\xfe\x00", "cannot be read: not a text file in UTF-8"),
        ("m.yaml", b"just words", "m.yaml: must hold a mapping, not 'just words'"),
        ("m.yaml", b"m.yaml", "m.yaml: must hold a mapping, not 'm.yaml'"),
        ("m.yaml", b"measured: gone.json", "gone.json: cannot be read"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(HeadwayError, match=f"model: .*({message})"):
        parse_model(tmp_path / name)


# In runs

NETWORK = network({"b": box("s", "1ms"), "c": {"op": "map", "in": "b", "select": "a"}}, {"o": "c"}, s=every(5, 20))


def test_a_box_that_is_not_there() -> None:
    with pytest.raises(RunError, match=r"^model: costs: unknown box 'bb'.*'?b'?"):
        simulate(NETWORK, model={"costs": {"bb": "1ms"}})


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_models_are_for_the_simulator(engine: str) -> None:
    with pytest.raises(RunError, match=rf"^model is for the engine 'sim'; the engine of this run is '{engine}'$"):
        hw.run(NETWORK, engine=engine, model={})


def test_what_is_not_for_the_simulator() -> None:
    with pytest.raises(RunError, match=r"^policy 'threads' is for the engine 'local'.*'sim'$"):
        hw.run(NETWORK, engine="sim", policy="threads")
    with pytest.raises(RunError, match=r"^clock is not for the engine 'sim'"):
        simulate(NETWORK, clock=ManualClock())
    with pytest.raises(RunError, match=r"^state is for the engine 'spark'"):
        simulate(NETWORK, state="x")


def test_the_files_model_holds_unless_the_run_says_one(tmp_path: Path) -> None:
    (tmp_path / "model.yaml").write_text("costs: {b: 2ms, c: 0}\n")
    made = network({"b": box("s", "1ms"), "c": {"op": "map", "in": "b", "select": "a"}}, {"o": "c"}, s=at_once(1))
    path = tmp_path / "network.json"
    path.write_text(json.dumps({**made, "schedule": {"engine": "sim", "model": "model.yaml"}}))
    assert hw.run(path).summary["seconds"] == 0.002  # a path in a file counts from the file's folder
    assert hw.run(path, model={"costs": {"c": 0}}).summary["seconds"] == 0.001
    path.write_text(json.dumps({**made, "schedule": {"engine": "sim", "model": {"costs": {"b": "3ms", "c": 0}}}}))
    assert hw.run(path).summary["seconds"] == 0.003


@pytest.mark.alone
def test_a_real_run_is_the_model_of_a_simulated_one(tmp_path: Path) -> None:
    boxes = {"b": box("s", "20us"), "c": {"op": "map", "in": "b", "select": "a, a * 2 as d"}}
    made = network(boxes, {"o": "c"}, s=arriving(2000))
    # The quickest of some runs: others may use the processor, too.
    runs = [hw.run(made, engine="local", policy="round-robin/box/100") for _ in range(3)]
    real = min(runs, key=lambda run: float(run.summary["boxes"]["b"]["cost_per_tuple"]))
    path = tmp_path / "summary.json"
    path.write_text(json.dumps(real.summary))
    simulated = simulate(made, "round-robin/box/100", model=path)
    assert simulated.outputs["o"].equals(real.outputs["o"])
    for name in boxes:
        measured, told = real.summary["boxes"][name], simulated.summary["boxes"][name]
        assert told["cost_per_tuple"] == pytest.approx(measured["cost_per_tuple"])
        assert told["cost_per_call"] == pytest.approx(measured["cost_per_call"], abs=1e-9)
        # The last call only passes on the end of the input, at no cost.
        assert told["seconds"] == pytest.approx(
            measured["cost_per_tuple"] * 2000 + measured["cost_per_call"] * (told["calls"] - 1), abs=1e-6
        )
    assert simulated.summary["boxes"]["b"]["cost_per_tuple"] == pytest.approx(20e-6, rel=0.5)
    assert simulated.summary["time"]["scheduler"] > 0


def test_a_simulated_run_is_the_model_of_another() -> None:
    costs = {"costs": {"b": "2ms", "c": "1ms"}, "overheads": {"call": "3ms"}}
    first = simulate(NETWORK, model=costs).summary
    again = simulate(NETWORK, model=json.loads(json.dumps(first))).summary
    assert again["outputs"] == first["outputs"]
    assert again["seconds"] == first["seconds"]
    assert parse_cost("2ms").mean == again["boxes"]["b"]["cost_per_tuple"]
