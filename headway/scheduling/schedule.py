"""Schedules: a policy, what it schedules, and how many tuples a step takes, as text.

``round-robin/superbox/mc/1000`` is round robin over superboxes in min-cost order with trains of 1,000
tuples. Everything after the policy may be left out. With ``auto`` in the place of the number, trains follow
from QoS slack and measured cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headway.catalog import Topology
from headway.errors import PolicyError, choices
from headway.scheduling.base import Policy, Unit, make_policy, registered_policies
from headway.scheduling.patience import Patient
from headway.scheduling.superboxes import box_units, superbox_units

UNITS = {"box": "one box at a time", "superbox": "all boxes of an output as one unit (application-at-a-time)"}
TRAVERSALS = {"mc": "min-cost: post-order, each box once"}
DEFAULT_TRAIN = 65_536
AUTO = None
"""The train that follows from slack and cost."""
_AUTO = "auto"
TRAINS = {
    "a number": "at most so many of each queue, as soon as there are some",
    _AUTO: "wait for more while results stay good, and leave others their slack: by QoS graphs and measured cost",
}


@dataclass(frozen=True, slots=True)
class Schedule:
    """Which unit (`policy`, `unit`), in which order within it (`traversal`), and on how many tuples (`train`)."""

    policy: str = "round-robin"
    unit: str = "superbox"
    traversal: str = "mc"
    train: int | None = DEFAULT_TRAIN
    """The most tuples in a step, or AUTO."""

    @classmethod
    def parse(cls, text: str | None, train: int | None = None, default: Schedule | None = None) -> Schedule:
        """Read ``policy/unit/traversal/train``; `train`, if given, overrides the text's.

        What the text leaves out is taken from `default`.
        """
        schedule = default or cls()
        if text is not None:
            policy, *parts = text.split("/")
            make_policy(policy)
            schedule = replace(schedule, policy=policy)
            for part in parts:
                if part in UNITS:
                    schedule = replace(schedule, unit=part)
                elif part in TRAVERSALS:
                    schedule = replace(schedule, traversal=part)
                elif part.isdecimal() and int(part) > 0:
                    schedule = replace(schedule, train=int(part))
                elif part == _AUTO:
                    schedule = replace(schedule, train=AUTO)
                else:
                    raise PolicyError(
                        f"policy '{text}': '{part}' is no unit ({choices(UNITS)}), "
                        f"traversal ({choices(TRAVERSALS)}) or train (a number of tuples, or {_AUTO})"
                    )
        if train is not None:
            if isinstance(train, bool) or not isinstance(train, int) or train < 1:
                raise PolicyError(f"train is a number of tuples above 0, not {train!r}")
            schedule = replace(schedule, train=train)
        return schedule

    def __str__(self) -> str:
        """Return the schedule as text that `parse` reads."""
        traversal = f"/{self.traversal}" if self.unit == "superbox" else ""
        return f"{self.policy}/{self.unit}{traversal}/{_AUTO if self.train is None else self.train}"

    @property
    def most(self) -> int:
        """The most tuples in a step, as far as the schedule says it: what a snapshot calls its train."""
        return DEFAULT_TRAIN if self.train is None else self.train

    def make_policy(self) -> Policy:
        """Return the policy, a patient one where trains are automatic."""
        policy = make_policy(self.policy)
        return Patient(policy) if self.train is None else policy

    def units(self, topology: Topology) -> tuple[Unit, ...]:
        """Return what is scheduled."""
        return box_units(topology) if self.unit == "box" else superbox_units(topology)


DEFAULT_SCHEDULES = {
    "local": Schedule(),
    "spark": Schedule(policy="slope-slack:8", train=AUTO),
}
"""By engine: the schedule where nothing is said."""


def policy_names() -> tuple[str, ...]:
    """Return every combination of a registered policy and a unit, as `Schedule.parse` reads them."""
    return tuple(f"{entry.name}/{unit}" for entry in registered_policies() for unit in UNITS)
