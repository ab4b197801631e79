"""Generated and replayed sources with settings from everywhere: their moments ascend from 0."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from headway.connectors import open_source
from headway.network.schema import Schema
from tests.fuzz.judging import expect
from tests.fuzz.nasty import NUMBERS, mutate_tree

SCHEMA = Schema.parse("a bigint, x double, s string, t timestamp")
FIELDS = {"a": "i", "x": {"normal": [0, 1]}, "s": {"choice": ["u", "v"]}, "t": {"sequence": ["2024-01-01", "1s"]}}
SETTINGS: tuple[dict[str, Any], ...] = (
    {"generate": {"rate": 100, "count": 50, "fields": FIELDS}},
    {"generate": {"rate": 100, "arrivals": "poisson", "fields": FIELDS}},
    {"generate": {"burst": {"size": 10, "every": "1s"}, "fields": {**FIELDS, "x": {"uniform": [0, 1]}}}},
    {"generate": {"rate": 50, "burst": {"on": "1s", "off": "4s"}, "fields": {**FIELDS, "a": {"zipf": [1.2, 50]}}}},
    {"generate": {"phases": [["10s", 500], ["1m", 20], [5, 0]], "fields": {**FIELDS, "x": {"exponential": 3}}}},
    {"generate": {"phases": [["10s", 5]], "arrivals": "poisson", "fields": {**FIELDS, "a": {"sequence": [0, 5]}}}},
    {"replay": {"file": "a.csv", "rate": 10}},
    {"replay": {"file": "a.csv", "by": "t", "speed": 10}},
)


def generator(random: Random, size: int, folder: Path) -> None:
    """Open a source with changed settings and read some."""
    rows = "".join(f"{random.choice(NUMBERS)},{random.choice(NUMBERS)},x,2024-01-0{at + 1}\n" for at in range(9))
    (folder / "a.csv").write_text("a,x,s,t\n" + rows)
    settings = mutate_tree(random, random.choice(SETTINGS), random.randrange(size + 1))
    rate = random.choice(NUMBERS) if random.random() < 0.2 else None
    reader = open_source("s", SCHEMA, settings, rate=rate, base=folder)
    last = 0
    try:
        for _ in range(4):
            chunk = reader.read(random.choice((1, 50, 70_000)))
            if chunk is None:
                break
            if chunk.due is not None:
                expect(bool(np.all(np.diff(chunk.due) >= 0)), f"moments go back: {settings!r:.500}")
                expect(len(chunk) == 0 or int(chunk.due[0]) >= last, f"moments go back, or before 0: {settings!r:.500}")
                last = int(chunk.due[-1]) if len(chunk) else last
    finally:
        reader.close()
