"""The first tuples of an output, for people, in constant memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from headway.cli.tables import cut, text_table
from headway.cli.texts import count_text, plural
from headway.connectors.texts import render_texts
from headway.schema import Schema

ROWS = 10
"""Tuples that are kept of an output."""
WHOLE = 5
"""So many outputs are shown with all tuples that are kept."""
FEW_ROWS = 3
"""Tuples of each where there are more outputs."""


class Preview:
    """A sink that keeps the first tuples as text and counts the rest."""

    def __init__(self, name: str, schema: Schema) -> None:
        """Keep tuples of an output."""
        self._name = name
        self._schema = schema
        self._rows: list[tuple[str, ...]] = []
        self.count = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Keep what is still wanted; nothing of the batch itself stays in memory."""
        wanted = ROWS - len(self._rows)
        self.count += batch.num_rows
        if wanted > 0:
            columns = [_texts(column) for column in batch.slice(0, wanted).columns]
            self._rows += [tuple(row) for row in zip(*columns, strict=True)]

    def close(self) -> None:
        """Do nothing: it is complete at any time."""

    def abort(self) -> None:
        """Do nothing: nothing was written anywhere."""

    def text(self, rows: int = ROWS) -> str:
        """Return the table of so many tuples with a title, and how many tuples it leaves out."""
        title = f"output '{self._name}': {plural(self.count, 'tuple', 'tuples')}\n"
        if not self._rows:
            return title
        left = "".join("l" if pa.types.is_string(field.type) else "r" for field in self._schema)
        shown = self._rows[:rows]
        table = text_table(self._schema.names, shown, left)
        more = self.count - len(shown)
        hint = f"… and {count_text(more)} more; --output {self._name}=PATH keeps them all\n" if more else ""
        return title + table + hint


def previews_text(previews: Sequence[Preview], verbose: bool = False) -> str:
    """Return the tables of all outputs; of more than a few only some tuples of the first ones that have any.

    With `verbose`, all are shown.
    """
    if verbose or len(previews) <= WHOLE:
        return "\n".join(preview.text() for preview in previews)
    filled = [preview for preview in previews if preview.count]
    parts = [preview.text(FEW_ROWS) for preview in filled[:WHOLE]]
    empty, more = len(previews) - len(filled), len(filled) - WHOLE
    rest = [f"{plural(more, 'more output', 'more outputs')} with tuples"] if more > 0 else []
    rest += [f"{plural(empty, 'output', 'outputs')} without any"] if empty else []
    if rest:
        parts.append(f"… and {', '.join(rest)}; --output NAME=PATH keeps one, --verbose shows all\n")
    return "\n".join(parts)


def _texts(column: Any) -> list[str]:
    return ["NULL" if text is None else cut(text) for text in render_texts(column).to_pylist()]
