"""When tuples arrived and left, to the nanosecond."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from headway.trains import Train


class Moments:
    """By output: the moments of its tuples, as milliseconds."""

    def __init__(self) -> None:
        """Nothing has left."""
        self._arrived: dict[str, list[float]] = defaultdict(list)
        self._left: dict[str, list[float]] = defaultdict(list)

    def note(self, output: str, train: Train, moments: Any) -> None:
        """Take down a train that was delivered."""
        self._arrived[output] += (train.stamps / 1e6).tolist()
        self._left[output] += (np.broadcast_to(moments, len(train)) / 1e6).tolist()

    def of(self, output: str = "o") -> list[float]:
        """Return when the tuples of an output left, in the order in which they did."""
        return self._left.pop(output, [])

    def latencies(self, output: str = "o") -> list[float]:
        """Return how long the tuples of an output took."""
        arrived, left = self._arrived.pop(output, []), self._left.pop(output, [])
        return [then - before for before, then in zip(arrived, left, strict=True)]
