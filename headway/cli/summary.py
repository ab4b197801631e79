"""The summary of a run: tables for people, JSON for programs."""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headway.cli.printing import emit
from headway.cli.steering import steering_text
from headway.cli.tables import text_table
from headway.cli.texts import count_text, plural, printable, ratio_text, seconds_text, share_text
from headway.errors import OutputError
from headway.paths import unusable

_REASONS = 5


def summary_text(summary: Mapping[str, Any]) -> str:
    """Return the summary for people."""
    parts = [_outputs(summary["outputs"])]
    if summary["boxes"]:
        parts.append(_boxes(summary["boxes"]))
    if summary.get("units"):
        parts.append(_units(summary["units"]))
    parts.append(_totals(summary))
    steering = steering_text(summary)
    if steering:
        parts.append(steering)
    return "\n".join(parts)


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


def _totals(summary: Mapping[str, Any]) -> str:
    seconds = summary["seconds"]
    on = f" on {summary['master']}" if summary.get("master") else ""
    together = f" ({summary['workers']} workers are {summary['workers']}00 %)" if summary["workers"] > 1 else ""
    spent = ", ".join(f"{what} {share_text(spent, seconds)}" for what, spent in summary["time"].items())
    lines = [
        f"{plural(summary['tuples_in'], 'tuple', 'tuples')} in, {count_text(summary['tuples_out'])} out, in "
        f"{seconds_text(seconds)}: {count_text(round(summary['tuples_per_second']))} tuples/s",
        f"engine {summary['engine']}{on}, policy {summary['policy']}, "
        f"{plural(summary['workers'], 'worker', 'workers')}",
        f"time{together}: {spent}",
    ]
    malformed = {name: source["malformed"] for name, source in summary["sources"].items() if source["malformed"]}
    if malformed:
        listed = ", ".join(f"source '{name}' {count_text(count)}" for name, count in malformed.items())
        lines.append(f"malformed rows: {listed}")
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
