"""The report of a run: its summary, as tables for people and as JSON, and the first tuples of outputs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from headway.cli.printing import (
    count_text,
    emit,
    listed,
    plural,
    printable,
    ratio_text,
    seconds_text,
    share_text,
    text_table,
)
from headway.connectors.output_files import ImmediateSink
from headway.connectors.texts import render_texts
from headway.engines.showing import cut
from headway.network import Network
from headway.network.schema import Schema
from headway.paths import check_writable, whole

_REASONS = 5
OUTPUTS, BOXES, UNITS = 20, 10, 10
"""How many rows the tables of a short summary have; up to _FEW more are shown rather than left out."""
_FEW = 2
_SOURCES = _LATE = 5
HINT = "--verbose shows all, --summary PATH.json has all"
_FIRST_CHANGES, _LAST_CHANGES = 3, 2
_SITES = 5
NAMED = 3
"""How many changes with the same reason are listed; the others are counted."""
PREVIEW_ROWS = 10
"""How many tuples of an output are kept."""
WHOLE = 5
"""Up to this many outputs are shown with all kept tuples."""
FEW_ROWS = 3
"""How many tuples of each are shown if there are more outputs."""


def summary_text(summary: Mapping[str, Any], verbose: bool = False, network: Network | None = None) -> str:
    """Format the summary for people: about a screen, whatever the size of the network, unless it is `verbose`.

    With the `network` it also names boxes with too little slack. If there are many, it shows the outputs with the
    lowest worth, and the boxes and streaming queries that took longest; boxes with dead letters come first.
    """
    outputs, boxes, units = summary["outputs"], summary["boxes"], summary.get("units") or {}
    some, left = _foremost(outputs, None if verbose else OUTPUTS, _worst_off)
    columns = {**_OUTPUT, **_LOSSY} if any(output["shed"] for output in some.values()) else _OUTPUT
    parts = [_table("output", some, columns) + _more(left, "output", "outputs", "none worse off than these")]
    if boxes:
        some, left = _foremost(
            boxes, None if verbose else BOXES, lambda box: (-bool(box["dead_letters"]), -box["seconds"])
        )
        spent = sum(box["seconds"] for box in boxes.values()) - sum(box["seconds"] for box in some.values())
        parts.append(_table("box", some, _BOX) + _more(left, "box", "boxes", f"which took {spent:.3f} seconds"))
    if units:
        some, left = _foremost(units, None if verbose else UNITS, lambda unit: -unit["seconds"])
        parts.append(_table("streaming query", some, _UNIT) + _more(left, "streaming query", "streaming queries", ""))
    parts.append(_totals(summary, {} if network is None else slacks(network)))
    steering = steering_text(summary)
    if steering:
        parts.append(steering)
    return "\n".join(parts)


def _foremost(rows: Mapping[str, Any], limit: int | None, key: Callable[[Any], Any]) -> tuple[Mapping[str, Any], int]:
    """Return the rows to show, and the number left out: all, in their order, or the first by `key`."""
    if limit is None or len(rows) <= limit + _FEW:
        return rows, 0
    return dict(sorted(rows.items(), key=lambda row: key(row[1]))[:limit]), len(rows) - limit


def _worst_off(output: Mapping[str, Any]) -> tuple[float, float]:
    """Return the key that sorts outputs by worth, then by descending latency; one without a worth comes first."""
    worth, late = output["worth"], output["latency"]["p99"]
    return (-1.0 if worth is None else worth), -(late or 0.0)


def _more(left: int, one: str, many: str, what: str) -> str:
    about = f", {what}" if what else ""
    return f"… and {plural(left, f'more {one}', f'more {many}')}{about}; {HINT}\n" if left else ""


def _count(key: str) -> Callable[[Any], str]:
    return lambda row: count_text(row[key])


def _latency(key: str) -> Callable[[Any], str]:
    return lambda output: seconds_text(output["latency"][key])


Columns = Mapping[str, Callable[[Any], str]]
"""By title: a function from a row to the text of the cell."""
_OUTPUT: Columns = {
    "tuples": _count("tuples"),
    "latency mean": _latency("mean"),
    "p50": _latency("p50"),
    "p99": _latency("p99"),
    "utility": lambda output: ratio_text(output["utility"]),
    "shed": _count("shed"),
}
_LOSSY: Columns = {
    "kept": lambda output: share_text(output["kept"], 1.0),
    "worth": lambda output: ratio_text(output["worth"]),
}
"""Columns for runs that shed load."""
_BOX: Columns = {
    "calls": _count("calls"),
    "in": _count("tuples_in"),
    "out": _count("tuples_out"),
    "selectivity": lambda box: ratio_text(box["selectivity"]) if box["tuples_in"] else "-",
    "seconds": lambda box: f"{box['seconds']:.3f}",
    "ignored": _count("ignored"),
    "dead letters": _count("dead_letters"),
}
_UNIT: Columns = {
    "batches": _count("batches"),
    "tuples": _count("tuples"),
    "seconds": lambda unit: f"{unit['seconds']:.3f}",
    "cost per batch": lambda unit: seconds_text(unit["cost_per_batch"]),
    "per tuple": lambda unit: seconds_text(unit["cost_per_tuple"]),
}


def _table(kind: str, rows: Mapping[str, Any], columns: Columns) -> str:
    cells = [(name, *[told(row) for told in columns.values()]) for name, row in rows.items()]
    return text_table((kind, *columns), cells, "l" + "r" * len(columns))


def slacks(network: Network) -> dict[str, str]:
    """Return by box with an order the allowed slack as text: ``0``, or ``0 and 400`` for two inputs.

    A timeout, which can also make tuples late, is added.
    """
    found = {}
    for box in network.boxes:
        allowed = [str(order.slack) for order in box.spec.orderings]
        if allowed:
            timeout = box.spec.timeout
            found[box.name] = " and ".join(allowed) + ("" if timeout is None else f", timeout {timeout}")
    return found


def _late(boxes: Mapping[str, Any], allowed: Mapping[str, str]) -> list[str]:
    """Return a line about tuples that came too late, if there are any."""
    late = {name: box["ignored"] for name, box in boxes.items() if box["ignored"]}
    if not late:
        return []
    slack = {name: f" (slack {allowed[name]})" if name in allowed else "" for name in late}
    if len(late) == 1:
        ((name, count),) = late.items()
        return [f"box '{name}' ignored {plural(count, 'tuple')} that came later than its slack allows{slack[name]}"]
    most = sorted(late.items(), key=lambda one: -one[1])
    told = listed([f"'{name}' {count_text(count)}{slack[name]}" for name, count in most], _LATE, "box", "boxes")
    many = f"{len(late)} boxes ignored {count_text(sum(late.values()))} tuples"
    return [f"{many} that came later than their slack allows: {told}"]


def _totals(summary: Mapping[str, Any], allowed: Mapping[str, str]) -> str:
    seconds = summary["seconds"]
    before = summary.get("tuples_before", 0)
    earlier = f" ({count_text(before)} of them before it continued)" if before else ""
    on = f" on {summary['master']}" if summary.get("master") else ""
    together = f" ({summary['workers']} workers are {summary['workers']}00 %)" if summary["workers"] > 1 else ""
    spent = ", ".join(f"{what} {share_text(spent, seconds)}" for what, spent in summary["time"].items())
    lines = [
        f"{plural(summary['tuples_in'], 'tuple')} in{earlier}, {count_text(summary['tuples_out'])} out, in "
        f"{seconds_text(seconds)}: {count_text(round(summary['tuples_per_second']))} tuples/s",
        f"engine {summary['engine']}{on}, policy {summary['policy']}, {plural(summary['workers'], 'worker')}",
        f"time{together}: {spent}",
    ]
    malformed = {name: source["malformed"] for name, source in summary["sources"].items() if source["malformed"]}
    if malformed:
        most = sorted(malformed.items(), key=lambda one: -one[1])
        told = [f"source '{name}' {count_text(count)}" for name, count in most]
        lines.append(f"malformed rows: {listed(told, _SOURCES, 'source')}")
    lines += _late(summary["boxes"], allowed)
    letters = summary["dead_letters"]
    if letters["total"]:
        lines.append(f"dead letters: {count_text(letters['total'])}; the most frequent reasons:")
        lines += [
            f"  {count_text(reason['tuples'])} × '{reason['box']}': {reason['reason']}"
            for reason in letters["reasons"][:_REASONS]
        ]
    state = summary.get("state")
    if state and state["can_continue"]:
        lines.append(
            f"stopped: '{state['path']}' holds everything up to this point; the same command, with --state "
            f"{state['path']}, continues from there"
        )
    elif summary["interrupted"]:
        lines.append("interrupted: the inputs were cut off; everything that had arrived was processed and delivered")
    return "".join(printable(line) + "\n" for line in lines)


def to_json(summary: Mapping[str, Any]) -> str:
    """Format the summary as JSON; numbers that JSON cannot represent become null."""
    return json.dumps(_plain(summary), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def check_summary_path(path: Path) -> None:
    """Raise an OutputError before a long run if the summary cannot be written."""
    if str(path) != "-":
        check_writable(path, "summary", "summary.json")


def write_summary(path: Path, summary: Mapping[str, Any]) -> None:
    """Write the summary as JSON; the file appears when it is complete. ``-`` is standard output."""
    text = to_json(summary)
    if str(path) == "-":
        emit(text)
        return
    with whole(path, "summary") as partial:
        partial.write_text(text, "utf-8")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    return _plain(value.item()) if hasattr(value, "item") else str(value)


# Overloads, dropped tuples and policy changes


def steering_text(summary: Mapping[str, Any]) -> str:
    """Format the section on these as lines; empty if nothing happened."""
    lines = [*_overload(summary), *_shedding(summary), *_adaptive(summary)]
    return "".join(printable(line) + "\n" for line in lines)


def _overload(summary: Mapping[str, Any]) -> list[str]:
    found = summary.get("overload")
    if not found or not found["spells"]:
        return []
    times = plural(found["spells"], "time")
    begun = [change for change in found["changes"] if change["change"] == "begins"]
    lines = [f"overloaded {times}, for {seconds_text(found['seconds'])} in total:"]
    lines += _change_lines([{**change, "change": "", "subject": ""} for change in begun])
    if summary["shedding"]["strategy"] is None and not summary["shedding"]["dropped"]:
        lines.append("  nothing was dropped: --shed on drops tuples according to the outputs' loss graphs")
    elif not summary["shedding"]["dropped"] and summary["shedding"].get("held"):
        lines.append(f"  nothing was dropped: {summary['shedding']['held']['reason']}")
    return lines


def _shedding(summary: Mapping[str, Any]) -> list[str]:
    found = summary.get("shedding")
    if not found or not found["dropped"]:
        return []
    reasons = ", ".join(f"{reason} {count_text(count)}" for reason, count in found["dropped"].items())
    lines = [f"dropped tuples: {reasons}; drop boxes changed {plural(found['count'], 'time')}:"]
    lines += _change_lines(found["changes"])
    if found["active"]:
        least = sorted(found["active"].items(), key=lambda one: one[1])
        kept = listed([f"'{site}' keeps {share_text(keep, 1.0)}" for site, keep in least], _SITES)
        lines.append(f"  still dropping at the end: {kept}")
    return lines


def _adaptive(summary: Mapping[str, Any]) -> list[str]:
    found = summary.get("adaptive")
    if not found:
        return []
    used = ", ".join(
        f"{name} {share_text(share, 1.0)}" for name, share in sorted(found["time"].items(), key=lambda one: -one[1])
    )
    lines = [f"{found['layer']} switched {plural(found['switches'], 'time')}; used: {used}"]
    return lines + _change_lines(found["changes"])


def _change_lines(changes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Format the first and last changes; those with the same time and reason share a line."""
    groups = together(
        [Told(change["moment"], "", change["subject"], change["change"], change["reason"]) for change in changes]
    )
    shown = [*groups[:_FIRST_CHANGES], *groups[max(_FIRST_CHANGES, len(groups) - _LAST_CHANGES) :]]
    lines = [f"  at {seconds_text(group[0].moment)}  {told(group)}" for group in shown]
    hidden = len(changes) - sum(map(len, shown))
    if hidden:
        lines.insert(_FIRST_CHANGES, f"  {plural(hidden, 'more change')}, all listed by --summary")
    return lines


