"""Sizes as users write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import NetworkError
from headway.sizes import parse_size, show_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("64k", 65536), ("100 MB", 100 << 20), ("1.5GiB", 3 << 29), (" 2 b ", 2), ("1tb", 1 << 40)],
)
def test_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "0.5", "-1", "1 X", "MB", "1e3", "9" * 1000])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(NetworkError, match="is not a size of at least a byte; a size is a number and a unit, such as"):
        parse_size(text)


@given(st.integers(1, 1 << 60))
def test_shown_as_read(size: int) -> None:
    assert parse_size(show_size(size)) == size
