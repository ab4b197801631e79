"""What an experiment may be called, and how it is judged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway.errors import HeadwayError
from headway_experiments.checks import Check, given
from headway_experiments.experiment import CONFIRMED, DIFFERS, FAILED, REGISTRY, UNCERTAIN, Finding, admit, find, judge
from tests.experiments.toys import GOOD, TOY, registered


def _checks(**holds: bool) -> list[Check]:
    return [Check(key, f"{key} is so", held, "1 ± 0") for key, held in holds.items()]


def test_names_and_aliases() -> None:
    with registered(TOY, GOOD):
        assert find("prb-toy1") is find("prb-toy2") is TOY
        assert list(REGISTRY) == ["prb-toy1", "aurora-toy"]
        with pytest.raises(HeadwayError, match=r"unknown experiment 'prb-toy'; did you mean .*aurora-toy, prb-toy1"):
            find("prb-toy")
    assert "prb-toy1" not in REGISTRY


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (replace(TOY, aliases=()), "two experiments are called 'prb-toy1'"),
        (replace(TOY, name="prb-toy2", aliases=()), "two experiments are called 'prb-toy2'"),
        (replace(TOY, name="new", aliases=("prb-toy1",)), "two experiments are called 'prb-toy1'"),
        (replace(TOY, name="new", aliases=(), paper="nobody"), "unknown paper or engine"),
        (replace(TOY, name="new", aliases=(), engine="abacus"), "unknown paper or engine"),
        (replace(TOY, name="new", aliases=(), findings=(Finding("far", "so", ()),)), "'far' has no evidence"),
    ],
)
def test_what_contradicts_itself_or_another(other: object, message: str) -> None:
    with registered(TOY), pytest.raises(ValueError, match=message):
        admit(other)  # type: ignore[arg-type]


def test_verdicts() -> None:
    assert judge(TOY, _checks(slower=True, far=True, twice=True)) == CONFIRMED
    assert judge(TOY, _checks(slower=True, far=False, twice=True)) == DIFFERS
    assert judge(TOY, _checks(slower=True, far=False, twice=False)) == FAILED  # the evidence does not hold
    assert judge(TOY, _checks(slower=False, far=False, twice=True)) == FAILED  # nothing explains the first
    assert judge(TOY, _checks(slower=True, far=True, twice=False)) == FAILED  # evidence is a check like others


def test_what_holds_only_in_the_mean_confirms_nothing() -> None:
    slower, far, twice = _checks(slower=True, far=True, twice=True)
    unsure = replace(slower, certain=False)
    assert judge(TOY, [unsure, far, twice]) == UNCERTAIN
    assert judge(TOY, [given(unsure), far, twice]) == CONFIRMED  # what cannot fail is not in question
    assert judge(TOY, [unsure, replace(far, holds=False), twice]) == DIFFERS
    assert judge(TOY, [replace(unsure, holds=False), far, twice]) == FAILED


def test_what_cannot_fail_explains_nothing() -> None:
    slower, far, twice = _checks(slower=True, far=False, twice=True)
    with pytest.raises(ValueError, match="'far' has no evidence that could fail"):
        judge(TOY, [slower, far, given(twice)])


def test_findings_name_checks() -> None:
    with pytest.raises(ValueError, match="'twice', which there is not"):
        judge(TOY, _checks(slower=True, far=False))
    with pytest.raises(ValueError, match="'far', which there is not"):
        judge(TOY, _checks(slower=True, twice=True))
