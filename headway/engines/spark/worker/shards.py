"""Shards: which one a tuple belongs to, the same in every process and after every restart, and what its boxes keep.

Shards are keys of Spark's stateful operator, whose tasks are chosen by Spark's own hash of the key: shard s gets
a key that Spark puts into task s, so that every task has exactly one shard.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headway.columns import GOLDEN, Column, Int64s, splitmix64
from headway.errors import RunError
from headway.kernels.kernel import Kernel
from headway.storage.checked import bulk_checksum

_MASK = 0xFFFFFFFF


def shards_of(columns: Sequence[Column], count: int, shards: int) -> Int64s:
    """Return each tuple's shard by its values in these columns; NULL is a value, -0.0 is 0.0, NaN equals NaN."""
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
    """Return for each shard the least number that Spark's hash partitioning puts into the task of that number."""
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


def check_state(unit: str, shard: int, saved: bytes | None, expected: int | None) -> None:
    """Refuse a shard's state that is not the one that its last micro-batch left, whatever became of it since."""
    if expected is not None and (saved is None or bulk_checksum(saved) != expected):
        what = "missing" if saved is None else "damaged"
        raise RunError(
            f"the state of shard {shard} of '{unit}' is {what}: a file under checkpoints/*/state/0/{shard} is not the "
            "one that was written; restore it, or give another --state"
        )


class ShardStates:
    """The states of a shard's boxes. Only those that are needed are read, only those that were touched are written.

    A state stands under its box's name and a print of all that it depends on: a box that has changed does not find
    what it was before.
    """

    def __init__(self, saved: bytes | None, kernels: Mapping[str, Kernel], prints: Mapping[str, str]) -> None:
        """Take over what `dump` wrote."""
        self._kernels = kernels
        self._prints = prints
        self._blobs: dict[str, bytes] = {}
        self._live: dict[str, Any] = {}
        if saved:
            (length,) = struct.unpack_from("<I", saved)
            at = 4 + length
            for name, size in json.loads(saved[4:at]):
                self._blobs[name] = saved[at : at + size]
                at += size

    def get(self, box: str) -> Any:
        """Return a box's state, its first one if nothing is saved."""
        if box not in self._live:
            blob = self._blobs.get(self._name(box))
            self._live[box] = self._kernels[box].initial() if blob is None else self._kernels[box].load(blob)
        return self._live[box]

    def put(self, box: str, state: Any) -> None:
        """Take a box's new state."""
        self._live[box] = state
        blob = self._kernels[box].dump(state)
        if blob:
            self._blobs[self._name(box)] = blob

    @property
    def changed(self) -> bool:
        """Whether there is something to write."""
        return bool(self._blobs) and bool(self._live)

    def dump(self) -> bytes:
        """Write all states to bytes; what belongs to boxes of another network is left out."""
        known = {self._name(box) for box in self._kernels}
        kept = {name: blob for name, blob in self._blobs.items() if name in known}
        header = json.dumps([[name, len(blob)] for name, blob in kept.items()]).encode()
        return b"".join([struct.pack("<I", len(header)), header, *kept.values()])

    def _name(self, box: str) -> str:
        return f"{box}@{self._prints.get(box, '')}"
