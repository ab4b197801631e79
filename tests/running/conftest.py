"""A network that runs, for tests of its handle."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import headway as hw
from headway.running import Running
from tests.running.networks import PATIENCE, network


@pytest.fixture
def run() -> Iterator[Running]:
    running = hw.start(network(), engine="local")
    yield running
    if not running.ended:
        running._control.stop()
        running.wait(PATIENCE)
