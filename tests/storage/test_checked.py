"""Checksums: every changed byte is noticed."""

from __future__ import annotations

import json
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.storage.checked import bulk_checksum, checksum, seal, unseal


@given(st.binary(), st.binary())
def test_a_checksum_goes_on_where_another_stopped(before: bytes, after: bytes) -> None:
    assert checksum(after, checksum(before)) == checksum(before + after) == zlib.crc32(before + after)


@pytest.mark.parametrize("size", [0, 1, 100, 4095, 4096, 4097, 20_000])
def test_every_kind_of_damage_to_large_data_is_noticed(size: int) -> None:
    data = random.Random(size).randbytes(size)
    right = bulk_checksum(data)
    assert bulk_checksum(memoryview(data)) == bulk_checksum(bytearray(data)) == right
    for at in range(0, size, 97):
        assert bulk_checksum(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]) != right
    assert size == 0 or bulk_checksum(data[:-1]) != right
    assert bulk_checksum(data + b"\0") != right
    if size > 8192:
        assert bulk_checksum(data[4096:8192] + data[:4096] + data[8192:]) != right  # pages in each other's place
        assert bulk_checksum(data[8:16] + data[:8] + data[16:]) != right
        assert bulk_checksum(bytes(4096) + data[4096:]) != right
    if size:
        low, high = data[0] ^ 1, data[size // 2] ^ 1
        twice = bytes([low]) + data[1 : size // 2] + bytes([high]) + data[size // 2 + 1 :]
        assert size == 1 or bulk_checksum(twice) != right


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
