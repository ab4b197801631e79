"""How much of the processors' time other machines took from this one, while something was measured.

A virtual machine shares its processors with others. What is measured in real time while they take a good part of it
says more about them than about us. Linux tells: `steal` in /proc/stat. Elsewhere nothing is known, and nothing assumed.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

MOST = 0.05
"""The share of the wanted time that others may take for measurements to count."""
_STAT = Path("/proc/stat")


class Used(NamedTuple):
    """Time of all processors since the start of the machine, in ticks."""

    wanted: int
    """In which there was something to do."""
    stolen: int
    """Of this, what others took."""


def used(stat: Path = _STAT) -> Used | None:
    """Return what the system counts, or None if it does not."""
    try:
        line = stat.read_text("ascii").partition("\n")[0]
        user, nice, system, _, _, interrupts, soft, stolen = map(int, line.split()[1:9])
    except (OSError, ValueError):
        return None
    return Used(user + nice + system + interrupts + soft + stolen, stolen)


def share(before: Used | None, after: Used | None) -> float:
    """Return which share of the wanted time others took in between; 0 if that is not known."""
    if before is None or after is None:
        return 0.0
    return (after.stolen - before.stolen) / max(1, after.wanted - before.wanted)
