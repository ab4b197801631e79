"""How long property tests search: a little in `make test`, long in `make test-all` (HYPOTHESIS_PROFILE=thorough)."""

from __future__ import annotations

import os

from hypothesis import settings

HUNDREDS = 300
"""How many examples every property gets in `make test-all`, at least."""
DEEPER = 20
"""How many times as many examples as it asks for a property gets in `make test-all`."""
THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
"""Whether this is `make test-all`."""


def examples(count: int) -> settings:
    """Return the settings of a property that wants about so many examples; a third of them in `make test`."""
    return settings(max_examples=max(HUNDREDS, DEEPER * count) if THOROUGH else max(3, round(count / 3)))
