"""A handle on a run that goes on: for other threads than the one that called `run`, and for callbacks."""

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
        self._stopped = False

    def stop(self) -> None:
        """End the run as Ctrl-C does: inputs end, what has arrived is processed and delivered, `run` returns.

        On Spark with a state directory the run only stops, and can be continued. Returns at once, may be called from
        any thread, callback or signal handler, and more than once; the run ends within a moment. A control that is
        stopped stays so: a run that is given it later ends without a tuple.
        """
        self._stopped = True

    @property
    def stopped(self) -> bool:
        """Whether somebody has called `stop`."""
        return self._stopped

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
