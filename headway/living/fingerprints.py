"""Fingerprints: a hash of a box's specification and of everything before it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from headway.checking import CheckedNetwork


def fingerprints(checked: CheckedNetwork, digests: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return the fingerprint of every box; `digests` are those of static tables' contents, by ref."""
    raise NotImplementedError
