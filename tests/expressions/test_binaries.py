"""String functions over bytes."""

from __future__ import annotations

import pytest

from tests.expressions.helpers import evaluate, type_of

SCHEMA = "b binary, s string, n int"
ROWS = [(b"\xff\x00a", "x", 2), (b"", "y", 1), (None, "z", 1)]


@pytest.mark.parametrize(
    ("text", "type_", "expected"),
    [
        ("b || b", "binary", [b"\xff\x00a\xff\x00a", b"", None]),
        ("concat(b, null)", "binary", [None, None, None]),
        ("concat(b)", "binary", [b"\xff\x00a", b"", None]),
        ("length(b)", "int", [3, 0, None]),
        ("char_length(b)", "int", [3, 0, None]),
        ("substring(b, 2)", "binary", [b"\x00a", b"", None]),
        ("substring(b, -2, n)", "binary", [b"\x00a", b"", None]),
        ("left(b, n)", "binary", [b"\xff\x00", b"", None]),
        ("startswith(b, b)", "boolean", [True, True, None]),
        ("contains(b, left(b, 1))", "boolean", [True, True, None]),
        ("endswith(b, left(b, 1))", "boolean", [False, True, None]),
        ("length(s)", "int", [1, 1, 1]),
        ("s || cast(substring(b, 3) as string)", "string", ["xa", "y", None]),
    ],
)
def test_bytes_are_no_text(text: str, type_: str, expected: list[object]) -> None:
    assert type_of(text, SCHEMA) == type_
    assert evaluate(text, SCHEMA, ROWS) == expected


def test_bytes_and_text_make_text() -> None:
    assert evaluate("b || s", SCHEMA, [(b"a", "x", 1)]) == ["ax"]
    assert evaluate("upper(b)", SCHEMA, [(b"a", "x", 1)]) == ["A"]
