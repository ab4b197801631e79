"""Shards: which tuples belong to which, and the keys under which Spark runs them.

Shards are keys of Spark's stateful operator, and Spark assigns keys to tasks by its own hash. Shard s gets a key that
Spark assigns to task s, so that every task has exactly one shard.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headway.columns import GOLDEN, Column, Int64s, splitmix64

_MASK = 0xFFFFFFFF


def shards_of(columns: Sequence[Column], count: int, shards: int) -> Int64s:
    """Return each tuple's shard by its values in these columns; NULL is a value, -0.0 equals 0.0, NaN equals NaN."""
    mixed = np.zeros(count, np.uint64)
    for column in columns:
        mixed = splitmix64(mixed ^ _hashes(column, count))
    return (mixed % np.uint64(shards)).astype(np.int64)


def _hashes(column: Column, count: int) -> npt.NDArray[np.uint64]:
    if column.is_arrow:
        encoded = column.values.dictionary_encode(null_encoding="encode")
        known = np.array([zlib.crc32(repr(value).encode()) for value in encoded.dictionary.to_pylist()], np.uint64)
        taken: npt.NDArray[np.uint64] = known[encoded.indices.to_numpy(zero_copy_only=False)]
        return taken
    values = column.values
    if values.dtype.kind == "f":
        values = values.astype(np.float64) + 0.0  # -0.0 becomes 0.0
        values = np.where(np.isnan(values), np.nan, values).view(np.int64)
    hashes = values.astype(np.int64).view(np.uint64)
    return hashes if column.valid is None else np.where(column.valid, hashes, GOLDEN)


def shard_keys(shards: int) -> tuple[int, ...]:
    """Return for each shard the smallest number that Spark's hash partitioning assigns to the task of that number."""
    keys: dict[int, int] = {}
    key = 0
    while len(keys) < shards:
        keys.setdefault(spark_hash(key) % shards, key)
        key += 1
    return tuple(keys[shard] for shard in range(shards))


def spark_hash(value: int) -> int:
    """Return Spark's hash of a 32-bit integer (Murmur3, seed 42), as a signed number."""
    k = (value & _MASK) * 0xCC9E2D51 & _MASK
    k = (k << 15 | k >> 17) & _MASK
    h = 42 ^ (k * 0x1B873593 & _MASK)
    h = (h << 13 | h >> 19) & _MASK
    h = (h * 5 + 0xE6546B64) & _MASK
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h & 0x80000000 else h