class Told(NamedTuple):
    """A change to report; `moment` is a number, or another value to sort by."""

    moment: Any
    kind: str
    subject: str
    what: str
    reason: str


def together(changes: Iterable[Told], across: bool = False) -> list[list[Told]]:
    """Group changes that belong together, ordered by the first of each group.

    Those of the same kind, reason and moment do: one reading of the monitor may change thirty outputs. With `across`,
    the moment may differ.
    """
    groups: dict[tuple[Any, ...], list[Told]] = {}
    for change in changes:
        key = (change.kind, change.reason) if across else (change.moment, change.kind, change.reason)
        groups.setdefault(key, []).append(change)
    return list(groups.values())


def told(group: Sequence[Told]) -> str:
    """Format a group of changes as one line: what changed, how and why; preceded by their number if more than one."""
    first = group[0]
    if len(group) == 1:
        return _joined(first.subject, first.what, first.reason)
    if len({one.what for one in group}) == 1:
        who = _joined(_listed(dict.fromkeys(one.subject for one in group)), first.what)
    else:
        who = _listed(dict.fromkeys(_joined(one.subject, one.what) for one in group))
    return f"×{count_text(len(group))}  {_joined(who, first.reason)}"


def _joined(*parts: str) -> str:
    return ": ".join(part for part in parts if part)


