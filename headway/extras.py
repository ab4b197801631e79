"""Libraries that come with an extra: the base installs in seconds, and runs `local` and `sim`."""

from __future__ import annotations

import importlib.util

from headway.errors import RunError

EXTRAS = {"spark": "pyspark", "plots": "matplotlib", "sql": "sqlalchemy"}
"""By extra: the library that shows whether it is installed; pyproject.toml uses the same names."""


def has_extra(extra: str) -> bool:
    """Return whether an extra is installed, without importing it, which would take seconds."""
    return importlib.util.find_spec(EXTRAS[extra]) is not None


def need_extra(extra: str, who: str, instead: str = "") -> None:
    """Raise a RunError that names the extra unless it is installed; `instead` says what works without it."""
    if not has_extra(extra):
        without = f"; {instead}" if instead else ""
        how = f"pip install 'headway[{extra}]', in a clone '.[{extra}]'"
        raise RunError(f"{who} needs {EXTRAS[extra]}, which is not installed: {how}{without}")
