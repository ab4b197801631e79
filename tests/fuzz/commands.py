"""The command line over spoilt traces, models and summaries, and with arguments from nowhere."""

from __future__ import annotations

import contextlib
import io
import json
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import headway as hw
from headway.cli.main import main
from headway.cli.summary import to_json
from headway.network.yamls import write_text
from tests.fuzz.judging import LONGEST, expect
from tests.fuzz.nasty import TEXTS, mutate_bytes, mutate_text, mutate_tree, value

NETWORK = """
network: small
sources:
  a: {schema: {time: bigint, x: int}, source: a.csv}
boxes:
  f: {op: filter, in: a, where: "x > 1"}
  g: {op: aggregate, in: f, select: count(*) as n, order: {on: time}, size: 5}
outputs:
  o: {from: g, qos: {latency: [[0, 1], [1, 0]]}}
"""
ROWS = "time,x\n" + "".join(f"{at},{at % 4}\n" for at in range(30))
MODEL: dict[str, Any] = {
    "costs": {"f": "2us", "g": {"uniform": ["1us", "3us"]}},
    "default": {"zipf": [1.5, 10, "1us"]},
    "overheads": {"call": "5us", "scheduler": "1us", "preemption": 0, "storage": 0.000001},
    "seed": 3,
}
OPTIONS = (
    *("--rate", "--train", "--longest-wait", "--workers", "--memory", "--policy", "--shed", "--adaptive", "--input"),
    *("--output", "--table", "--functions", "--dead-letters", "--summary", "--trace", "--model", "--engine"),
    *("--remember", "--half-life", "--keep", "--bogus"),
)


@lru_cache
def _recorded() -> tuple[bytes, dict[str, Any]]:
    """Return a trace's file and a summary."""
    rows = [{"time": at, "x": at % 4} for at in range(30)]
    done = hw.run(NETWORK, {"a": rows}, engine="sim", policy="qos/superbox/mc/10", trace=True)
    assert done.trace is not None
    return json.dumps(done.trace.to_chrome()).encode(), json.loads(to_json(done.summary))


def _place(folder: Path) -> Path:
    (folder / "a.csv").write_text(ROWS)
    path = folder / "network.yaml"
    path.write_text(NETWORK)
    return path


def command(*arguments: str) -> None:
    """Run a command: it ends well, or with code 2 and one line."""
    said, told = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(told):
        code = main(list(arguments))
    text = said.getvalue()
    expect(code in (0, 2), f"code {code}: {text[:300]}")
    expect("Traceback" not in text, f"a traceback is printed: {text[-2000:]}")
    if code == 2:
        errors = [line for line in text.splitlines() if line.startswith("headway: error: ")]
        expect(len(errors) == 1, f"not one line: {text[:1000]}")
        expect(len(errors[0]) <= LONGEST, f"a line of {len(errors[0])} characters: {errors[0][:200]}")


def trace(random: Random, size: int, folder: Path) -> None:
    """Explain a recording that somebody has changed."""
    data, _ = _recorded()
    path = folder / "trace.json"
    kind = random.random()
    if kind < 0.4:
        data = mutate_bytes(random, data, size)
    elif kind < 0.5:
        data = mutate_text(random, data.decode(), size).encode("utf-8", "replace")
    else:
        tree = json.loads(data)
        part = tree["otherData"] if random.random() < 0.4 else random.choice(tree["traceEvents"])
        changed = mutate_tree(random, part, size)
        if part is tree["otherData"]:
            tree["otherData"] = changed
        else:
            tree["traceEvents"] = [changed if one is part else one for one in tree["traceEvents"]]
        data = json.dumps(tree).encode()
    path.write_bytes(data)
    command("explain", str(path), *random.choice(((), ("--summary",), ("--unit", "o"), ("--first", "3"))))


def model(random: Random, size: int, folder: Path) -> None:
    """Simulate with a model or a summary that somebody has changed."""
    network = _place(folder)
    path = folder / random.choice(("model.yaml", "model.json"))
    tree = mutate_tree(random, random.choice((MODEL, _recorded()[1], {"measured": _recorded()[1]})), size)
    text = json.dumps(tree) if path.suffix == ".json" or random.random() < 0.5 else write_text(tree)
    path.write_text(mutate_text(random, text, 1) if random.random() < 0.2 else text)
    command("run", str(network), "--engine", "sim", "--model", str(path))


def arguments(random: Random, size: int, folder: Path) -> None:
    """Run with options that get anything."""
    network = _place(folder)
    words = ["run", str(network), "--engine", random.choice(("local", "sim"))]
    for _ in range(random.randrange(1, size + 1)):
        option = random.choice(OPTIONS)
        given = _given(random)
        if option in ("--rate", "--input", "--output", "--table") and random.random() < 0.8:
            given = random.choice(("a=", "o=", "t=")) + given
        if option in ("--output", "--dead-letters", "--summary", "--trace"):
            # Only below the folder of the case: what a file may write elsewhere is for --trust to say.
            given = given.replace("=", f"={folder}/", 1) if "=" in given else f"{folder}/{given.lstrip('/.')}"
        words += [option, given]
    if _slow(words):
        return
    command(*words)


def _given(random: Random) -> str:
    return (random.choice(TEXTS) if random.random() < 0.4 else str(value(random)))[:2_000]


def _slow(words: list[str]) -> bool:
    """Whether the run would wait or start thousands of threads, as it was told to."""
    told = dict(pairwise(words))
    many = told.get("--workers", "1")
    return "--rate" in told or (many.isdecimal() and int(many) > 8) or "spark" in told.get("--engine", "")
