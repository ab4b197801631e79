"""User functions, layered over the built-in ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from headway.errors import ExpressionError, unknown


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A Python function of one tuple, or of Arrow arrays if vectorised."""

    name: str
    arguments: tuple[pa.DataType, ...]
    returns: pa.DataType
    function: Callable[..., Any]
    vectorised: bool = False
    null_on_null: bool = True


@dataclass(frozen=True, slots=True)
class UserAggregate:
    """A Python aggregate: ``init() -> state``, ``incr(state, *args) -> state``, ``final(state) -> value``.

    If vectorised, `function` takes one Arrow array per argument with all tuples of a window in order and
    returns the value, and the three others are None.
    """

    name: str
    arguments: tuple[pa.DataType, ...]
    returns: pa.DataType
    init: Callable[[], Any] | None = None
    incr: Callable[..., Any] | None = None
    final: Callable[[Any], Any] | None = None
    function: Callable[..., Any] | None = None

    @property
    def vectorised(self) -> bool:
        """Whether it takes whole windows as Arrow arrays."""
        return self.function is not None


@dataclass(frozen=True)
class Functions:
    """The user functions that expressions may call. Immutable: adding returns a new registry."""

    scalars: Mapping[str, ScalarFunction] = field(default_factory=lambda: MappingProxyType({}))
    aggregates: Mapping[str, UserAggregate] = field(default_factory=lambda: MappingProxyType({}))

    def with_function(self, function: ScalarFunction | UserAggregate) -> Functions:
        """Return a registry that also has this function; a later one of the same name replaces it."""
        key = function.name.lower()
        scalars = {name: known for name, known in self.scalars.items() if name != key}
        aggregates = {name: known for name, known in self.aggregates.items() if name != key}
        if isinstance(function, ScalarFunction):
            scalars[key] = function
        else:
            aggregates[key] = function
        return Functions(MappingProxyType(scalars), MappingProxyType(aggregates))

    def aggregate(self, name: str) -> UserAggregate:
        """Return a user aggregate by name, or raise an ExpressionError that lists them."""
        found = self.aggregates.get(name.lower())
        if found is None:
            raise ExpressionError(unknown("aggregate function", name, self.aggregates))
        return found


BUILTIN = Functions()
"""The registry without user functions."""
