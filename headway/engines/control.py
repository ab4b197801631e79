"""A handle on a run that goes on: for other threads than the one that called `run`."""

from __future__ import annotations

import queue
from collections.abc import Mapping
from typing import Any

from headway.errors import PolicyError


class Control:
    """Hands wishes to a run: ``control = hw.Control(); hw.run(..., control=control)``. May be used from any thread."""

    def __init__(self) -> None:
        """Start without a wish."""
        self._wishes: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()

    def specify(self, settings: Mapping[str, Any]) -> None:
        """Give the adaptive layer another specification, such as ``{"objectives": {"latency": 1}}``.

        It counts from the layer's next look on. One that the layer cannot read changes nothing, and the summary says
        why. Raises a PolicyError for what is no mapping.
        """
        if not isinstance(settings, Mapping):
            raise PolicyError(
                f"a specification is a mapping such as {{'objectives': {{'latency': 1}}}}, not {settings!r}"
            )
        self._wishes.put(settings)

    def wanted(self) -> list[Mapping[str, Any]]:
        """Return the wishes since the last call; for the engine."""
        wishes = []
        while True:
            try:
                wishes.append(self._wishes.get_nowait())
            except queue.Empty:
                return wishes
