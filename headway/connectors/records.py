"""Find where the records of CSV text start and end, even with stray quotes.

Records are found by their quotes alone, so a stray quote can merge many lines into one record. `scan` finds what
follows from the text; the reader discovers that such a record is not a row, and splits it with `part`. Both depend only
on the text, never on how it was divided into reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from headway.columns import Int64s

OPEN = "a quote is opened but not closed"
STRAY = "a quote stands where it does not belong"

_QUOTED = re.compile(rb'(?:(?<=[,\n\r])|\A)"[^"]*+(?:""[^"]*+)*+(?:"(?:(?=[,\n\r])|\Z|())|())')
"""A quoted field; group 1 if other text follows it, group 2 if the bytes end before its closing quote."""

_BREAK = re.compile(rb"[\r\n]")
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)")


@dataclass(frozen=True, slots=True)
class Records:
    """Where complete records start and end (at their line break), and which are broken."""

    starts: Int64s
    ends: Int64s
    broken: dict[int, str]
    """The reason for each broken record, by its start."""


def scan(data: bytes, final: bool) -> Records:
    """Find the records in bytes that begin with one. A line break inside a quoted field does not end a record.

    If other text follows a quoted field, only its first line is broken: usually a quote was not closed, and the next
    quote belongs to another record. An open quote stops the scan unless the bytes are `final`, because its end may
    still be read.
    """
    view = np.frombuffer(data, np.uint8)
    breaks = view == 10
    lone = view == 13
    lone[:-1] &= ~breaks[1:]
    lone[-1:] &= final  # otherwise its line feed may still be read
    ends: Int64s = np.flatnonzero(breaks | lone)
    spans: list[tuple[int, int]] = []
    wrong: dict[int, str] = {}
    stop = at = 0
    while match := _QUOTED.search(data, at):
        at = match.end()
        if match.lastindex is None:
            spans.append(match.span())
        elif match.lastindex == 2 and not final:
            stop = match.start()
            ends = ends[ends < stop]
            break
        else:
            wrong[match.start()] = STRAY if match.lastindex == 1 else OPEN
            line = _BREAK.search(data, match.start())
            if line is None:
                break
            at = line.start()
    if spans:
        begin, end = np.array(spans, np.int64).T
        within = np.searchsorted(begin, ends, "right") - 1
        ends = ends[(within < 0) | (ends >= end[within])]
    starts: Int64s = np.concatenate([np.zeros(1, np.int64), ends + 1])[: len(ends)]
    broken: dict[int, str] = {}
    for quote, reason in wrong.items():
        record = int(np.searchsorted(starts, quote, "right")) - 1
        if record >= 0 and quote < ends[record]:  # otherwise the record is incomplete
            broken.setdefault(int(starts[record]), reason)
    return Records(starts, ends, broken)


def filled(data: bytes, records: Records) -> Records:
    """Return the records without blank lines."""
    pairs = zip(records.starts.tolist(), records.ends.tolist(), strict=True)
    keep = np.array([bool(data[start:end].strip(b"\r\n")) for start, end in pairs], np.bool_)
    return Records(records.starts[keep], records.ends[keep], records.broken)


def first_break(data: bytes) -> int:
    """Return the position of the first line's end, a line feed or a lone carriage return; -1 if there is none."""
    found = _LINE.match(data)
    return -1 if found is None else found.end() - 1


def several_lines(data: bytes, start: int, end: int) -> bool:
    """Whether a record that ends at the line break at `end` spans more than one line."""
    return _BREAK.search(data, start, end - (data[end - 1 : end + 1] == b"\r\n")) is not None


def part(data: bytes, records: Records, reasons: Mapping[int, str], by_line: bool) -> tuple[Records, int]:
    """Mark the first lines of the records in `reasons` as broken, and scan the lines after them for records.

    The new records end where the old one did, unless the last one opens a quote and may extend beyond it. In that case
    the result stops before that one, and the returned length tells how much was covered; the caller must scan the rest
    again. With `by_line` every line of such a record becomes a record.
    """
    starts: list[int] = []
    ends: list[int] = []
    broken: dict[int, str] = {}
    length = len(data)
    for start, end in zip(records.starts.tolist(), records.ends.tolist(), strict=True):
        if start not in reasons:
            starts.append(start)
            ends.append(end)
            if start in records.broken:
                broken[start] = records.broken[start]
            continue
        broken[start] = reasons[start]
        first = _LINE.match(data, start, end + 1)
        assert first is not None  # a record always ends with a line break
        found = _lines(data[start : end + 1]) if by_line else scan(data[first.end() : end + 1], False)
        offset = start if by_line else first.end()
        if not by_line:
            starts.append(start)
            ends.append(first.end() - 1)
        starts += (found.starts + offset).tolist()
        ends += (found.ends + offset).tolist()
        broken.update({at + offset: reason for at, reason in found.broken.items() if at + offset not in broken})
        if ends[-1] != end:
            length = ends[-1] + 1
            break
    return Records(np.array(starts, np.int64), np.array(ends, np.int64), broken), length


def _lines(data: bytes) -> Records:
    """Return every line as a record, broken if it has a quote that the same line does not close."""
    starts, ends = [], []
    broken: dict[int, str] = {}
    for line in _LINE.finditer(data):
        starts.append(line.start())
        ends.append(line.end() - 1)
        for reason in scan(line.group(), True).broken.values():
            broken[line.start()] = reason
    return Records(np.array(starts, np.int64), np.array(ends, np.int64), broken)
