"""The tables of all built-in functions, scalar and aggregate, and the error for an unknown function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from headway.errors import ExpressionError, UnknownFunctionError, choices, nearest
from headway.expressions.library.builtin import Builtin
from headway.expressions.library.maths import CONDITIONALS, MATHS
from headway.expressions.library.strings import STRINGS
from headway.expressions.library.times import TIMES
from headway.expressions.model import Scope
from headway.expressions.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    is_decimal,
    is_integer,
    is_nested,
    is_numeric,
)
from headway.network.schema import DEEPEST, nesting, too_deep

Taken = tuple[str, Callable[[pa.DataType], bool]]
_NUMBER: Taken = ("a number", is_numeric)
_BOOLEAN: Taken = ("a boolean", lambda type_: bool(type_ == BOOLEAN))
_ANY: Taken = ("a value", lambda type_: True)
_ORDERED: Taken = ("a value that has an order", lambda type_: not is_nested(type_))


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """A built-in aggregate: its canonical name, signature, argument type and result type."""

    name: str
    signature: str
    takes: Taken
    gives: pa.DataType | Callable[[pa.DataType], pa.DataType] | None = None
    """The result type, or a function from the argument's type; None means the argument's type."""
    arguments: int = 1
    parameters: tuple[int, int] = (0, 0)
    synonyms: str = ""

    def result(self, type_: pa.DataType) -> pa.DataType:
        """Return the result type for an argument type."""
        if self.gives is None:
            return type_
        return self.gives(type_) if callable(self.gives) else self.gives


def _sum(type_: pa.DataType) -> pa.DataType:
    if is_decimal(type_):
        return pa.decimal128(min(38, type_.precision + 10), type_.scale)
    return BIGINT if is_integer(type_) else DOUBLE


def _average(type_: pa.DataType) -> pa.DataType:
    if is_decimal(type_):
        return pa.decimal128(min(38, type_.precision + 4), min(38, type_.scale + 4))
    return DOUBLE


def _array(type_: pa.DataType) -> pa.DataType:
    if nesting(type_) >= DEEPEST:
        raise ExpressionError(str(too_deep("collect_list or collect_set: ")))
    return pa.list_(type_)


_LIST = (
    AggregateFunction("count", "count(*), count(x)", _ANY, BIGINT),
    AggregateFunction("count_distinct", "count(distinct x)", _ORDERED, BIGINT),
    AggregateFunction("count_if", "count_if(condition)", _BOOLEAN, BIGINT),
    AggregateFunction("approx_count_distinct", "approx_count_distinct(x)", _ORDERED, BIGINT, parameters=(0, 1)),
    AggregateFunction("sum", "sum(x)", _NUMBER, _sum),
    AggregateFunction("avg", "avg(x)", _NUMBER, _average, synonyms="mean"),
    AggregateFunction("min", "min(x)", _ORDERED),
    AggregateFunction("max", "max(x)", _ORDERED),
    AggregateFunction("first", "first(x)", _ANY, synonyms="first_value"),
    AggregateFunction("last", "last(x)", _ANY, synonyms="last_value"),
    AggregateFunction("any_value", "any_value(x)", _ANY),
    AggregateFunction("stddev_samp", "stddev(x)", _NUMBER, DOUBLE, synonyms="stddev std"),
    AggregateFunction("stddev_pop", "stddev_pop(x)", _NUMBER, DOUBLE),
    AggregateFunction("var_samp", "variance(x)", _NUMBER, DOUBLE, synonyms="variance"),
    AggregateFunction("var_pop", "var_pop(x)", _NUMBER, DOUBLE),
    AggregateFunction("median", "median(x)", _NUMBER, DOUBLE),
    AggregateFunction("percentile", "percentile(x, p)", _NUMBER, DOUBLE, parameters=(1, 1)),
    AggregateFunction(
        "approx_percentile", "approx_percentile(x, p)", _NUMBER, parameters=(1, 2), synonyms="percentile_approx"
    ),
    AggregateFunction("collect_list", "collect_list(x)", _ANY, _array, synonyms="array_agg collect"),
    AggregateFunction("collect_set", "collect_set(x)", _ORDERED, _array),
    AggregateFunction("bool_and", "bool_and(x)", _BOOLEAN, BOOLEAN, synonyms="every"),
    AggregateFunction("bool_or", "bool_or(x)", _BOOLEAN, BOOLEAN, synonyms="some any"),
    AggregateFunction("max_by", "max_by(x, y)", _ANY, arguments=2),
    AggregateFunction("min_by", "min_by(x, y)", _ANY, arguments=2),
)
AGGREGATES: dict[str, AggregateFunction] = {one.name: one for one in _LIST}
AGGREGATES |= {synonym: one for one in _LIST for synonym in one.synonyms.split()}
"""The aggregates by every name that a user may write; ``count(distinct x)`` is ``count_distinct``."""


_ROWS = {"Conditionals": CONDITIONALS, "Strings": STRINGS, "Mathematics": MATHS, "Dates and times": TIMES}
GROUPS = {title: tuple([named for row in rows for named in row.named()]) for title, rows in _ROWS.items()}
"""The scalar functions by chapter of the docs, each under all of its names."""
BUILTINS: dict[str, Builtin] = {function.name: function for group in GROUPS.values() for function in group}


_LISTED = 12
_SURE = 0.82
"""From this similarity on, an unknown name counts as misspelt, and not as a function still to be registered."""

_ELSEWHERE = {
    "approx_count_distinct": "approx_distinct",
    "approx_percentile": "approx_quantile",
    "avg": "average",
    "collect_list": "list string_agg",
    "collect_set": "unique",
    "count_distinct": "n_distinct nunique",
    "dayofweek": "dow",
    "dayofyear": "doy",
    "if": "iff iif",
    "instr": "charindex find strpos",
    "isnull": "is_null isna",
    "length": "len strlen",
    "lower": "to_lower",
    "ltrim": "lstrip",
    "max_by": "argmax",
    "min_by": "argmin",
    "percentile": "percentile_cont quantile quantile_cont",
    "rtrim": "rstrip",
    "stddev": "stdev",
    "stddev_pop": "stdevp",
    "sum": "total",
    "trim": "strip",
    "unix_timestamp": "epoch",
    "upper": "to_upper",
    "variance": "var",
    "weekofyear": "week",
}
"""By function: its names in other languages and systems."""
MEANT = {word: name for name, words in _ELSEWHERE.items() for word in words.split()}


def unknown_function(name: str, scope: Scope) -> ExpressionError:
    """Return the error for an unknown function; where aggregates are allowed, it lists them.

    It is an UnknownFunctionError unless the name closely resembles a function that is allowed here.
    """
    scalars = sorted({*BUILTINS, "if", *scope.functions.scalars})
    aggregates = sorted({*AGGREGATES, *scope.functions.aggregates})
    own, others = (aggregates, scalars) if scope.aggregates else (scalars, aggregates)
    text = f"unknown function '{name}'" + _hint(name, own, others, scope.aggregates)
    if scope.aggregates:
        text += f" aggregate functions: {choices(aggregates)}; other functions: {_some(name, scalars)}"
    else:
        text += f" functions: {_some(name, scalars)}"
    sure = nearest(name, own, cutoff=_SURE)
    return ExpressionError(text) if sure else UnknownFunctionError(text)


def _hint(name: str, own: list[str], others: list[str], aggregates: bool) -> str:
    meant = MEANT.get(name.lower())
    best = [meant] if meant else nearest(name, [*own, *others])
    if not best:
        return ";"
    where = (
        "" if best[0] in own or aggregates else " (an aggregate: only in the select of an aggregate or resample box)"
    )
    return f"; did you mean '{best[0]}'?{where}"


def _some(name: str, known: list[str]) -> str:
    """List the functions that resemble the name most; the docs list all."""
    meant = MEANT.get(name.lower())
    close = [meant] if meant in known else []
    close += [one for one in nearest(name, known, _LISTED, 0.4) if one not in close][: _LISTED - len(close)]
    some = close + [one for one in known if one not in close][: _LISTED - len(close)]
    more = len(known) - len(some)
    return choices(some) + (f" and {more} more (docs/expressions.md)" if more > 0 else "")
