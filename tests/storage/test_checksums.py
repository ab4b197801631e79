"""Checksums: every changed byte is noticed."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.storage.checksums import checksum, seal, unseal


@given(st.binary(), st.binary())
def test_a_checksum_goes_on_where_another_stopped(before: bytes, after: bytes) -> None:
    assert checksum(after, checksum(before)) == checksum(before + after) == zlib.crc32(before + after)


@pytest.mark.parametrize("indent", [None, 2])
def test_sealed_values_are_json(indent: int | None) -> None:
    values = {"a": [1, 2], "b": {"c": None}, "d": 'quote "here": é'}
    data = seal(values, indent)
    assert unseal(data) == values
    assert {key: one for key, one in json.loads(data).items() if key != "check"} == values
    assert (b"\n" in data) == (indent is not None)


@pytest.mark.parametrize("indent", [None, 2])
def test_every_flipped_bit_is_noticed(indent: int | None) -> None:
    values = {"a": [1, 2], "text": "x"}
    data = seal(values, indent)
    for at in range(8 * len(data)):
        changed = bytearray(data)
        changed[at // 8] ^= 1 << at % 8
        try:
            found = unseal(bytes(changed))
        except ValueError:
            continue
        assert found == values, f"bit {at} of {data!r}"


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b'{"check":""}', b'{"a":1}', b"\xff\x00", b'{"check":"00000000"}'])
def test_what_was_never_sealed(text: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        unseal(text)


@given(st.dictionaries(st.text(), st.integers() | st.text()))
def test_a_part_of_it_is_not_enough(values: dict[str, int | str]) -> None:
    values.pop("check", None)
    data = seal(values)
    assert unseal(data) == values
    for cut in {0, 1, len(data) // 2, len(data) - 1}:
        with pytest.raises(ValueError, match=r".+"):
            unseal(data[:cut])
