"""What the controller says, why it does not, and what it keeps from one look to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from headway.columns import Floats
from headway.shedding.forecasts import MARGIN

UNSHOWN = "queues did not show it: results are in time, or what waits does not grow as costs say"
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Decision:
    """What is dropped from now on."""

    keep: Floats
    """By site: the share to keep."""
    excess: float
    """Seconds of work per second that should be saved; 0: nothing is dropped."""
    changed: bool
    """Whether shares are other than before."""
    reason: str
    """For people: why they are as they are."""
    held: str = ""
    """For people: why nothing is dropped although work should be saved."""

    @property
    def active(self) -> bool:
        """Whether anything is dropped."""
        return bool((self.keep < 1.0).any())


@dataclass(frozen=True, slots=True)
class ControllerMemory:
    """What a controller keeps from one look to the next."""

    looked: int | None = None
    """When it looked last."""
    keep: Floats = field(default_factory=lambda: np.zeros(0))
    excess: float = 0.0
    limits: tuple[float, ...] = ()
    reason: str = "what arrives can be done"
    capacity: float = 0.0
    """Seconds of work per second that can be done, as measured and smoothed."""
    proven: bool = False
    """Whether that was read while there was much to do."""
    trust: float = 1.0
    """What the flow of work says of it: the part of it that is really there."""
    backlog: float = 0.0
    growth: float = 0.0
    """Seconds of work per second by which the backlog has grown lately."""
    fresh: bool = False
    """Whether shares were changed at the last look."""
    error: float = 0.0
    """Seconds of work per second that should be saved beyond what shares save: a slow mean."""
    wanted: float = 0.0
    """What should be saved, below 0 where there is room to spare: a slow mean."""
    part: float = 0.0
    """The share of all work that is saved: a slow mean."""
    over: int = 0
    """Looks in a row with more to do than fits."""
    off: int = 0
    """Looks in a row with an error beyond doubt, below 0 where too much is saved."""
    drift: int = 0
    """Looks in a row with a small but lasting error."""
    spare: int = 0
    """Looks in a row with clearly nothing to save."""
    calm: int = 0
    """Looks in a row with nothing to save."""
    stuck: int = 0
    """Looks in a row with a long backlog that does not get shorter in time."""
    missed: int = 0
    """The same, whatever was changed meanwhile."""
    idle: int = 0
    """Looks in a row in which dropping did not pay."""
    began: int = 0
    """When it looked first."""
    since: int = 0
    """Since when there has been too much to do."""
    kept: Floats = field(default_factory=lambda: np.zeros(0))
    """By output: the share of its tuples that was kept, over the time that counts."""
    ages: Floats = field(default_factory=lambda: np.zeros(0))
    """By output: the age of the oldest tuple on the way to it, at the last look."""
    trail: tuple[float, ...] = ()
    """The backlog at the last looks, each at the costs of its own look, from an arbitrary level on."""

    @property
    def can_do(self) -> float:
        """Seconds of work per second that can be done."""
        return self.capacity * self.trust


def nothing_allowed(strategy: str, outputs: Sequence[str], limits: Sequence[float]) -> str:
    """Return that a strategy finds no place to drop; whose limit is 0 is named."""
    spared = [name for name, most in zip(outputs, limits, strict=True) if not most > 0]
    text = f"'{strategy}' finds nothing that may be dropped"
    if not spared:
        return text
    listed = ", ".join(f"'{name}'" for name in spared[:_NAMED])
    more = f" and {len(spared) - _NAMED:,} more" if len(spared) > _NAMED else ""
    return f"{text}: {listed}{more} may lose nothing, by `shed` or because only others have a loss graph"


def does_not_pay(dropping: float, nothing: float) -> str:
    """Return that a forecast speaks against it: what outputs would be worth on average with it and without."""
    text = f"it would not pay: by a forecast outputs are worth {dropping:.3f} on average with it, {nothing:.3f} without"
    return f"{text}, and it has to gain {1 + MARGIN:g} times what is lost" if dropping > nothing else text
