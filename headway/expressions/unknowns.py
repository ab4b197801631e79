"""What is said of a function that does not exist: what is close first, then a bounded list of what there is."""

from __future__ import annotations

from headway.errors import ExpressionError, UnknownFunctionError, choices, nearest
from headway.expressions.aggregation import AGGREGATES
from headway.expressions.library.table import BUILTINS
from headway.expressions.scopes import Scope

_LISTED = 12
_SURE = 0.82
"""From this similarity on a name is taken for misspelt, and not for one that is registered later."""

MEANT = {
    "approx_distinct": "approx_count_distinct",
    "approx_quantile": "approx_percentile",
    "argmax": "max_by",
    "argmin": "min_by",
    "average": "avg",
    "charindex": "instr",
    "dow": "dayofweek",
    "doy": "dayofyear",
    "epoch": "unix_timestamp",
    "find": "instr",
    "iff": "if",
    "iif": "if",
    "is_null": "isnull",
    "isna": "isnull",
    "len": "length",
    "list": "collect_list",
    "lstrip": "ltrim",
    "n_distinct": "count_distinct",
    "nunique": "count_distinct",
    "quantile": "percentile",
    "quantile_cont": "percentile",
    "percentile_cont": "percentile",
    "rstrip": "rtrim",
    "stdev": "stddev",
    "stdevp": "stddev_pop",
    "string_agg": "collect_list",
    "strip": "trim",
    "strlen": "length",
    "strpos": "instr",
    "to_lower": "lower",
    "to_upper": "upper",
    "total": "sum",
    "unique": "collect_set",
    "var": "variance",
    "week": "weekofyear",
}
"""Names from other languages and systems, and what they are called here."""


def unknown_function(name: str, scope: Scope) -> ExpressionError:
    """Return the error for a function that is not there; where aggregates may be called, they are listed.

    It is an UnknownFunctionError unless the name is nearly that of a function that could be called here.
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
    """Return those that the name resembles most; the docs have all."""
    meant = MEANT.get(name.lower())
    close = [meant] if meant in known else []
    close += [one for one in nearest(name, known, _LISTED, 0.4) if one not in close][: _LISTED - len(close)]
    some = close + [one for one in known if one not in close][: _LISTED - len(close)]
    more = len(known) - len(some)
    return choices(some) + (f" and {more} more (docs/expressions.md)" if more > 0 else "")
