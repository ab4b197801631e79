"""Every kind of case, and how often it is tried."""

from __future__ import annotations

import ctypes
from pathlib import Path
from random import Random

from tests.fuzz import commands, data, expressions, generators, networks, states
from tests.fuzz.judging import Make

KINDS: dict[str, tuple[Make, int]] = {
    "network": (networks.network, 30),
    "expression": (expressions.expression, 25),
    "csv": (data.csv_rows, 10),
    "jsonl": (data.json_rows, 6),
    "spoilt": (data.spoilt, 8),
    "generator": (generators.generator, 8),
    "trace": (commands.trace, 5),
    "model": (commands.model, 4),
    "arguments": (commands.arguments, 2),
    "state": (states.state, 2),
}
"""By name: what makes a case, and its share in a hundred."""


def _crash(random: Random, size: int, folder: Path) -> None:
    ctypes.string_at(0)


def _sleep(random: Random, size: int, folder: Path) -> None:
    ctypes.PyDLL(None).usleep(60_000_000)  # deaf to signals, like a loop in C


FOR_TESTS: dict[str, tuple[Make, int]] = {"crash": (_crash, 0), "sleep": (_sleep, 0)}
"""What a worker must survive; no plan has them."""
