"""Conditional functions; `if` and CASE are syntax."""

from __future__ import annotations

from headway.expressions import logic
from headway.expressions.comparison import is_null
from headway.expressions.library.base import Builtin
from headway.expressions.nodes import Node


def _coalesce(*arguments: Node) -> Node:
    return logic.coalesce(arguments)


def _nvl2(argument: Node, present: Node, missing: Node) -> Node:
    return logic.case([is_null(argument)], [missing], present)


CONDITIONALS = (
    Builtin("coalesce", "coalesce(x, y, …)", _coalesce, 1, None),
    Builtin("nvl", "nvl(x, y)", _coalesce, 2, 2),
    Builtin("ifnull", "ifnull(x, y)", _coalesce, 2, 2),
    Builtin("nvl2", "nvl2(x, if_not_null, if_null)", _nvl2, 3, 3),
    Builtin("nullif", "nullif(x, y)", logic.null_if, 2, 2),
    Builtin("isnull", "isnull(x)", is_null, 1, 1),
    Builtin("isnotnull", "isnotnull(x)", lambda node: logic.negation(is_null(node)), 1, 1),
)
