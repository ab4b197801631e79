"""Scheduling: policies, units and trains. Importing it registers the policies."""

from headway.scheduling import round_robin, slope_slack
from headway.scheduling.base import Plan, Policy, Snapshot, Step, Unit, UnitCosts, register_policy
from headway.scheduling.schedule import Schedule, policy_names

__all__ = [
    "Plan",
    "Policy",
    "Schedule",
    "Snapshot",
    "Step",
    "Unit",
    "UnitCosts",
    "policy_names",
    "register_policy",
    "round_robin",
    "slope_slack",
]
