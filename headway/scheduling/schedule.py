"""Schedules as text: the policy, its unit, the traversal within a unit, and the train.

``round-robin/superbox/mc/1000`` is round robin over superboxes in min-cost order with trains of 1,000
tuples. The parts after the policy are optional and come in any order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headway.catalog import Topology
from headway.durations import Duration
from headway.errors import NetworkError, PolicyError, choices, unknown
from headway.options.table import default_of
from headway.scheduling.bounded import Bounded
from headway.scheduling.policy import (
    Plan,
    Planner,
    Policy,
    as_policy,
    make_policy,
    register_policy,
    registered_policies,
)
from headway.scheduling.snapshot import Snapshot, Unit
from headway.scheduling.superboxes import TRAVERSALS, Traverser, box_units, superbox_units
from headway.scheduling.trains import TRAINS, Auto, Budget, TrainRule, Tuples, parse_train

UNITS = {
    "box": "one box at a time",
    "superbox": "all boxes of an output as one unit (application-at-a-time)",
    "spanner:5": "of a superbox the five most urgent boxes, by slope and slack, and what they lead to",
}
"""The forms of a unit, by example."""
_SPANNER = "spanner"
_SPAN = 5
PARTS = ("policy", "unit", "traversal", "train", "wait", "plan")
"""The parts of a schedule: the keys of its mapping."""
DEFAULT_TRAIN = 65_536
LONGEST_WAIT = Duration.parse(default_of("wait"))
WAITS = {
    "wait:10s": "a unit that has been ready for so long is served whatever the policy says (the default)",
    "wait:off": "it may wait for ever: for experiments",
}
THREADS = "threads"
_DIGITS = re.compile("[0-9]{1,9}")
"""A count within a schedule's text."""
DEFAULT_PLAN: int = default_of("plan")
PLANS = {"plan:1": "steps that are carried out before the policy is asked again: engine local (default 256)"}


_DATA = (int, float, bytes, list, tuple, dict)
"""Types that are never policies, so that the error for them does not list missing methods."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The policy and what it schedules: units, the order within a unit (`traversal`), and step sizes (`train`)."""

    policy: str | Policy = "round-robin"
    """A registered name, optionally with an argument, or a Policy."""
    unit: str = "superbox"
    traversal: str = "mc"
    train: TrainRule = Tuples(DEFAULT_TRAIN)  # noqa: RUF009 - frozen
    wait: Duration | None = LONGEST_WAIT
    """The longest that a ready unit waits; None: no limit."""
    plan: int = DEFAULT_PLAN
    """The most steps of a plan that an engine with one worker carries out before it asks again."""

    @classmethod
    def parse(
        cls, text: str | Planner | None, train: int | str | None = None, default: Schedule | None = None, **parts: Any
    ) -> Schedule:
        """Parse ``policy/unit/traversal/train``; parts given as arguments (`train`, `unit`, ...) override the text.

        Parts given in neither way are taken from `default`. `text` may also be a policy object.
        """
        schedule = default or cls()
        if isinstance(text, _DATA):
            raise PolicyError(f"a policy is text such as 'qos/superbox/mc/auto', not {text!r}")
        if text is not None and not isinstance(text, str):
            schedule = replace(schedule, policy=as_policy(text))
        elif text is not None:
            policy, *rest = text.split("/")
            schedule = schedule._with("policy", policy)
            said = set[str]()
            for part in rest:
                name, value = _named_part(part, text)
                if name in said:
                    raise PolicyError(f"policy '{text}': '{part}' is a second {name}")
                said.add(name)
                schedule = schedule._with(name, value)
        for name, value in {"train": train, **parts}.items():
            if value is not None:
                schedule = schedule._with(name, value)
        return schedule

    @classmethod
    def of(cls, mapping: Mapping[str, Any], default: Schedule | None = None) -> Schedule:
        """Read the ``schedule`` mapping of a network file; its keys are `PARTS`."""
        given = {key: mapping.get(key) for key in PARTS[1:]}
        return cls.parse(mapping.get("policy"), given.pop("train"), default, **given)

    def _with(self, name: str, value: Any) -> Schedule:
        if name == "train":
            return replace(self, train=parse_train(value))
        if name == "unit":
            if not isinstance(value, str) or not _is_unit(value):
                raise PolicyError(unknown("unit", str(value), UNITS))
            return replace(self, unit=value)
        if name == "traversal":
            if value not in TRAVERSALS:
                raise PolicyError(unknown("traversal", str(value), TRAVERSALS))
            return replace(self, traversal=value)
        if name == "policy":
            make_policy(value)
            return replace(self, policy=value)
        if name == "plan":
            text = str(value)
            if isinstance(value, bool) or not _DIGITS.fullmatch(text) or not 1 <= int(text) <= DEFAULT_PLAN:
                raise PolicyError(f"plan: must be a number of steps from 1 to {DEFAULT_PLAN}, not {value!r}")
            return replace(self, plan=int(text))
        if name != "wait":
            raise PolicyError(unknown("part of a schedule", name, PARTS))
        try:
            wait = None if value is False or value == "off" else Duration.parse(value)
        except NetworkError as error:
            raise PolicyError(f"wait: {error}; or 'off'") from None
        if wait is not None and wait.microseconds < 1:
            raise PolicyError(f"wait: must be more than 0, not {value!r}; or 'off'")
        return replace(self, wait=wait)

    def __str__(self) -> str:
        """Return the schedule as text that `parse` accepts."""
        traversal = "" if self.unit == "box" else f"/{self.traversal}"
        wait = "" if self.wait == LONGEST_WAIT else f"/wait:{self.wait or 'off'}"
        plan = "" if self.plan == DEFAULT_PLAN else f"/plan:{self.plan}"
        return f"{self.policy}/{self.unit}{traversal}/{self.train}{wait}{plan}"

    @property
    def most(self) -> int:
        """The most tuples in a step as far as the schedule limits it; the snapshot's `train`."""
        return self.train.most

    @property
    def waits(self) -> bool:
        """Whether steps wait for more tuples while results stay in their good zone."""
        return isinstance(self.train, Auto)

    @property
    def threads(self) -> bool:
        """Whether there is no policy: one thread per box."""
        return self.policy == THREADS

    def make_policy(self) -> Policy:
        """Return the policy, wrapped to apply the train and the longest wait where it does not do so itself."""
        policy = make_policy(self.policy) if isinstance(self.policy, str) else self.policy
        return self.bound(self.train.wrap(policy))

    def bound(self, policy: Policy) -> Policy:
        """Wrap a policy with the longest wait, unless it is fair."""
        # A fair policy needs no bound, and with short trains planning is most of the cost.
        return policy if self.wait is None or policy.fair else Bounded(policy, self.wait.nanoseconds)

    def units(self, topology: Topology) -> tuple[Unit, ...]:
        """Return the units to schedule."""
        return box_units(topology) if self.unit == "box" else superbox_units(topology)

    def make_traversal(self, topology: Topology) -> Traverser | None:
        """Return what orders the boxes of a step; None where each unit's own order, min-cost, is used."""
        kind, _, count = self.unit.partition(":")
        if kind == _SPANNER:
            return Traverser(topology, self.traversal, int(count or _SPAN))
        return None if self.unit == "box" or self.traversal == "mc" else Traverser(topology, self.traversal)


