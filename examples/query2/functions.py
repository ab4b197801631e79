"""The user-defined aggregate of Query 2; load it with ``--functions examples.query2.functions``."""

from __future__ import annotations

from typing import NamedTuple

import headway as hw


class Mass(NamedTuple):
    """What has been seen of a window: the sum of the positions, and how many."""

    total: int
    soldiers: int


@hw.aggregate("center_of_mass", args=["int"], returns="double")
class CenterOfMass:
    """The mean position. Soldiers weigh the same; a missing position does not count."""

    def init(self) -> Mass:
        """Start a window."""
        return Mass(0, 0)

    def incr(self, state: Mass, pos: int | None) -> Mass:
        """Take one report in."""
        return state if pos is None else Mass(state.total + pos, state.soldiers + 1)

    def final(self, state: Mass) -> float | None:
        """Give the window's result."""
        return state.total / state.soldiers if state.soldiers else None
