"""Schedules: a policy, what it schedules, and how many tuples a step takes, as text.

``round-robin/superbox/mc/1000`` is round robin over superboxes in min-cost order with trains of 1,000
tuples. Everything after the policy may be left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headway.catalog import Topology
from headway.errors import PolicyError, choices
from headway.scheduling.base import Policy, Unit, make_policy, registered_policies
from headway.scheduling.superboxes import box_units, superbox_units

UNITS = {"box": "one box at a time", "superbox": "all boxes of an output as one unit (application-at-a-time)"}
TRAVERSALS = {"mc": "min-cost: post-order, each box once"}
DEFAULT_TRAIN = 65_536


@dataclass(frozen=True, slots=True)
class Schedule:
    """Which unit (`policy`, `unit`), in which order within it (`traversal`), and on how many tuples (`train`)."""

    policy: str = "round-robin"
    unit: str = "superbox"
    traversal: str = "mc"
    train: int = DEFAULT_TRAIN

    @classmethod
    def parse(cls, text: str | None, train: int | None = None) -> Schedule:
        """Read ``policy/unit/traversal/train``; `train`, if given, overrides the text's."""
        schedule = cls()
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
                else:
                    raise PolicyError(
                        f"policy '{text}': '{part}' is no unit ({choices(UNITS)}), "
                        f"traversal ({choices(TRAVERSALS)}) or train (a number of tuples)"
                    )
        if train is not None:
            if isinstance(train, bool) or not isinstance(train, int) or train < 1:
                raise PolicyError(f"train is a number of tuples above 0, not {train!r}")
            schedule = replace(schedule, train=train)
        return schedule

    def __str__(self) -> str:
        """Return the schedule as text that `parse` reads."""
        traversal = f"/{self.traversal}" if self.unit == "superbox" else ""
        return f"{self.policy}/{self.unit}{traversal}/{self.train}"

    def make_policy(self) -> Policy:
        """Return the policy."""
        return make_policy(self.policy)

    def units(self, topology: Topology) -> tuple[Unit, ...]:
        """Return what is scheduled."""
        return box_units(topology) if self.unit == "box" else superbox_units(topology)


def policy_names() -> tuple[str, ...]:
    """Return every combination of a registered policy and a unit, as `Schedule.parse` reads them."""
    return tuple(f"{entry.name}/{unit}" for entry in registered_policies() for unit in UNITS)
