"""Which expressions cannot fail, whatever the tuple: so that another engine may run them without dead letters.

The answer is about Spark's ANSI rules, which are Headway's too. What is not known to be safe counts as a risk.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from headway.errors import HeadwayError
from headway.expressions.compiler import number
from headway.expressions.model import Expression
from headway.expressions.parsing import fragment, parse_one, read_type
from headway.expressions.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
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
)
from headway.schema import TIMESTAMP, Schema

_DATE_TEXT = re.compile(r"\d{4}-\d\d-\d\d")
_TIME_TEXT = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?")
"""The plainest forms of dates and timestamps, which everybody reads alike."""

_Types = Sequence[pa.DataType]


class _RiskError(Exception):
    """A part that may fail, or that is not known."""

    def __init__(self, tree: exp.Expression, reason: str) -> None:
        super().__init__(f"'{fragment(tree)}' {reason}")


def never_fails(expression: Expression, schema: Schema) -> bool:
    """Return whether no tuple of the schema can make the expression fail; False where that is not known."""
    return risk(expression, schema) is None


def risk(expression: Expression, schema: Schema) -> str | None:
    """Return which part of an expression may fail on a tuple of the schema, and why; None if none can."""
    try:
        _Walk(schema).type(parse_one(expression.sql))
    except _RiskError as found:
        return str(found)
    except (HeadwayError, RecursionError):
        return f"'{expression.text[:60]}' is too involved"
    return None


class _Walk:
    """Finds the type of every part from the bottom up, and raises at the first that is a risk."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def type(self, tree: Any) -> pa.DataType:
        """Return the type of a part that cannot fail."""
        step = _STEPS.get(type(tree))
        if step is None:
            raise _RiskError(tree, "is not known to be safe")
        return step(self, tree)

    def types(self, trees: Sequence[Any]) -> list[pa.DataType]:
        return [self.type(tree) for tree in trees]

    def paren(self, tree: Any) -> pa.DataType:
        return self.type(tree.this)

    def column(self, tree: Any) -> pa.DataType:
        at = None if tree.table else self.schema.find(tree.name)
        if at is None:
            raise _RiskError(tree, "is a part of a field")
        return self.schema.types[at]

    def literal(self, tree: Any) -> pa.DataType:
        return STRING if tree.is_string else number(tree.this).type

    def constant(self, tree: Any) -> pa.DataType:
        return BOOLEAN if isinstance(tree, exp.Boolean) else VOID

    def logic(self, tree: Any) -> pa.DataType:
        parts = [tree.this] if isinstance(tree, exp.Not) else [tree.this, tree.expression]
        if any(type_ not in (BOOLEAN, VOID) for type_ in self.types(parts)):
            raise _RiskError(tree, "is not over booleans")
        return BOOLEAN

    def is_(self, tree: Any) -> pa.DataType:
        self.type(tree.this)
        return BOOLEAN

    def comparison(self, tree: Any) -> pa.DataType:
        self.meet(tree, tree.this, tree.expression)
        return BOOLEAN

    def between(self, tree: Any) -> pa.DataType:
        self.meet(tree, tree.this, tree.args["low"])
        self.meet(tree, tree.this, tree.args["high"])
        return BOOLEAN

    def membership(self, tree: Any) -> pa.DataType:
        for item in tree.expressions:
            self.meet(tree, tree.this, item)
        mine, *others = self.types([tree.this, *tree.expressions])
        if not is_float(mine):  # doubles meet all numbers as doubles, others must be of one kind
            _result(tree, [mine, *others])
        return BOOLEAN

    def meet(self, tree: Any, left: Any, right: Any) -> None:
        """Check that two sides can be compared without a cast that may fail."""
        one, two = self.type(left), self.type(right)
        if VOID in (one, two) or (one == two and not is_nested(one)):
            return
        if is_numeric(one) and is_numeric(two):
            if is_float(one) or is_float(two) or (is_integer(one) and is_integer(two)) or _fits(one, two):
                return
            raise _RiskError(tree, f"needs more than {MAX_PRECISION} digits")
        for text, type_ in ((left, two), (right, one)):
            if isinstance(text, exp.Literal) and text.is_string and _reads(text.this, type_):
                return
        raise _RiskError(tree, "compares different types")

    def like(self, tree: Any) -> pa.DataType:
        pattern = tree.expression
        if self.type(tree.this) != STRING or not isinstance(pattern, exp.Literal) or not pattern.is_string:
            raise _RiskError(tree, "is not a string and a literal pattern")
        return BOOLEAN

    def case(self, tree: Any) -> pa.DataType:
        for branch in tree.args["ifs"]:
            if tree.this is not None:
                self.meet(tree, tree.this, branch.this)
            elif self.type(branch.this) not in (BOOLEAN, VOID):
                raise _RiskError(tree, "has a condition that is not boolean")
        results = [branch.args["true"] for branch in tree.args["ifs"]]
        default = tree.args.get("default")
        return _result(tree, self.types([*results, *([] if default is None else [default])]))

    def if_(self, tree: Any) -> pa.DataType:
        if self.type(tree.this) not in (BOOLEAN, VOID):
            raise _RiskError(tree, "has a condition that is not boolean")
        return _result(tree, self.types([tree.args["true"], tree.args["false"]]))

    def negative(self, tree: Any) -> pa.DataType:
        if isinstance(tree.this, exp.Literal) and not tree.this.is_string:
            return number("-" + tree.this.this).type
        type_ = self.type(tree.this)
        if not is_float(type_):
            raise _RiskError(tree, "may overflow")
        return type_

    def arithmetic(self, tree: Any) -> pa.DataType:
        one, two = self.numbers(tree)
        if not is_float(one) and not is_float(two):
            raise _RiskError(tree, "may overflow")
        return common_number(one, two)

    def quotient(self, tree: Any) -> pa.DataType:
        one, two = self.numbers(tree)
        if not _not_zero(tree.expression):
            raise _RiskError(tree, "may divide by zero")
        if is_decimal(one) or (is_decimal(two) and not is_float(one)):
            raise _RiskError(tree, "divides decimals")
        return DOUBLE

    def remainder(self, tree: Any) -> pa.DataType:
        one, two = self.numbers(tree)
        if not is_integer(one) or not is_integer(two):
            raise _RiskError(tree, "is not over whole numbers")
        if not _not_zero(tree.expression):
            raise _RiskError(tree, "may divide by zero")
        return common_number(one, two)

    def bits(self, tree: Any) -> pa.DataType:
        types = self.types([tree.this] if isinstance(tree, exp.BitwiseNot) else [tree.this, tree.expression])
        if not all(map(is_integer, types)):
            raise _RiskError(tree, "is not over whole numbers")
        return types[0] if len(types) == 1 else common_number(types[0], types[1])

    def numbers(self, tree: Any) -> tuple[pa.DataType, pa.DataType]:
        one, two = self.type(tree.this), self.type(tree.expression)
        if not is_numeric(one) or not is_numeric(two):
            raise _RiskError(tree, "is not over numbers")
        return one, two

    def cast(self, tree: Any) -> pa.DataType:
        if tree.args.get("safe"):
            raise _RiskError(tree, "is not known to be safe")
        source, target = self.type(tree.this), read_type(tree.args["to"])
        literal = tree.this.this if isinstance(tree.this, exp.Literal) and tree.this.is_string else None
        if source == target or _widens(source, target) or (literal is not None and _reads(literal, target)):
            return target
        raise _RiskError(tree, "may not fit")

    def pipe(self, tree: Any) -> pa.DataType:
        raise _RiskError(tree, "may make a text that is too long")

    def call(self, tree: Any) -> pa.DataType:
        return self.called(tree, tree.name.lower(), tree.expressions)

    def called(self, tree: Any, name: str, arguments: Sequence[Any]) -> pa.DataType:
        rule = _CALLS.get(name)
        if rule is None:
            raise _RiskError(tree, "is not known to be safe")
        if name == "nullif":
            self.meet(tree, *arguments)
        return rule(tree, self.types(arguments))


