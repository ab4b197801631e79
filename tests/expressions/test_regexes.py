"""Regular expressions: linear in time, and refused where Java's meaning is another."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.expressions.texts import count_groups, extracting
from tests.expressions.helpers import evaluate, refused, value


@pytest.mark.parametrize(
    "text",
    [
        "regexp_extract(repeat('a', 5000), '(a+)+b', 1)",
        "regexp_extract('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!', '(a|aa)+$', 1)",
        "regexp_replace(repeat('a', 5000), '(a*)*b', '')",
        "repeat('a', 5000) rlike '(a|a)*b'",
    ],
)
def test_no_pattern_hangs(text: str) -> None:
    begun = time.monotonic()
    value(text)
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    "pattern", ["(?=a)", "(?!a)", "(?<=a)b", "(?<!a)b", r"(a)\\1", "a++", "(?>a)", "(", "[a&&b]", "[a[bc]]", "a{2000}"]
)
@pytest.mark.parametrize("call", ["regexp_extract(s, '{}', 0)", "regexp_replace(s, '{}', '')", "s rlike '{}'"])
def test_refused_when_checked(call: str, pattern: str) -> None:
    message = refused(call.format(pattern), "s string")
    assert "regular expression that can be used here" in message or "classes" in message


def test_groups() -> None:
    assert evaluate("regexp_extract(s, '(x)?(b+)(?:c|(d))', 1)", "s string", [("abbc",), ("xbd",), (None,)]) == [
        "",
        "x",
        None,
    ]
    assert value("regexp_extract('a(b)c', '[(](?<inner>[a-z])', 1)") == "b"
    assert value(r"regexp_extract('a(b)c', '\\((.)\\)', 1)") == "b"
    assert value(r"regexp_extract('a(b)c', '\\Q(\\E(.)', 1)") == "b"
    assert value("regexp_extract('ABC', '(?i)b|c', 0)") == "B"
    assert value("regexp_extract('a]b', '[^]a](.?)', 0)") == "b"
    assert "group 2 does not exist" in refused("regexp_replace('a', '(a)', '$2')")
    assert value("regexp_replace('bab', 'a', '$²$')") == "b$²$b"  # only 0 to 9 name a group


pieces = st.sampled_from(["a", "b", "(", ")", "(?:", "|", "*", "?", "[ab]", "[(]", r"\(", "(?P<n>", "[^)]", "+"])


@given(pattern=st.lists(pieces, max_size=8).map("".join), text=st.text("ab()", max_size=8))
def test_the_same_as_python_where_both_read_a_pattern(pattern: str, text: str) -> None:
    try:
        expected = re.compile(pattern)
    except re.error:
        return
    assert count_groups(pattern) == expected.groups
    for group in range(expected.groups + 1):
        one = re.compile(extracting(pattern, group))
        assert one.groups == 1
        mine, theirs = one.search(text), expected.search(text)
        assert (mine and mine["g"]) == (theirs and theirs[group])
