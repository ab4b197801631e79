"""Union, one tuple at a time."""

from __future__ import annotations

from tests.reference.tuples import Emitted, Operator, Tuple


class Union(Operator):
    """All tuples of all inputs as they come.

    The graph hands tuples over in ascending arrival number, and of equal numbers in the order of the
    inputs; nothing is left to do here.
    """

    def push(self, at: int, arrived: Tuple) -> list[Emitted]:
        """Pass one tuple on."""
        return [Emitted(0, arrived)]
