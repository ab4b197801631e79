"""How numbers, times and foreign text are shown to people."""

from __future__ import annotations

import math

from headway.engines.plaintext import printable, width

__all__ = ["count_text", "one_line", "plural", "printable", "ratio_text", "seconds_text", "share_text", "width"]


def count_text(number: int) -> str:
    """Return a count with thousands apart."""
    return f"{number:,}"


def ratio_text(number: float | None) -> str:
    """Return a ratio with three digits; a dash for none."""
    if number is None or not math.isfinite(number):
        return "-"
    return f"{number:.3g}" if abs(number) < 1000 else f"{number:,.0f}"


def seconds_text(seconds: float | None) -> str:
    """Return a span of time with three digits in the unit that suits it; a dash for none."""
    if seconds is None or not math.isfinite(seconds):
        return "-"
    for limit, factor, unit in ((0.9995e-3, 1e6, "µs"), (0.9995, 1e3, "ms")):
        if seconds < limit:
            return f"{_three(seconds * factor)} {unit}"
    return f"{_three(seconds)} s"


def share_text(part: float, whole: float) -> str:
    """Return a part in per cent of the whole."""
    return f"{100 * part / whole:.0f} %" if whole > 0 else "- %"


def plural(count: int, one: str, many: str) -> str:
    """Return a count with its noun."""
    return f"{count_text(count)} {one if count == 1 else many}"


def one_line(text: str) -> str:
    """Return a message as one printable line."""
    return printable("; ".join(line.strip() for line in text.splitlines() if line.strip()))


def _three(number: float) -> str:
    digits = 0 if number >= 99.95 else 1 if number >= 9.995 else 2
    return f"{number:,.{digits}f}"