def _widens(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether all values of a type have a place in another, at most rounded to a double."""
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


def _fits(one: pa.DataType, two: pa.DataType) -> bool:
    left, right = as_decimal(one), as_decimal(two)
    digits = max(left.precision - left.scale, right.precision - right.scale) + max(left.scale, right.scale)
    return bool(digits <= MAX_PRECISION)


def _reads(text: str, type_: pa.DataType) -> bool:
    """Return whether a text is certainly a date or a timestamp."""
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


def _result(tree: Any, types: _Types) -> pa.DataType:
    """Return the type of what is one of several values."""
    found = VOID
    for type_ in types:
        if found == VOID or type_ == found:
            found = type_
        elif is_numeric(found) and is_numeric(type_) and not is_decimal(found) and not is_decimal(type_):
            found = common_number(found, type_)
        elif type_ != VOID:
            raise _RiskError(tree, "has results of different types")
    return found


_Rule = Callable[[Any, _Types], pa.DataType]


def _takes(good: Callable[[pa.DataType], bool], returns: pa.DataType | None = None) -> _Rule:
    """Return the rule of a function that is safe for some types; without `returns` it gives what it takes."""

    def rule(tree: Any, types: _Types) -> pa.DataType:
        if not all(map(good, types)):
            raise _RiskError(tree, "is not known to be safe for these types")
        return types[0] if returns is None else returns

    return rule


def _extreme(tree: Any, types: _Types) -> pa.DataType:
    if len(set(types)) > 1 or is_nested(types[0]) or types[0] == BINARY:
        raise _RiskError(tree, "compares different types")
    return types[0]


def _is(*wanted: pa.DataType) -> Callable[[pa.DataType], bool]:
    return lambda type_: type_ in wanted


_text, _flag = _takes(_is(STRING), STRING), _takes(_is(STRING), BOOLEAN)
_anything = _takes(lambda type_: True, BOOLEAN)
_count, _instant = _takes(_is(STRING), INT), _takes(_is(TIMESTAMP), BIGINT)
_CALLS: dict[str, _Rule] = {
    **dict.fromkeys(("upper", "ucase", "lower", "lcase", "reverse"), _text),
    **dict.fromkeys(("startswith", "endswith", "contains"), _flag),
    **dict.fromkeys(("length", "char_length"), _count),
    "trim": _text,
    **dict.fromkeys(("coalesce", "nvl", "ifnull"), _result),
    "nvl2": lambda tree, types: _result(tree, types[1:]),
    "nullif": lambda tree, types: types[0],
    **dict.fromkeys(("isnull", "isnotnull"), _anything),
    **dict.fromkeys(("greatest", "least"), _extreme),
    "isnan": _takes(is_float, BOOLEAN),
    "nanvl": _takes(_is(DOUBLE), DOUBLE),
    "abs": _takes(is_float),
    "sqrt": _takes(_is(DOUBLE), DOUBLE),
    **dict.fromkeys(("unix_micros", "unix_millis", "unix_seconds"), _instant),
}
"""What the functions that never fail give for the types of their arguments."""

_STEPS: dict[type[exp.Expression], Callable[[_Walk, Any], pa.DataType]] = {
    exp.Paren: _Walk.paren,
    exp.Column: _Walk.column,
    exp.Literal: _Walk.literal,
    exp.Boolean: _Walk.constant,
    exp.Null: _Walk.constant,
    **dict.fromkeys((exp.And, exp.Or, exp.Not), _Walk.logic),
    exp.Is: _Walk.is_,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), _Walk.comparison),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), _Walk.comparison),
    exp.Between: _Walk.between,
    exp.In: _Walk.membership,
    **dict.fromkeys((exp.Like, exp.ILike), _Walk.like),
    exp.Case: _Walk.case,
    exp.If: _Walk.if_,
    exp.Neg: _Walk.negative,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul), _Walk.arithmetic),
    exp.Div: _Walk.quotient,
    exp.Mod: _Walk.remainder,
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot), _Walk.bits),
    **dict.fromkeys((exp.Cast, exp.TryCast), _Walk.cast),  # sqlglot reads Spark's CAST as either
    exp.DPipe: _Walk.pipe,
    exp.Anonymous: _Walk.call,
}
