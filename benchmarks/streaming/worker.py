"""One measurement in this process: ``python -m benchmarks.streaming.worker SETTING`` prints one line of JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.streaming.apps import App
from benchmarks.streaming.progress import Report, done_of, phases
from benchmarks.streaming.settings import HEADWAY, Setting
from benchmarks.streaming.utility import Done, worth
from headway.clock import SECOND, WallClock


def evaluate(setting: Setting, apps: Sequence[App], reports: Mapping[str, list[Report]], start: int) -> dict[str, Any]:
    """Return what a measurement has found, ready for JSON."""
    done = {name: done_of(found, start) for name, found in reports.items()}
    firsts = [min((one.moment for one in found), default=float("inf")) for found in done.values()]
    found: dict[str, Any] = {
        "setting": asdict(setting),
        "queries": len({id(one) for one in reports.values()}),
        "ready": (start - setting.spawned) / SECOND,
        "first": (start - setting.spawned) / SECOND + min(firsts, default=float("inf")),
        "all": (start - setting.spawned) / SECOND + max(firsts, default=float("inf")),
    }
    if setting.total:
        ((name, batches),) = done.items()
        found["whole"] = max(one.moment for one in batches)
        found["seconds"], found["throughput"] = drained(batches)
        found["batches"] = len(batches)
        found["phases"] = phases(reports[name], start)
        return found
    watched = start + int(setting.span.start * SECOND)
    for qos in ("tight", "loose"):
        mine = [app for app in apps if app.qos == qos]
        found[qos] = asdict(worth(mine, done, setting.rate, setting.span))
        found[f"phases of {qos}"] = phases(reports[mine[-1].name], watched)
    found["utility"] = asdict(worth(apps, done, setting.rate, setting.span))["utility"]
    return found


def drained(batches: Sequence[Done]) -> tuple[float, float]:
    """Return the seconds since the end of the first micro-batch, which loads classes, and the tuples per second."""
    first, last = min(batches, key=_moment), max(batches, key=_moment)
    seconds = last.moment - first.moment
    return seconds, (last.tuples - first.tuples) / seconds if seconds > 0 else 0.0


def _moment(done: Done) -> float:
    return done.moment


def measure(setting: Setting) -> None:
    """Measure and print; ends the process if the system does not end by itself."""
    if setting.system in HEADWAY:
        from benchmarks.streaming.ours import Ours

        ours = Ours(setting)

        def give_up() -> None:
            _print(evaluate(setting, ours.apps, ours.reports(), ours.start))
            os._exit(0)

        ours.run(give_up)
        found = evaluate(setting, ours.apps, ours.reports(), ours.start)
        _print({**found, "summary": ours.summary})
    else:
        from benchmarks.streaming.plain import Baseline

        baseline = Baseline(setting)
        baseline.launch()
        baseline.watch()
        _print(evaluate(setting, baseline.apps, baseline.reports(), baseline.start))
    # Queries of a baseline have no end; stopping many of them takes longer than measuring them.
    os._exit(0)


def _print(found: Mapping[str, Any]) -> None:
    print(json.dumps(found, default=str), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    (text,) = sys.argv[1:] if arguments is None else arguments
    setting = Setting.from_json(text)
    if not setting.spawned:
        setting = Setting.from_json(json.dumps({**asdict(setting), "spawned": WallClock().now()}))
    try:
        measure(setting)
    except Exception as error:
        _print({"setting": asdict(setting), "error": f"{type(error).__name__}: {error}".splitlines()[0]})
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
