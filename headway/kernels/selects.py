"""A compiled select list over windows: what is accumulated, what is held, and how results are made of it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headway.columns import Column, Mask
from headway.expressions import AggregateSelect, Expression
from headway.kernels.accumulators import Accumulator, Arrays, accumulator
from headway.kernels.holistic import Rows, checked_result, over_rows


class CompiledSelect:
    """The calls of a select list, divided into those with accumulators and those over held tuples."""

    def __init__(self, select: AggregateSelect, in_order: bool, whole: bool, hold_all: bool = False) -> None:
        """Decide for each call; `hold_all` holds tuples for every call, where groups are not known beforehand."""
        self.calls = select.calls
        self.results = select.results
        self.inputs: list[Expression] = []
        self.accumulators: list[Accumulator] = []
        self._slots: list[tuple[tuple[int, ...], int | None]] = []
        self._accumulated: list[int | None] = []
        for call in self.calls:
            where = None if call.where is None else self._input(call.where)
            self._slots.append((tuple(self._input(one) for one in call.arguments), where))
            simple = None if hold_all or call.user is not None else accumulator(call, in_order, whole)
            self._accumulated.append(None if simple is None else len(self.accumulators))
            if simple is not None:
                self.accumulators.append(simple)
        needed: list[int] = []
        for (slots, where), at in zip(self._slots, self._accumulated, strict=True):
            if at is None:
                needed += [*slots, *([] if where is None else [where])]
        self._held = list(dict.fromkeys(needed))
        self.holds = any(at is None for at in self._accumulated)
        self.held_types: tuple[pa.DataType, ...] = tuple(self.inputs[slot].type for slot in self._held)

    def _input(self, expression: Expression) -> int:
        for at, known in enumerate(self.inputs):
            if known.sql == expression.sql and known.type == expression.type and known.slots == expression.slots:
                return at
        self.inputs.append(expression)
        return len(self.inputs) - 1

    def arguments(self, computed: Sequence[Column]) -> tuple[list[Column | None], list[Mask | None]]:
        """Return for each accumulator its argument and the mask of the tuples it is to see."""
        columns: list[Column | None] = []
        masks: list[Mask | None] = []
        for (slots, where), at in zip(self._slots, self._accumulated, strict=True):
            if at is None:
                continue
            columns.append(computed[slots[0]] if slots else None)
            condition = None if where is None else computed[where]
            if condition is None:
                masks.append(None)
            else:
                masks.append(condition.values if condition.valid is None else condition.values & condition.valid)
        return columns, masks

    def held_columns(self, computed: Sequence[Column]) -> list[Column]:
        """Return the columns that must be held."""
        return [computed[slot] for slot in self._held]

    def values(
        self, arrays: Sequence[Arrays], rows: Rows, held: Sequence[Column]
    ) -> tuple[list[Column], list[tuple[int, str]]]:
        """Return each call's values by group, and the groups on which one failed, with the reason."""
        place = {slot: at for at, slot in enumerate(self._held)}
        columns: list[Column] = []
        failed: list[tuple[int, str]] = []
        for call, (slots, where), at in zip(self.calls, self._slots, self._accumulated, strict=True):
            if at is None:
                condition = None if where is None else held[place[where]]
                columns.append(over_rows(call, rows, [held[place[slot]] for slot in slots], condition, failed))
            else:
                columns.append(checked_result(self.accumulators[at], arrays[at], call, failed))
        return columns, failed
