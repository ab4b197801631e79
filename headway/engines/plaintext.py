"""Tables as plain text, and foreign text that cannot steer a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

CELL = 40
"""Longer values are cut, where a table shows data."""


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], align: str = "") -> str:
    """Return a table with a header, a line under it, and columns two spaces apart.

    `align` has a letter per column: ``l`` (also where it is missing) or ``r``. Cells are made printable, not cut.
    """
    cells = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(width(row[at]) for row in cells) for at in range(len(header))]
    lines = [_line(cells[0], widths, align), "  ".join("-" * size for size in widths)]
    lines += [_line(row, widths, align) for row in cells[1:]]
    return "\n".join(lines) + "\n"


def cut(text: str, limit: int = CELL) -> str:
    """Return a text that is at most this long; an ellipsis shows that it was longer."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def printable(text: str) -> str:
    """Return text in one line in which nothing can steer a terminal: control characters are written as escapes."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def width(text: str) -> int:
    """Return how many columns of a terminal a text takes: East Asian letters take two, accents none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def _line(row: Sequence[str], widths: Sequence[int], align: str) -> str:
    parts = []
    for at, (cell, size) in enumerate(zip(row, widths, strict=True)):
        gap = " " * (size - width(cell))
        parts.append(gap + cell if align[at : at + 1] == "r" else cell + gap)
    return "  ".join(parts).rstrip()
