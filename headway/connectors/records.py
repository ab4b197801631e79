"""Where the records of CSV text start and end, also where quotes stray.

A record is found by its quotes alone, so a stray quote can make one record of many lines. What follows from the text
is found here (`scan`); that such a record is no row after all is found by the reader, which takes it apart (`part`).
Both depend on the text only, never on how it was read.
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
"""A quoted field; with group 1 when other text follows it, with group 2 when the bytes end before its last quote."""

_BREAK = re.compile(rb"[\r\n]")
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)")


@dataclass(frozen=True, slots=True)
class Records:
    """Where the complete records of some CSV start and end (at their line break), and which ones are broken."""

    starts: Int64s
    ends: Int64s
    broken: dict[int, str]
    """Start of a broken record to the reason."""


def scan(data: bytes, final: bool) -> Records:
    """Find the records in bytes that start with one. A line break inside a quoted field does not end a record.

    A quoted field that other text follows breaks its line, and only this line: most often a quote was not
    closed, and the next quote belongs to another record. An open quote stops the scan unless the bytes are
    `final`: its end may still come.
    """
    view = np.frombuffer(data, np.uint8)
    breaks = view == 10
    lone = view == 13
    lone[:-1] &= ~breaks[1:]
    lone[-1:] &= final  # else its line feed may still come
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
        if record >= 0 and quote < ends[record]:  # else it is in the part that is not complete
            broken.setdefault(int(starts[record]), reason)
    return Records(starts, ends, broken)


def filled(data: bytes, records: Records) -> Records:
    """Return the records without the blank lines."""
    pairs = zip(records.starts.tolist(), records.ends.tolist(), strict=True)
    keep = np.array([bool(data[start:end].strip(b"\r\n")) for start, end in pairs], np.bool_)
    return Records(records.starts[keep], records.ends[keep], records.broken)


def first_break(data: bytes) -> int:
    """Return where the first line ends: the place of its line feed, or of its carriage return alone; -1 if nowhere."""
    found = _LINE.match(data)
    return -1 if found is None else found.end() - 1


def several_lines(data: bytes, start: int, end: int) -> bool:
    """Whether a record, which ends before the line break at `end`, spans more than one line."""
    return _BREAK.search(data, start, end - (data[end - 1 : end + 1] == b"\r\n")) is not None


def part(data: bytes, records: Records, reasons: Mapping[int, str], by_line: bool) -> tuple[Records, int]:
    """Break the first lines of the records with these starts, and find records in the lines after them.

    Those end where the old ones did, or else the last of them, which then is opened by a quote, may be longer: then
    the new records end before it, and so does what is returned as their length; the rest must be scanned again.
    With `by_line` each of their lines is a record.
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
        assert first is not None  # a record ends with a line break
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
    """Return every line as a record; one with a quote that the same line does not close is broken."""
    starts, ends = [], []
    broken: dict[int, str] = {}
    for line in _LINE.finditer(data):
        starts.append(line.start())
        ends.append(line.end() - 1)
        for reason in scan(line.group(), True).broken.values():
            broken[line.start()] = reason
    return Records(np.array(starts, np.int64), np.array(ends, np.int64), broken)
