"""A select list over windows: what is accumulated, what is held, and how results are made from it.

Medians, distinct counts, lists and user-defined aggregates need all tuples of a window at once. Here the
tuples come sorted by group and, within it, by (order field, arrival).
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.columns import Column, Int64s, Mask, as_floats, from_pylist, to_arrow, truth
from headway.expressions import AggregateCall, AggregateSelect, EvaluationError, Expression, UserAggregate
from headway.expressions.nodes import take_or_null
from headway.expressions.texts import MOST_ITEMS
from headway.expressions.userfunctions import blame, returned
from headway.kernels.accumulators import Accumulator, Arrays, IntegerSum, accumulator, nullable, variance
from headway.network.schema import type_name

Failed = list[tuple[int, str]]
"""Groups, or tuples, on which something failed, with the reason."""


class Rows(NamedTuple):
    """Tuples by group: `ids` ascend and give each tuple's group, out of `groups`, some of which may be empty."""

    ids: Int64s
    groups: int

    def bounds(self) -> tuple[Int64s, Int64s]:
        """Return where each group's rows start and stop."""
        edges = np.searchsorted(self.ids, np.arange(self.groups + 1))
        return edges[:-1], edges[1:]

    def where(self, mask: Mask) -> Rows:
        """Return the rows where the mask holds, of the same groups."""
        return Rows(self.ids[mask], self.groups)


def over_rows(
    call: AggregateCall, rows: Rows, columns: Sequence[Column], where: Column | None, failed: Failed
) -> Column:
    """Return a function's value for each group; `columns` are the call's arguments for the rows.

    Groups on which it fails are added to `failed` with the reason; their value is NULL.
    """
    if where is not None:
        keep = truth(where)
        indices = np.flatnonzero(keep)
        rows, columns = rows.where(keep), [column.take(indices) for column in columns]
    if call.user is not None:
        return _user(call, rows, columns, failed)
    function = _FUNCTIONS.get(call.function)
    if function is None and columns and columns[0].is_arrow:
        function = _OF_ARROW.get(call.function)
    if function is not None:
        return function(call, rows, columns, failed)
    simple = accumulator(call, in_order=True, whole=True)
    assert simple is not None, call.function
    return _accumulate(simple, call, rows, columns, failed)


def _accumulate(
    simple: Accumulator, call: AggregateCall, rows: Rows, columns: Sequence[Column], failed: Failed
) -> Column:
    """Run an accumulator over rows, starting with empty groups."""
    arrays = simple.empty(rows.groups)
    simple.add(arrays, rows.ids, columns[0] if columns else None)
    return _checked(simple, arrays, call, failed)


def _checked(simple: Accumulator, arrays: Arrays, call: AggregateCall, failed: Failed) -> Column:
    """Return an accumulator's values; sums that do not fit their type are added to `failed`."""
    result = simple.result(arrays)
    if isinstance(simple, IntegerSum):
        overflowed = simple.overflowed(arrays)
        if overflowed.any():
            failed += [(int(at), f"{call.function}: the sum does not fit bigint") for at in np.flatnonzero(overflowed)]
    return result


def _present(rows: Rows, columns: Sequence[Column], at: int = 0) -> tuple[Rows, list[Column]]:
    valid = columns[at].is_valid()
    if valid.all():
        return rows, list(columns)
    indices = np.flatnonzero(valid)
    return rows.where(valid), [column.take(indices) for column in columns]


def _ranks(column: Column) -> Int64s:
    """Return numbers that sort as the values do; equal values have equal numbers. NaN is largest."""
    if column.is_arrow:
        ranked = pc.rank(column.values, sort_keys="ascending", tiebreaker="dense")
        ranks: Int64s = ranked.to_numpy(zero_copy_only=False).astype(np.int64)
        return ranks
    inverse: Int64s = np.unique(column.values, return_inverse=True)[1]
    return inverse


