"""Shared by the kernels' tests."""

from __future__ import annotations

from hypothesis import settings

few = settings(max_examples=12, deadline=None)
"""For properties that are tested for many parameters, on a machine that may be busy."""
