"""Random networks whose costs the simulator has to learn, run with and without load shedding, side by side.

The law: below 0.9 of what can be done nothing is dropped; and with shedding a run is worth as much as without it, but
for a hundredth; and as long as nothing is dropped, a run is the very same. What can be done is measured: how fast the
same network under the same schedule works off far too much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import headway as hw

POLICIES = ("round-robin", "fifo", "most-tuples", "rate-based", "chain", "slope-slack", "qos", "earliest-deadline")
UNITS = ("box", "superbox")
TRAINS = ("1", "4", "30", "1000", "auto", "20ms", "50%", "overhead:5%")
FACTORS = (0.3, 0.6, 0.8, 0.88, 1.05, 1.2, 1.5, 2.0, 3.0)
CALM = 0.9
"""The part of what can be done below which nothing may be dropped."""
SECONDS = 10.0
"""How long tuples come."""
LOSSES: tuple[list[list[float]] | None, ...] = (
    None,
    [[100, 1], [0, 0]],
    [[100, 1], [30, 0.8], [0, 0]],
    [[100, 1], [10, 0.9], [0, 0]],
    [[100, 1], [98, 0.1], [0, 0]],
)


@dataclass(frozen=True)
class Case:
    """A network, how it is scheduled, what it costs, and how much of what it can do comes."""

    seed: int
    network: dict[str, Any]
    policy: str
    model: dict[str, Any]
    factor: float
    arrivals: str
    """`even`, `poisson`, or `burst`: more for a while than before and after."""


@dataclass(frozen=True)
class Verdict:
    """What shedding was worth in one case."""

    case: Case
    on: float
    off: float
    dropped: int
    same: bool
    """Whether both runs delivered the same at the same moments."""

    @property
    def gain(self) -> float:
        """By how much more a run is worth with shedding."""
        return self.on - self.off

    @property
    def needless(self) -> bool:
        """Whether something was dropped although all of it could be done."""
        return self.case.factor < CALM and self.case.arrivals != "burst" and self.dropped > 0

    def __str__(self) -> str:
        """Return what to look at."""
        case = self.case
        return (
            f"seed {case.seed}: {case.policy} {case.arrivals} at {case.factor:g}: "
            f"on {self.on:.3f}, off {self.off:.3f}, {self.dropped} dropped"
        )


def make_case(seed: int) -> Case:
    """Return a random case."""
    random = np.random.default_rng(seed)
    boxes: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    costs: dict[str, float] = {}
    count = int(random.integers(1, 7))
    read: set[str] = set()
    for at in range(count):
        above = ["s", *boxes]
        feed = above[int(random.integers(0, len(above)))] if random.random() < 0.6 else "s"
        read.add(feed)
        name = f"b{at}"
        kind = random.random()
        if kind < 0.6:
            boxes[name] = {"op": "universal", "in": feed, "selectivity": float(random.choice([0.5, 1.0, 1.0]))}
        elif kind < 0.8 or feed != "s":
            boxes[name] = {"op": "filter", "in": feed, "where": f"v >= {int(random.integers(0, 6))}"}
        else:
            boxes[name] = {"op": "aggregate", "in": feed, "select": "count(*) as v", "size": 4, "order": {"on": "#"}}
        costs[name] = float(np.exp(random.normal(0, 1)))
    for name in boxes:
        if name not in read or random.random() < 0.2:
            outputs[f"o{name}"] = {"from": name, "qos": _qos(random)}
    # One tuple of a source costs about 10 ms in all.
    scale = 0.01 / sum(costs.values())
    costs = {name: cost * scale for name, cost in costs.items()}
    mean = 0.01 / count
    overheads = {
        "call": mean * float(random.choice([0.0, 0.5, 3.0])),
        "scheduler": float(random.choice([0, 1e-4, 1e-3])),
    }
    like = "local" if random.random() < 0.5 else ""
    if like:
        overheads |= {"round": float(random.choice([0, 2e-4])), "storage": float(random.choice([0, 1e-4]))}
    learned = {"warmup": float(random.choice([0.0, 0.02, 0.2])), "noise": float(random.choice([0.0, 0.2, 0.5]))}
    model = {"costs": costs, "overheads": overheads, "like": like or None, "learned": learned, "seed": seed}
    parts = [random.choice(POLICIES), random.choice(UNITS), random.choice(TRAINS)]
    network = {
        "network": "n",
        "sources": {"s": {"schema": {"v": "bigint"}}},
        "boxes": boxes,
        "outputs": outputs,
    }
    arrivals = str(random.choice(["even", "poisson", "burst"], p=[0.35, 0.4, 0.25]))
    return Case(seed, network, "/".join(map(str, parts)), model, float(random.choice(FACTORS)), arrivals)


def _qos(random: np.random.Generator) -> dict[str, Any]:
    zone = float(random.choice([0.5, 1.0, 2.0, 4.0]))
    qos: dict[str, Any] = {"latency": [[0, 1], [zone, 1], [zone * float(random.choice([1.2, 2.0, 5.0])), 0]]}
    loss = LOSSES[int(random.integers(0, len(LOSSES)))]
    return qos if loss is None else {**qos, "loss": loss}


def measure_capacity(case: Case) -> float:
    """Return how many tuples can be done per second: too many come for a while, and the time is taken."""
    count = 300
    made = {"burst": {"size": count, "every": "1h"}, "count": count, "fields": {"v": {"uniform": [0, 9]}}, "seed": 1}
    rate = 1.5 * count / float(_run(case, made, False)["seconds"])
    made = {"phases": [[SECONDS, rate]], "fields": {"v": {"uniform": [0, 9]}}, "seed": 1}
    done = _run(case, made, False)
    return float(done["sources"]["s"]["tuples"]) / float(done["seconds"])


def judge(case: Case, shed: Any = True) -> Verdict:
    """Run a case with and without shedding."""
    rate = case.factor * measure_capacity(case)
    phases = [[SECONDS, rate]]
    if case.arrivals == "burst":
        phases = [[SECONDS * 0.4, 0.3 * rate], [SECONDS * 0.2, rate], [SECONDS * 0.4, 0.3 * rate]]
    made: dict[str, Any] = {"phases": phases, "fields": {"v": {"uniform": [0, 9]}}, "seed": case.seed}
    if case.arrivals == "poisson":
        made["arrivals"] = "poisson"
    on, off = _run(case, made, shed), _run(case, made, False)
    dropped = sum(on["shedding"]["dropped"].values())
    return Verdict(case, mean_worth(on), mean_worth(off), dropped, _moments(on) == _moments(off))


def _moments(summary: dict[str, Any]) -> list[Any]:
    """Return what tells two runs apart; means are left out, as they are summed up in another order."""
    told = [
        (one["tuples"], *(one["latency"][key] for key in ("p50", "p99", "max"))) for one in summary["outputs"].values()
    ]
    return [summary["seconds"], summary["plans"], *told]


def mean_worth(summary: dict[str, Any]) -> float:
    """Return what the outputs of a run were worth, as a mean; one without results counts as nothing."""
    worths = [one["worth"] or 0.0 for one in summary["outputs"].values()]
    return float(sum(worths) / len(worths))


def _run(case: Case, made: dict[str, Any], shed: Any) -> dict[str, Any]:
    nowhere = dict.fromkeys(case.network["outputs"])
    result = hw.run(
        case.network,
        {"s": {"generate": made}},
        outputs=nowhere,
        engine="sim",
        policy=case.policy,
        model=case.model,
        shed=shed,
    )
    return dict(result.summary)


def broken(verdicts: list[Verdict]) -> list[str]:
    """Return what does not hold of the law."""
    found = [f"needless: {one}" for one in verdicts if one.needless]
    found += [f"changed: {one}" for one in verdicts if not one.dropped and not one.same]
    found += [f"much worse: {one}" for one in verdicts if one.gain < -0.05]
    worse = [one for one in verdicts if one.gain < -0.01]
    if len(worse) > len(verdicts) / 100:
        found += [f"worse: {one}" for one in worse]
    return found
