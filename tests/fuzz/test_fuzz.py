"""The quick form of the fuzzer, its long form, and that it can fail."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from random import Random

import pytest

from headway.connectors import jsonl
from headway.errors import HeadwayError
from tests.fuzz.judging import Case, expect, judge
from tests.fuzz.kinds import KINDS
from tests.fuzz.runner import plan, run

QUICK, LONG = 300, 100_000
SEED = 15


def test_some_cases() -> None:
    _try(QUICK)


@pytest.mark.slow
def test_many_cases() -> None:
    _try(LONG)


def _try(cases: int) -> None:
    findings = run(plan(cases, SEED), os.cpu_count() or 1, lambda text: print(text, file=sys.stderr, flush=True))
    assert not findings, "\n\n".join(map(str, findings))


def test_a_plan_has_every_kind_and_is_the_same_again() -> None:
    assert {case.kind for case in plan(QUICK, SEED)} == set(KINDS)
    assert plan(50, 3) == plan(50, 3)
    assert plan(50, 3) != plan(50, 4)
    assert {case.kind for case in plan(50, 3, ["csv", "trace"])} == {"csv", "trace"}
    assert all(Case.parse(str(case)) == case for case in plan(50, 3))


def _verdict(make: object) -> tuple[str, str] | None:
    return judge(Case("x", 1, 1), make)  # type: ignore[arg-type]


def test_what_is_a_finding() -> None:
    def well(random: Random, size: int, folder: Path) -> None:
        raise HeadwayError("something to mend" * 10_000)

    def traceback(random: Random, size: int, folder: Path) -> None:
        raise KeyError("x")

    def lost(random: Random, size: int, folder: Path) -> None:
        expect(False, "a good row is lost")

    def ignored(random: Random, size: int, folder: Path) -> None:
        class Sulky:
            def __del__(self) -> None:
                raise ValueError("nobody hears this")

        sulky = Sulky()
        del sulky

    assert _verdict(well) is None
    assert (_verdict(traceback) or ("", ""))[0].startswith("KeyError")
    assert (_verdict(lost) or ("", ""))[0] == "wrong a good row is lost"
    assert _verdict(ignored) is not None


def test_an_old_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte-order mark cost the first row of JSON lines."""
    monkeypatch.setattr(jsonl, "check_encoding", lambda data, who, place: data)
    found = [judge(Case("jsonl", seed, 2), KINDS["jsonl"][0]) for seed in range(20)]
    assert any(one is not None and one[0].startswith("wrong a good row is lost") for one in found)


def test_a_worker_that_hangs_or_dies_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their process is told by a kind that is only there for this."""
    monkeypatch.setattr("tests.fuzz.runner.SECONDS", 1)
    monkeypatch.setattr("tests.fuzz.runner.GRACE", 1)
    findings = run([Case("crash", 1, 1), Case("sleep", 1, 1)], 1)
    assert [finding.place.split(",")[0] for finding in findings] == ["died -11", "hang -9"]
    assert str(findings[0]).startswith("python -m tests.fuzz crash:1:1")
