"""The states of a shard's boxes as one blob."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

from headway.errors import RunError
from headway.kernels.base import Kernel
from headway.storage.checksums import bulk_checksum


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
