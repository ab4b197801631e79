"""Passwords in a network's settings: addresses and options are shown without them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

HARMLESS = ("application_name", "connect_timeout", "host", "port", "sslmode", "target_session_attrs", "user")
"""The settings in an address that are shown."""
_CREDENTIALS = re.compile(r"(://[^:/?#@]*|^(?!.*://)[^:]*)(:.*)?@", re.DOTALL)
_SETTING = re.compile(r"([?&;])([^=&;]*)=([^&;]*)")
_SECRET = re.compile(r".*(password|passwd|secret|token)", re.IGNORECASE)


def mask(url: str) -> str:
    """Return an address without passwords: neither that of the user nor settings, except harmless ones."""
    shown = _CREDENTIALS.sub(lambda found: f"{found[1]}{':***' if found[2] else ''}@", url)
    if "://" not in shown:
        return shown
    return _SETTING.sub(lambda found: found[0] if found[2] in HARMLESS else f"{found[1]}{found[2]}=***", shown)


def masked(value: Any) -> Any:
    """Return settings without passwords: texts that are addresses are masked, and what a key calls a secret."""
    if isinstance(value, Mapping):
        return {
            key: "***" if isinstance(inner, str) and _SECRET.fullmatch(str(key)) else masked(inner)
            for key, inner in value.items()
        }
    if isinstance(value, tuple | list):
        return type(value)(masked(inner) for inner in value)
    return mask(value) if isinstance(value, str) and "://" in value else value
