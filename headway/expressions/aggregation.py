"""The built-in aggregate functions: their names, arguments and result types. Kernels compute them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from headway.errors import ExpressionError
from headway.expressions.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    VOID,
    is_decimal,
    is_integer,
    is_nested,
    is_numeric,
)
from headway.schema import DEEPEST, nesting, too_deep


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A built-in aggregate: its canonical name, its arguments, what it takes and the type that it gives."""

    name: str
    signature: str
    accepts: Callable[[pa.DataType], bool]
    expected: str
    result: Callable[[pa.DataType], pa.DataType]
    arguments: int = 1
    parameters: tuple[int, int] = (0, 0)


def _any(type_: pa.DataType) -> bool:
    return True


def _ordered(type_: pa.DataType) -> bool:
    return not is_nested(type_)


def _number(type_: pa.DataType) -> bool:
    return is_numeric(type_) or type_ == VOID


def _boolean(type_: pa.DataType) -> bool:
    return type_ in (BOOLEAN, VOID)


def _same(type_: pa.DataType) -> pa.DataType:
    return type_


def _sum(type_: pa.DataType) -> pa.DataType:
    if is_decimal(type_):
        return bounded_sum(type_)
    return BIGINT if is_integer(type_) else DOUBLE


def bounded_sum(type_: pa.DataType) -> pa.DataType:
    """Return the type of a sum of decimals."""
    return pa.decimal128(min(38, type_.precision + 10), type_.scale)


def _average(type_: pa.DataType) -> pa.DataType:
    if is_decimal(type_):
        return pa.decimal128(min(38, type_.precision + 4), min(38, type_.scale + 4))
    return DOUBLE


def _fixed(type_: pa.DataType) -> Callable[[pa.DataType], pa.DataType]:
    return lambda argument: type_


def _array(type_: pa.DataType) -> pa.DataType:
    if nesting(type_) >= DEEPEST:
        raise ExpressionError(str(too_deep("collect_list or collect_set: ")))
    return pa.list_(type_)


_NUMBER, _BOOLEAN, _ANY, _ORDERED = "a number", "a boolean", "a value", "a value that has an order"
_LIST = (
    Aggregate("count", "count(*), count(x)", _any, _ANY, _fixed(BIGINT)),
    Aggregate("count_distinct", "count(distinct x)", _ordered, _ORDERED, _fixed(BIGINT)),
    Aggregate("count_if", "count_if(condition)", _boolean, _BOOLEAN, _fixed(BIGINT)),
    Aggregate("approx_count_distinct", "approx_count_distinct(x)", _ordered, _ORDERED, _fixed(BIGINT), 1, (0, 1)),
    Aggregate("sum", "sum(x)", _number, _NUMBER, _sum),
    Aggregate("avg", "avg(x)", _number, _NUMBER, _average),
    Aggregate("min", "min(x)", _ordered, _ORDERED, _same),
    Aggregate("max", "max(x)", _ordered, _ORDERED, _same),
    Aggregate("first", "first(x)", _any, _ANY, _same),
    Aggregate("last", "last(x)", _any, _ANY, _same),
    Aggregate("any_value", "any_value(x)", _any, _ANY, _same),
    Aggregate("stddev_samp", "stddev(x)", _number, _NUMBER, _fixed(DOUBLE)),
    Aggregate("stddev_pop", "stddev_pop(x)", _number, _NUMBER, _fixed(DOUBLE)),
    Aggregate("var_samp", "variance(x)", _number, _NUMBER, _fixed(DOUBLE)),
    Aggregate("var_pop", "var_pop(x)", _number, _NUMBER, _fixed(DOUBLE)),
    Aggregate("median", "median(x)", _number, _NUMBER, _fixed(DOUBLE)),
    Aggregate("percentile", "percentile(x, p)", _number, _NUMBER, _fixed(DOUBLE), 1, (1, 1)),
    Aggregate("approx_percentile", "approx_percentile(x, p)", _number, _NUMBER, _same, 1, (1, 2)),
    Aggregate("collect_list", "collect_list(x)", _any, _ANY, _array),
    Aggregate("collect_set", "collect_set(x)", _ordered, _ORDERED, _array),
    Aggregate("bool_and", "bool_and(x)", _boolean, _BOOLEAN, _fixed(BOOLEAN)),
    Aggregate("bool_or", "bool_or(x)", _boolean, _BOOLEAN, _fixed(BOOLEAN)),
    Aggregate("max_by", "max_by(x, y)", _any, _ANY, _same, 2),
    Aggregate("min_by", "min_by(x, y)", _any, _ANY, _same, 2),
)
_SYNONYMS = {
    "mean": "avg",
    "first_value": "first",
    "last_value": "last",
    "stddev": "stddev_samp",
    "std": "stddev_samp",
    "variance": "var_samp",
    "percentile_approx": "approx_percentile",
    "array_agg": "collect_list",
    "collect": "collect_list",
    "every": "bool_and",
    "some": "bool_or",
    "any": "bool_or",
}
AGGREGATES: dict[str, Aggregate] = {aggregate.name: aggregate for aggregate in _LIST}
AGGREGATES |= {synonym: AGGREGATES[name] for synonym, name in _SYNONYMS.items()}
"""The aggregates by the names that a user may write; ``count_distinct`` also as ``count(distinct x)``."""
