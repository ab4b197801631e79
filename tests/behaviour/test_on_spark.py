"""The behaviour suite on real Spark: all its tests, gathered into few runs (see `gathering`).

Tests with examples run as they are; property tests run on a few streams and networks drawn from a fixed seed. What
they can find with thousands of them, the engine 'sharded' finds faster, with the same code and without Spark.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import headway.engines.spark.entry  # noqa: F401  (it registers the engine)
from headway.engines.runs import make_engine, register_engine
from tests.behaviour.gathering import Gathering
from tests.searching import THOROUGH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEFT_OUT = ("test_on_spark", "test_timeout", "test_timeout_on_spark")
"""Timeouts need a clock of their own: their like for Spark is in test_timeout_on_spark."""
MODULES = tuple(
    import_module(f"tests.behaviour.{path.stem}")
    for path in sorted(Path(__file__).parent.glob("test_*.py"))
    if path.stem not in LEFT_OUT
)
APART = {
    "test_pairs_do_not_depend_on_the_interleaving": "it draws while it runs",
    "test_a_list_of_too_many_values": "it changes a limit, in its own process only",
}
DRAWN = 1
DRAWN_OF = {"test_random_networks": 10}
"""How many examples of a property are tried in one run of all; DRAWN where nothing is said."""
RUNS = 10 if THOROUGH else 1
"""How often all tests run in each way, with other streams and networks each time."""
WAYS: Mapping[str, tuple[int, Mapping[str, Any], int]] = {
    "spread": (1, {"spread": "auto"}, 1),
    "together": (2, {"spread": "none", "shards": 3}, 2),
}
"""The first seed, how the networks are cut, and into how many units their outputs go."""


def _functions() -> Iterator[tuple[str, Callable[..., object]]]:
    for module in MODULES:
        for name, function in vars(module).items():
            if name.startswith("test_") and callable(function) and name not in APART:
                yield f"{_short(module)}:{name}", function


def _short(module: ModuleType) -> str:
    return module.__name__.rpartition("test_")[2]


def _parameters(function: Callable[..., object]) -> Iterator[dict[str, Any]]:
    """Return what pytest would run a function with, fixtures left out."""
    choices: list[list[dict[str, Any]]] = []
    for mark in getattr(function, "pytestmark", ()):
        if mark.name == "parametrize":
            names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
            choices.append([dict(zip(names, one if len(names) > 1 else [one], strict=True)) for one in mark.args[1]])
    for chosen in itertools.product(*choices):
        yield {name: value for part in chosen for name, value in part.items()}


def _draws(function: Callable[..., object], count: int, number: int) -> Sequence[dict[str, Any]]:
    """Return arguments that hypothesis would draw for a property."""
    found: list[dict[str, Any]] = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.fixed_dictionaries(function.hypothesis._given_kwargs))  # type: ignore[attr-defined]
    def collect(drawn: dict[str, Any]) -> None:
        found.append(drawn)

    collect()
    return found


def _tests(number: int, fixtures: Mapping[str, Any]) -> Iterator[tuple[str, Callable[[], object]]]:
    for name, function in _functions():
        count = DRAWN_OF.get(function.__name__, DRAWN)
        inner = function.hypothesis.inner_test if hasattr(function, "hypothesis") else function
        wanted = {name: value for name, value in fixtures.items() if name in signature(inner).parameters}
        for at, chosen in enumerate(_parameters(function)):
            drawn = [{}] if inner is function else _draws(function, count, number * 1000 + at)
            for one, arguments in enumerate(drawn):
                yield f"{name} {at} {one}", partial(inner, **wanted, **chosen, **arguments)


Raised = Mapping[str, BaseException | None]


def _ways() -> Iterator[pytest.ParameterSet]:
    for way in WAYS:
        for at in range(RUNS):
            marks = [] if way == "spread" and at == 0 else [pytest.mark.slow]
            yield pytest.param((way, at), marks=marks, id=f"{way}-{at}" if at else way)


@pytest.fixture(scope="module", params=_ways())
def raised(request: pytest.FixtureRequest, spark: SparkSession, table: Any) -> Raised:
    """What every test raised when all of them ran on Spark."""
    way, at = request.param
    number, cut, groups = WAYS[way]
    number += at * len(WAYS)
    gathering = Gathering(make_engine("spark"), number, cut, groups)
    register_engine("gathered", lambda: gathering)
    found = gathering.carry_out(dict(_tests(number, {"engine": "gathered", "table": table})))
    assert gathering.rounds[0] > 120, "most tests take part in the first round"
    assert gathering.batches > 2 * len(gathering.rounds), "rounds are cut into micro-batches"
    return found


@pytest.mark.parametrize("name", [name for name, _ in _functions()])
def test_the_same_on_spark(name: str, raised: Raised) -> None:
    mine = {case: error for case, error in raised.items() if case.startswith(f"{name} ")}
    assert mine
    for error in mine.values():
        if error is not None:
            raise error


def test_every_test_of_the_suite_takes_part() -> None:
    own = {path.stem for path in Path(__file__).parent.glob("test_*.py")}
    assert own - {module.__name__.rpartition(".")[2] for module in MODULES} == {
        "test_timeout",
        "test_timeout_on_spark",
        "test_on_spark",
    }
