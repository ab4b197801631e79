"""Lookups: for which values of a field a predicate can be true, so that other parts of a history are not read."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from headway.expressions.parsing import parse_one

_BOUNDS: dict[type, tuple[bool, bool]] = {
    exp.EQ: (True, True),
    exp.GT: (True, False),
    exp.GTE: (True, False),
    exp.LT: (False, True),
}
_BOUNDS |= {exp.LTE: (False, True)}
_TURNED: dict[type, type] = {exp.EQ: exp.EQ, exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE}


def wanted_keys(predicate: str, key: str, type_: pa.DataType) -> Any:
    """Return the values of a field that a predicate can be true for: one, a pair of inclusive bounds, or None for all.

    Only comparisons of the field with literals count, also where they are joined by AND with anything else.
    """
    low: Any = None
    high: Any = None
    for at_least, at_most in _bounds(parse_one(predicate), key.lower(), type_):
        if at_least is not None:
            low = at_least if low is None else max(low, at_least)
        if at_most is not None:
            high = at_most if high is None else min(high, at_most)
    if low is None and high is None:
        return None
    return low if low == high else (low, high)


def _bounds(tree: Any, key: str, type_: pa.DataType) -> Iterator[tuple[Any, Any]]:
    """Yield what each part of a conjunction says about the key: the smallest and the largest value."""
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        yield from _bounds(tree.left, key, type_)
        yield from _bounds(tree.right, key, type_)
        return
    if isinstance(tree, exp.Between) and _is_key(tree.this, key):
        low, high = _literal(tree.args["low"], type_), _literal(tree.args["high"], type_)
        yield low, high
        return
    kind: type = type(tree)
    if kind not in _BOUNDS:
        return
    one, other = tree.this, tree.expression
    if _is_key(other, key):
        one, other, kind = other, one, _TURNED[kind]
    value = _literal(other, type_) if _is_key(one, key) else None
    if value is not None:
        below, above = _BOUNDS[kind]
        yield value if below else None, value if above else None


def _is_key(tree: Any, key: str) -> bool:
    return isinstance(tree, exp.Column) and not tree.table and tree.name.lower() == key


def _literal(tree: Any, type_: pa.DataType) -> Any:
    """Return a literal that compares with the key's type as it is; None for anything else."""
    tree = tree.unnest()
    sign = 1
    if isinstance(tree, exp.Neg):
        sign, tree = -1, tree.this
    if not isinstance(tree, exp.Literal):
        return None
    if tree.is_string:
        return tree.this if pa.types.is_string(type_) and sign == 1 else None
    number = sign * Decimal(tree.this)
    if pa.types.is_integer(type_):
        return int(number) if number == int(number) and abs(number) < 2 ** (type_.bit_width - 1) else None
    return None
