"""Decide which expressions cannot fail on any tuple, so that another engine may run them without dead letters.

The answer holds for Spark's ANSI rules, which are Headway's too. Anything not known to be safe counts as a risk.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from headway.errors import HeadwayError
from headway.expressions.compiler import part_types
from headway.expressions.model import Expression, Scope
from headway.expressions.parsing import fragment, parse_one, read_type
from headway.expressions.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    MAX_PRECISION,
    STRING,
    VOID,
    as_decimal,
    common_number,
    is_decimal,
    is_float,
    is_integer,
    is_nested,
    is_numeric,
    is_timestamp,
    meet_exactly,
)
from headway.network.schema import TIMESTAMP, Schema

_DATE_TEXT = re.compile(r"\d{4}-\d\d-\d\d")
_TIME_TEXT = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?")
"""The plainest forms of dates and timestamps, which every engine parses the same way."""

_UNKNOWN = "is not known to be safe"


class _RiskError(Exception):
    """A part may fail, or is not known to be safe."""

    def __init__(self, tree: exp.Expression, reason: str) -> None:
        super().__init__(f"'{fragment(tree)}' {reason}")


def risk(expression: Expression, schema: Schema) -> str | None:
    """Return the part of an expression that may fail on a tuple of the schema, and why; None if none can."""
    try:
        _Walk(schema).check(parse_one(expression.sql))
    except _RiskError as found:
        return str(found)
    except (HeadwayError, RecursionError):
        return f"'{expression.text[:60]}' is too involved"
    return None


class _Walk:
    """Checks the parts of a compiled expression bottom up; raises at the first risk."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.type_of = part_types(Scope.of(schema))

    def check(self, *trees: Any) -> None:
        for tree in trees:
            rule = _RULES.get(type(tree))
            reason = _UNKNOWN if rule is None else rule(self, tree)
            if reason is not None:
                raise _RiskError(tree, reason)

    def types(self, *trees: Any) -> list[pa.DataType]:
        """Check parts and return their types."""
        self.check(*trees)
        return [self.type_of(tree) for tree in trees]

    def parts(self, tree: Any) -> None:
        self.check(*tree.iter_expressions())

    def column(self, tree: Any) -> str | None:
        return "is a part of a field" if tree.table or self.schema.find(tree.name) is None else None

    def comparison(self, tree: Any) -> str | None:
        return self.meet(tree.this, tree.expression)

    def between(self, tree: Any) -> str | None:
        return self.meet(tree.this, tree.args["low"]) or self.meet(tree.this, tree.args["high"])

    def membership(self, tree: Any) -> str | None:
        for item in tree.expressions:
            reason = self.meet(tree.this, item)
            if reason is not None:
                return reason
        types = self.types(tree.this, *tree.expressions)
        return None if is_float(types[0]) else _alike(types)  # doubles compare with all numbers as doubles

    def meet(self, left: Any, right: Any) -> str | None:
        """Return why two sides cannot be compared without a cast that may fail; None if they can."""
        one, two = self.types(left, right)
        if VOID in (one, two) or (one == two and not is_nested(one)):
            return None
        if is_numeric(one) and is_numeric(two):
            exact = is_float(one) or is_float(two) or (is_integer(one) and is_integer(two)) or meet_exactly(one, two)
            return None if exact else f"needs more than {MAX_PRECISION} digits"
        for text, type_ in ((left, two), (right, one)):
            if isinstance(text, exp.Literal) and text.is_string and _reads(text.this, type_):
                return None
        return "compares different types"

    def like(self, tree: Any) -> str | None:
        pattern = tree.expression
        literal = isinstance(pattern, exp.Literal) and pattern.is_string
        return None if literal and self.types(tree.this) == [STRING] else "is not a string and a literal pattern"

    def case(self, tree: Any) -> str | None:
        for branch in tree.args["ifs"]:
            self.check(branch.this)
            reason = None if tree.this is None else self.meet(tree.this, branch.this)
            if reason is not None:
                return reason
        results = [branch.args["true"] for branch in tree.args["ifs"]]
        default = tree.args.get("default")
        return _alike(self.types(*results, *([] if default is None else [default])))

    def if_(self, tree: Any) -> str | None:
        self.check(tree.this)
        return _alike(self.types(tree.args["true"], tree.args["false"]))

    def negative(self, tree: Any) -> str | None:
        literal = isinstance(tree.this, exp.Literal) and not tree.this.is_string
        return None if literal or is_float(self.types(tree.this)[0]) else "may overflow"

    def arithmetic(self, tree: Any) -> str | None:
        types = self.types(tree.this, tree.expression)
        if not all(map(is_numeric, types)):
            return "is not over numbers"
        if isinstance(tree, exp.Mod) and not all(map(is_integer, types)):
            return "is not over whole numbers"
        if not isinstance(tree, exp.Div | exp.Mod):
            return None if any(map(is_float, types)) else "may overflow"
        if not _not_zero(tree.expression):
            return "may divide by zero"
        return "divides decimals" if any(map(is_decimal, types)) and not is_float(types[0]) else None

    def bits(self, tree: Any) -> str | None:
        types = self.types(*tree.iter_expressions())
        return None if all(map(is_integer, types)) else "is not over whole numbers"

    def cast(self, tree: Any) -> str | None:
        if tree.args.get("safe"):
            return _UNKNOWN
        (source,), target = self.types(tree.this), read_type(tree.args["to"])
        literal = tree.this.this if isinstance(tree.this, exp.Literal) and tree.this.is_string else None
        fits = source == target or _widens(source, target) or (literal is not None and _reads(literal, target))
        return None if fits else "may not fit"

    def call(self, tree: Any) -> str | None:
        name = tree.name.lower()
        if name not in _CALLS:
            return _UNKNOWN
        reason = _CALLS[name](self.types(*tree.expressions))
        return self.meet(*tree.expressions) if name == "nullif" else reason