def _listed(names: Iterable[str]) -> str:
    return listed([name for name in names if name], NAMED, between="; ", end=";")


# The first tuples of an output


class Preview(ImmediateSink):
    """A sink that keeps the first tuples as text and counts the rest."""

    def __init__(self, name: str, schema: Schema) -> None:
        self._name, self._schema = name, schema
        self._rows: list[tuple[str, ...]] = []
        self.count = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Keep the rows still needed as text; the batch itself is not kept."""
        wanted = PREVIEW_ROWS - len(self._rows)
        self.count += batch.num_rows
        if wanted > 0:
            columns = [_texts(column) for column in batch.slice(0, wanted).columns]
            self._rows += [tuple(row) for row in zip(*columns, strict=True)]

    def text(self, rows: int = PREVIEW_ROWS) -> str:
        """Format the first tuples as a table with a title, and say how many more there are."""
        title = f"output '{self._name}': {plural(self.count, 'tuple')}\n"
        if not self._rows:
            return title
        left = "".join("l" if pa.types.is_string(field.type) else "r" for field in self._schema)
        shown = self._rows[:rows]
        table = text_table(self._schema.names, shown, left)
        more = self.count - len(shown)
        hint = f"… and {count_text(more)} more; --output {self._name}=PATH keeps them all\n" if more else ""
        return title + table + hint


def previews_text(previews: Sequence[Preview], verbose: bool = False) -> str:
    """Format the tables of all outputs; if there are many, only some tuples of the first outputs that have any.

    With `verbose`, all kept tuples are shown.
    """
    if verbose or len(previews) <= WHOLE:
        return "\n".join(preview.text() for preview in previews)
    filled = [preview for preview in previews if preview.count]
    parts = [preview.text(FEW_ROWS) for preview in filled[:WHOLE]]
    empty, more = len(previews) - len(filled), len(filled) - WHOLE
    rest = [f"{plural(more, 'more output')} with tuples"] if more > 0 else []
    rest += [f"{plural(empty, 'output')} without any"] if empty else []
    if rest:
        parts.append(f"… and {', '.join(rest)}; --output NAME=PATH keeps one, --verbose shows all\n")
    return "\n".join(parts)


def _texts(column: Any) -> list[str]:
    return ["NULL" if text is None else cut(text) for text in render_texts(column).to_pylist()]
