"""The table of options: what reads it agrees with it, and policies and the like come as objects, too."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import headway as hw
from headway.adaptive.layer import Action, registered_adaptives
from headway.catalog import Topology
from headway.cli.run import COMMAND
from headway.columns import Floats
from headway.engines.runs import RunSettings
from headway.errors import NetworkError, PolicyError, RunError
from headway.options.kinds import KINDS
from headway.options.table import CALL, OPTIONS, SCHEDULE, RunOptions
from headway.runner import prepare
from headway.scheduling import Plan, Snapshot, Step
from headway.scheduling.policy import registered_policies
from headway.scheduling.schedule import PARTS
from headway.shedding.settings import ShedSettings
from headway.shedding.strategies import Demand, registered_strategies
from headway.totals import Totals
from tests.engines.local.networks import POSITIVE, network, rows

SMALL = network({"b": POSITIVE}, {"o": "b"})
PARSED = {"engine", "policy", "train", "wait", "functions", "trust"}
"""Options that stand in settings under another name, or are done with before the run."""


@dataclass(frozen=True)
class Last:
    """Serves the last of the ready units."""

    def start(self) -> None:
        return None

    def plan(self, snapshot: Snapshot, memory: None) -> tuple[Plan, None]:
        return Plan((Step(int(np.flatnonzero(snapshot.ready)[-1]), snapshot.train),)), None


@dataclass(frozen=True)
class Still:
    """Lets one policy do it all."""

    policies: tuple[str, ...] = ("fifo",)

    def start(self, topology: Topology, now: int) -> tuple[tuple[int, ...], None]:
        return (0,) * len(topology.outputs), None

    def next(self, memory: None) -> int:
        return 2**62

    def look(self, totals: Totals, memory: None) -> tuple[tuple[Action, ...], None]:
        return (), None

    def change(self, settings: Mapping[str, Any], memory: None) -> None:
        return None


@dataclass(frozen=True)
class Nothing:
    """Drops nothing."""

    def shares(self, demand: Demand, excess: float, most: Sequence[float]) -> Floats:
        return np.ones(len(demand.sites))


def test_settings_are_what_options_parse_to() -> None:
    named = {field.name for field in dataclasses.fields(RunSettings)}
    assert named - {"schedule"} == {option.name for option in CALL} - PARSED


def test_every_option_of_a_run_has_its_flag_in_the_command() -> None:
    flags = {option.name for option in COMMAND.flags}
    assert {option.name for option in OPTIONS.values() if option.flag} <= flags
    assert len({option.flag for option in COMMAND.flags}) == len(COMMAND.flags)


def test_a_schedule_says_what_the_table_lets_it_say() -> None:
    assert {option.name for option in SCHEDULE} == {option.name for option in OPTIONS.values() if option.key}
    assert set(PARTS) <= {option.name for option in SCHEDULE}
    assert all(option.kind in KINDS for option in OPTIONS.values())


def test_the_signature_names_every_option() -> None:
    parameters = inspect.signature(hw.run).parameters
    assert list(parameters) == ["network", "inputs", *RunOptions.__annotations__]
    assert parameters["trace"].default is False
    assert all(f"{name}: " in (hw.run.__doc__ or "") for name in RunOptions.__annotations__)


def test_an_unknown_option_names_the_choices() -> None:
    with pytest.raises(RunError, match=r"unknown option 'polcy'; did you mean 'policy'.*choices: .*workers"):
        hw.run(SMALL, {"s": rows(1)}, engine="local", polcy="fifo")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"workers": 0}, "workers is a whole number from 1 to 65536, not 0"),
        ({"workers": True}, "workers is a whole number"),
        ({"workers": 10**21}, "workers is a whole number from 1 to 65536"),
        ({"engine": ""}, "engine is a name, not ''"),
        ({"engine": ["local"]}, "engine is a name"),
        ({"strict": "off"}, "strict is True or False, not 'off'"),
        ({"trace": "run.json"}, "trace is True or False, not 'run.json'"),
        ({"clock": 5}, "clock is a clock, such as"),
        ({"functions": 5}, "functions is a headway.Functions"),
        ({"engine": "spark", "restart": 0}, "restart is a list of names"),
        ({"memory": 0.5}, "memory is a number of bytes above 0, not 0.5"),
        ({"half_life": float("nan")}, "half_life is a number of seconds above 0"),
        ({"keep": -1}, "keep is a number of seconds, 0 or more"),
        ({"tables": 3}, "tables is a mapping"),
        ({"control": object()}, "control is a headway.Control, not <object"),
        ({"engine": "spark", "cut": {"unit": "one"}}, "cut: unknown key 'unit'; did you mean 'units'"),
        ({"engine": "spark", "cut": {"shards": 0}}, "shards: must be a whole number"),
        ({"engine": "spark", "cut": "one"}, "cut is a mapping"),
        ({"restart": ["b"]}, "restart is for the engine 'spark'"),
    ],
)
def test_values_of_another_kind(given: dict[str, Any], message: str) -> None:
    with pytest.raises(RunError, match=message):
        hw.run(SMALL, {"s": rows(1)}, **{"engine": "local", **given})


def test_an_unknown_table_and_a_wait_of_nothing() -> None:
    with pytest.raises(hw.HeadwayError, match="unknown table 'typo'"):
        hw.run(SMALL, {"s": rows(1)}, engine="local", tables={"typo": [{"a": 1}]})
    with pytest.raises(PolicyError, match="wait"):
        hw.run(SMALL, {"s": rows(1)}, engine="local", wait=0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("policy", "object is not a policy .missing: start, plan"),
        ("shed", "shed: must be off, on, a strategy, or a mapping, not <object"),
        ("adaptive", "adaptive: must be a layer"),
    ],
)
def test_objects_that_are_none_of_the_kind(name: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        hw.run(SMALL, {"s": rows(1)}, engine="local", **{name: object()})  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ["local", "sim"])
@pytest.mark.parametrize("policy", [Last(), {"policy": Last(), "unit": "box", "train": 2}])
def test_a_policy_may_be_an_object(engine: str, policy: Any) -> None:
    before = registered_policies()
    result = hw.run(SMALL, {"s": rows(9)}, engine=engine, policy=policy)
    assert result.outputs["o"].num_rows == hw.run(SMALL, {"s": rows(9)}, engine=engine).outputs["o"].num_rows
    assert result.summary["policy"].startswith("Last/superbox" if isinstance(policy, Last) else "Last/box/2")
    assert registered_policies() == before


@pytest.mark.parametrize("engine", ["local", "sim"])
def test_a_layer_and_a_strategy_may_be_objects(engine: str) -> None:
    before = registered_adaptives(), registered_strategies()
    for shed in (Nothing(), {"by": Nothing(), "most": 0.5}, ShedSettings(own=Nothing(), strategy="Nothing")):
        summary = hw.run(SMALL, {"s": rows(9)}, engine=engine, adaptive=Still(), shed=shed).summary
        assert summary["adaptive"]["layer"] == "Still"
        assert summary["shedding"]["strategy"] == "Nothing"
    assert (registered_adaptives(), registered_strategies()) == before


def test_a_builder_takes_objects_and_a_file_cannot_hold_them() -> None:
    made = hw.Network("n", schedule={"policy": Last(), "adaptive": Still(), "engine": "local", "train": 3})
    made.source("s", "a int").output("o")
    built = made.build()
    hash(built)
    result = hw.run(built, {"s": [(1,), (2,)]}, adaptive="off", trace=True)
    assert result.summary["policy"].startswith("Last/")
    assert result.trace is not None
    assert result.trace.description is not None
    assert result.trace.description["schedule"]["policy"] == "Last"
    with pytest.raises(NetworkError, match="schedule: policy: Last values cannot be in a network"):
        hw.dump(built)


def test_what_is_prepared_could_run_twice() -> None:
    prepared = prepare(SMALL, {"s": rows(3)}, {"engine": "local", "policy": Last()})
    assert prepared.engine == "local"
    assert str(prepared.settings.schedule).startswith("Last/")
