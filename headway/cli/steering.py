"""What a summary says of overloads, dropped tuples and changes of policies, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.cli.changes import Told, together, told
from headway.cli.texts import count_text, plural, printable, seconds_text, share_text

_FIRST, _LAST = 3, 2
_SITES = 5


def steering_text(summary: Mapping[str, Any]) -> str:
    """Return it as lines; nothing where nothing happened."""
    lines = [*_overload(summary), *_shedding(summary), *_adaptive(summary)]
    return "".join(printable(line) + "\n" for line in lines)


def _overload(summary: Mapping[str, Any]) -> list[str]:
    found = summary.get("overload")
    if not found or not found["spells"]:
        return []
    times = plural(found["spells"], "time", "times")
    begun = [change for change in found["changes"] if change["change"] == "begins"]
    lines = [f"overloaded {times}, for {seconds_text(found['seconds'])} in all:"]
    lines += _changes([{**change, "change": "", "subject": ""} for change in begun])
    if summary["shedding"]["strategy"] is None and not summary["shedding"]["dropped"]:
        lines.append("  nothing was dropped: --shed on lets outputs give way by their loss graphs")
    elif not summary["shedding"]["dropped"] and summary["shedding"].get("held"):
        lines.append(f"  nothing was dropped: {summary['shedding']['held']['reason']}")
    return lines


def _shedding(summary: Mapping[str, Any]) -> list[str]:
    found = summary.get("shedding")
    if not found or not found["dropped"]:
        return []
    reasons = ", ".join(f"{reason} {count_text(count)}" for reason, count in found["dropped"].items())
    lines = [f"dropped tuples: {reasons}; drop boxes changed {plural(found['count'], 'time', 'times')}:"]
    lines += _changes(found["changes"])
    if found["active"]:
        least = sorted(found["active"].items(), key=lambda one: one[1])[:_SITES]
        kept = ", ".join(f"'{site}' keeps {share_text(keep, 1.0)}" for site, keep in least)
        more = len(found["active"]) - len(least)
        lines.append(f"  still dropping at the end: {kept}" + (f" and {count_text(more)} more" if more else ""))
    return lines


def _adaptive(summary: Mapping[str, Any]) -> list[str]:
    found = summary.get("adaptive")
    if not found:
        return []
    used = ", ".join(
        f"{name} {share_text(share, 1.0)}" for name, share in sorted(found["time"].items(), key=lambda one: -one[1])
    )
    lines = [f"{found['layer']} switched {plural(found['switches'], 'time', 'times')}; used: {used}"]
    return lines + _changes(found["changes"])


def _changes(changes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the first changes and the last; those of one moment with one reason are one line."""
    groups = together(
        [Told(change["moment"], "", change["subject"], change["change"], change["reason"]) for change in changes]
    )
    shown = [*groups[:_FIRST], *groups[max(_FIRST, len(groups) - _LAST) :]]
    lines = [f"  at {seconds_text(group[0].moment)}  {told(group)}" for group in shown]
    hidden = len(changes) - sum(map(len, shown))
    if hidden:
        lines.insert(_FIRST, f"  {plural(hidden, 'change', 'changes')} more, which --summary has")
    return lines
