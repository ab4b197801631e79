"""Gates: an output that begins or ends at a seam, on an arc that goes on, delivers only what belongs to it."""

from __future__ import annotations

from headway.columns import NEVER, Int64s
from headway.engines.delivery import Delivery
from headway.storage.branches import part_of
from headway.trains import NOTHING, Train


class Gate:
    """Lets an output have the tuples of an arc above one arrival number and up to another.

    Without a delivery it keeps them: the output is there once the network has been exchanged.
    """

    def __init__(self, name: str, delivery: Delivery | None, after: int = NOTHING, upto: int = NEVER) -> None:
        self.name, self.after, self.upto = name, after, upto
        self._delivery = delivery
        self._kept: list[Train] = []

    @property
    def tuples(self) -> int:
        """How many tuples the output has delivered."""
        return 0 if self._delivery is None else self._delivery.tuples

    @property
    def lasts(self) -> bool:
        """Whether the output goes on after the seam that is carried out."""
        return self.upto == NEVER

    def deliver(self, train: Train, moments: Int64s | None = None) -> None:
        """Hand the part of a train that belongs to the output to its sink; see `Delivery`."""
        numbers = train.numbers
        if len(numbers):
            within = (numbers > self.after) & (numbers <= self.upto)
            if not within.all():
                moments = None if moments is None else moments[within]
        part = part_of(train, self.after, self.upto, rising=False)
        if self._delivery is not None:
            self._delivery.deliver(part, moments)
        elif len(part) or part.end:
            self._kept.append(part)

    def superfluous(self, progress: int) -> bool:
        """Whether all that comes after an arc's progress belongs to the output."""
        return self._delivery is not None and self.upto == NEVER and self.after <= progress

    @property
    def inner(self) -> Delivery:
        """The output's delivery."""
        assert self._delivery is not None
        return self._delivery

    def connect(self, delivery: Delivery) -> None:
        """Deliver what was kept, and from now on what comes."""
        self._delivery = delivery
        kept, self._kept = self._kept, []
        for train in kept:
            delivery.deliver(train)
