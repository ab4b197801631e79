"""``headway policies``: the values that `--policy`, `--adaptive` and `--shed` accept."""

from __future__ import annotations

import argparse

from headway.adaptive.layer import registered_adaptives
from headway.cli.arguments import Command
from headway.cli.printing import emit, text_table
from headway.errors import PolicyError, check_known
from headway.options.kinds import Option
from headway.scheduling.policy import PolicyEntry, registered_policies
from headway.scheduling.schedule import DEFAULT_SCHEDULES, GRADED_POLICY, PLANS, UNITS, WAITS
from headway.scheduling.superboxes import TRAVERSALS
from headway.scheduling.trains import TRAINS
from headway.shedding.strategies import registered_strategies

EPILOG = """\
examples:
  headway policies
  headway policies chain
  headway run border.yaml --policy round-robin/box
  headway run border.yaml --policy round-robin/superbox/mc/1000
  headway run border.yaml --policy qos/superbox/best/auto
  headway run border.yaml --policy preemptive-rate-based/box/1 --engine sim
"""


def policies(args: argparse.Namespace) -> int:
    """Print the registered policies and the other parts of a schedule, or the details of one policy."""
    entries = {entry.name: entry for entry in registered_policies()}
    if args.name is not None:
        check_known("policy", [args.name], entries, PolicyError)
        emit(_detail(entries[args.name]))
        return 0
    defaults = ", ".join(f"{schedule} (engine {engine})" for engine, schedule in DEFAULT_SCHEDULES.items())
    layers = [(one.name, one.about) for one in registered_adaptives()]
    strategies = [(one.name, one.about) for one in registered_strategies()]
    traversals = [(name, entry.about) for name, entry in TRAVERSALS.items()]
    parts = [
        text_table(("policy", "what it does"), [(entry.name, entry.about) for entry in entries.values()]),
        text_table(("unit", "what it schedules"), list(UNITS.items())),
        text_table(("traversal", "the order of the boxes in a superbox"), traversals),
        text_table(("train", "how many tuples a step takes"), list(TRAINS.items())),
        text_table(("longest wait", "so that no unit starves"), list(WAITS.items())),
        text_table(("plan", "how often the policy is asked"), list(PLANS.items())),
        text_table(("--adaptive", "changes the policy while it runs"), layers),
        text_table(("--shed", "drops tuples when there is too much to do"), strategies),
        "A schedule is policy/unit/traversal/train; everything after the policy can be left out.\n"
        f"The default is {defaults}. On local and sim it is {GRADED_POLICY} instead of round-robin if there are\n"
        "several outputs and one has a latency graph. The schedule never changes results, only when they arrive.\n",
    ]
    emit("\n".join(parts))
    return 0


COMMAND = Command(
    "list the scheduling policies, or describe one",
    EPILOG,
    policies,
    {"": (Option("describe this policy: formula, paper, when to use it", flag="[NAME]"),)},
)


def _detail(entry: PolicyEntry) -> str:
    rows = [("idea", entry.about), ("formula", entry.formula), ("paper", entry.paper), ("when", entry.use)]
    return text_table((entry.name, ""), [row for row in rows if row[1]])
