"""The summary of a run: tables for people, JSON for programs."""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headway.cli.printing import emit
from headway.cli.steering import steering_text
from headway.cli.tables import text_table
from headway.cli.texts import count_text, plural, printable, ratio_text, seconds_text, share_text
from headway.errors import OutputError
from headway.network import Network
from headway.paths import unusable

_REASONS = 5
OUTPUTS, BOXES, UNITS = 20, 10, 10
"""How many lines the tables of a short summary have; two more are shown rather than left out."""
_FEW = 2
_SOURCES = _LATE = 5
HINT = "--verbose shows all, --summary PATH.json has all"


def summary_text(summary: Mapping[str, Any], verbose: bool = False, network: Network | None = None) -> str:
    """Return the summary for people: about a screen, whatever the size of the network, unless it is `verbose`.

    With the `network` it also says which slack was too small. Of many outputs those are shown that are worst off; of
    many boxes and streaming queries those that took longest, boxes with dead letters before the others.
    """
    outputs, boxes, units = summary["outputs"], summary["boxes"], summary.get("units") or {}
    shown = {} if verbose else {"outputs": OUTPUTS, "boxes": BOXES, "units": UNITS}
    some, left = _foremost(outputs, shown.get("outputs"), _worst_off)
    parts = [_outputs(some) + _more(left, "output", "outputs", "none worse off than these")]
    if boxes:
        some, left = _foremost(boxes, shown.get("boxes"), lambda box: (-bool(box["dead_letters"]), -box["seconds"]))
        spent = sum(box["seconds"] for box in boxes.values()) - sum(box["seconds"] for box in some.values())
        parts.append(_boxes(some) + _more(left, "box", "boxes", f"which took {spent:.3f} seconds"))
    if units:
        some, left = _foremost(units, shown.get("units"), lambda unit: -unit["seconds"])
        parts.append(_units(some) + _more(left, "streaming query", "streaming queries", ""))
    parts.append(_totals(summary, {} if network is None else slacks(network)))
    steering = steering_text(summary)
    if steering:
        parts.append(steering)
    return "\n".join(parts)


def _foremost(rows: Mapping[str, Any], limit: int | None, key: Callable[[Any], Any]) -> tuple[Mapping[str, Any], int]:
    """Return the rows that a table shows, and how many it leaves out: all as they stand, or the first by a key."""
    if limit is None or len(rows) <= limit + _FEW:
        return rows, 0
    return dict(sorted(rows.items(), key=lambda row: key(row[1]))[:limit]), len(rows) - limit


def _worst_off(output: Mapping[str, Any]) -> tuple[float, float]:
    """Order outputs by what their results are worth, then by latency; one that delivers nothing comes first."""
    worth, late = output["worth"], output["latency"]["p99"]
    return (-1.0 if worth is None else worth), -(late or 0.0)


def _more(left: int, one: str, many: str, what: str) -> str:
    about = f", {what}" if what else ""
    return f"… and {count_text(left)} more {one if left == 1 else many}{about}; {HINT}\n" if left else ""


def _outputs(outputs: Mapping[str, Any]) -> str:
    rows = []
    lossy = any(output["shed"] for output in outputs.values())
    for name, output in outputs.items():
        latency = output["latency"]
        times = [seconds_text(latency[key]) for key in ("mean", "p50", "p99")]
        row = [name, count_text(output["tuples"]), *times, ratio_text(output["utility"]), count_text(output["shed"])]
        if lossy:
            row += [share_text(output["kept"], 1.0), ratio_text(output["worth"])]
        rows.append(row)
    header = ["output", "tuples", "latency mean", "p50", "p99", "utility", "shed"]
    if lossy:
        header += ["kept", "worth"]
    return text_table(header, rows, "l" + "r" * (len(header) - 1))


def _boxes(boxes: Mapping[str, Any]) -> str:
    header = ("box", "calls", "in", "out", "selectivity", "seconds", "ignored", "dead letters")
    rows = [
        (
            name,
            count_text(box["calls"]),
            count_text(box["tuples_in"]),
            count_text(box["tuples_out"]),
            ratio_text(box["selectivity"]) if box["tuples_in"] else "-",
            f"{box['seconds']:.3f}",
            count_text(box["ignored"]),
            count_text(box["dead_letters"]),
        )
        for name, box in boxes.items()
    ]
    return text_table(header, rows, "lrrrrrrr")


def _units(units: Mapping[str, Any]) -> str:
    header = ("streaming query", "batches", "tuples", "seconds", "cost per batch", "per tuple")
    rows = [
        (
            name,
            count_text(unit["batches"]),
            count_text(unit["tuples"]),
            f"{unit['seconds']:.3f}",
            seconds_text(unit["cost_per_batch"]),
            seconds_text(unit["cost_per_tuple"]),
        )
        for name, unit in units.items()
    ]
    return text_table(header, rows, "lrrrrr")


