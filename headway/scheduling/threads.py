"""Threads: no policy at all. Every box has a thread of its own, and the operating system decides who runs."""

from __future__ import annotations

from dataclasses import dataclass

from headway.errors import PolicyError
from headway.scheduling.policy import Plan, Policy, register_policy
from headway.scheduling.snapshot import Snapshot

NAME = "threads"


@dataclass(frozen=True, slots=True)
class Threads:
    """Stands for the mode of the engine `local` in which nobody is asked for a plan."""

    def start(self) -> None:
        """There is nothing to remember."""

    def plan(self, snapshot: Snapshot, memory: None) -> tuple[Plan, None]:
        """Refuse: who asks for a plan is another engine."""
        raise PolicyError("policy 'threads' is for the engine 'local': it leaves the decisions to the operating system")


def _make(argument: str | None) -> Policy:
    if argument is not None:
        raise PolicyError(f"policy 'threads' takes no argument, not '{argument}'")
    return Threads()


register_policy(
    NAME,
    _make,
    "a thread for each box, and the operating system decides: the baseline; engine local only",
    paper="Carney et al., Operator Scheduling in a Data Stream Manager, VLDB 2003, section 3",
    use="only to compare: it does not scale with the number of boxes, and knows no QoS",
)
