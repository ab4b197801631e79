"""What was measured, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.streaming.settings import CAP, HEADWAY, MERGED, PLAIN, SYSTEMS

GOOD = 0.9
"""The mean utility that a rate must reach to count."""
Found = Mapping[str, Any]

BAR_RATE, BAR_TIGHT = 200_000, 0.95
BAR_MERGED = 0.5
BAR_SINGLE = 0.9


def highest(found: Iterable[Found], systems: Iterable[str], apps: int) -> float:
    """Return the highest rate at which one of the systems had a good mean utility; 0 if none had."""
    wanted = set(systems)
    rates = [
        one["setting"]["rate"]
        for one in found
        if _is_run(one, apps) and one["setting"]["system"] in wanted and one["utility"] > GOOD
    ]
    return max(rates, default=0.0)


def _is_run(one: Found, apps: int) -> bool:
    return "utility" in one and one["setting"]["apps"] == apps and not one["setting"]["total"]


def utility_table(found: Sequence[Found], apps: int) -> str:
    """Return a line for each system and rate."""
    lines = [
        "| system | tuples/s | tight utility | loose utility | mean | tight latency, mean | p50 | p99 "
        "| loose latency, mean | p50 | p99 | delivered | micro-batches |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for system in SYSTEMS:
        mine = [one for one in found if one["setting"]["system"] == system and one["setting"]["apps"] == apps]
        for one in sorted((one for one in mine if not one["setting"]["total"]), key=lambda one: one["setting"]["rate"]):
            rate = f"{one['setting']['rate']:,.0f}"
            if "utility" not in one:
                lines.append(f"| {system} | {rate} | failed: {one.get('error', 'no result')} |" + " |" * 10)
                continue
            tight, loose = one["tight"], one["loose"]
            worth = f"{tight['utility']:.3f} | {loose['utility']:.3f} | {one['utility']:.3f}"
            times = " | ".join(f"{side[name]:.2f}" for side in (tight, loose) for name in ("mean", "p50", "p99"))
            share = (tight["delivered"] + loose["delivered"]) / 2
            batches = _batches(one)
            lines.append(f"| {system} | {rate} | {worth} | {times} | {100 * share:.0f} % | {batches:,} |")
    return "\n".join(lines)


def _batches(one: Found) -> int:
    """Return how many micro-batches delivered counted tuples: those of one query count once, not per application."""
    total: int = one["tight"]["batches"] + one["loose"]["batches"]
    return int(total * one["queries"] / one["setting"]["apps"])


def costs_table(found: Sequence[Found], apps: int) -> str:
    """Return start-up and memory of every system at the lowest rate at which it was measured."""
    lines = [
        "| system | queries | stream begins after | first result after | of all applications | peak memory, MB "
        "| processes |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for system in SYSTEMS:
        mine = [one for one in found if _is_run(one, apps) and one["setting"]["system"] == system]
        if mine:
            one = min(mine, key=lambda one: one["setting"]["rate"])
            times = f"{one['ready']:.1f} s | {one['first']:.1f} s | {one['all']:.1f} s"
            lines.append(f"| {system} | {one['queries']} | {times} | {one['peak_mb']:,.0f} | {one['processes']} |")
    return "\n".join(lines)


def single_table(found: Sequence[Found]) -> tuple[str, dict[str, float]]:
    """Return the table of drained backlogs, and Headway's ratio to plain by kind of application."""
    lines = [
        "| application | system | million tuples/s | of plain | seconds | with the first micro-batch |",
        "|---|---|---:|---:|---:|---:|",
    ]
    ratios: dict[str, float] = {}
    for kind, windowed in (("filter and map", False), ("windowed count", True)):
        mine = [one for one in found if one["setting"]["total"] and one["setting"]["windowed"] == windowed]
        best: dict[str, Found] = {}
        for one in mine:
            name = one["setting"]["system"]
            if "throughput" in one and one["throughput"] > best.get(name, {"throughput": 0.0})["throughput"]:
                best[name] = one
        plain = best.get("plain")
        for name, one in best.items():
            ratio = "" if plain is None else f"{one['throughput'] / plain['throughput']:.2f}"
            rate = one["throughput"] / 1e6
            lines.append(f"| {kind} | {name} | {rate:.2f} | {ratio} | {one['seconds']:.1f} | {one['whole']:.1f} |")
        if plain is not None and "headway" in best:
            ratios[kind] = best["headway"]["throughput"] / plain["throughput"]
        lines += [
            f"| {kind} | {one['setting']['system']} | failed: {one['error']} | | | |" for one in mine if "error" in one
        ]
    return "\n".join(lines), ratios


def verdicts(found: Sequence[Found], apps: int) -> list[str]:
    """Say what was promised and whether it is reached."""
    ours, plain = highest(found, HEADWAY, apps), highest(found, PLAIN, apps)
    lines = [f"highest rate with a mean utility above {GOOD:g}: headway {_rate(ours)}, plain (best) {_rate(plain)}"]
    if any(one["setting"]["system"] in MERGED for one in found if _is_run(one, apps)):
        by_hand = highest(found, MERGED, apps)
        lines[0] += f", merged by hand (best) {_rate(by_hand)}"
        ratio = ours / by_hand if by_hand else float("inf")
        lines.append(
            f"headway's is {ratio:.2f} of the one merged by hand; promised {BAR_MERGED:g}: {_said(ratio >= BAR_MERGED)}"
        )
    at_bar = [
        one["tight"]["utility"]
        for one in found
        if _is_run(one, apps) and one["setting"]["system"] in HEADWAY and one["setting"]["rate"] == BAR_RATE
    ]
    if at_bar:
        tight = max(at_bar)
        lines.append(
            f"headway's tight utility at {BAR_RATE:,} tuples/s is {tight:.3f}; promised {BAR_TIGHT:g}: "
            f"{_said(tight >= BAR_TIGHT)}"
        )
    return lines


def _rate(rate: float) -> str:
    return f"{rate:,.0f} tuples/s" if rate else "none"


def _said(reached: bool) -> str:
    return "reached" if reached else "missed"


def render(found: Sequence[Found]) -> str:
    """Return everything."""
    parts = []
    for apps in sorted({one["setting"]["apps"] for one in found if not one["setting"]["total"]}):
        mine = [one for one in found if one["setting"]["apps"] == apps and not one["setting"]["total"]]
        example = mine[0]["setting"]
        parts += [
            f"## {apps} applications over one stream",
            f"{example['seconds']:g} s of arrivals after {example['warm']:g} s of warm-up, watched for "
            f"{example['tail']:g} s more; latencies in seconds.",
            utility_table(mine, apps),
            "\n".join(f"- {line}" for line in verdicts(mine, apps)),
            f"## Start-up and memory with {apps} applications",
            costs_table(mine, apps),
        ]
    drained = [one for one in found if one["setting"]["total"]]
    if drained:
        table, ratios = single_table(drained)
        total = drained[0]["setting"]["total"]
        said = [
            f"- {kind}: {ratio:.2f} of plain; promised {BAR_SINGLE:g}: {_said(ratio >= BAR_SINGLE)}"
            for kind, ratio in ratios.items()
        ]
        parts += [
            f"## One application: a backlog of {total:,} tuples",
            f"At most {CAP:,} tuples in a micro-batch; from the end of the first one, in which classes are loaded and "
            "processes started, to the end of the last; the best of all rounds.",
            table,
            "\n".join(said),
        ]
    return "\n\n".join(part for part in parts if part)
