"""Changes of a run for people: those with one reason in one line, with how many they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from headway.cli.texts import count_text

NAMED = 3
"""How many changes with one reason are named; the others are counted."""


class Told(NamedTuple):
    """A change as it is told: when (a number, or what is sorted by), what kind, of what, what, and why."""

    moment: Any
    kind: str
    subject: str
    what: str
    reason: str


def together(changes: Iterable[Told], across: bool = False) -> list[list[Told]]:
    """Return the changes that belong together, in the order of their first ones.

    Those of one kind with one reason at one moment do: a look at a run may change thirty outputs. With `across`,
    those at other moments do, too.
    """
    groups: dict[tuple[Any, ...], list[Told]] = {}
    for change in changes:
        key = (change.kind, change.reason) if across else (change.moment, change.kind, change.reason)
        groups.setdefault(key, []).append(change)
    return list(groups.values())


def told(group: Sequence[Told]) -> str:
    """Return who was changed, how and why, in one line; more than one change begins with how many there are."""
    first = group[0]
    if len(group) == 1:
        return _joined(first.subject, first.what, first.reason)
    if len({one.what for one in group}) == 1:
        who = _joined(_listed(dict.fromkeys(one.subject for one in group)), first.what)
    else:
        who = _listed(dict.fromkeys(_joined(one.subject, one.what) for one in group))
    return f"×{count_text(len(group))}  {_joined(who, first.reason)}"


def _joined(*parts: str) -> str:
    return ": ".join(part for part in parts if part)


def _listed(names: Iterable[str]) -> str:
    every = [name for name in names if name]
    more = len(every) - NAMED
    return "; ".join(every[:NAMED]) + (f"; and {count_text(more)} more" if more > 0 else "")
