"""Results of a run for display: one line, or the first tuples as tables, in plain text or in HTML for notebooks.

Text from data is made printable, so that it cannot control a terminal.
"""

from __future__ import annotations

import html
import io
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from headway.connectors.texts import render_texts
from headway.errors import OutputError, unknown

ROWS = 10
"""Default number of tuples shown of an output."""
OUTPUTS = 5
"""Number of outputs shown if none are named."""
_COLUMNS = 20
CELL = 40
"""Longest value in a table of data; longer ones are cut."""
_UNBOUNDED = 1 << 30


def line(outputs: Mapping[str, pa.Table], summary: Mapping[str, Any]) -> str:
    """Return a run's result in one line, without tuples."""
    letters = summary["dead_letters"]["total"]
    told = [
        f"{_count(summary['tuples_in'], 'tuple')} in",
        f"{summary['tuples_out']:,} out to {_count(len(summary['outputs']), 'output')} ({len(outputs):,} as tables)",
    ]
    if letters:
        told.append(_count(letters, "dead letter"))
    if summary["interrupted"]:
        told.append("interrupted")
    return printable(f"network '{summary['network']}', engine {summary['engine']}: ") + ", ".join(told)


def text(outputs: Mapping[str, pa.Table], summary: Mapping[str, Any], names: tuple[str, ...], rows: int) -> str:
    """Return the first tuples of some outputs as tables; raises an OutputError for an output without a table."""
    if rows < 0:
        raise OutputError(f"show: rows is 0 or more, not {rows}")
    parts = [line(outputs, summary) + "\n"]
    shown = _chosen(outputs, names)
    for name in shown:
        table = outputs[name]
        header, cells = _cells(table, rows)
        numbers = "".join("l" if pa.types.is_string(field.type) else "r" for field in table.schema)
        part = f"output '{printable(name)}': {_count(table.num_rows, 'tuple')}\n"
        part += text_table(header, cells, numbers) if cells else ""
        more = table.num_rows - len(cells)
        parts.append(part + (f"… and {more:,} more\n" if more else ""))
    return "\n".join([*parts, *_left(outputs, shown)])


def page(outputs: Mapping[str, pa.Table], summary: Mapping[str, Any], rows: int = ROWS) -> str:
    """Return the same as HTML. All data, names and messages are escaped."""
    parts = [f"<p>{html.escape(line(outputs, summary))}</p>"]
    shown = _chosen(outputs, ())
    for name in shown:
        table = outputs[name]
        header, cells = _cells(table, rows)
        head = "".join(f"<th>{html.escape(one)}</th>" for one in header)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(one)}</td>" for one in row) + "</tr>" for row in cells)
        more = table.num_rows - len(cells)
        parts.append(
            f"<p><b>{html.escape(printable(name))}</b>: {_count(table.num_rows, 'tuple')}</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            + (f"<p>… and {more:,} more</p>" if more else "")
        )
    parts += [f"<p>{html.escape(one.strip())}</p>" for one in _left(outputs, shown)]
    return "".join(parts)


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _chosen(outputs: Mapping[str, pa.Table], names: tuple[str, ...]) -> list[str]:
    for name in names:
        if name not in outputs:
            raise OutputError(f"{unknown('output', name, outputs)} (outputs without a sink have a table)")
    return list(names or list(outputs)[:OUTPUTS])


def _left(outputs: Mapping[str, pa.Table], shown: list[str]) -> list[str]:
    left = len(outputs) - len(shown)
    some = ", ".join(repr(name) for name in outputs if name not in shown)
    return [f"… and {_count(left, 'more output')}; show(NAME) shows one: {cut(some, 200)}\n"] if left > 0 else []


def _cells(table: pa.Table, rows: int) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the header and the first tuples as printable text, cut where it is long."""
    names, wide = table.schema.names, table.num_columns > _COLUMNS
    few = table.select(names[:_COLUMNS]).slice(0, rows).combine_chunks()
    header = [printable(cut(name)) for name in names[:_COLUMNS]] + (["…"] if wide else [])
    columns = [
        ["NULL" if one is None else printable(cut(one)) for one in render_texts(column.combine_chunks()).to_pylist()]
        for column in few.columns
    ]
    if wide:
        columns.append(["…"] * few.num_rows)
    return header, list(zip(*columns, strict=True)) if columns else []


# Tables as plain text


def text_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], align: str = "", columns: int | None = None
) -> str:
    """Return a table with a header, a line under it, and columns two spaces apart.

    `align` has a letter per column, ``l`` (the default) or ``r``. Cells are made printable, not cut. With `columns`,
    left-aligned cells wrap between words so that the table fits; numbers and words stay whole.
    """
    from rich.cells import cell_len
    from rich.console import Console  # imported here, as not every command prints a table
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
    """Return a text of at most `limit` characters; an ellipsis marks a cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def printable(text: str) -> str:
    """Return text on one line that cannot control a terminal: control characters are written as escapes."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
