"""How long property tests search: a little in `make test`, long in `make test-all` (HYPOTHESIS_PROFILE=thorough)."""

from __future__ import annotations

import os

from hypothesis import settings

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
"""Whether this is `make test-all`."""
_SHARE = 20.0 if THOROUGH else 1 / 3


def examples(count: int) -> settings:
    """Return the settings of a property that wants about so many examples; a third of them in `make test`."""
    return settings(max_examples=max(3, round(count * _SHARE)))
