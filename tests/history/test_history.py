"""A history against a list of tuples: any trains, and any order of writing, merging, opening and reading."""

from __future__ import annotations

import math
import shutil
from datetime import date, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.durations import Duration
from headway.history import NULL, START, History, Kept, Position, through
from headway.network.schema import Schema
from tests.history.helpers import EPOCH, Naive, make_train, moment, nan_safe, plain, shown, store
from tests.searching import examples


class Keyed(NamedTuple):
    """A type of keys, and keys of it."""

    type: str
    values: st.SearchStrategy[Any]


KEYS = {
    "none": Keyed("int", st.integers(0, 5)),
    "int": Keyed("int", st.integers(-3, 3) | st.none()),
    "double": Keyed("double", st.sampled_from([-1.5, -0.0, 0.0, 2.5, math.inf, math.nan, None])),
    "string": Keyed("string", st.sampled_from(["", "a", "b", "é", "z" * 300, None])),
    "boolean": Keyed("boolean", st.booleans() | st.none()),
}
TIMES = {
    "none": "int",
    "bigint": "bigint",
    "double": "double",
    "timestamp": "timestamp",
    "date": "date",
}


def time_of(kind: str, seconds: int | None) -> Any:
    if kind == "timestamp":
        return None if seconds is None else moment(seconds)
    if kind == "date":
        return None if seconds is None else date(2020, 1, 1) + timedelta(seconds)
    if kind == "double":
        return math.nan if seconds is None else float(seconds)
    return seconds


def native(kind: str, seconds: int | None, stamp: int) -> float | None:
    """Return the time as comparisons have it."""
    if kind == "none":
        return stamp
    if seconds is None:
        return None
    if kind == "timestamp":
        return round((moment(seconds) - EPOCH).total_seconds()) * 1_000_000 + round(EPOCH.timestamp()) * 1_000_000
    return (date(2020, 1, 1) - date(1970, 1, 1)).days + seconds if kind == "date" else seconds


def duration(kind: str, units: int) -> Duration:
    """Return a duration of so many of what `seconds` counts."""
    if kind == "none":
        return Duration.parse(f"{units}us")
    return Duration.parse(f"{units}d" if kind == "date" else f"{units}s")


