"""Sizes: amounts of data as users write them, such as ``64k`` or ``100 MB``."""

from __future__ import annotations

import re
from fractions import Fraction

from headway.errors import NetworkError

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_LONGEST = 30

SIZE_HINT = "a size is a number and a unit, such as 64k, 100 MB or 1.5GiB; the letters are powers of 1,024"


def parse_size(text: str) -> int:
    """Read a size in bytes: ``1000000``, ``64k``, ``100 MB`` or ``1.5GiB``; raise a NetworkError for anything else."""
    match = _SIZE.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    size = 0 if match is None else int(Fraction(match[1]) * _FACTORS[match[2].lower()])
    if size < 1:
        raise NetworkError(f"'{text}' is not a size of at least a byte; {SIZE_HINT}")
    return size


def show_size(size: int) -> str:
    """Return a size as a text that `parse_size` reads back, such as ``100M``."""
    for unit in "tgmk":
        if size >= _FACTORS[unit] and size % _FACTORS[unit] == 0:
            return f"{size // _FACTORS[unit]}{unit.upper() if unit != 'k' else unit}"
    return str(size)
