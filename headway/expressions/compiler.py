"""Compile sqlglot trees to nodes: resolve names, check types and bind functions.

Constructs that are allowed but probably unintended are noted along the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from headway.errors import ExpressionError, choices, did_you_mean
from headway.expressions import logic, nodes
from headway.expressions.arithmetic import arithmetic, bitwise, bitwise_not, negate
from headway.expressions.casts import cast
from headway.expressions.library.table import AGGREGATES, BUILTINS, unknown_function
from headway.expressions.library.times import IntervalLiteral, read_interval, shift
from headway.expressions.model import Scope
from headway.expressions.nodes import EvaluationError, Node
from headway.expressions.parsing import TOO_DEEP, fragment, read_type
from headway.expressions.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, VOID, is_numeric
from headway.expressions.userfunctions import call_user
from headway.network.schema import type_name

_collected: ContextVar[dict[str, None] | None] = ContextVar("notes", default=None)


@contextmanager
def noting() -> Iterator[dict[str, None]]:
    """Collect the notes made in the body, without duplicates, in order; an outer `noting` does not see them."""
    notes: dict[str, None] = {}
    token = _collected.set(notes)
    try:
        yield notes
    finally:
        _collected.reset(token)


def note(notes: Iterable[str]) -> None:
    """Add notes to the innermost `noting`, if there is one."""
    collected = _collected.get()
    if collected is not None:
        collected.update(dict.fromkeys(notes))


def note_text_as_number(tree: exp.Expression, sides: Sequence[tuple[exp.Expression, Node]], compared: bool) -> None:
    """Note text that meets numbers: as in Spark it is cast, and a tuple whose text is not a number fails."""
    numbers = [node.type for _, node in sides if is_numeric(node.type)]
    if _collected.get() is None or not numbers:
        return
    for side, node in sides:
        if node.type != STRING or _is_number(node):
            continue
        text, where = fragment(side), f"'{fragment(tree)}': {fragment(side)}"
        if node.constant is not None:
            note([f"{where} is not a number, and the other side is {type_name(numbers[0])}: every tuple fails"])
            continue
        other = ", or give the other side as text, such as '36', to compare text" if compared else ""
        note(
            [
                f"{where} is a string and is cast to a number, since the other side is {type_name(numbers[0])}: tuples "
                f"whose text is not a number fail. Write try_cast({text} as double) to get NULL for them{other}"
            ]
        )


def _is_number(node: Node) -> bool:
    """Whether a node is a constant that converts to a number, so that the cast cannot fail."""
    if node.constant is None:
        return False
    try:
        float(node.value)
    except (TypeError, ValueError, EvaluationError):
        return node.is_null
    return True


_DEPENDING = {
    "the clock": "current_timestamp current_date now localtimestamp current_time curdate",
    "chance": "rand random randn uuid shuffle",
    "the way the work is cut up": "monotonically_increasing_id input_file_name",
    "who runs it": "current_user session_user user",
}
_UNREPEATABLE = {name: reason for reason, names in _DEPENDING.items() for name in names.split()}
_ARITHMETIC: dict[type[exp.Expression], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
}
_COMPARISON: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_BITWISE: dict[type[exp.Expression], str] = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^"}
_REFUSED: tuple[tuple[tuple[type[exp.Expression], ...], str], ...] = (
    ((exp.Subquery, exp.Select, exp.Exists, exp.SetOperation), "subqueries are not allowed in expressions"),
    ((exp.Window,), "window functions (OVER) are not allowed; use an aggregate box"),
    ((exp.Lambda, exp.JSONExtract), "lambdas and -> are not supported"),
    ((exp.Placeholder, exp.Parameter), "parameters are not supported; write the value"),
    ((exp.Bracket,), "indexing with [ ] is not supported"),
    ((exp.Star,), "* is only allowed as an item of a select list and in count(*)"),
    ((exp.Filter,), "FILTER (WHERE …) is only allowed after an aggregate function"),
    ((exp.Distinct,), "DISTINCT is only allowed in count(distinct …)"),
    ((exp.IgnoreNulls, exp.RespectNulls), "IGNORE NULLS is only allowed after first, last and any_value"),
    ((exp.Alias,), "an alias is only allowed at the top of a select list"),
    ((exp.Tuple,), "tuples are not supported"),
    ((exp.AtTimeZone,), "AT TIME ZONE is not supported; timestamps are in UTC"),
)
_PARTS: dict[type[exp.Expression], tuple[str, ...]] = {
    exp.Column: ("table", "db", "catalog"),
    exp.Identifier: ("quoted",),
    exp.Literal: ("is_string",),
    exp.Cast: ("to",),
    exp.TryCast: ("to", "safe"),
    exp.Between: ("low", "high"),
    exp.Like: ("negate",),
    exp.ILike: ("negate",),
    exp.Case: ("ifs", "default"),
    exp.If: ("true", "false"),
    exp.In: ("query", "field", "unnest"),
    exp.DPipe: ("safe",),
    exp.Div: ("typed", "safe"),
    exp.Interval: ("unit",),
}
Replacements = Mapping[exp.Expression, Node]


def compile_tree(tree: exp.Expression, scope: Scope, replacements: Replacements | None = None) -> Node:
    """Compile a tree. `replacements` are the nodes to use for aggregate calls."""
    try:
        made = _Compiler(scope, replacements or {}).visit(tree)
    except RecursionError:
        raise ExpressionError(TOO_DEEP) from None
    if isinstance(made, IntervalLiteral):
        raise ExpressionError("an interval alone is not a value; add it to a timestamp or a date")
    return made


@dataclass
class _Compiler:
    """Compiles parts of one tree in any order, each only once."""

    scope: Scope
    replacements: Replacements
    made: dict[int, Node | IntervalLiteral] = field(default_factory=dict)

    def visit(self, tree: exp.Expression) -> Node | IntervalLiteral:
        """Compile a tree to a node, or to an interval, which is only valid in arithmetic with dates and timestamps."""
        if id(tree) in self.made:
            return self.made[id(tree)]
        if self.replacements and tree in self.replacements:
            return self.replacements[tree]
        handler = _HANDLERS.get(type(tree))
        if handler is not None:
            _check_parts(tree)
            self.made[id(tree)] = made = handler(self, tree)
            return made
        for kinds, reason in _REFUSED:
            if isinstance(tree, kinds):
                raise ExpressionError(f"'{fragment(tree)}': {reason}")
        name = tree.sql_name().lower() if isinstance(tree, exp.Func) else ""
        if name in _UNREPEATABLE:
            raise ExpressionError(_unrepeatable(name))
        raise ExpressionError(f"'{fragment(tree)}' is not supported in expressions")

    def node(self, tree: exp.Expression) -> Node:
        """Compile a tree that must be a value."""
        made = self.visit(tree)
        if isinstance(made, IntervalLiteral):
            raise ExpressionError(f"'{fragment(tree)}' is an interval; add it to a timestamp or a date")
        return made

    def meeting(self, whole: exp.Expression, *trees: exp.Expression) -> list[Node]:
        """Compile values that are converted to a common type, and note text among numbers."""
        made = [self.node(tree) for tree in trees]
        note_text_as_number(whole, list(zip(trees, made, strict=True)), compared=True)
        return made

    def arithmetic(self, tree: exp.Expression) -> Node | IntervalLiteral:
        operator = _ARITHMETIC[type(tree)]
        left, right = self.visit(tree.this), self.visit(tree.expression)
        if isinstance(left, Node) and isinstance(right, Node):
            note_text_as_number(tree, [(tree.this, left), (tree.expression, right)], compared=False)
            return arithmetic(operator, left, right)
        if operator not in ("+", "-"):
            raise ExpressionError(f"'{fragment(tree)}': intervals can only be added and subtracted")
        if isinstance(right, IntervalLiteral):
            change = right if operator == "+" else right.negated()
            return left.plus(change) if isinstance(left, IntervalLiteral) else shift(left, change)
        if operator == "-":
            raise ExpressionError(f"'{fragment(tree)}': a date or timestamp cannot be subtracted from an interval")
        assert isinstance(left, IntervalLiteral)
        assert isinstance(right, Node)
        return shift(right, left)

    def negative(self, tree: exp.Expression) -> Node | IntervalLiteral:
        inner = tree.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return number("-" + inner.this)  # the sign is part of the number: -2147483648 is an int
        made = self.visit(inner)
        return made.negated() if isinstance(made, IntervalLiteral) else negate(made)

    def bitwise(self, tree: exp.Expression) -> Node:
        for side in (tree.this, tree.expression):
            if type(side) in _BITWISE and type(side) is not type(tree):
                raise ExpressionError(f"'{fragment(tree)}': put brackets where different bitwise operators meet")
        return bitwise(_BITWISE[type(tree)], self.node(tree.this), self.node(tree.expression))

    def column(self, tree: exp.Expression) -> Node:
        parts = [part.name for part in tree.parts] if isinstance(tree, exp.Column) else [tree.name]
        if isinstance(tree.this, exp.Star):
            raise ExpressionError(f"'{fragment(tree)}' is only allowed as an item of a select list")
        qualified = len(parts) > 1 and self.scope.has_qualifier(parts[0])
        # a.b may be a part of the struct a; without a field a, the error about the qualifier is more helpful
        owned = qualified or any(relation.schema.find(parts[0]) is not None for relation in self.scope.relations)
        if len(parts) > 1 and not owned:
            self.scope.resolve(parts[1], parts[0])
        slot = self.scope.resolve(parts[1], parts[0]) if qualified else self.scope.resolve(parts[0])
        made = nodes.field(slot, self.scope.fields[slot].type)
        for part in parts[2 if qualified else 1 :]:
            made = _part(made, part)
        return made

    def chain(self, tree: Any, combine: Callable[[Node, Node], Node]) -> Node:
        """Combine ``a AND b AND c …`` as a balanced tree, so that long chains do not nest deeply."""
        made = [self.node(part) for part in tree.flatten(unnest=False)]
        while len(made) > 1:
            pairs = [combine(made[i], made[i + 1]) for i in range(0, len(made) - 1, 2)]
            made = pairs + made[2 * len(pairs) :]
        return made[0]

    def comparison(self, tree: exp.Expression) -> Node:
        return logic.compare(_COMPARISON[type(tree)], *self.meeting(tree, tree.this, tree.expression))

    def is_(self, tree: exp.Expression) -> Node:
        argument = self.node(tree.this)
        if isinstance(tree.expression, exp.Null):
            return logic.is_null(argument)
        if isinstance(tree.expression, exp.Boolean):
            return logic.is_boolean(argument, bool(tree.expression.this))
        raise ExpressionError(f"'{fragment(tree)}': IS takes NULL, TRUE or FALSE")

    def null_safe(self, tree: exp.Expression) -> Node:
        equal = logic.null_safe_equal(*self.meeting(tree, tree.this, tree.expression))
        return logic.negation(equal) if isinstance(tree, exp.NullSafeNEQ) else equal

    def in_(self, tree: exp.Expression) -> Node:
        if not tree.expressions:
            raise ExpressionError(f"'{fragment(tree)}': IN takes a list of values in brackets")
        value, *items = self.meeting(tree, tree.this, *tree.expressions)
        return logic.membership(value, items)

    def like(self, tree: exp.Expression, escape: str = "\\") -> Node:
        kind = "like" if isinstance(tree, exp.Like) else "ilike" if isinstance(tree, exp.ILike) else "rlike"
        if isinstance(tree.expression, exp.Any | exp.All):
            raise ExpressionError(f"'{fragment(tree)}': LIKE ANY and LIKE ALL are not supported; use OR and AND")
        made = logic.matches(self.node(tree.this), self.node(tree.expression), kind, escape)
        return logic.negation(made) if tree.args.get("negate") else made

    def escape(self, tree: exp.Expression) -> Node:
        character = tree.expression
        if not isinstance(character, exp.Literal) or not character.is_string or len(character.this) != 1:
            raise ExpressionError(f"'{fragment(tree)}': ESCAPE takes one character")
        if not isinstance(tree.this, exp.Like | exp.ILike):
            raise ExpressionError(f"'{fragment(tree)}': ESCAPE belongs to LIKE and ILIKE")
        return self.like(tree.this, character.this)

    def case(self, tree: exp.Expression) -> Node:
        conditions, results = [], []
        for branch in tree.args["ifs"]:
            if tree.this is None:
                conditions.append(self.node(branch.this))
            else:
                conditions.append(logic.compare("=", *self.meeting(tree, tree.this, branch.this)))
            results.append(self.node(branch.args["true"]))
        default = tree.args.get("default")
        return logic.case(conditions, results, None if default is None else self.node(default))

    def if_(self, tree: exp.Expression) -> Node:
        otherwise = tree.args.get("false")
        if otherwise is None:
            raise ExpressionError("if is called as if(condition, then, else)")
        condition = logic.boolean(self.node(tree.this), "the condition of if")
        return logic.case([condition], [self.node(tree.args["true"])], self.node(otherwise))

    def pipe(self, tree: exp.Expression) -> Node:
        if isinstance(tree.expression, exp.Add | exp.Sub):  # Spark and sqlglot disagree on precedence
            raise ExpressionError(f"'{fragment(tree)}': put brackets where || meets + or -")
        return BUILTINS["concat"]([self.node(tree.this), self.node(tree.expression)])

    def extract(self, tree: exp.Expression) -> Node:
        unit = tree.this.name.lower().rstrip("s")
        unit = {"dow": "dayofweek", "doy": "dayofyear", "week": "weekofyear"}.get(unit, unit)
        units = ("year", "quarter", "month", "weekofyear", "day", "dayofweek", "dayofyear", "hour", "minute")
        if unit not in units:
            raise ExpressionError(f"extract: unknown unit '{tree.this.name}'; choices: {choices(units)}")
        return BUILTINS[unit]([self.node(tree.expression)])

    def call(self, tree: exp.Expression) -> Node:
        name = tree.name.lower()
        user = self.scope.functions.scalars.get(name)
        if user is not None:
            return call_user(user, [self.node(item) for item in tree.expressions])
        if name in _UNREPEATABLE:
            raise ExpressionError(_unrepeatable(name))
        builtin = BUILTINS.get(name)
        if builtin is not None:
            return builtin([self.node(item) for item in tree.expressions])
        if name in AGGREGATES or name in self.scope.functions.aggregates:
            raise ExpressionError(
                f"'{fragment(tree)}': aggregate functions are only allowed in the select of an "
                "aggregate or resample box, and not inside one another"
            )
        raise unknown_function(tree.name, self.scope)


def part_types(scope: Scope) -> Callable[[exp.Expression], pa.DataType]:
    """Return a function that gives the type of any part of one tree."""
    compiler = _Compiler(scope, {})
    return lambda tree: compiler.node(tree).type


def number(text: str) -> Node:
    """Return a numeric literal: int or, if too large, bigint; decimal with a point, double with an exponent."""
    if "e" in text.lower():
        try:
            return nodes.literal(float(text), DOUBLE)
        except ValueError:  # the tokenizer takes 1e5-3 for one number
            hint = "; if it is a difference or a sum, write spaces around the sign"
            raise ExpressionError(f"'{text}' is not a number{hint}") from None
    if text.lstrip("-").isdigit():
        value = int(text)
        if -(2**31) <= value < 2**31:
            return nodes.literal(value, INT)
        if -(2**63) <= value < 2**63:
            return nodes.literal(value, BIGINT)
    try:
        exact = Decimal(text)
    except ArithmeticError:
        raise ExpressionError(f"'{text}' is not a number") from None
    _, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits), scale, 1)
    if precision > 38:
        raise ExpressionError(f"'{text}' has more than 38 digits; write it as a double, such as 1e40")
    return nodes.literal(exact, pa.decimal128(precision, scale))


def _check_parts(tree: exp.Expression) -> None:
    """Reject syntax that sqlglot parses and this compiler would silently ignore."""
    known = _PARTS.get(type(tree), ())
    for key, part in tree.args.items():
        if part and key not in ("this", "expression", "expressions") and key not in known:
            raise ExpressionError(f"'{fragment(tree)}': {key.rstrip('_').upper()} is not supported")


def _part(node: Node, name: str) -> Node:
    if not pa.types.is_struct(node.type):
        raise ExpressionError(f"'{name}' cannot be taken from a {type_name(node.type)}; only structs have parts")
    names = [part.name for part in node.type]
    match = [position for position, known in enumerate(names) if known.lower() == name.lower()]
    if not match:
        hint = did_you_mean(name, names) or ";"
        raise ExpressionError(f"unknown part '{name}' of a struct{hint} parts: {choices(names)}")
    position = match[0]
    return nodes.over_arrow(node.type[position].type, (node,), lambda array: pc.struct_field(array, [position]))


def _unrepeatable(name: str) -> str:
    return f"{name} depends on {_UNREPEATABLE[name]}; results must be the same on every run, so it is not allowed"


def _cast(at: _Compiler, tree: Any) -> Node:
    return cast(at.node(tree.this), read_type(tree.args["to"]), lenient=bool(tree.args.get("safe")))


Handler = Callable[[_Compiler, Any], Node | IntervalLiteral]
_HANDLERS: dict[type[exp.Expression], Handler] = {
    **dict.fromkeys((exp.Column, exp.Identifier), _Compiler.column),
    exp.Literal: lambda at, tree: nodes.literal(tree.this, STRING) if tree.is_string else number(tree.this),
    exp.Paren: lambda at, tree: at.visit(tree.this),
    exp.Interval: lambda at, tree: read_interval(tree),
    exp.Neg: _Compiler.negative,
    **dict.fromkeys(_ARITHMETIC, _Compiler.arithmetic),
    **dict.fromkeys(_COMPARISON, _Compiler.comparison),
    **dict.fromkeys(_BITWISE, _Compiler.bitwise),
    exp.Boolean: lambda at, tree: nodes.literal(bool(tree.this), BOOLEAN),
    exp.Null: lambda at, tree: nodes.null(VOID),
    exp.And: lambda at, tree: at.chain(tree, logic.conjunction),
    exp.Or: lambda at, tree: at.chain(tree, logic.disjunction),
    exp.Not: lambda at, tree: logic.negation(at.node(tree.this)),
    exp.BitwiseNot: lambda at, tree: bitwise_not(at.node(tree.this)),
    exp.Is: _Compiler.is_,
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), _Compiler.null_safe),
    exp.In: _Compiler.in_,
    exp.Between: lambda at, tree: logic.between(*at.meeting(tree, tree.this, tree.args["low"], tree.args["high"])),
    **dict.fromkeys((exp.Like, exp.ILike, exp.RegexpLike), _Compiler.like),
    exp.Escape: _Compiler.escape,
    exp.Case: _Compiler.case,
    exp.If: _Compiler.if_,
    **dict.fromkeys((exp.Cast, exp.TryCast), _cast),
    exp.DPipe: _Compiler.pipe,
    exp.Concat: lambda at, tree: BUILTINS["concat"]([at.node(item) for item in tree.expressions]),
    exp.Extract: _Compiler.extract,
    exp.Anonymous: _Compiler.call,
}
