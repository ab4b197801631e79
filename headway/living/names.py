"""Names of parts of a network, as a change is asked for and as messages tell them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

ALL = "all"
Names = Collection[str] | str
"""Names of boxes, or ``all``."""


def listed(names: Names) -> frozenset[str]:
    """Return the names that are given one by one; a text other than ``all`` is one name."""
    if isinstance(names, str):
        return frozenset() if names == ALL else frozenset([names])
    return frozenset(names)


def ordered(order: Iterable[str], names: Collection[str]) -> tuple[str, ...]:
    """Return names in an order that has all of them."""
    return tuple(name for name in order if name in names)


def quoted(names: Iterable[str]) -> str:
    """Return names as text for a message."""
    return ", ".join(f"'{name}'" for name in names)
