"""What tests of the simulator look at."""

from __future__ import annotations

import pytest

from headway.engines.delivery import Delivery
from headway.trains import Train
from tests.engines.sim.moments import Moments


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> Moments:
    """When tuples leave, of all runs in a test."""
    seen = Moments()
    deliver = Delivery.deliver

    def watch(self: Delivery, train: Train, moments: object = None) -> None:
        seen.note(self.name, train, self._clock.now() if moments is None else moments)
        deliver(self, train, moments)  # type: ignore[arg-type]

    monkeypatch.setattr(Delivery, "deliver", watch)
    return seen
