"""Intervals: only literals, only added to or subtracted from dates and timestamps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from sqlglot import exp

from headway.columns import Mask, Values
from headway.errors import ExpressionError, choices, shorten
from headway.expressions.arithmetic import arithmetic, shift_days
from headway.expressions.casts import DAY, cast
from headway.expressions.library.base import relabel
from headway.expressions.nodes import Node, check, literal, null, unary
from headway.expressions.types import BIGINT, DATE, INT, STRING, VOID, is_timestamp
from headway.schema import TIMESTAMP, type_name

_MICROS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": DAY,
    "week": 7 * DAY,
}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
UNITS = (*_MICROS, *_MONTHS)
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


@dataclass(frozen=True, slots=True)
class Interval:
    """Months and microseconds. `whole_days` says that no unit below a day was used, so that a date stays one."""

    months: int = 0
    microseconds: int = 0
    whole_days: bool = True

    def negated(self) -> Interval:
        """Return the opposite."""
        return Interval(-self.months, -self.microseconds, self.whole_days)

    def plus(self, other: Interval) -> Interval:
        """Return the sum."""
        return Interval(
            self.months + other.months, self.microseconds + other.microseconds, self.whole_days and other.whole_days
        )


def read_interval(tree: Any) -> Interval:
    """Return the interval of ``interval 5 minutes``, ``interval '5' minute`` or ``interval '1 day 2 hours'``."""
    value, unit = tree.this, tree.args.get("unit")
    sign = 1
    if isinstance(value, exp.Neg):
        sign, value = -1, value.this
    if not isinstance(value, exp.Literal):
        raise ExpressionError("an interval takes a literal number, such as interval 5 minutes")
    made = Interval()
    if isinstance(unit, exp.Var):
        made = _interval(value.this, unit.name)
    elif unit is None:
        position = 0
        while position < len(value.this):
            match = _PART.match(value.this, position)
            if match is None:
                raise ExpressionError(f"interval '{value.this}' is not understood; write interval '1 day 2 hours'")
            made = made.plus(_interval(match[1], match[2]))
            position = match.end()
    else:
        raise ExpressionError("intervals from one unit to another are not supported; write interval '1 day 2 hours'")
    if abs(made.months) >= 2**31 or abs(made.microseconds) >= 2**63:
        raise ExpressionError(f"interval {shorten(str(value.this), 40)} is too long")
    return made if sign == 1 else made.negated()


def shift(node: Node, interval: Interval) -> Node:
    """Return a date or a timestamp moved by an interval."""
    if node.type == VOID:
        return null(TIMESTAMP)
    if node.type == STRING:
        node = cast(node, TIMESTAMP)
    if node.type != DATE and not is_timestamp(node.type):
        raise ExpressionError(f"an interval is added to a date or a timestamp, not to a {type_name(node.type)}")
    if node.type == DATE:
        if not interval.whole_days:
            return shift(cast(node, TIMESTAMP), interval)
        if interval.months:
            node = unary(DATE, node, lambda values, valid: add_months(values, interval.months, valid))
        days = interval.microseconds // DAY
        return shift_days(node, literal(days, INT), "+") if days else node
    type_ = node.type
    if interval.months:

        def moved(values: Values, valid: Mask | None) -> Values:
            days = np.floor_divide(values, DAY)
            target = add_months(days, interval.months, valid).astype(np.int64)
            result: Values = target * DAY + (values - days * DAY)
            check(result // DAY != target, valid, "a timestamp does not fit timestamp")  # it wrapped around
            return result

        node = unary(type_, node, moved)
    if not interval.microseconds:
        return node
    return relabel(arithmetic("+", relabel_field(node), literal(interval.microseconds, BIGINT)), type_)


def relabel_field(node: Node) -> Node:
    """Return a timestamp's microseconds as a bigint, still known as a field."""
    return Node(BIGINT, node.run, node.slots, node.constant, node.field, node.warns)


def add_months(days: Values, months: int, valid: Mask | None) -> Values:
    """Return dates (days since 1970) moved by months; the day is cut to the month's last."""
    dates = days.astype("datetime64[D]")
    start = dates.astype("datetime64[M]")
    target = start + np.timedelta64(months, "M")
    length = ((target + np.timedelta64(1, "M")).astype("datetime64[D]") - target.astype("datetime64[D]")).astype(
        np.int64
    )
    day = (dates - start.astype("datetime64[D]")).astype(np.int64)
    result = target.astype("datetime64[D]").astype(np.int64) + np.minimum(day, length - 1)
    check((result >= 2**31) | (result < -(2**31)), valid, "a date does not fit date")
    cut: Values = result.astype(np.int32)
    return cut


def _interval(amount: str, unit: str) -> Interval:
    name = unit.lower().removesuffix("s")
    if name in _MONTHS and re.fullmatch(r"[+-]?\d+", amount):
        return Interval(months=int(amount) * _MONTHS[name])
    if name in _MICROS:
        microseconds = Decimal(amount) * _MICROS[name] if re.fullmatch(r"[+-]?\d+(\.\d+)?", amount) else None
        if microseconds is not None and microseconds == int(microseconds):
            return Interval(microseconds=int(microseconds), whole_days=name in ("day", "week"))
    elif name not in _MONTHS:
        raise ExpressionError(f"unknown interval unit '{unit}'; choices: {choices(UNITS)}")
    raise ExpressionError(f"'{amount}' is not an amount of {name}s")
