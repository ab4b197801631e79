"""Shared by the kernels' tests."""

from __future__ import annotations

from tests.searching import examples

few = examples(15)
"""For properties that are tested for many parameters, on a machine that may be busy."""
