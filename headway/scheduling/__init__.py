"""Scheduling: policies, units and trains. Importing this package registers the built-in policies."""

from headway.scheduling import (  # noqa: F401 - each registers its policy
    bucketed,
    chain,
    earliest_deadline,
    feedback,
    fifo,
    most_tuples,
    path_capacity,
    preemptive_rate_based,
    rate_based,
    round_robin,
    segment,
    simplified_segment,
    slope_slack,
    weighted_round_robin,
)
from headway.scheduling.policy import Plan, Policy, Ranked, Step, Term, register_policy
from headway.scheduling.schedule import Schedule, policy_names
from headway.scheduling.snapshot import Snapshot, Unit

__all__ = [
    "Plan",
    "Policy",
    "Ranked",
    "Schedule",
    "Snapshot",
    "Step",
    "Term",
    "Unit",
    "policy_names",
    "register_policy",
]