def slacks(network: Network) -> dict[str, str]:
    """Return by box that has an order what slack it allows, as text: ``0``, or ``0 and 400`` for two inputs.

    A timeout, which makes tuples late as well, stands beside it.
    """
    found = {}
    for box in network.boxes:
        allowed = [str(order.slack) for order in box.spec.orderings]
        if allowed:
            timeout = box.spec.timeout
            found[box.name] = " and ".join(allowed) + ("" if timeout is None else f", timeout {timeout}")
    return found


def _late(boxes: Mapping[str, Any], allowed: Mapping[str, str]) -> list[str]:
    """Return a line about tuples that came too late, if any did."""
    late = {name: box["ignored"] for name, box in boxes.items() if box["ignored"]}
    if not late:
        return []
    most = sorted(late.items(), key=lambda one: -one[1])[:_LATE]
    slack = {name: f" (slack {allowed[name]})" if name in allowed else "" for name in late}
    if len(late) == 1:
        ((name, count),) = most
        tuples = plural(count, "tuple", "tuples")
        return [f"box '{name}' ignored {tuples} that came later than its slack allows{slack[name]}"]
    listed = ", ".join(f"'{name}' {count_text(count)}{slack[name]}" for name, count in most)
    more = len(late) - len(most)
    return [
        f"{len(late)} boxes ignored {count_text(sum(late.values()))} tuples that came later than their slack allows: "
        + listed
        + (f" and {plural(more, 'more box', 'more boxes')}" if more else "")
    ]


def _totals(summary: Mapping[str, Any], allowed: Mapping[str, str]) -> str:
    seconds = summary["seconds"]
    before = summary.get("tuples_before", 0)
    earlier = f" ({count_text(before)} of them before it went on)" if before else ""
    on = f" on {summary['master']}" if summary.get("master") else ""
    together = f" ({summary['workers']} workers are {summary['workers']}00 %)" if summary["workers"] > 1 else ""
    spent = ", ".join(f"{what} {share_text(spent, seconds)}" for what, spent in summary["time"].items())
    lines = [
        f"{plural(summary['tuples_in'], 'tuple', 'tuples')} in{earlier}, {count_text(summary['tuples_out'])} out, in "
        f"{seconds_text(seconds)}: {count_text(round(summary['tuples_per_second']))} tuples/s",
        f"engine {summary['engine']}{on}, policy {summary['policy']}, "
        f"{plural(summary['workers'], 'worker', 'workers')}",
        f"time{together}: {spent}",
    ]
    malformed = {name: source["malformed"] for name, source in summary["sources"].items() if source["malformed"]}
    if malformed:
        most = sorted(malformed.items(), key=lambda one: -one[1])[:_SOURCES]
        listed = ", ".join(f"source '{name}' {count_text(count)}" for name, count in most)
        more = len(malformed) - len(most)
        lines.append(f"malformed rows: {listed}" + (f" and {count_text(more)} more sources" if more else ""))
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
            f"stopped: '{state['path']}' keeps everything up to here; the same command again, with --state "
            f"{state['path']}, goes on from there"
        )
    elif summary["interrupted"]:
        lines.append("interrupted: the inputs were cut off; everything that had arrived was processed and delivered")
    return "".join(printable(line) + "\n" for line in lines)


def to_json(summary: Mapping[str, Any]) -> str:
    """Return the summary as JSON; numbers that JSON does not have become null."""
    return json.dumps(_plain(summary), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def check_summary_path(path: Path) -> None:
    """Raise an OutputError now, not after a long run, if the summary cannot be written there."""
    if str(path) == "-":
        return
    wrong = unusable(path)
    if wrong:
        raise OutputError(f"summary: '{path}' cannot be written: {wrong}")
    if path.is_dir():
        raise OutputError(f"summary: '{path}' is a directory; expected a file such as summary.json")
    if not path.parent.is_dir():
        raise OutputError(f"summary: the folder '{path.parent}' for '{path.name}' does not exist")
    if not os.access(path if _special(path) else path.parent, os.W_OK):
        raise OutputError(f"summary: '{path}' cannot be written: no permission")


def write_summary(path: Path, summary: Mapping[str, Any]) -> None:
    """Write the summary as JSON; the file appears when it is whole. ``-`` is standard output."""
    text = to_json(summary)
    if str(path) == "-":
        emit(text)
        return
    partial = path if _special(path) else path.parent / f".{path.name}.{secrets.token_hex(4)}.partial"
    try:
        partial.write_text(text, "utf-8")
        if partial != path:
            partial.replace(path)
    except OSError as error:
        if partial != path:
            with contextlib.suppress(OSError):
                partial.unlink()
        raise OutputError(f"summary: '{path}' cannot be written: {error.strerror or error}") from error


def _special(path: Path) -> bool:
    """Whether it is a device or a pipe, which a rename would replace."""
    return path.exists() and not path.is_file()


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
