"""The controller's decision, the reasons for it, and the controller's memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from headway.columns import Floats
from headway.errors import choices
from headway.shedding.forecasts import MARGIN

UNSHOWN = "queues did not show it: results are in time, or what waits does not grow as costs say"
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Decision:
    """What to drop from now on."""

    keep: Floats
    """By site: the share to keep."""
    excess: float
    """Seconds of work per second that should be saved; 0: nothing is dropped."""
    changed: bool
    """Whether the shares have changed."""
    reason: str
    """The reason for the shares, for people."""
    held: str = ""
    """Why nothing is dropped although work should be saved, for people."""

    @property
    def active(self) -> bool:
        """Whether anything is dropped."""
        return bool((self.keep < 1.0).any())


@dataclass(frozen=True, slots=True)
class ControllerMemory:
    """The controller's memory, from one observation to the next. Moments are in nanoseconds."""

    kept: Floats
    """By output: the mean share of its tuples that was kept, over the time that forecasts count."""
    ages: Floats
    """By output: the age of the oldest tuple on the way to it, at the last observation; infinite before the first."""
    looked: int | None = None
    """The moment of the last observation."""
    keep: Floats = field(default_factory=lambda: np.zeros(0))
    excess: float = 0.0
    limits: tuple[float, ...] = ()
    reason: str = "what arrives can be done"
    capacity: float = 0.0
    """Seconds of work that can be done per second, as measured and smoothed."""
    proven: bool = False
    """Whether that was measured while the engine was busy enough."""
    trust: float = 1.0
    """The correction of the capacity by the flow of work, as a factor."""
    backlog: float = 0.0
    growth: float = 0.0
    """Seconds of work per second by which the backlog has grown recently."""
    fresh: bool = False
    """Whether the last observation changed shares."""
    error: float = 0.0
    """Seconds of work per second that should be saved beyond what shares save: a slow mean."""
    wanted: float = 0.0
    """What should be saved, below 0 if there is capacity to spare: a slow mean."""
    part: float = 0.0
    """The share of all work that is saved: a slow mean."""
    over: int = 0
    """Observations in a row with a load above the usable capacity."""
    off: int = 0
    """Observations in a row with an error too large for noise; below 0 if too much is saved."""
    drift: int = 0
    """Observations in a row with a small but lasting error."""
    spare: int = 0
    """Observations in a row with clearly nothing to save."""
    calm: int = 0
    """Observations in a row with nothing to save."""
    stuck: int = 0
    """Observations in a row with a long backlog that does not shrink in time; restarts when shares are set."""
    missed: int = 0
    """The same, without the restarts."""
    idle: int = 0
    """Observations in a row in which dropping did not pay."""
    began: int = 0
    """The moment at which control began, an interval before the first observation."""
    since: int = 0
    """The moment since which there has been an overload."""
    trail: tuple[float, ...] = ()
    """The backlog at recent observations, relative to an arbitrary level; each change is at the costs of its time."""

    @property
    def can_do(self) -> float:
        """Seconds of work that can be done per second, corrected."""
        return self.capacity * self.trust


def nothing_allowed(strategy: str, outputs: Sequence[str], limits: Sequence[float]) -> str:
    """Return a message that a strategy finds no place to drop, with the outputs whose limit is 0."""
    spared = [f"'{name}'" for name, most in zip(outputs, limits, strict=True) if not most > 0]
    text = f"'{strategy}' finds nothing that may be dropped"
    if not spared:
        return text
    return f"{text}: {choices(spared, _NAMED)} may lose nothing, by `shed` or because only others have a loss graph"


def does_not_pay(dropping: float, nothing: float) -> str:
    """Return a message that the forecast is against dropping, with the mean worth of outputs with and without it."""
    text = f"it would not pay: by a forecast outputs are worth {dropping:.3f} on average with it, {nothing:.3f} without"
    return f"{text}, and it has to gain {1 + MARGIN:g} times what is lost" if dropping > nothing else text
