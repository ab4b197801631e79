"""A network file's SQL expressions as Spark columns: parsed by Headway and built node by node, never passed as text.

Spark's SQL can call any Java method (`reflect`), so it must never see text from a file. Only known functions and known
syntax are accepted. Names and values are passed as data.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from headway.connectors.spark_options import words
from headway.errors import ExpressionError, SchemaError, did_you_mean
from headway.expressions.casts import DAY
from headway.expressions.compiler import number
from headway.expressions.library.table import BUILTINS
from headway.expressions.library.times import read_interval
from headway.expressions.parsing import fragment, parse_items, read_type
from headway.network.schema import Schema, parse_type, type_name

if TYPE_CHECKING:
    from pyspark.sql import Column

_FURTHER = frozenset(
    words(
        "array array_contains array_distinct array_join array_max array_min array_position base64 bigint bin binary "
        "boolean cardinality char_length conv crc32 current_timestamp date date_from_unix_date decimal decode double "
        "element_at encode explode explode_outer flatten float from_csv from_json from_utc_timestamp get "
        "get_json_object hash hex if input_file_name int ltrim make_timestamp map_entries map_from_entries map_keys "
        "map_values md5 named_struct octet_length parse_url sha sha1 sha2 size slice smallint sort_array split string "
        "struct substring_index timestamp tinyint to_binary to_csv to_json to_number to_unix_timestamp "
        "to_utc_timestamp try_add try_divide try_element_at try_to_number try_to_timestamp typeof unbase64 unhex "
        "url_decode url_encode xxhash64"
    )
)
"""Spark functions, in addition to Headway's own, that access only their arguments, or the row's file and time."""
FUNCTIONS = frozenset(BUILTINS) | _FURTHER
_TYPED_BY_TEXT = {"from_json": 1, "from_csv": 1}
"""Functions with a schema argument, and its position; Headway parses the schema and writes it anew."""
_GROWING = {"repeat": 1, "lpad": 1, "rpad": 1}
_LONGEST = 100_000


def check_select(items: Sequence[str]) -> None:
    """Raise an ExpressionError if a select list contains anything unknown; needs no Spark."""
    for tree in parse_items(list(items)):
        _check(tree)


def select_columns(items: Sequence[str], names: Sequence[str]) -> list[Column]:
    """Return the Spark columns of a select list; ``*`` is all of `names`. Raises an ExpressionError."""
    made: list[Column] = []
    for tree in parse_items(list(items)):
        if _is_star(tree):
            made += [_named([name]) for name in names]
        else:
            made.append(to_column(tree))
    return made


def to_column(tree: exp.Expression) -> Column:
    """Convert a tree to a Spark column; an ExpressionError names what is unknown."""
    _check(tree)
    made: Column = _build(tree)
    return made


def _check(tree: Any) -> None:
    """Check a whole tree before anything is built, so that a check without Spark gives the same errors."""
    if isinstance(tree, exp.Alias):
        tree = tree.this
    if _is_star(tree):
        return
    try:
        _check_value(tree)
    except RecursionError:
        raise ExpressionError("it is nested too deeply") from None


def _check_value(tree: Any) -> None:
    _builder(tree)
    parts = list(tree.iter_expressions())
    match tree:
        case exp.Column():
            parts = []
        case exp.Literal():
            if not tree.is_string:
                number(tree.this)
        case exp.Interval():
            read_interval(tree)
            parts = []
        case exp.Dot():
            if not isinstance(tree.expression, exp.Identifier):
                raise ExpressionError(f"'{fragment(tree)}': only fields of a struct can stand behind a dot")
            parts = [tree.this]
        case exp.Bracket():
            if len(tree.expressions) != 1 or not isinstance(tree.expressions[0], exp.Literal):
                raise ExpressionError(f"'{fragment(tree)}': in [ ] stands one number or one text")
            parts = [tree.this]
        case exp.Cast() | exp.TryCast():
            read_type(tree.args["to"])
            parts = [tree.this]
        case exp.Extract():
            parts = [tree.expression]
        case exp.Escape() if not _is_character(tree.expression):
            raise ExpressionError(f"'{fragment(tree)}': ESCAPE takes one character")
        case exp.In() if not tree.expressions:
            raise ExpressionError(f"'{fragment(tree)}': IN takes a list of values in brackets")
        case exp.Anonymous():
            _check_call(tree)
            if tree.name.lower() == "struct":
                parts = [part.this if isinstance(part, exp.Alias) else part for part in parts]
    for part in parts:
        _check_value(part)


def _check_call(tree: Any) -> None:
    name = tree.this.lower() if isinstance(tree.this, str) else ""  # in backticks it is an identifier
    if name not in FUNCTIONS:
        hint = did_you_mean(name, FUNCTIONS) or ";"
        raise ExpressionError(
            f"function '{fragment(tree, 40).partition('(')[0]}' is not known to be safe in Spark{hint} see "
            "docs/safety.md for those that are"
        )
    if name in _TYPED_BY_TEXT:
        _schema_text(tree, _TYPED_BY_TEXT[name])
    at = _GROWING.get(name)
    if at is not None and at < len(tree.expressions):
        count = tree.expressions[at]
        if not isinstance(count, exp.Literal) or count.is_string or not 0 <= float(count.this) <= _LONGEST:
            raise ExpressionError(f"'{fragment(tree)}': the length is a number up to {_LONGEST:,} here")


def _build(tree: Any) -> Any:
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    return _build(tree.this).alias(tree.alias) if isinstance(tree, exp.Alias) else _builder(tree)(F, tree)


def _builder(tree: Any) -> Callable[[Any, Any], Any]:
    try:
        return _BUILDERS[type(tree)]
    except KeyError:
        raise ExpressionError(f"'{fragment(tree)}' is not supported in a select for Spark") from None


def _named(parts: Sequence[str]) -> Column:
    from pyspark.sql.functions import col

    return col(".".join("`" + part.replace("`", "``") + "`" for part in parts))


def _item(functions: Any, tree: Any) -> Any:
    key = tree.expressions[0]
    return _build(tree.this).getItem(key.this if key.is_string else int(key.this))


def _literal(functions: Any, tree: Any) -> Any:
    return functions.lit(tree.this if tree.is_string else _number(tree.this))


def _number(text: str) -> float | int | Decimal:
    """Return a checked number in the type that SQL gives it."""
    if "e" in text.lower():
        return float(text)
    whole = text.lstrip("-").isdigit() and -(2**63) <= int(text) < 2**63
    return int(text) if whole else Decimal(text)


def _negative(functions: Any, tree: Any) -> Any:
    if isinstance(tree.this, exp.Literal) and not tree.this.is_string:
        return functions.lit(_number("-" + tree.this.this))
    return -_build(tree.this)


def _is(functions: Any, tree: Any) -> Any:
    argument = _build(tree.this)
    if isinstance(tree.expression, exp.Null):
        return argument.isNull()
    if isinstance(tree.expression, exp.Boolean):
        return argument.eqNullSafe(functions.lit(bool(tree.expression.this)))
    raise ExpressionError(f"'{fragment(tree)}': IS takes NULL, TRUE or FALSE")


def _like(functions: Any, tree: Any, escape: str | None = None) -> Any:
    name = "like" if isinstance(tree, exp.Like) else "ilike" if isinstance(tree, exp.ILike) else "rlike"
    arguments = [_build(tree.this), _build(tree.expression)]
    if escape is not None:
        arguments.append(functions.lit(escape))
    made = getattr(functions, name)(*arguments)
    return ~made if tree.args.get("negate") else made


def _case(functions: Any, tree: Any) -> Any:
    operand = None if tree.this is None else _build(tree.this)
    made = functions
    for branch in tree.args["ifs"]:
        condition = _build(branch.this)
        made = made.when(condition if operand is None else operand == condition, _build(branch.args["true"]))
    default = tree.args.get("default")
    return made if default is None else made.otherwise(_build(default))


def _if(functions: Any, tree: Any) -> Any:
    if tree.args.get("false") is None:
        raise ExpressionError("if is called as if(condition, then, else)")
    parts = [_build(part) for part in (tree.this, tree.args["true"], tree.args["false"])]
    return functions.call_function("if", *parts)


def _cast(functions: Any, tree: Any) -> Any:
    from pyspark.sql.pandas.types import from_arrow_type

    type_ = from_arrow_type(read_type(tree.args["to"]), prefer_timestamp_ntz=True)
    argument = _build(tree.this)
    return argument.try_cast(type_) if tree.args.get("safe") else argument.cast(type_)


def _call(functions: Any, tree: Any) -> Any:
    name = tree.this.lower()
    arguments = [_build(one) for one in tree.expressions]
    at = _TYPED_BY_TEXT.get(name)
    if at is not None:
        arguments[at] = functions.lit(_schema_text(tree, at))
    return functions.call_function(name, *arguments)


def _schema_text(tree: Any, at: int) -> str:
    text = tree.expressions[at] if at < len(tree.expressions) else None
    if not isinstance(text, exp.Literal) or not text.is_string:
        raise ExpressionError(f"'{fragment(tree)}': the schema is a text, such as 'a int, b string'")
    try:
        if text.this.lstrip().lower().startswith(("array<", "struct<")):
            return type_name(parse_type(text.this))
        fields = Schema.parse(text.this).fields
    except SchemaError as error:
        raise ExpressionError(f"'{fragment(tree)}': {error}") from None
    return ", ".join(f"`{field.name.replace('`', '``')}` {type_name(field.type)}" for field in fields)


def _interval(functions: Any, tree: Any) -> Any:
    from pyspark.sql.types import DayTimeIntervalType

    found = read_interval(tree)
    if found.months and found.microseconds:
        raise ExpressionError(f"'{fragment(tree)}' mixes months and days; add them one after the other")
    if found.months:
        return functions.make_ym_interval(functions.lit(0), functions.lit(found.months))
    made = functions.lit(dt.timedelta(microseconds=found.microseconds))
    # Adding an interval keeps a date a date only if Spark knows that the interval is in days.
    return made.cast(DayTimeIntervalType(0, 0)) if found.whole_days and found.microseconds % DAY == 0 else made


def _is_star(tree: Any) -> bool:
    return isinstance(tree, exp.Star) and not any(tree.args.values())


def _is_character(tree: Any) -> bool:
    return isinstance(tree, exp.Literal) and tree.is_string and len(tree.this) == 1


def _unary(build: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda functions, tree: build(_build(tree.this))


def _binary(build: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda functions, tree: build(_build(tree.this), _build(tree.expression))


_BUILDERS: dict[type[exp.Expression], Callable[[Any, Any], Any]] = {
    exp.Column: lambda functions, tree: _named([part.name for part in tree.parts]),
    exp.Dot: lambda functions, tree: _build(tree.this).getField(tree.expression.name),
    exp.Bracket: _item,
    exp.Interval: _interval,
    exp.Paren: _unary(lambda one: one),
    exp.Literal: _literal,
    exp.Boolean: lambda functions, tree: functions.lit(bool(tree.this)),
    exp.Null: lambda functions, tree: functions.lit(None),
    exp.Neg: _negative,
    exp.Not: _unary(lambda one: ~one),
    exp.BitwiseNot: lambda functions, tree: functions.bitwise_not(_build(tree.this)),
    exp.And: _binary(lambda one, two: one & two),
    exp.Or: _binary(lambda one, two: one | two),
    exp.Add: _binary(lambda one, two: one + two),
    exp.Sub: _binary(lambda one, two: one - two),
    exp.Mul: _binary(lambda one, two: one * two),
    exp.Div: _binary(lambda one, two: one / two),
    exp.Mod: _binary(lambda one, two: one % two),
    exp.IntDiv: lambda functions, tree: functions.call_function("div", _build(tree.this), _build(tree.expression)),
    exp.EQ: _binary(lambda one, two: one == two),
    exp.NEQ: _binary(lambda one, two: one != two),
    exp.LT: _binary(lambda one, two: one < two),
    exp.LTE: _binary(lambda one, two: one <= two),
    exp.GT: _binary(lambda one, two: one > two),
    exp.GTE: _binary(lambda one, two: one >= two),
    exp.NullSafeEQ: _binary(lambda one, two: one.eqNullSafe(two)),
    exp.NullSafeNEQ: _binary(lambda one, two: ~one.eqNullSafe(two)),
    exp.BitwiseAnd: _binary(lambda one, two: one.bitwiseAND(two)),
    exp.BitwiseOr: _binary(lambda one, two: one.bitwiseOR(two)),
    exp.BitwiseXor: _binary(lambda one, two: one.bitwiseXOR(two)),
    exp.Is: _is,
    exp.In: lambda functions, tree: _build(tree.this).isin(*[_build(one) for one in tree.expressions]),
    exp.Between: lambda functions, tree: _build(tree.this).between(_build(tree.args["low"]), _build(tree.args["high"])),
    exp.Like: _like,
    exp.ILike: _like,
    exp.RegexpLike: _like,
    exp.Escape: lambda functions, tree: _like(functions, tree.this, tree.expression.this),
    exp.Case: _case,
    exp.If: _if,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.DPipe: lambda functions, tree: functions.concat(_build(tree.this), _build(tree.expression)),
    exp.Concat: lambda functions, tree: functions.concat(*[_build(one) for one in tree.expressions]),
    exp.Extract: lambda functions, tree: functions.extract(functions.lit(tree.this.name), _build(tree.expression)),
    exp.CurrentTimestamp: lambda functions, tree: functions.current_timestamp(),
    exp.Anonymous: _call,
}
