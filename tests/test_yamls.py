"""YAML that is no data, or more than it seems."""

from __future__ import annotations

import pytest

from headway.errors import NetworkError
from headway.network.yamls import read_text

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + at)}: &{chr(98 + at)} [{', '.join(['*' + chr(97 + at)] * 9)}]\n" for at in range(9)
)
MERGES = "a: &a {k: 1, l: 2}\n" + "".join(
    f"{chr(98 + at)}: &{chr(98 + at)} {{<<: [{', '.join(['*' + chr(97 + at)] * 9)}], m{at}: 1}}\n" for at in range(12)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: !!timestamp x", "line 1: unknown tag '!!timestamp'"),
        ("a: 1\nb: !!timestamp 2024-01-01", "line 2: unknown tag '!!timestamp'"),
        ("a: !!binary x", "unknown tag '!!binary'"),
        ("a: !!set {x, y}", "unknown tag '!!set'"),
        ("a: !!omap [x: 1]", "unknown tag '!!omap'"),
        ("a: !!python/object:os.system x", "unknown tag '!!python/object:os.system'"),
        ("a: !own x", "unknown tag '!own'"),
        ("a: !!bool maybe", "a truth value is true or false, not 'maybe'"),
        ("a: !!int x", "a number is too long or cannot be read"),
        ("a: !!int {b: 1}", "expected a scalar node"),
        ("a: " + "1" * 5000, "a number is too long"),
        ("a: &a [*a]", "nested too deeply"),
        ("a: &a {b: *a}", "nested too deeply"),
        ("[" * 5000, "nested too deeply"),
        ("{" * 5000, "nested too deeply"),
        ('{"a":' * 5000, "nested too deeply"),
        ("[" * 150 + "]" * 150, "nested too deeply: more than 100 levels"),
        (LAUGHS, "too large: with all aliases it has more than 1000000 values"),
        ("a: {<<: [1]}", "'<<' merges mappings only"),
        ("a: {<<: x}", "'<<' merges mappings only"),
        ("? [a]\n: 1", "a key must be plain text"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(NetworkError, match=message.replace("[", r"\[")):
        read_text(text)


def test_merges_do_not_multiply() -> None:
    found = read_text(MERGES)
    assert found["m"] == {"k": 1, "l": 2, **{f"m{at}": 1 for at in range(12)}}


def test_what_merges_mean() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {x: 2, z: 2}\nc: {<<: [*a, *b], z: 3}\nd: {y: 9, <<: *b}"
    assert read_text(text)["c"] == {"x": 1, "y": 1, "z": 3}
    assert read_text(text)["d"] == {"x": 2, "z": 2, "y": 9}