@st.composite
def trains(draw: st.DrawFn, key: str, start: int) -> tuple[list[Any], list[int], list[int]]:
    """Rows, arrival numbers and timestamps; numbers repeat and leave gaps, times are out of order."""
    count = draw(st.integers(1, 12))
    steps = draw(st.lists(st.sampled_from([0, 1, 1, 3]), min_size=count, max_size=count))
    numbers = [start + sum(steps[: at + 1]) for at in range(count)]
    keys = draw(st.lists(KEYS[key].values, min_size=count, max_size=count))
    times = draw(st.lists(st.integers(-6, 6) | st.none(), min_size=count, max_size=count))
    rows = [
        (one, None if time is None else number // 2 + time)
        for one, time, number in zip(keys, times, numbers, strict=True)
    ]
    stamps = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    return rows, numbers, [1000 * (number + stamp) for number, stamp in zip(numbers, stamps, strict=True)]


def same_key(one: Any, other: Any) -> bool:
    return nan_safe(one) == nan_safe(other) and (one is None) == (other is None)


@examples(150)
@given(st.data())
def test_it_is_a_list_of_tuples(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    key, kind = data.draw(st.sampled_from(sorted(KEYS))), data.draw(st.sampled_from(sorted(TIMES)))
    unit = st.integers(1, 12)
    keep = data.draw(st.none() | st.integers(1, 30) | unit.map(lambda units: duration(kind, units)))
    schema = Schema.parse({"k": KEYS[key].type, "t": TIMES[kind], "x": "string"})
    kept = Kept(schema, None if key == "none" else "k", None if kind == "none" else "t", keep)
    seconds: dict[int, int | None] = {}  # of x
    naive = Naive(kept, lambda row, stamp: native(kind, seconds[int(row[2])], stamp))
    path = tmp_path_factory.mktemp("history")
    history = store(path, kept)
    fresh = False  # after opening, a tuple of the last arrival number would be one that comes again
    try:
        for _ in range(data.draw(st.integers(1, 12))):
            match data.draw(st.sampled_from(["append"] * 4 + ["flush", "work", "reopen", "kill", "read", "since"])):
                case "append":
                    last = naive.tuples[-1].number + fresh if naive.tuples else 0
                    fresh = False
                    drawn, numbers, stamps = data.draw(trains(key, last))
                    rows = []
                    for one, second in drawn:
                        seconds[len(seconds)] = second
                        rows.append((one, time_of(kind, second), str(len(seconds) - 1)))
                    history.append(make_train(schema, rows, numbers, stamps))
                    naive.append(rows, numbers, stamps)
                case "flush":
                    history.flush()
                case "work":
                    while history.work():
                        pass
                case "reopen":
                    history.close()
                    history = store(path, kept)
                    fresh = True
                case "kill":  # what was written is there; the rest comes again, with something before it
                    written = sum(1 for one in naive.tuples if (one.number, one.place) <= history.durable)
                    copy = tmp_path_factory.mktemp("copy") / "history"
                    shutil.copytree(path, copy)
                    path = copy
                    history = store(path, kept)
                    start = data.draw(st.integers(0, written))
                    fresh = not repeat(history, schema, naive, start)
                case "read":
                    check_reads(history, naive, key, data)
                case "since":
                    check_since(history, naive, kind, data)
            assert history.edge == ((naive.tuples[-1].number, naive.tuples[-1].place) if naive.tuples else START)
        check_reads(history, naive, key, data)
        check_since(history, naive, kind, data)
        assert plain(shown(schema, history.read())) == plain(naive.read(START, through(10**9), lambda _: True))
    finally:
        history.close()


def repeat(history: History, schema: Schema, naive: Naive, start: int) -> bool:
    """Append again what a kill may have lost: from the first tuple of an arrival number on."""
    while start and start < len(naive.tuples) and naive.tuples[start].place:
        start -= 1
    again = naive.tuples[start:]
    for some in (again[: len(again) // 2], again[len(again) // 2 :]):
        if some:
            rows = [one.row for one in some]
            history.append(make_train(schema, rows, [one.number for one in some], [one.stamp for one in some]))
    return bool(again)


def check_reads(history: History, naive: Naive, key: str, data: st.DataObject) -> None:
    last = naive.tuples[-1].number + 2 if naive.tuples else 2
    positions = st.integers(-1, last) | st.builds(Position, st.integers(0, last), st.integers(0, 2))
    after, upto = data.draw(positions), data.draw(positions | st.none())
    start = through(after) if isinstance(after, int) else after
    end = through(last) if upto is None else through(upto) if isinstance(upto, int) else upto
    wanted: Any = None
    accepts: Any = lambda _: True  # noqa: E731
    if data.draw(st.booleans()):
        values = st.integers(-1, last) if key == "none" else KEYS[key].values
        low, high = data.draw(values), data.draw(values)
        bounds = [one for one in (low, high) if one is not None and nan_safe(one) != "NaN"]
        if len(bounds) == 2 and data.draw(st.booleans()):
            wanted = (min(bounds), max(bounds))
            accepts = lambda one: one is not None and wanted[0] <= one <= wanted[1]  # noqa: E731
        else:
            wanted = NULL if low is None else low
            accepts = lambda one: same_key(one, low)  # noqa: E731
    columns = data.draw(st.none() | st.sampled_from([["x"], ["t", "x"], []]))
    expected = naive.read(start, end, accepts)
    names = naive.kept.schema.names
    cut = [
        (
            number,
            stamp,
            tuple(one if columns is None or name in columns else "-" for name, one in zip(names, row, strict=True)),
        )
        for number, stamp, row in expected
    ]
    plan = history.plan(wanted, after, upto, columns)
    reader = history.read(after, upto, wanted, columns)
    found = []
    while (train := reader.next(data.draw(st.integers(1, 9)))) is not None:
        found += shown(naive.kept.schema, [train])
    assert plain(found) == plain(cut)
    assert reader.bytes_read <= plan.bytes
    assert str(plan)


def check_since(history: History, naive: Naive, kind: str, data: st.DataObject) -> None:
    last = naive.tuples[-1].number if naive.tuples else -1
    upto = data.draw(st.integers(0, max(0, last)) | st.just(last))
    since = data.draw(st.none() | st.integers(0, 15).map(lambda units: duration(kind, units)))
    found = history.first_since(since, upto)
    number, complete = naive.since(since, upto)
    assert found.number == number
    if upto >= history._manifest.dropped.last.number:  # for a seam before that, what belonged to it is not known
        assert found.complete == complete
    kept = [one for one in naive.covered() if one.number <= upto]
    assert found.oldest == ((kept[0].number, kept[0].place) if kept else None)
    times = [one.time for one in kept if one.time is not None]
    assert found.time == min(times, default=None)
