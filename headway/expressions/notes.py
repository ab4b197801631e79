"""What is allowed in an expression but probably not meant, collected while expressions are compiled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from sqlglot import exp

from headway.expressions.nodes import EvaluationError, Node
from headway.expressions.parsing import fragment
from headway.expressions.types import STRING, is_numeric
from headway.schema import type_name

_collected: ContextVar[dict[str, None] | None] = ContextVar("notes", default=None)


@contextmanager
def noting() -> Iterator[dict[str, None]]:
    """Collect what is noted in the body, each note once, in order. What is noted inside is not noted outside."""
    notes: dict[str, None] = {}
    token = _collected.set(notes)
    try:
        yield notes
    finally:
        _collected.reset(token)


def note(notes: Iterable[str]) -> None:
    """Note something, if anybody collects it."""
    collected = _collected.get()
    if collected is not None:
        collected.update(dict.fromkeys(notes))


def note_text_as_number(tree: exp.Expression, sides: Sequence[tuple[exp.Expression, Node]], compared: bool) -> None:
    """Note text that meets numbers: it is cast, as in Spark, and text that is no number fails when a tuple comes."""
    numbers = [node.type for _, node in sides if is_numeric(node.type)]
    if _collected.get() is None or not numbers:
        return
    for side, node in sides:
        if node.type != STRING or _is_number(node):
            continue
        text, where = fragment(side), f"'{fragment(tree)}': {fragment(side)}"
        if node.constant is not None:
            note([f"{where} is no number, and the other side is {type_name(numbers[0])}: every tuple fails"])
            continue
        other = ", or give the other side as text, such as '36', to compare text" if compared else ""
        note(
            [
                f"{where} is a string and is cast to a number, since the other side is {type_name(numbers[0])}: tuples "
                f"whose text is no number fail. Write try_cast({text} as double) to get NULL for them{other}"
            ]
        )


def _is_number(node: Node) -> bool:
    """Whether it is a constant that reads as a number, so that nothing can fail."""
    if node.constant is None:
        return False
    try:
        float(node.value)
    except (TypeError, ValueError, EvaluationError):
        return node.is_null
    return True