def _distinct(call: AggregateCall, rows: Rows, columns: Sequence[Column], failed: Failed) -> Column:
    for at in range(len(columns)):
        rows, columns = _present(rows, columns, at)
    ranks = np.zeros(len(rows.ids), np.int64)
    for column in columns:
        more = _ranks(column)
        ranks = np.unique(ranks * (int(more.max(initial=0)) + 1) + more, return_inverse=True)[1]
    width = int(ranks.max(initial=0)) + 1
    pairs = np.unique(rows.ids * width + ranks)
    return Column(np.bincount(pairs // width, minlength=rows.groups))


def _percentile(call: AggregateCall, rows: Rows, columns: Sequence[Column], failed: Failed) -> Column:
    share = float(str(call.parameters[0])) if call.parameters else 0.5
    rows, columns = _present(rows, columns)
    values = as_floats(columns[0])
    values = values[np.lexsort((values, rows.ids))]
    starts, stops = rows.bounds()
    counts = stops - starts
    place = np.maximum(counts - 1, 0) * share
    low = np.floor(place).astype(np.int64)
    high = np.ceil(place).astype(np.int64)
    padded = np.append(values, 0.0)
    last = len(padded) - 1
    below = padded[np.minimum(starts + low, last)]
    above = padded[np.minimum(starts + high, last)]
    part = place - low
    # Exact where both neighbours are equal or the place is whole, so infinities stay what they are; else as in Spark.
    mixed = np.where((part == 0) | (below == above), below, below + (above - below) * part)
    return nullable(mixed, counts > 0)


def _approximate_percentile(call: AggregateCall, rows: Rows, columns: Sequence[Column], failed: Failed) -> Column:
    share = float(str(call.parameters[0]))
    rows, columns = _present(rows, columns)
    order = np.lexsort((_ranks(columns[0]), rows.ids))
    starts, stops = rows.bounds()
    counts = stops - starts
    place = starts + np.maximum(np.ceil(share * counts).astype(np.int64) - 1, 0)
    return _pick(columns[0].take(order), place, counts > 0, call.type)


def _pick(column: Column, places: Int64s, some: Mask, type_: pa.DataType) -> Column:
    """Return the values at these places, and NULL where there is none."""
    return column.take(places) if some.all() else take_or_null(column, np.where(some, places, len(column)), type_)


def _first(call: AggregateCall, rows: Rows, columns: Sequence[Column], failed: Failed) -> Column:
    starts, stops = rows.bounds()
    return _pick(columns[0], stops - 1 if call.function == "last" else starts, stops > starts, call.type)


def _extreme(call: AggregateCall, rows: Rows, columns: Sequence[Column], failed: Failed) -> Column:
    """min, max of Arrow values; min_by, max_by of any: the first of equals."""
    key = 1 if call.function.endswith("_by") else 0
    rows, columns = _present(rows, columns, key)
    ranks = _ranks(columns[key])
    if call.function.startswith("max"):
        ranks = -ranks
    order = np.lexsort((ranks, rows.ids))
    starts, stops = rows.bounds()
    return _pick(columns[0].take(order), starts, stops > starts, call.type)


def _collect(call: AggregateCall, rows: Rows, columns: Sequence[Column], failed: Failed) -> Column:
    rows, columns = _present(rows, columns)
    if call.function == "collect_set":
        ranks = _ranks(columns[0])
        _, first = np.unique(rows.ids * (int(ranks.max(initial=0)) + 1) + ranks, return_index=True)
        keep = np.sort(first)
        rows, columns = Rows(rows.ids[keep], rows.groups), [columns[0].take(keep)]
    edges = np.searchsorted(rows.ids, np.arange(rows.groups + 1)).astype(np.int32)
    long = np.flatnonzero(np.diff(edges) > MOST_ITEMS)
    failed += [(int(at), f"{call.function}: more than {MOST_ITEMS:,} values, which is the limit") for at in long]
    values = to_arrow(columns[0], call.arguments[0].type)
    return Column(pa.ListArray.from_arrays(pa.array(edges), values).cast(call.type))


def _decimal_sum(call: AggregateCall, rows: Rows, columns: Sequence[Column], failed: Failed) -> Column:
    """Sum and avg of decimals: one by one, because they must be exact and are rare.

    A result beyond its type is an overflow, as with integers, not NULL.
    """
    rows, columns = _present(rows, columns)
    values = columns[0].values.to_pylist()
    starts, stops = rows.bounds()
    results: list[decimal.Decimal | None] = []
    quantum = decimal.Decimal(1).scaleb(-call.type.scale)
    most = decimal.Decimal(10) ** (call.type.precision - call.type.scale)
    with decimal.localcontext(prec=80):
        for at, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
            total = sum(values[start:stop], decimal.Decimal(0))
            if start == stop:
                results.append(None)
                continue
            if call.function == "avg":
                total = (total / (stop - start)).quantize(quantum, rounding=decimal.ROUND_HALF_UP)
            if abs(total) >= most:
                failed.append((at, f"{call.function}: the result does not fit {type_name(call.type)}"))
            results.append(total if abs(total) < most else None)
    return from_pylist(results, call.type)


def _decimal_spread(call: AggregateCall, rows: Rows, columns: Sequence[Column], failed: Failed) -> Column:
    rows, columns = _present(rows, columns)
    return _accumulate(variance(call.function), call, rows, [Column(as_floats(columns[0]))], failed)


def _user(call: AggregateCall, rows: Rows, columns: Sequence[Column], failed: Failed) -> Column:
    """Run a user's aggregate, window by window."""
    user = call.user
    assert user is not None
    starts, stops = rows.bounds()
    arrays = [to_arrow(column, one.type) for column, one in zip(columns, call.arguments, strict=True)]
    results: list[Any] = []
    for at, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
        try:
            value = _compute(user, [array.slice(start, stop - start) for array in arrays], stop - start)
            returned(call.function, [value], call.type)
        except EvaluationError as error:
            failed.append((at, str(error)))
            value = None
        except (Exception, SystemExit) as error:  # whatever user code raises affects this window only
            failed.append((at, str(blame(call.function, error))))
            value = None
        results.append(value)
    return from_pylist(results, call.type)


def _compute(user: UserAggregate, arrays: Sequence[pa.Array], count: int) -> Any:
    """Return a user's aggregate of one window: at once, or tuple by tuple in the window's order."""
    if user.function is not None:
        value = user.function(*arrays)
        return value.as_py() if isinstance(value, pa.Scalar) else value
    assert user.init is not None
    assert user.incr is not None
    assert user.final is not None
    state = user.init()
    for row in zip(*[array.to_pylist() for array in arrays], strict=True) if arrays else [()] * count:
        state = user.incr(state, *row)
    return user.final(state)


_Function = Callable[[AggregateCall, Rows, Sequence[Column], Failed], Column]
_FUNCTIONS: dict[str, _Function] = {
    "count_distinct": _distinct,
    "median": _percentile,
    "percentile": _percentile,
    "approx_percentile": _approximate_percentile,
    "first": _first,
    "last": _first,
    "any_value": _first,
    "min_by": _extreme,
    "max_by": _extreme,
    "collect_list": _collect,
    "collect_set": _collect,
}
_OF_ARROW: dict[str, _Function] = {
    "min": _extreme,
    "max": _extreme,
    "sum": _decimal_sum,
    "avg": _decimal_sum,
    **dict.fromkeys(("stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop"), _decimal_spread),
}
"""For Arrow values only; all other values have accumulators."""


class _Use(NamedTuple):
    """A call, the indices of its arguments and its condition among the inputs, and its accumulator if it has one."""

    call: AggregateCall
    slots: tuple[int, ...]
    where: int | None
    accumulator: int | None


class CompiledSelect:
    """The calls of a select list, divided into those with accumulators and those over held tuples."""

    def __init__(self, select: AggregateSelect, in_order: bool, whole: bool, hold_all: bool = False) -> None:
        """Decide how to compute each call; `hold_all` holds tuples for every call, if groups are only known later."""
        self.calls = select.calls
        self.results = select.results
        self.inputs: list[Expression] = []
        self.accumulators: list[Accumulator] = []
        self._uses: list[_Use] = []
        held: list[int] = []
        for call in self.calls:
            where = None if call.where is None else self._input(call.where)
            slots = tuple(self._input(one) for one in call.arguments)
            simple = None if hold_all or call.user is not None else accumulator(call, in_order, whole)
            self._uses.append(_Use(call, slots, where, None if simple is None else len(self.accumulators)))
            if simple is not None:
                self.accumulators.append(simple)
            else:
                held += [*slots, *([] if where is None else [where])]
        self._held = list(dict.fromkeys(held))
        self.holds = len(self.accumulators) < len(self.calls)
        self.held_types: tuple[pa.DataType, ...] = tuple(self.inputs[slot].type for slot in self._held)

    def _input(self, expression: Expression) -> int:
        for at, known in enumerate(self.inputs):
            if known.sql == expression.sql and known.type == expression.type and known.slots == expression.slots:
                return at
        self.inputs.append(expression)
        return len(self.inputs) - 1

    def arguments(self, computed: Sequence[Column]) -> tuple[list[Column | None], list[Mask | None]]:
        """Return for each accumulator its argument and the mask of the tuples that it aggregates."""
        uses = [use for use in self._uses if use.accumulator is not None]
        columns = [computed[use.slots[0]] if use.slots else None for use in uses]
        return columns, [None if use.where is None else truth(computed[use.where]) for use in uses]

    def held_columns(self, computed: Sequence[Column]) -> list[Column]:
        """Return the columns that must be held."""
        return [computed[slot] for slot in self._held]

    def values(self, arrays: Sequence[Arrays], rows: Rows, held: Sequence[Column]) -> tuple[list[Column], Failed]:
        """Return each call's values by group, and the groups on which one failed, with the reason."""
        by_slot = dict(zip(self._held, held, strict=True))
        columns: list[Column] = []
        failed: Failed = []
        for call, slots, where, at in self._uses:
            if at is None:
                condition = None if where is None else by_slot[where]
                columns.append(over_rows(call, rows, [by_slot[slot] for slot in slots], condition, failed))
            else:
                columns.append(_checked(self.accumulators[at], arrays[at], call, failed))
        return columns, failed
