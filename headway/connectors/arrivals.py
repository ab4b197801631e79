"""When the tuples of a generator arrive: evenly, at random, in bursts, or at rates that change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from headway.boxes.durations import Duration
from headway.clock import SECOND
from headway.columns import Int64s
from headway.connectors.readers import LONGEST, whole_moments
from headway.connectors.registry import FASTEST, check_keys, is_whole
from headway.errors import InputError, NetworkError, choices, unknown

_YEARS = LONGEST // (365 * 86_400 * SECOND)
ARRIVALS = ("constant", "poisson", "bursty")


class ArrivalProcess(Protocol):
    """Says when tuples arrive, block after block."""

    finite: ClassVar[bool]
    """Whether arrivals end by themselves."""

    def due(self, numbers: Int64s, random: np.random.Generator) -> Int64s:
        """Return the moments, ascending, of the tuples with these numbers; blocks are asked for in order.

        Finite arrivals return fewer moments than numbers where the last tuple comes, and none after that.
        """


class ConstantRate:
    """Tuple i arrives at i/rate."""

    finite: ClassVar[bool] = False

    def __init__(self, rate: float) -> None:
        self._gap = SECOND / rate

    def due(self, numbers: Int64s, random: np.random.Generator) -> Int64s:
        """Return evenly spaced moments."""
        return whole_moments(numbers * self._gap)


class Poisson:
    """Gaps between tuples are independent and exponential, with a mean of 1/rate: `rate` is in tuples per second."""

    finite: ClassVar[bool] = False

    def __init__(self, rate: float) -> None:
        self._gap = SECOND / rate
        self._last = 0

    def due(self, numbers: Int64s, random: np.random.Generator) -> Int64s:
        """Return the moments of a Poisson process; whole nanoseconds, so their sum is exact."""
        gaps = whole_moments(random.standard_exponential(len(numbers)) * self._gap)
        due: Int64s = np.cumsum(gaps) + self._last
        far = np.cumsum(gaps.astype(np.float64)) + self._last > LONGEST  # the sum of whole ones may have wrapped around
        due[far] = LONGEST
        self._last = int(due[-1])
        return due


class Bursts:
    """Bursts of `size` tuples, one burst every `every` nanoseconds; in a burst they are `gap` nanoseconds apart."""

    finite: ClassVar[bool] = False

    def __init__(self, size: int, every: int, gap: float) -> None:
        self._size, self._every, self._gap = size, every, gap

    def due(self, numbers: Int64s, random: np.random.Generator) -> Int64s:
        """Return the moments of the bursts."""
        burst, place = np.divmod(numbers, self._size)
        far = burst.astype(np.float64) * self._every > LONGEST
        due: Int64s = burst * self._every + whole_moments(place * self._gap)
        due[far] = LONGEST
        return due


class OnOff:
    """Evenly spaced tuples for `on` nanoseconds, then silence for `off`, and so on."""

    finite: ClassVar[bool] = False

    def __init__(self, rate: float, on: int, off: int) -> None:
        self._gap, self._on, self._off = SECOND / rate, on, off

    def due(self, numbers: Int64s, random: np.random.Generator) -> Int64s:
        """Return the moments, with the silences put in."""
        active = whole_moments(numbers * self._gap)
        rounds = active // self._on
        far = active + rounds.astype(np.float64) * self._off > LONGEST
        due: Int64s = active + rounds * self._off
        due[far] = LONGEST
        return due


@dataclass(frozen=True, slots=True)
class Phase:
    """A span in nanoseconds in which tuples come at one rate, tuples per second; 0 is silence."""

    span: int
    rate: float

    @property
    def tuples(self) -> Fraction:
        """How many tuples it brings: the decimal of the rate as it is written, so that 10 s at 0.1 are exactly one."""
        return Fraction(repr(self.rate)) * self.span / SECOND


class _Phases:
    """The base of rates that change: where each phase begins and ends, in time and in tuples.

    With r(t) the rate and R(t) its integral from 0, the tuple at place x comes where R reaches x; where R stays at x
    for a while, as in silence, it comes when the rate rises again. All tuples come before the last phase ends.
    """

    finite: ClassVar[bool] = True

    def __init__(self, phases: Sequence[Phase]) -> None:
        places = [Fraction(0)]
        for phase in phases:
            places.append(places[-1] + phase.tuples)
        self._ends: Int64s = np.cumsum([phase.span for phase in phases], dtype=np.int64)
        self._starts: Int64s = self._ends - np.array([phase.span for phase in phases], np.int64)
        self._gaps = np.array([min(SECOND / phase.rate, LONGEST) if phase.rate else 0.0 for phase in phases])
        self._places = places

    def _moments(self, phase: Int64s, offsets: npt.NDArray[np.float64]) -> Int64s:
        """Return the moments of tuples in these phases, so many tuples after their starts."""
        due: Int64s = self._starts[phase] + np.rint(offsets * self._gaps[phase]).astype(np.int64)
        return np.minimum(due, self._ends[phase] - 1)  # what was rounded up stays in its phase


class ConstantPhases(_Phases):
    """Tuple i arrives where the integral of the rate reaches i: evenly spaced in each phase."""

    def __init__(self, phases: Sequence[Phase]) -> None:
        super().__init__(phases)
        bounds = [math.ceil(place) for place in self._places]
        self._firsts = np.array([min(bound, LONGEST) for bound in bounds], np.int64)
        self._leads = np.array([float(bound - place) for bound, place in zip(bounds, self._places, strict=True)])

    def due(self, numbers: Int64s, random: np.random.Generator) -> Int64s:
        """Return the moments of the tuples that come before the end."""
        numbers = numbers[numbers < self._firsts[-1]]
        phase = np.searchsorted(self._firsts, numbers, "right") - 1
        return self._moments(phase, numbers - self._firsts[phase] + self._leads[phase])


class PoissonPhases(_Phases):
    """A Poisson process whose rate changes: one with rate 1, put through the inverse of the rate's integral."""

    def __init__(self, phases: Sequence[Phase]) -> None:
        super().__init__(phases)
        self._bounds = np.array([float(place) for place in self._places])
        self._last = 0.0

    def due(self, numbers: Int64s, random: np.random.Generator) -> Int64s:
        """Return the moments of the tuples that come before the end."""
        gaps = random.standard_exponential(len(numbers))
        gaps[:1] += self._last
        places = np.cumsum(gaps)  # adds one after the other, so a longer block begins like a shorter one
        self._last = float(places[-1])
        places = places[places < self._bounds[-1]]
        phase = np.searchsorted(self._bounds, places, "right") - 1
        return self._moments(phase, places - self._bounds[phase])


