"""Tables as plain text, and foreign text that cannot steer a terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence

CELL = 40
"""Longer values are cut, where a table shows data."""
_UNBOUNDED = 1 << 30


def text_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], align: str = "", columns: int | None = None
) -> str:
    """Return a table with a header, a line under it, and columns two spaces apart.

    `align` has a letter per column: ``l`` (also where it is missing) or ``r``. Cells are made printable, not cut. With
    `columns`, cells on the left are wrapped between words so that the table fits; numbers and words stay whole.
    """
    from rich.cells import cell_len
    from rich.console import Console  # here, as not every command prints a table
    from rich.measure import Measurement
    from rich.rule import Rule
    from rich.table import Table
    from rich.text import Text

    cells = [[printable(cell) for cell in row] for row in (header, *rows)]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for at, name in enumerate(cells[0]):
        if align[at : at + 1] == "r":
            widest = max(cell_len(row[at]) for row in cells)
            table.add_column(Text(name), justify="right", no_wrap=True, min_width=widest)
        else:
            table.add_column(Text(name), overflow="fold")
    table.add_row(*[Rule(characters="-", style="none") for _ in header])
    for row in cells[1:]:
        table.add_row(*map(Text, row))
    console = Console(file=io.StringIO(), width=_UNBOUNDED, color_system=None, force_terminal=False, _environ={})
    if columns is not None:
        console.width = max(columns, Measurement.get(console, console.options, table).minimum)
    with console.capture() as captured:
        console.print(table)
    return "".join(line.rstrip() + "\n" for line in captured.get().splitlines())


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
