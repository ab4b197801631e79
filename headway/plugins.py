"""What registers itself by name: policies, layers, strategies, engines, connectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from headway.errors import HeadwayError, unknown

Make = TypeVar("Make", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Entry(Generic[Make]):
    """A row of a registry: a name, how to make what it stands for, and what that is."""

    name: str
    make: Make
    about: str = ""
    """The idea, in a line."""
    paper: str = ""
    formula: str = ""
    use: str = ""
    """When to use it."""
    takes_argument: bool = True
    """Whether text may stand after a colon, as in ``round-robin:1ms``, if what is made takes such a text."""


class Registry(Generic[Make]):
    """Entries by name. A name belongs to the code that registered it first: nothing is replaced in silence."""

    def __init__(self, what: str, error: type[HeadwayError]) -> None:
        """Begin without entries; `what` is what messages call one of them."""
        self._what, self._error = what, error
        self._entries: dict[str, Entry[Make]] = {}

    def register(
        self,
        name: str,
        make: Make,
        about: str = "",
        paper: str = "",
        *,
        formula: str = "",
        use: str = "",
        takes_argument: bool = True,
    ) -> None:
        """Make something known by name; the arguments are those of `Entry`.

        The same code may register a name again, as when a notebook's cell runs twice. Raises an error if the name
        is taken by other code.
        """
        known = self._entries.get(name)
        if known is not None and known.make is not make and _code(known.make) != _code(make):
            raise self._error(f"{self._what} '{name}' is registered already, by {_code(known.make)}: use another name")
        self._entries[name] = Entry(name, make, about, paper, formula, use, takes_argument)

    def entries(self) -> tuple[Entry[Make], ...]:
        """Return the entries, by name."""
        return tuple(self._entries[name] for name in self.names())

    def names(self) -> tuple[str, ...]:
        """Return the names in order."""
        return tuple(sorted(self._entries))

    def __getitem__(self, name: str) -> Entry[Make]:
        """Return an entry. Raises an error that lists the names."""
        if name not in self._entries:
            raise self._error(unknown(self._what, name, self._entries))
        return self._entries[name]

    def parse(self, text: str) -> tuple[Entry[Make], str | None]:
        """Return the entry that ``name`` or ``name:argument`` says, and the argument."""
        name, colon, argument = text.partition(":")
        entry = self[name]
        if colon and not entry.takes_argument:
            raise self._error(f"{self._what} '{name}' takes no argument, not '{argument}'")
        return entry, argument if colon else None


def _code(make: Callable[..., Any]) -> str:
    """Return where a function or class is written."""
    return f"{getattr(make, '__module__', '')}.{getattr(make, '__qualname__', repr(make))}"