def parse_arrivals(settings: Mapping[str, object], rate: float | None, who: str) -> ArrivalProcess | None:
    """Read `arrivals`, `rate`, `burst` and `phases` of a generator; None if tuples come as fast as they are asked for.

    `rate` is that of the settings, or the one that the run wants instead.
    """
    burst = settings.get("burst")
    kind = settings.get("arrivals", "constant" if burst is None else "bursty")
    if kind not in ARRIVALS:
        raise InputError(f"{who}: {unknown('arrivals', str(kind), ARRIVALS)}")
    if settings.get("phases") is not None:
        return _parse_phased(settings, str(kind), rate, who)
    if kind == "bursty":
        return _parse_burst(burst, rate, who)
    if burst is not None:
        raise InputError(f"{who}: burst goes with arrivals: bursty, not {kind}")
    if kind == "poisson" and rate is None:
        raise InputError(f"{who}: arrivals: poisson needs a rate, tuples per second, or phases")
    if rate is None:
        return None
    return Poisson(rate) if kind == "poisson" else ConstantRate(rate)


def parse_phases(phases: object, who: str) -> tuple[Phase, ...]:
    """Read a list such as [[10s, 500], [1m, 2000]]: spans and their rates; raises InputError that starts with `who`."""
    form = "[span, tuples per second], such as [10s, 500]"
    if not isinstance(phases, list | tuple) or not phases:
        raise InputError(f"{who}: phases is a list of {form}, not {phases!r}")
    found = []
    for number, pair in enumerate(phases, 1):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise InputError(f"{who}: phase {number}: expected {form}, not {pair!r}")
        rate = pair[1]
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= FASTEST:
            raise InputError(
                f"{who}: phase {number}: its rate is a number of tuples per second from 0 to {FASTEST:g}, not {rate!r}"
            )
        found.append(Phase(nanoseconds(pair[0], f"{who}: phase {number}"), float(rate)))
    if sum(phase.span for phase in found) > LONGEST:
        raise InputError(f"{who}: phases: together they are too long; at most {_YEARS} years")
    if not any(phase.rate for phase in found):
        raise InputError(f"{who}: phases: at least one rate must be above 0")
    return tuple(found)


def _parse_phased(settings: Mapping[str, object], kind: str, rate: float | None, who: str) -> ArrivalProcess:
    if settings.get("burst") is not None or kind == "bursty":
        raise InputError(f"{who}: phases go with arrivals: constant or poisson, not with bursts")
    if settings.get("rate") is not None:
        raise InputError(f"{who}: rate and phases exclude each other")
    if rate is not None:
        raise InputError(f"{who}: phases say how fast tuples come, so no other rate can be set from outside")
    phases = parse_phases(settings["phases"], who)
    return PoissonPhases(phases) if kind == "poisson" else ConstantPhases(phases)


def _parse_burst(burst: object, rate: float | None, who: str) -> ArrivalProcess:
    forms = "{size: 100, every: 1s} or {on: 1s, off: 4s}"
    if burst is None:
        raise InputError(f"{who}: arrivals: bursty needs burst: {forms}")
    spec = check_keys(burst, ("size", "every", "on", "off"), who, "burst")
    if set(spec) == {"size", "every"}:
        size, every = spec["size"], nanoseconds(spec["every"], f"{who}: burst: every")
        if not is_whole(size, 1) or size > LONGEST:
            raise InputError(f"{who}: burst: size is a whole number from 1 to {LONGEST}, not {size!r}")
        gap = 0.0 if rate is None else SECOND / rate
        if gap * (size - 1) > every:
            raise InputError(f"{who}: burst: {size} tuples at {rate:g} per second do not fit into {spec['every']}")
        return Bursts(size, every, gap)
    if set(spec) == {"on", "off"}:
        if rate is None:
            raise InputError(f"{who}: burst: {{on, off}} needs a rate, the tuples per second while on")
        return OnOff(rate, nanoseconds(spec["on"], f"{who}: burst: on"), nanoseconds(spec["off"], f"{who}: burst: off"))
    raise InputError(f"{who}: burst is {forms}, not {choices(spec)}")


def nanoseconds(value: object, who: str) -> int:
    """Read a span of time above 0: a duration such as 5s, or a number of seconds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        span = round(value * SECOND) if 0 < value < 2**32 else 0
    else:
        try:
            span = Duration.parse(value).nanoseconds
        except NetworkError as error:
            raise InputError(f"{who}: {error}") from None
    if span <= 0:
        raise InputError(f"{who}: expected a span of time above 0, such as 5s, not {value!r}")
    if span > LONGEST:
        raise InputError(f"{who}: {value!r} is too long; at most {_YEARS} years")
    return span
