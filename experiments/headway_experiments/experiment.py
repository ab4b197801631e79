"""What an experiment is: frozen data and pure functions, apart from what carries it out (`running`).

An experiment is a list of tasks, each the setting of one run; `measure` carries out one task and returns its rows;
`check` judges all rows; `draw` plots them. Tasks are independent, so that they can run in any order and side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from headway.errors import HeadwayError, unknown
from headway_experiments.checks import Check
from headway_experiments.rows import Row, Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Task = Mapping[str, Any]
"""The setting of one run: plain values, which another process can be given."""

ENGINES = ("sim", "local", "spark")


@dataclass(frozen=True, slots=True)
class Paper:
    """Where experiments come from, and what its file `claims.yaml` says of each of them."""

    key: str
    """The first part of the experiments' names, and the folder in which they stand."""
    title: str
    where: str
    """Authors, conference and year."""
    claims: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, compare=False)
    """By experiment: figures, title, claim, setting, what we chose, and findings."""


def _read_paper(key: str) -> Paper:
    told = yaml.safe_load((Path(__file__).parent / key / "claims.yaml").read_text("utf-8"))
    return Paper(key, told["title"], told["where"], told["experiments"])


PAPERS = {key: _read_paper(key) for key in ("scheduling", "aurora", "prb", "mavstream", "amos")}


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a claim of the paper does not hold here, looked into."""

    check: str
    """The key of the check that does not hold."""
    reason: str
    """What we found instead and why, in a few sentences."""
    shown_by: tuple[str, ...]
    """Keys of checks, of the same experiment, that hold and are the evidence: under which other condition the claim
    holds, or what causes the difference. At least one."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment of a paper."""

    name: str
    """Such as `prb-fig3`: the paper's key, and the (first) figure or table."""
    paper: str
    """A key of PAPERS."""
    figures: tuple[str, ...]
    """Which figures or tables it reproduces, such as ("figure 3", "figure 4")."""
    title: str
    """A few words: what is compared over what."""
    claim: str
    """What the paper says, in our own words, in one or two sentences."""
    setting: tuple[str, ...]
    """Sentences: the setting as the paper gives it."""
    chosen: tuple[str, ...]
    """Sentences: what the paper leaves open, what we took, and what we varied."""
    engine: str
    """What carries out its runs: one of ENGINES. Only `sim` may run side by side with others."""
    tasks: Callable[[bool], Sequence[Task]]
    """All runs; given True, those of the quick form, which takes some seconds."""
    measure: Callable[[Task], Sequence[Row]]
    """Carry out one run. A function at the top of a module, so that another process finds it."""
    check: Callable[[Rows], Sequence[Check]]
    """Judge all rows; the same checks with the same bounds for the quick form."""
    draw: Callable[[Rows, Figure], None]
    """Plot all rows, with labelled axes."""
    size: tuple[float, float] = (6.4, 4.0)
    """Of the plot, in inches."""
    label: str = ""
    """What a reader must know before the verdict counts for more than it is: what is modelled, what cannot fail."""
    findings: tuple[Finding, ...] = ()
    aliases: tuple[str, ...] = ()
    """Other names: those of its other figures."""
    notes: Callable[[Rows], str] | None = field(default=None)
    """What else the rows tell, as Markdown, if anything."""


REGISTRY: dict[str, Experiment] = {}


def register(name: str, **carried_out: Any) -> Experiment:
    """Make an experiment known: its prose is read from its paper's file, the functions that carry it out are given."""
    paper = PAPERS[name.partition("-")[0]]
    told = dict(paper.claims[name])
    findings = tuple(
        Finding(check, one["reason"], tuple(one["shown_by"]))
        for one in told.pop("findings", ())
        for check in one["checks"]
    )
    told = {key: tuple(value) if isinstance(value, list) else value for key, value in told.items()}
    return admit(Experiment(name=name, paper=paper.key, findings=findings, **told, **carried_out))


def admit(experiment: Experiment) -> Experiment:
    """Make an experiment known by its name and aliases; raises ValueError if it contradicts itself or another one."""
    if experiment.paper not in PAPERS or experiment.engine not in ENGINES:
        raise ValueError(f"{experiment.name}: unknown paper or engine")
    for finding in experiment.findings:
        if not finding.shown_by:
            raise ValueError(f"{experiment.name}: the finding on '{finding.check}' has no evidence")
    taken = {name for one in REGISTRY.values() for name in (one.name, *one.aliases)}
    for name in (experiment.name, *experiment.aliases):
        if name in taken:
            raise ValueError(f"two experiments are called '{name}'")
    REGISTRY[experiment.name] = experiment
    return experiment


def find(name: str) -> Experiment:
    """Return the experiment of a name or an alias; raises a HeadwayError that lists the choices."""
    for experiment in REGISTRY.values():
        if name in (experiment.name, *experiment.aliases):
            return experiment
    raise HeadwayError(unknown("experiment", name, REGISTRY))


CONFIRMED, UNCERTAIN, DIFFERS, FAILED = "confirmed", "holds, not certain", "differs, explained", "FAILED"
"""Verdicts: every check holds, with its interval on the right side of the bound; every check holds, some of them only
in the mean; those that do not are explained by findings whose evidence holds; or neither."""


def judge(experiment: Experiment, checks: Sequence[Check]) -> str:
    """Return the verdict on an experiment; raises ValueError if a finding rests on what is not there or cannot fail."""
    held = {check.key for check in checks if check.holds}
    explained = {
        finding.check for finding in experiment.findings if all(evidence in held for evidence in finding.shown_by)
    }
    known = {check.key: check for check in checks}
    for finding in experiment.findings:
        for key in (finding.check, *finding.shown_by):
            if key not in known:
                raise ValueError(f"{experiment.name}: a finding names the check '{key}', which there is not")
        if all(known[key].given for key in finding.shown_by):
            raise ValueError(f"{experiment.name}: the finding on '{finding.check}' has no evidence that could fail")
    open_ = [check.key for check in checks if not check.holds]
    if open_:
        return DIFFERS if all(key in explained for key in open_) else FAILED
    return CONFIRMED if all(check.certain or check.given for check in checks) else UNCERTAIN