def _widens(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether all values of a type fit another, at most rounded to a double."""
    if source == VOID:
        return not is_nested(target)
    if target == STRING:
        return is_integer(source) or source == BOOLEAN
    if is_integer(source) and is_integer(target):
        return bool(source.bit_width <= target.bit_width)
    if is_decimal(target) and (is_integer(source) or is_decimal(source)):
        mine = as_decimal(source)
        whole = mine.precision - mine.scale
        return bool(whole <= target.precision - target.scale and mine.scale <= target.scale)
    if target == DOUBLE:
        return is_numeric(source)
    return is_float(target) and is_integer(source)


def _reads(text: str, type_: pa.DataType) -> bool:
    """Whether a text is certainly a valid date or timestamp."""
    if type_ != DATE and not is_timestamp(type_):
        return False
    if not (_DATE_TEXT if type_ == DATE else _TIME_TEXT).fullmatch(text):
        return False
    try:
        dt.datetime.fromisoformat(text.partition(".")[0])
    except ValueError:
        return False
    return True


def _not_zero(tree: Any) -> bool:
    inner = tree.this if isinstance(tree, exp.Neg) else tree
    return isinstance(inner, exp.Literal) and not inner.is_string and float(inner.this) != 0


def _alike(types: Sequence[pa.DataType]) -> str | None:
    """Return why values have no common type without a risky cast; None if they have one."""
    found = VOID
    for type_ in types:
        if found == VOID or type_ == found:
            found = type_
        elif is_numeric(found) and is_numeric(type_) and not is_decimal(found) and not is_decimal(type_):
            found = common_number(found, type_)
        elif type_ != VOID:
            return "has results of different types"
    return None


_Rule = Callable[[Sequence[pa.DataType]], str | None]


def _takes(good: Callable[[pa.DataType], bool]) -> _Rule:
    """Return a rule for a function that is safe if all arguments have good types."""
    return lambda types: None if all(map(good, types)) else "is not known to be safe for these types"


def _extreme(types: Sequence[pa.DataType]) -> str | None:
    one = len(set(types)) == 1 and not is_nested(types[0]) and types[0] != BINARY
    return None if one else "compares different types"


_text = _takes(lambda type_: bool(type_ == STRING))
_double = _takes(lambda type_: bool(type_ == DOUBLE))
_instant = _takes(lambda type_: bool(type_ == TIMESTAMP))
_any = _takes(lambda type_: True)
_CALLS: dict[str, _Rule] = {
    **dict.fromkeys(("upper", "ucase", "lower", "lcase", "reverse", "trim", "length", "char_length"), _text),
    **dict.fromkeys(("startswith", "endswith", "contains"), _text),
    **dict.fromkeys(("coalesce", "nvl", "ifnull"), _alike),
    "nvl2": lambda types: _alike(types[1:]),
    **dict.fromkeys(("nullif", "isnull", "isnotnull"), _any),
    **dict.fromkeys(("greatest", "least"), _extreme),
    **dict.fromkeys(("isnan", "abs"), _takes(is_float)),
    **dict.fromkeys(("nanvl", "sqrt"), _double),
    **dict.fromkeys(("unix_micros", "unix_millis", "unix_seconds"), _instant),
}
"""Functions that never fail, with the rule for their argument types."""

_RULES: dict[type[exp.Expression], Callable[[_Walk, Any], str | None]] = {
    **dict.fromkeys((exp.Paren, exp.And, exp.Or, exp.Not, exp.Is, exp.Literal, exp.Boolean, exp.Null), _Walk.parts),
    exp.Column: _Walk.column,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), _Walk.comparison),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), _Walk.comparison),
    exp.Between: _Walk.between,
    exp.In: _Walk.membership,
    **dict.fromkeys((exp.Like, exp.ILike), _Walk.like),
    exp.Case: _Walk.case,
    exp.If: _Walk.if_,
    exp.Neg: _Walk.negative,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod), _Walk.arithmetic),
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot), _Walk.bits),
    **dict.fromkeys((exp.Cast, exp.TryCast), _Walk.cast),  # sqlglot parses Spark's CAST as either
    exp.DPipe: lambda walk, tree: "may make a text that is too long",
    exp.Anonymous: _Walk.call,
}
