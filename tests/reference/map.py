"""Map, one tuple at a time."""

from __future__ import annotations

from collections.abc import Callable

from tests.reference.tuples import Emitted, Operator, Row, Tuple, emit


class Map(Operator):
    """One tuple out per tuple in; timestamp and number are kept."""

    def __init__(self, function: Callable[[Row], Row]) -> None:
        super().__init__()
        self.function = function

    def push(self, at: int, arrived: Tuple) -> list[Emitted]:
        """Map one tuple."""
        return [emit(self.function(arrived.row), arrived.stamp, arrived.number)]
