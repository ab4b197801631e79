"""The quick form of every experiment: each claim holds, or what explains it does."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import headway_experiments.catalogue  # noqa: F401  (it registers them)
from headway_experiments.disturbance import MOST
from headway_experiments.experiment import FAILED, REGISTRY, Experiment
from headway_experiments.page import cell, section
from headway_experiments.results import verdict_text, write_results
from headway_experiments.running import carry_out

PAGE = Path(__file__).parents[2] / "docs" / "experiments.md"
ALL = pytest.mark.parametrize("experiment", REGISTRY.values(), ids=REGISTRY)
LONG = (
    *("amos-fig2", "amos-fig5", "amos-fig7", "amos-fig9", "mavstream-fig7", "mavstream-fig9"),
    *("prb-fig3", "prb-fig7", "prb-fig9", "prb-fig11", "prb-fig12"),
    *("aurora-fig7", "scheduling-fig3", "scheduling-fig5"),
    *("scheduling-fig6", "scheduling-fig8", "scheduling-fig9", "scheduling-fig11", "scheduling-fig13"),
)
"""Those that take long even in their quick form, beside others of their paper that are like them."""


def _marks(one: Experiment) -> list[pytest.MarkDecorator]:
    """Real time is measured alone; what takes minutes is for `make test-all`."""
    alone = [pytest.mark.alone] if one.engine != "sim" else []
    return [*alone, pytest.mark.slow] if one.engine == "spark" or one.name in LONG else alone


QUICK = pytest.mark.parametrize(
    "experiment", [pytest.param(one, marks=_marks(one)) for one in REGISTRY.values()], ids=REGISTRY
)


TRIES = 3
"""How often an experiment in real time is made until no check fails: its quick form has one repetition."""


@QUICK
def test_claims(experiment: Experiment, tmp_path: Path) -> None:
    outcome = carry_out(experiment, quick=True)
    for _ in range(1, TRIES if experiment.engine != "sim" else 1):
        if outcome.verdict == FAILED:
            outcome = carry_out(experiment, quick=True)
    verdict = write_results(outcome, tmp_path)
    if outcome.verdict == FAILED and outcome.stolen > MOST:
        pytest.skip(
            f"{experiment.name} is not judged: other machines took {outcome.stolen:.0%} of the processors' time"
        )
    assert outcome.verdict != FAILED, "\n" + verdict_text(verdict)
    for kind in ("png", "svg"):
        assert (tmp_path / f"{experiment.name}.{kind}").stat().st_size > 1000
    if PAGE.exists():  # made from the full form, which has the same checks
        text = section(PAGE.read_text("utf-8"), experiment.name)
        assert text is not None, "run make experiments"
        for check in outcome.checks:
            row = f"| `{check.key}` | {cell(check.claim)} |"
            assert row in text, f"docs/experiments.md has no line {row}: run make experiments"


@ALL
def test_other_processes_find_it(experiment: Experiment) -> None:
    """Its runs can be handed to another process: plain tasks, and a function at the top of a module."""
    for quick in (True, False):
        tasks = list(experiment.tasks(quick))
        assert tasks
        assert pickle.loads(pickle.dumps(tasks)) == tasks
    assert pickle.loads(pickle.dumps(experiment.measure)) == experiment.measure
