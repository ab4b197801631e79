"""Files in the trace event format, which Perfetto (ui.perfetto.dev) and chrome://tracing draw as a timeline.

A file is one JSON object: ``traceEvents``, the events, and ``otherData``, metadata of the whole trace. The kinds of
events (``ph``) used here: X, a span of time on a thread; C, counter values from a moment on; i, an instant; M, the
names of the process and its threads. Times are microseconds, with a fraction.

Each event is on a line of its own, so that a long file can be written and read without holding it in memory.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from headway.clock import MICROSECOND
from headway.errors import InputError
from headway.paths import unusable, whole

Event = dict[str, Any]

EXPECTED = "a trace that 'headway run --trace' wrote"
_PROCESS = 1
_END = "]}"
_ODD = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_TROUBLE = (OSError, UnicodeDecodeError)


def names(process: str, threads: Mapping[int, str]) -> list[Event]:
    """Return the events that name the process and its threads, which are shown in the order of their numbers."""
    made = [_metadata("process_name", 0, {"name": process})]
    for thread, name in threads.items():
        made.append(_metadata("thread_name", thread, {"name": name}))
        made.append(_metadata("thread_sort_index", thread, {"sort_index": thread}))
    return made


def complete(name: str, kind: str, thread: int, begin: int, end: int, args: Event) -> Event:
    """Return the event of a span from `begin` to `end` (ns). Spans nested in it must come after it."""
    return {
        "name": name,
        "cat": kind,
        "ph": "X",
        "ts": begin / MICROSECOND,
        "dur": (end - begin) / MICROSECOND,
        "pid": _PROCESS,
        "tid": thread + 1,
        "args": args,
    }


def counter(name: str, moment: int, values: Mapping[str, int]) -> Event:
    """Return the event of a counter with these values from a moment (ns) on."""
    return {"name": name, "ph": "C", "ts": moment / MICROSECOND, "pid": _PROCESS, "args": dict(values)}


def instant(name: str, kind: str, moment: int, args: Event) -> Event:
    """Return the event of something that happens to the whole process at a moment (ns)."""
    return {"name": name, "cat": kind, "ph": "i", "ts": moment / MICROSECOND, "pid": _PROCESS, "s": "p", "args": args}


def span(event: Mapping[str, Any]) -> tuple[int, int]:
    """Return when a complete event begins and ends (ns), exactly as given to `complete`."""
    begin = moment(event)
    return begin, begin + round(float(event["dur"]) * MICROSECOND)


def moment(event: Mapping[str, Any]) -> int:
    """Return when an event begins (ns)."""
    return round(float(event["ts"]) * MICROSECOND)


def thread(event: Mapping[str, Any]) -> int:
    """Return an event's thread number as given to `complete`."""
    return int(event["tid"]) - 1


def to_json(number: float) -> float | str:
    """Return a number in a form JSON allows: infinities and NaN become strings."""
    return number if math.isfinite(number) else str(float(number))


def from_json(value: float | str) -> float:
    """Return the number that was given to `to_json`."""
    if isinstance(value, str):
        return _ODD[value]
    if not isinstance(value, int | float):
        raise TypeError(f"a number is expected, not {value!r:.40}")
    return value


def document(about: Mapping[str, Any], events: Iterable[Event]) -> dict[str, Any]:
    """Return the whole file as one object."""
    return {"displayTimeUnit": "ms", "otherData": dict(about), "traceEvents": list(events)}


def write_events(path: Path, about: Mapping[str, Any], events: Iterable[Event]) -> None:
    """Write a file event by event; it appears under its name once it is complete. Raises OutputError."""
    with whole(path, "trace") as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        file.write(_dumps(document(about, ()))[: -len(_END)] + "\n")
        comma = ""
        for event in events:
            file.write(comma + _dumps(event))
            comma = ",\n"
        file.write(f"\n{_END}\n")


def read_events(path: Path, mark: str) -> tuple[Mapping[str, Any], Iterator[Event]]:
    """Return ``otherData``, whose ``format`` must be `mark`, and the events. Raises InputError.

    A file in the layout of `write_events` is read line by line, one that another program reformatted as a whole.
    """
    wrong = unusable(path)
    if wrong:
        raise InputError(f"'{path}' cannot be read: {wrong}")
    if path.is_dir():
        raise InputError(f"'{path}' is a directory; expected {EXPECTED}")
    try:
        with path.open(encoding="utf-8-sig") as file:
            try:
                return _about(json.loads(file.readline().rstrip("\n") + _END), path, mark), _lines(path)
            except ValueError:
                file.seek(0)
                whole = json.load(file)
        return _about(whole, path, mark), iter(whole["traceEvents"])
    except FileNotFoundError:
        raise InputError(f"there is no file '{path}'; expected {EXPECTED}") from None
    except _TROUBLE as error:
        raise InputError(f"'{path}' cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except (ValueError, RecursionError) as error:  # the JSON parser's message about another kind of file would not help
        raise InputError(f"'{path}' is not {EXPECTED}: it is not valid JSON") from error


def _lines(path: Path) -> Iterator[Event]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            file.readline()
            for line in file:
                text = line.strip()
                if text == _END:
                    return
                if text:
                    yield json.loads(text.removesuffix(","))
    except _TROUBLE as error:
        raise InputError(f"'{path}' cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"'{path}' is damaged: {error}") from error
    raise InputError(f"'{path}' is cut off: its last line is missing")


def _about(whole: Any, path: Path, mark: str) -> Mapping[str, Any]:
    about = whole.get("otherData") if isinstance(whole, dict) else None
    if not isinstance(about, dict) or about.get("format") != mark or not isinstance(whole.get("traceEvents"), list):
        raise InputError(f'\'{path}\' is not {EXPECTED}: it does not say "format": "{mark}"')
    return about


def _metadata(name: str, thread: int, args: Event) -> Event:
    return {"name": name, "ph": "M", "pid": _PROCESS, "tid": thread + 1, "args": args}


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
