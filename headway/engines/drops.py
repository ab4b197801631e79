"""Drop boxes at run time: they stand between a queue and its consumer, thin out what is taken, and count.

A drop box works when its consumer takes tuples, not when they are queued: so what already waits is thinned out as soon
as it is inserted, consumers of the same arc that are not to lose anything share the queue with it, and a tuple that is
dropped has cost nobody anything but its place in the queue.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from headway.sieves import Sieve
from headway.trains import Train

_LONGEST = 64
"""How much longer a train may become so that enough of it is left: taking is cheap, but not for nothing."""
RANDOM, VALUE = "random", "value"
"""Reasons for which tuples are dropped: chance, and the worth of their values."""


class DropBox:
    """One drop box. `sift` is called by whoever runs the consumer, everything else by the scheduler."""

    __slots__ = ("dropped", "passed", "sieve")

    def __init__(self, sieve: Sieve | None = None) -> None:
        """Start with a sieve, or open: everything passes."""
        self.sieve = sieve or Sieve(1.0)
        self.dropped: Counter[str] = Counter()
        """By reason: the tuples dropped."""
        self.passed = 0
        """Tuples that passed while it stood there."""

    @property
    def reason(self) -> str:
        """By what it drops."""
        return RANDOM if self.sieve.field is None else VALUE

    def stretch(self, limit: int) -> int:
        """Return how many tuples to take so that about `limit` of them pass."""
        keep = max(self.sieve.keep, 1 / _LONGEST)
        return int(limit / keep)

    def sift(self, train: Train) -> Train:
        """Return the tuples that pass, and count the others."""
        count = len(train.numbers)
        if not count:
            return train
        mask = self.sieve.kept(train)
        left = count if mask is None else int(np.count_nonzero(mask))
        self.passed += left
        if left == count or mask is None:
            return train
        self.dropped[self.reason] += count - left
        return train.take(np.flatnonzero(mask))
