"""What the behaviour suite runs on."""

from __future__ import annotations

import importlib
import os

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.streams import RANDOM_POLICY

if RANDOM_POLICY:
    importlib.import_module("tests.policies")

settings.register_profile("ci", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("unshrunk", settings.get_profile("ci"), phases=(Phase.explicit, Phase.reuse, Phase.generate))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

ENGINES = ("local",)


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """The engine under test."""
    name: str = request.param
    return name
