"""Users' own functions: registered by name, called in expressions by that name.

A network file only names functions, it never holds code. Functions come from modules that the program running Headway
imports, or names for `load_functions`.
"""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from headway.errors import HeadwayError, InputError, NetworkError, SchemaError
from headway.expressions.library.table import AGGREGATES, BUILTINS
from headway.expressions.userfunctions import BUILTIN, Functions, ScalarFunction, UserAggregate
from headway.network.schema import parse_type

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
_NAME = re.compile(r"[A-Za-z_]\w*")
_STEPS = ("init", "incr", "final")


_lock = threading.Lock()
_registered = BUILTIN
"""The process's functions. The set is immutable, so a running network keeps what it was checked with."""


def _register(made: ScalarFunction | UserAggregate) -> None:
    global _registered
    with _lock:
        _registered = _registered.with_function(made)


def functions() -> Functions:
    """Return all functions registered so far, as an immutable registry."""
    return _registered


def function(
    name: str, *, args: Sequence[str], returns: str, vectorised: bool = False, null_on_null: bool = True
) -> Callable[[Decorated], Decorated]:
    """Register a Python function for use in expressions; returns a decorator that leaves it unchanged.

    It is called once per tuple with Python values. With `null_on_null` a NULL argument gives NULL without a call;
    otherwise None is passed. With `vectorised` it is called once per train with an Arrow array per argument, NULLs
    included, and returns an Arrow array of the same length. It must always return the same for the same arguments. If
    it raises, the tuples become dead letters. It may be called from several threads.
    """
    types, result = _signature("function", name, args, returns)

    def decorate(body: Decorated) -> Decorated:
        if not callable(body):
            raise NetworkError(f"function '{name}': a function is expected, not {body!r}")
        _register(ScalarFunction(name, types, result, body, vectorised, null_on_null))
        return body

    return decorate


def aggregate(
    name: str, *, args: Sequence[str], returns: str, vectorised: bool = False
) -> Callable[[Decorated], Decorated]:
    """Register an aggregate for windows; returns a decorator that leaves what it decorates unchanged.

    It decorates a class with ``init() -> state``, ``incr(state, *args) -> state`` and ``final(state) -> value``,
    called in the order of the window's tuples; NULL arguments are passed as None. With `vectorised` it
    decorates a function of one Arrow array per argument, all tuples of a window in order, that returns the value.
    """
    types, result = _signature("aggregate", name, args, returns)

    def decorate(body: Decorated) -> Decorated:
        if vectorised:
            _register(UserAggregate(name, types, result, function=body))
            return body
        made: Any = body() if isinstance(body, type) else body
        missing = [step for step in _STEPS if not callable(getattr(made, step, None))]
        if missing:
            raise NetworkError(
                f"aggregate '{name}': {' and '.join(missing)} missing; write a class with {', '.join(_STEPS)}, "
                "or a function and vectorised=True"
            )
        _register(UserAggregate(name, types, result, made.init, made.incr, made.final))
        return body

    return decorate


def load_functions(module: str) -> Functions:
    """Import a module by its dotted name, which registers its functions, and return all functions.

    Only for names given by the user who starts the process, never for names from a network file.
    """
    try:
        importlib.import_module(module)
    except HeadwayError:
        raise
    except Exception as error:  # a user's module may raise anything while it is imported
        reason = (str(error).strip() or "no message").splitlines()[0]
        raise InputError(f"functions module '{module}' cannot be imported: {type(error).__name__}: {reason}") from error
    return functions()


def _signature(kind: str, name: str, args: Sequence[str], returns: str) -> tuple[tuple[Any, ...], Any]:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise NetworkError(f"{kind} {name!r}: a name of letters, digits and underscores is expected")
    if name.lower() in BUILTINS or name.lower() in AGGREGATES or name.lower() == "if":
        raise NetworkError(f"{kind} '{name}': this is a built-in function; choose another name")
    if isinstance(args, str):
        raise NetworkError(f"{kind} '{name}': args is a list of types, such as ['{args}']")
    try:
        return tuple(parse_type(arg) for arg in args), parse_type(returns)
    except SchemaError as error:
        raise NetworkError(f"{kind} '{name}': {error}") from None
