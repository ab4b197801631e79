"""Filter, one tuple at a time."""

from __future__ import annotations

from collections.abc import Callable

from tests.reference.tuples import Emitted, Operator, Row, Tuple

Predicate = Callable[[Row], bool | None]


class Filter(Operator):
    """A tuple goes, unchanged, to the port of the first predicate that is true, else to the last port."""

    def __init__(self, *predicates: Predicate) -> None:
        super().__init__()
        self.predicates = predicates
        self.ports = len(predicates) + 1

    def push(self, at: int, arrived: Tuple) -> list[Emitted]:
        """Route one tuple; NULL is not true."""
        for port, predicate in enumerate(self.predicates):
            if predicate(arrived.row) is True:
                return [Emitted(port, arrived)]
        return [Emitted(len(self.predicates), arrived)]
