"""The word for no policy at all."""

from __future__ import annotations

import pytest

from headway.errors import PolicyError
from headway.scheduling.policy import make_policy
from headway.scheduling.threads import Threads
from tests.scheduling.snapshots import snapshot


def test_whoever_asks_it_is_another_engine() -> None:
    assert make_policy("threads") == Threads()
    with pytest.raises(PolicyError, match="for the engine 'local'"):
        Threads().plan(snapshot([True]), None)
    with pytest.raises(PolicyError, match="takes no argument"):
        make_policy("threads:4")
