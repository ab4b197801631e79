"""A sink that prints tuples for people: aligned columns, each line starting with the output's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from headway.connectors.output_files import ImmediateSink, StandardOutput
from headway.connectors.protocol import SinkRequest
from headway.connectors.registry import check_keys, is_whole, permit_file, register_sink
from headway.connectors.texts import render_texts
from headway.errors import OutputError
from headway.network.trust import STANDARD

ROWS = 20
"""How many tuples of a batch are shown by default."""
CELL = 40
"""The width in characters beyond which a value is truncated."""


class _ConsoleSink(ImmediateSink):
    """Prints the first tuples of each batch; the header is printed again whenever a column widens."""

    def __init__(self, request: SinkRequest) -> None:
        who, settings = f"{request.who}: console", {} if request.settings is None else request.settings
        if not isinstance(settings, Mapping):
            raise OutputError(f"{who} expects nothing, or {{rows: N}}, not {settings!r}")
        rows = check_keys(settings, ("rows",), who, OutputError).get("rows", ROWS)
        if not is_whole(rows, 1):
            raise OutputError(f"{who}: rows is a whole number above 0, not {rows!r}")
        self._target = StandardOutput(request.who)
        self._name, self._rows = request.name, rows
        self._names = list(request.schema.names)
        self._right = [
            pa.types.is_primitive(type_) and not pa.types.is_temporal(type_) for type_ in request.schema.types
        ]
        self._widths = [0] * len(self._names)

    def begin(self, unit: str, batch: int) -> None:
        """Do nothing: what was printed before a crash stays printed, and is not printed again."""

    def write(self, batch: pa.RecordBatch) -> None:
        shown = batch.slice(0, self._rows)
        columns = [[_cell(text) for text in render_texts(column).to_pylist()] for column in shown.columns]
        needed = [
            max([len(name), width, *map(len, column)])
            for name, width, column in zip(self._names, self._widths, columns, strict=True)
        ]
        lines = [self._line(cells, needed) for cells in zip(*columns, strict=True)]
        if needed != self._widths:
            self._widths = needed
            lines.insert(0, self._line(self._names, needed))
        if batch.num_rows > shown.num_rows:
            lines.append(f"{self._name}  ... {batch.num_rows - shown.num_rows} more")
        self._target.write(("\n".join(lines) + "\n").encode())

    def _line(self, cells: Sequence[str], widths: list[int]) -> str:
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, self._right, strict=True)
        ]
        return "  ".join([self._name, *padded]).rstrip()


def _cell(text: str | None) -> str:
    if text is None:
        return "NULL"
    plain = "".join(one if one.isprintable() else " " for one in text)
    return plain if len(plain) <= CELL else plain[: CELL - 1] + "…"


register_sink("console", _ConsoleSink, permit=lambda request: permit_file(request, STANDARD, "console"))
