"""Micro-batches: how a range of arrival numbers is divided into tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.storage.log import Log

_SMALL = 4096
"""Tuples below which a second task costs more than it helps."""
_LARGE = 1_000_000
"""The most tuples of a task, so that what it holds in memory is bounded."""


def split_tasks(
    log: Log,
    sources: Sequence[str],
    after: int,
    upto: int,
    parallelism: int,
    marks: list[Any],
    sieves: Mapping[str, Any] | None = None,
) -> list[list[Any]]:
    """Return the tasks of (after, upto]: slices, the clock, for the first one the marks, and what drop boxes keep.

    All sources are cut at the same numbers, so that a task can merge them. The clock is the moment at which the
    last of these arrivals was logged, so that a replay sees the same.
    """
    total = sum(log.count(source, after, upto) for source in sources)
    count = 1 if total < _SMALL else max(parallelism, -(-total // _LARGE))
    now = log.moment_at(upto)
    tasks: list[list[Any]] = []
    low = after
    for at in range(count):
        high = upto if at + 1 == count else min(upto, log.cut(sources, low, -(-total // count)))
        slices = [
            [one.source, one.path, one.first, one.last, one.start, one.stop, one.crc]
            for one in log.slices(sources, low, high)
        ]
        if slices or not tasks:
            tasks.append([slices, now, None if tasks else marks, sieves or None])
        low = high
    return tasks
