"""Figure 11: the checks can fail, and the findings need their evidence."""

from __future__ import annotations

from typing import Any

import pytest

from headway_experiments.experiment import DIFFERS, FAILED, find, judge
from headway_experiments.rows import Rows
from headway_experiments.scheduling.figure11 import (
    BEYOND,
    FULL,
    QOS,
    TOP,
    TURNS,
    check,
    tasks,
    tight_outputs,
    utility_of,
)
from headway_experiments.scheduling.loads import chains

Key = tuple[str, float, str]
PAPER: dict[Key, tuple[float, float]] = {
    ("single", 0.4, QOS): (0.95, 0.9),
    ("single", 0.4, TURNS): (0.75, 0.6),
    ("single", FULL, QOS): (0.9, 0.8),
    ("single", FULL, TURNS): (0.7, 0.4),
    ("single", TOP, QOS): (0.4, 0.6),
    ("single", TOP, TURNS): (0.2, 0.1),
    ("single", BEYOND, QOS): (0.2, 0.2),
    ("single", BEYOND, TURNS): (0.1, 0.1),
    ("groups", 0.3, QOS): (0.9, 0.8),
    ("groups", 0.3, TURNS): (0.7, 0.4),
    ("groups", FULL, QOS): (0.9, 0.8),
    ("groups", FULL, TURNS): (0.7, 0.4),
}
"""By arrivals, load and policy: mean utility, and that of the tight applications; as in the paper."""
OURS = {**PAPER, ("single", 0.4, QOS): (0.999, 0.999), ("single", 0.4, TURNS): (0.99, 0.98)}


def made(values: dict[Key, tuple[float, float]]) -> Rows:
    return Rows(
        {"arrivals": arrivals, "load": load, "policy": policy, "seed": seed, "utility": utility, "tight": tight}
        for (arrivals, load, policy), (utility, tight) in values.items()
        for seed in (1, 2)
    )


def wrong(values: dict[Key, tuple[float, float]]) -> set[str]:
    return {one.key for one in check(made(values)) if not one.holds}


def verdict(values: dict[Key, tuple[float, float]]) -> str:
    return judge(find("scheduling-fig11"), check(made(values)))


def test_rows_as_the_paper_has_them_contradict_only_our_finding() -> None:
    assert wrong(PAPER) == {"nothing-to-win"}
    assert verdict(PAPER) == FAILED  # what the document says would then be wrong


def test_what_we_found_is_explained() -> None:
    assert wrong(OURS) == {"significant", "stable"}
    assert verdict(OURS) == DIFFERS


@pytest.mark.parametrize(
    ("changed", "keys"),
    [
        ({("single", FULL, QOS): (0.69, 0.8)}, {"above", "stable", "significant"}),
        ({("single", TOP, TURNS): (0.39, 0.1)}, {"both-fall", "overload-significant"}),
        ({("single", BEYOND, QOS): (0.6, 0.6)}, {"both-fall-later"}),
        ({("single", TOP, QOS): (0.4, 0.4)}, {"tight-kept"}),
        ({("groups", 0.3, QOS): (0.75, 0.8)}, {"groups-significant", "groups-stable"}),
    ],
)
def test_a_claim_that_is_contradicted_fails(changed: dict[Key, tuple[float, float]], keys: set[str]) -> None:
    assert wrong({**OURS, **changed}) >= keys


def test_chance_decides_far_beyond_the_figure() -> None:
    chance = {**OURS, ("single", BEYOND, QOS): (0.09, 0.1)}
    assert wrong(chance) == {"above", "significant", "stable"}
    assert verdict(chance) == DIFFERS
    assert verdict({**chance, ("single", TOP, QOS): (0.19, 0.6)}) == FAILED


def test_a_finding_without_its_evidence_explains_nothing() -> None:
    assert verdict({**OURS, ("groups", 0.3, QOS): (0.75, 0.8)}) == FAILED


def test_tight_outputs_and_their_utility() -> None:
    network = chains(20, 5, 0.5, 20, seed=1).network
    tight = tight_outputs(network)
    assert 0 < len(tight) < 20
    outputs: dict[str, Any] = {"a": {"tuples": 3, "utility": 1.0}, "b": {"tuples": 1, "utility": 0.0}}
    assert utility_of({"outputs": outputs}, ["a", "b"]) == 0.75
    assert utility_of({"outputs": {"c": {"tuples": 0, "utility": None}}}, ["c"]) == 1.0


@pytest.mark.parametrize("quick", [True, False])
def test_all_checks_find_their_rows(quick: bool) -> None:
    check(Rows({**task, "utility": 0.5, "tight": 0.5} for task in tasks(quick)))