def _is_unit(text: str) -> bool:
    kind, colon, count = text.partition(":")
    if kind == _SPANNER:
        return not colon or (_DIGITS.fullmatch(count) is not None and int(count) > 0)
    return text in ("box", "superbox")


def _named_part(part: str, text: str) -> tuple[str, Any]:
    """Return which part of a schedule a piece of its text is, and its value. Raises a PolicyError that lists both."""
    name, colon, value = part.partition(":")
    if colon and name in ("wait", "plan"):
        return name, value
    if part in TRAVERSALS:
        return "traversal", part
    if _is_unit(part):
        return "unit", part
    try:
        parse_train(part)
    except PolicyError as error:
        raise PolicyError(
            f"policy '{text}': '{part}' is not a unit ({choices(UNITS)}), traversal ({choices(TRAVERSALS)}), "
            f"train ({choices(TRAINS)}), longest wait ({choices(WAITS)}) or length of plans ({choices(PLANS)})"
        ) from error
    return "train", part


DEFAULT_SCHEDULES = {
    "local": Schedule(),
    "sim": Schedule(),
    "spark": Schedule(policy="slope-slack:8", train=Auto()),
}
"""By engine: the schedule used when the user gives none."""
GRADED_POLICY = "qos"
"""The default policy instead of round robin, if any of several outputs has a latency graph."""
GRADED_TRAIN = Budget(Duration(100_000))
"""Its trains: no output should wait seconds for a step because another output's boxes are slow."""


def default_schedule(engine: str, graphs: Sequence[bool]) -> Schedule | None:
    """Return an engine's schedule if the user gives none; `graphs` says by output whether it has a latency graph.

    Round robin ignores the graphs. With several outputs of which any has a graph, `qos` decides, with steps limited
    to `GRADED_TRAIN`. With a single output there is nothing to decide, and round robin costs least.
    """
    default = DEFAULT_SCHEDULES.get(engine)
    if default is not None and default.policy == Schedule().policy and len(graphs) > 1 and any(graphs):
        return replace(default, policy=GRADED_POLICY, train=GRADED_TRAIN)
    return default


HANDFUL = (
    "round-robin/superbox",
    "fifo/superbox",
    "rate-based/superbox",
    "chain/box",
    "qos/superbox/mc/auto",
)
"""The schedules compared by default: round robin, by age, by output rate, by memory, by quality of service."""


def policy_names() -> tuple[str, ...]:
    """Return the names of the registered policies, without `threads`, which means no policy."""
    return tuple(entry.name for entry in registered_policies() if entry.name != THREADS)


@dataclass(frozen=True, slots=True)
class ThreadsPolicy(Policy):
    """Stands for no policy: each box has a thread, and the operating system schedules them. Engine `local` only."""

    def plan(self, snapshot: Snapshot, memory: None) -> tuple[Plan, None]:
        """Raise a PolicyError: only an engine other than `local` asks for a plan."""
        raise PolicyError("policy 'threads' is for the engine 'local': it leaves the decisions to the operating system")


def make_scheduler(text: str) -> Policy:
    """Make the policy given as ``name`` or ``name:argument``, for a run with a scheduler: not `threads`."""
    policy = make_policy(text)
    if isinstance(policy, ThreadsPolicy):
        raise PolicyError(f"'{THREADS}' runs without a scheduler: it can only be the policy of a whole run")
    return policy


register_policy(
    THREADS,
    lambda _: ThreadsPolicy(),
    "a thread for each box, and the operating system decides: the baseline; engine local only",
    paper="Carney et al., Operator Scheduling in a Data Stream Manager, VLDB 2003, section 3",
    use="only to compare: it does not scale with the number of boxes, and knows no QoS",
    takes_argument=False,
)
