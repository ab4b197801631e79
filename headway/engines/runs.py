"""Interface of a run: settings, status and result; and the engines, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa

from headway.adaptive.layer import Adaption
from headway.adaptive.master import Master
from headway.checking import CheckedNetwork
from headway.clock import Clock
from headway.engines import showing
from headway.engines.control import Control
from headway.engines.models import Model
from headway.engines.traces import Trace
from headway.errors import HeadwayError
from headway.options.table import default_of
from headway.plugins import Registry
from headway.scheduling.policy import Policy
from headway.scheduling.schedule import Schedule, make_scheduler
from headway.shedding.settings import ShedSettings


@dataclass(frozen=True, slots=True)
class OutputStatus:
    """An output's performance over the run so far."""

    tuples: int
    latency: float | None
    """The mean in seconds; None before the first tuple."""
    utility: float | None
    """The mean by the latency graph; 1 without a graph, None before the first tuple."""
    shed: int
    """Tuples that were dropped on the way to it."""


@dataclass(frozen=True, slots=True)
class Status:
    """Progress of a run."""

    seconds: float
    tuples_in: int
    tuples_out: int
    queued: int
    queued_bytes: int
    dead_letters: int
    held: bool
    """Whether sources wait because queues are full."""
    paused: bool = False
    """Whether the run is paused by a command."""
    outputs: Mapping[str, OutputStatus] = field(default_factory=dict)
    starting: str = ""
    """What a run on Spark is starting, such as ``query 3 of 7``; until then no tuple can arrive and the rest is 0."""
    tuples_before: int = 0
    """How many of `tuples_in` had arrived before this process resumed a saved run."""


@dataclass(frozen=True)
class RunSettings:
    """The parsed options of a run (`headway.options`): checked, with defaults filled in."""

    schedule: Schedule
    inputs: Mapping[str, object]
    outputs: Mapping[str, object]
    rates: Mapping[str, float] = field(default_factory=dict)
    tables: Mapping[str, Any] | None = None
    workers: int | None = None
    strict: bool = default_of("strict")
    memory: int = default_of("memory")
    dead_letters: object = None
    clock: Clock | None = None
    on_status: Callable[[Status], None] | None = None
    master: str | None = None
    spark: Mapping[str, str] = field(default_factory=dict)
    history: str | None = None
    state: str | None = None
    keep: float = default_of("keep")
    restart: frozenset[str] = frozenset()
    remember: float = default_of("remember")
    half_life: float = default_of("half_life")
    trace: bool = default_of("trace")
    model: Model | None = None
    shed: ShedSettings | None = None
    """When and how much load is shed; None: no shedding, unless an adaptive layer requests it."""
    adaptive: Adaption | None = None
    control: Control | None = None
    cut: Mapping[str, Any] = field(default_factory=dict)
    """The call's cut options, which override the file's."""

    @property
    def fading(self) -> tuple[float, float]:
        """How statistics of boxes fade: over calls, and over time."""
        return self.remember, self.half_life

    @property
    def may_shed(self) -> bool:
        """Whether tuples may be dropped in this run: by the user's settings, or by an adaptive layer."""
        return self.shed is not None or self.adaptive is not None

    def make_policy(self) -> Policy:
        """Return the policy that an engine asks: the schedule's, or the master of those a layer chooses from."""
        if self.adaptive is None:
            return self.schedule.make_policy()
        names = self.adaptive.layer.policies
        # The longest wait applies across all of them: a policy that has not been asked for long knows of no waits.
        return self.schedule.bound(Master([self.schedule.train.wrap(make_scheduler(name)) for name in names], names))

    @property
    def policy_text(self) -> str:
        """The policy and the rest of the schedule, for summaries and traces."""
        schedule = self.schedule
        return str(schedule if self.adaptive is None else replace(schedule, policy=self.adaptive.name))


@dataclass(frozen=True, repr=False)
class RunResult:
    """The result of a run. `repr` is one line; `show` prints the first tuples; notebooks show them as tables."""

    outputs: Mapping[str, pa.Table]
    """By output, for outputs without a sink: its tuples, with the user's fields only."""
    summary: Mapping[str, Any]
    dead_letters: pa.Table
    """The first dead letters (the summary counts all of them)."""
    trace: Trace | None = None
    """Every step with its reason, if recording was requested."""

    def show(self, *outputs: str, rows: int = showing.ROWS) -> None:
        """Print the first tuples of the named outputs, or else of the first five. Raises an OutputError."""
        print(showing.text(self.outputs, self.summary, outputs, rows), end="")

    def __repr__(self) -> str:
        """Summarise input and output in one line."""
        return f"<RunResult: {showing.line(self.outputs, self.summary)}; .show() prints tuples>"

    def _repr_html_(self) -> str:
        """Return the first tuples as tables, for notebooks."""
        return showing.page(self.outputs, self.summary)


class Engine(Protocol):
    """Executes networks."""

    def run(self, checked: CheckedNetwork, settings: RunSettings) -> RunResult:
        """Run until all inputs have ended and everything is delivered, or raise a HeadwayError.

        The first Ctrl-C, SIGTERM or SIGHUP ends the inputs: what has arrived is processed and delivered. A second one
        aborts: nothing is delivered to files.
        """


_engines = Registry[Callable[[], Engine]]("engine", HeadwayError)

register_engine, engine_names = _engines.register, _engines.names


def make_engine(name: str) -> Engine:
    """Return an engine by name."""
    return _engines[name].make()
