"""The saved states of a shard's boxes."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

from headway.kernels.kernel import Kernel


class ShardStates:
    """The states of a shard's boxes. Only needed states are read, only touched ones are written.

    A state is stored under its box's name and a fingerprint of everything that it depends on, so a box that has changed
    does not find its old state.
    """

    def __init__(self, saved: bytes | None, kernels: Mapping[str, Kernel], prints: Mapping[str, str]) -> None:
        """Parse what `dump` wrote."""
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
        """Return a box's state, or its initial one if none is saved."""
        if box not in self._live:
            blob = self._blobs.get(self._name(box))
            self._live[box] = self._kernels[box].initial() if blob is None else self._kernels[box].load(blob)
        return self._live[box]

    def put(self, box: str, state: Any) -> None:
        """Set a box's new state."""
        self._live[box] = state
        blob = self._kernels[box].dump(state)
        if blob:
            self._blobs[self._name(box)] = blob

    def dump(self) -> bytes | None:
        """Return all states as bytes, or None if none was touched; states of boxes of another network are left out."""
        if not self._blobs or not self._live:
            return None
        known = {self._name(box) for box in self._kernels}
        kept = {name: blob for name, blob in self._blobs.items() if name in known}
        header = json.dumps([[name, len(blob)] for name, blob in kept.items()]).encode()
        return b"".join([struct.pack("<I", len(header)), header, *kept.values()])

    def _name(self, box: str) -> str:
        return f"{box}@{self._prints.get(box, '')}"
