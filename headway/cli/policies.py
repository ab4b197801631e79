"""``headway policies``: what `--policy` can say."""

from __future__ import annotations

import argparse

from headway.cli.printing import emit
from headway.cli.tables import text_table
from headway.scheduling.base import registered_policies
from headway.scheduling.schedule import DEFAULT_SCHEDULES, TRAINS, TRAVERSALS, UNITS, policy_names

EPILOG = """\
examples:
  headway policies
  headway run border.yaml --policy round-robin/box
  headway run border.yaml --policy round-robin/superbox/mc/1000
  headway run border.yaml --policy slope-slack/auto
"""


def policies(args: argparse.Namespace) -> int:
    """Print the registered policies, and what can stand after them."""
    about = {entry.name: entry.about for entry in registered_policies()}
    rows = [(name, f"{about[name.rpartition('/')[0]]}; {UNITS[name.rpartition('/')[2]]}") for name in policy_names()]
    defaults = ", ".join(f"{schedule} (engine {engine})" for engine, schedule in DEFAULT_SCHEDULES.items())
    parts = [
        text_table(("policy", "what it does"), rows),
        text_table(("traversal", "the order of the boxes in a superbox"), list(TRAVERSALS.items())),
        text_table(("train", "how many tuples a step takes"), list(TRAINS.items())),
        "A schedule is policy/unit/traversal/train; what comes after the policy can be left out.\n"
        f"The default is {defaults}. Results never depend on it, only when they come.\n",
    ]
    emit("\n".join(parts))
    return 0
