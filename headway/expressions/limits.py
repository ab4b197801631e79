"""How much one expression may make: so that neither a hostile constant nor a tuple takes the machine's memory.

A limit belongs to one value, never to a train: whether a tuple fails must not depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.expressions.nodes import LimitError

MOST_BYTES = 1_000_000
"""The longest text that an expression makes, in bytes of UTF-8."""
MOST_ITEMS = 1_000_000
"""The longest array that an aggregate makes."""


def too_long(name: str) -> LimitError:
    """Return the error for a text that would be too long."""
    return LimitError(f"{name}: the text would be longer than {MOST_BYTES:,} bytes, which is the limit")


def check_bytes(name: str, length: int) -> None:
    """Raise if a text of this many bytes would be too long."""
    if length > MOST_BYTES:
        raise too_long(name)


def utf8_length(text: str) -> int:
    """Return how many bytes a text takes; long texts are counted, short ones of plain letters not."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def check_joined(name: str, parts: list[Any], joints: int = 0, joint: Any = None) -> None:
    """Raise if texts that are joined element by element (arrays, or scalars) make one that is too long."""
    every = parts if joint is None else [*parts, joint]
    if sum([_bytes(part) for part in every]) * max(1, joints) <= MOST_BYTES:
        return  # all of them together would fit
    total: Any = np.zeros(1, np.int64)
    for part in parts:
        total = total + _lengths(part)
    if joint is not None and joints:
        total = total + joints * _lengths(joint)
    if (total > MOST_BYTES).any():
        raise too_long(name)


def check_replaced(name: str, array: Any, count: Callable[[Any], Any], growth: int, copies: int = 0) -> None:
    """Raise if texts may become too long when each place that `count` counts in them grows by `growth` bytes.

    `copies` is how often a place may be copied whole into what replaces it.
    """
    before = _lengths(array)
    longest = int(before.max(initial=0))
    if longest * (1 + copies) + (longest + 1) * max(0, growth) <= MOST_BYTES:
        return
    places = _numbers(count(array))
    more = np.where(places > 0, before * copies + places * max(0, growth), 0)
    if ((before + more > MOST_BYTES) & (more > 0)).any():
        raise too_long(name)


def _bytes(part: Any) -> int:
    if isinstance(part, pa.Scalar):
        return len(part.as_buffer() or b"") if part.is_valid else 0
    return int(part.nbytes)


def _lengths(part: Any) -> Any:
    if isinstance(part, pa.Scalar):
        return np.array([_bytes(part)], np.int64)
    return _numbers(pc.binary_length(part))


def _numbers(array: Any) -> Any:
    if isinstance(array, pa.Scalar):
        array = pa.array([array.as_py()], array.type)
    return pc.fill_null(array, 0).to_numpy(zero_copy_only=False).astype(np.int64)
