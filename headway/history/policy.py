"""Which files to merge, and which to delete: pure functions of their records."""

from __future__ import annotations

from collections.abc import Sequence

from headway.durations import Duration
from headway.history.files import Layout
from headway.history.kept import Kept, Moment, Position, finite_span
from headway.history.records import HistoryFile

_RECENT = 256
"""Files are merged among so many of the newest."""
_SHARE = 4
"""A merged file holds at most such a part of what is kept, so that not much more stays on disk."""


def neighbours(files: Sequence[HistoryFile], kept: Kept, layout: Layout) -> tuple[int, int] | None:
    """Return from where to where files are to be merged, None if there is nothing to merge.

    They are as many as fit into one file, and none makes up most of it: so a tuple is written again only when its file
    has at least doubled.
    """
    for start in range(max(0, len(files) - _RECENT), len(files) - layout.merge + 1):
        stop = _stop(files, start, kept, layout)
        sizes = [file.raw for file in files[start:stop]]
        if len(sizes) >= layout.merge and 2 * max(sizes) <= sum(sizes):
            return start, stop
    return None


def _stop(files: Sequence[HistoryFile], start: int, kept: Kept, layout: Layout) -> int:
    """Return how far a file that begins with one of the files may go."""
    keep = kept.keep
    most = keep // _SHARE if isinstance(keep, int) else None
    reach = kept.reach(keep) / _SHARE if isinstance(keep, Duration) else None
    size = rows = 0
    low: Moment | None = None
    high: Moment | None = None
    for at in range(start, len(files)):
        file = files[at]
        size, rows = size + file.raw, rows + file.rows
        low = min([one for one in (low, file.low) if one is not None], default=None)
        high = max([one for one in (high, file.high) if one is not None], default=None)
        if size > layout.largest or (most is not None and rows > most):
            return at
        if reach is not None and low is not None and high is not None and finite_span(low, high) > reach:
            return at
    return len(files)


def uncovered(files: Sequence[HistoryFile], kept: Kept, high: Moment | None, floor: Position) -> int:
    """Return how many of the oldest files `keep` does not cover and nobody needs.

    `high` is the largest time of what was deleted, `floor` the position up to which no reader needs anything.
    """
    keep, gone = kept.keep, 0
    if keep is None:
        return 0
    if isinstance(keep, int):
        spare = sum([file.rows for file in files]) - keep
        while gone < len(files) and files[gone].rows <= spare:
            spare -= files[gone].rows
            gone += 1
    else:
        largest = max([one for one in (high, *[file.high for file in files]) if one is not None], default=None)
        if largest is None:
            return 0
        limit = largest - kept.reach(keep)
        while gone < len(files) - 1 and _is_before(files[gone], limit):
            gone += 1
        while gone and files[gone - 1].last.number == files[gone].first.number:  # kept with what follows
            gone -= 1
    while gone and files[gone - 1].last > floor:
        gone -= 1
    return gone


def _is_before(file: HistoryFile, limit: Moment) -> bool:
    return file.high is None or file.high < limit
