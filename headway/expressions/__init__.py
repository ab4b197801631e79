"""SQL expressions: parsed, type-checked and compiled to closures over columns."""

from headway.expressions.compiling import (
    compile_aggregates,
    compile_expression,
    compile_join,
    compile_predicate,
    compile_select,
)
from headway.expressions.model import AggregateCall, AggregateSelect, Expression, JoinCondition, Relation, Scope
from headway.expressions.nodes import EvaluationError
from headway.expressions.userfunctions import BUILTIN, Functions, ScalarFunction, UserAggregate

__all__ = [
    "BUILTIN",
    "AggregateCall",
    "AggregateSelect",
    "EvaluationError",
    "Expression",
    "Functions",
    "JoinCondition",
    "Relation",
    "ScalarFunction",
    "Scope",
    "UserAggregate",
    "compile_aggregates",
    "compile_expression",
    "compile_join",
    "compile_predicate",
    "compile_select",
]
