"""Comparison of policies: figures from summaries, which policy is best, and why.

The best policy is the one whose results are worth most. A difference of less than 1 % does not count: among policies
that close to the best, the lowest mean latency decides, then the least memory, then the least overhead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headway.errors import PolicyError
from headway.scheduling.schedule import Schedule

NEAR = 0.01
"""Values that differ by less than this share count as equal."""
_TIES = (
    ("latency", "the lowest mean latency", "mean latencies"),
    ("queued", "the least in queues", "queues"),
    ("overhead", "the least overhead", "overheads"),
)
OVERHEADS = ("scheduler", "storage", "sources", "preemption")
"""The parts of a summary's time that are not work of boxes."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one run by a policy."""

    policy: str
    utility: float | None
    """The mean worth of the outputs, by latency and loss, 0 for one without results; None without any graph."""
    worst: float | None
    """The lowest worth of an output."""
    worst_output: str
    latency: float | None
    """The mean over all results, in seconds."""
    p99: float | None
    """The highest 99 % quantile of an output, in seconds."""
    queued: float | None
    """Bytes in queues, mean over time."""
    peak: float
    """The most bytes in queues."""
    throughput: float
    """Results per second."""
    overhead: float
    """The share of the processors' time for `OVERHEADS`; never above 1."""
    results: int

    def row(self, how: str) -> dict[str, float | int | str]:
        """Return the figures as a row of a table, with empty cells for missing values."""
        told = {
            "run": how,
            "policy": self.policy,
            "utility": self.utility,
            "worst_utility": self.worst,
            "worst_output": self.worst_output,
            "latency_mean_s": self.latency,
            "latency_p99_s": self.p99,
            "queued_mean_bytes": self.queued,
            "queued_peak_bytes": self.peak,
            "results_per_s": self.throughput,
            "overhead_share": self.overhead,
            "results": self.results,
        }
        return {name: "" if value is None else value for name, value in told.items()}


class Advice(NamedTuple):
    """The recommended policy, and the reason as a sentence."""

    policy: str
    reason: str


def figures(policy: str, summary: Mapping[str, Any], graded: bool) -> Figures:
    """Return the figures of a run from its summary; `graded` says whether any output has a QoS graph."""
    outputs: Mapping[str, Any] = {name: one for name, one in summary["outputs"].items() if one["tuples"]}
    # An output without results counts as 0 in the mean, whether anything was dropped or not.
    told = {name: one.get("worth") for name, one in summary["outputs"].items()} if graded else {}
    worths = {name: float(worth) for name, worth in told.items() if worth is not None}
    worst = min(worths, key=lambda name: worths[name], default="")
    seconds = summary["seconds"]
    return Figures(
        policy,
        sum(worths.values()) / len(told) if worths else None,
        worths[worst] if worths else None,
        worst,
        mean_over_outputs(summary, "mean") if outputs else None,
        max([float(one["latency"]["p99"]) for one in outputs.values()], default=None),
        summary["mean_queued_bytes"],
        summary["peak_queued_bytes"],
        summary["tuples_out"] / seconds if seconds else 0.0,
        overhead(summary),
        summary["tuples_out"],
    )


def mean_over_outputs(summary: Mapping[str, Any], key: str) -> float:
    """Return the mean of a figure over all delivered tuples: `utility`, or one of `latency` (mean, p50, p99)."""
    outputs = [one for one in summary["outputs"].values() if one["tuples"]]
    values = [one["tuples"] * (one["utility"] if key == "utility" else one["latency"][key]) for one in outputs]
    return float(sum(values) / sum(one["tuples"] for one in outputs))


def overhead(summary: Mapping[str, Any]) -> float:
    """Return the share of the processors' time that the engine spent on `OVERHEADS`: at most 1.

    The scheduler thread runs besides the workers: if more time was spent than the workers had, the share is of that.
    """
    spent: Mapping[str, float] = summary["time"]
    whole = float(summary["seconds"]) * float(summary["workers"])
    if whole <= 0:
        return 0.0
    return sum(float(spent.get(name, 0.0)) for name in OVERHEADS) / max(whole, sum(map(float, spent.values())))


def advise(compared: Sequence[Figures]) -> Advice:
    """Return the policy to recommend among at least one; one without results only if there is no other."""
    left = [one for one in compared if one.results] or list(compared)
    if len(left) == 1:
        return Advice(left[0].policy, "it is the only one" + (" with results" if len(compared) > 1 else ""))
    if any(one.utility is None for one in left):
        told = ["no output says what its results are worth"]
    else:
        most = max(one.utility or 0.0 for one in left)
        near = [one for one in left if (one.utility or 0.0) >= (1 - NEAR) * most]
        if len(near) == 1:
            others = max(one.utility or 0.0 for one in left if one is not near[0])
            return Advice(
                near[0].policy, f"its results are worth most, {most:.3g}; those of the next best {others:.3g}"
            )
        whose = f"all {len(left)}" if len(near) == len(left) else f"{len(near)} of {len(left)}"
        told = [f"the results of {whose} are worth {most:.3g}, within {NEAR:.0%}"]
        left = near
    whose = ""
    for name, best, what in _TIES:
        known = [one for one in left if getattr(one, name) is not None]
        least = min([getattr(one, name) for one in known], default=0.0)
        near = [one for one in known if getattr(one, name) <= (1 + NEAR) * least]
        if len(near) == 1:
            return Advice(near[0].policy, "; ".join([*told, f"it has {best}"]))
        if len(near) in (0, len(left)):
            told.append(f"{whose}{what} are alike")
            continue
        told.append(f"{len(near)} of these have {best}, within {NEAR:.0%}")
        left, whose = near, "their "
    return Advice(left[0].policy, "; ".join([*told, "it is named first"]))


def margin(compared: Sequence[Figures], policy: str) -> float:
    """Return how much better a policy is than the next best, as the ratio of the figures that decide between them.

    These are the utilities, or the mean latencies if the utilities are within `NEAR` of each other.
    """
    one = next(one for one in compared if one.policy == policy)
    others = [other for other in compared if other is not one]
    if one.utility is not None and all(other.utility is not None for other in others):
        next_best = max([other.utility or 0.0 for other in others], default=0.0)
        if not next_best:
            return float("inf")
        if one.utility > (1 + NEAR) * next_best:
            return one.utility / next_best
    near = [other for other in others if one.utility is None or (other.utility or 0.0) >= (1 - NEAR) * one.utility]
    latencies = [other.latency for other in near if other.latency is not None]
    return min(latencies) / one.latency if latencies and one.latency else float("inf")


def parse_policies(text: str, real: bool) -> tuple[str, ...]:
    """Parse a list of schedules such as ``qos/superbox,chain/box``; raises a PolicyError that lists the choices.

    Weights of a policy contain commas, too: ``weighted-round-robin:a=3,b=1/box,fifo`` is a list of two schedules.
    `real` allows `threads`, which only real runs support.
    """
    found: list[str] = []
    for part in (one.strip() for one in text.split(",")):
        weight = "=" in part and ":" not in part.partition("=")[0]
        if weight and found and "=" in found[-1]:
            found[-1] += f",{part}"
        else:
            found.append(part)
    for at, policy in enumerate(found):
        if not policy:
            raise PolicyError("policies: an empty one; expected a list such as round-robin/superbox,qos/superbox")
        schedule = Schedule.parse(policy)
        if schedule.threads and not real:
            raise PolicyError("policies: 'threads' leaves all to the operating system: compare it with --engine local")
        if policy in found[:at]:
            raise PolicyError(f"policies: '{policy}' is named twice")
    return tuple(found)
