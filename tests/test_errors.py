"""One hierarchy, and messages that list the choices."""

from __future__ import annotations

import inspect
import math

import headway.errors
from headway.errors import LONGEST, HeadwayError, choices, did_you_mean, finite, shorten, unknown


def test_every_error_is_a_headway_error() -> None:
    made = [kind for _, kind in inspect.getmembers(headway.errors, inspect.isclass) if issubclass(kind, Exception)]
    assert len(made) >= 8
    assert all(issubclass(kind, HeadwayError) and kind.__doc__ for kind in made)


def test_choices() -> None:
    assert choices(["a", "b"]) == "a, b"
    assert choices([]) == "(none)"


def test_a_hint_only_where_something_is_close() -> None:
    assert did_you_mean("sise", ["size", "slack"]) == "; did you mean 'size'?"
    assert did_you_mean("SIZE", ["Size"]) == "; did you mean 'Size'?"
    assert did_you_mean("zebra", ["size", "slack"]) == ""
    assert did_you_mean("x", []) == ""


def test_an_unknown_name() -> None:
    assert unknown("box", "conut", ["sum", "count"]) == (
        "unknown box 'conut'; did you mean 'count'? choices: count, sum"
    )
    assert unknown("box", "q", ["b", "a", "a"]) == "unknown box 'q'; choices: a, b"


def test_messages_have_a_bound_and_keep_their_ends() -> None:
    error = HeadwayError(f"box 'x': unknown key '{'y' * 100_000}'; choices: a, b")
    assert len(str(error)) == LONGEST
    assert str(error).startswith("box 'x': unknown key 'yyy")
    assert str(error).endswith("; choices: a, b")
    assert "more characters" in str(error)
    assert shorten("abc", 3) == "abc"


def test_finite_numbers() -> None:
    assert finite(3) == 3.0
    assert finite(1e300) == 1e300
    others: list[object] = [True, "1", None, math.inf, -math.inf, math.nan, 10**400, []]
    assert [finite(one) for one in others] == [None] * len(others)
