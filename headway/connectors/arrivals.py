"""When the tuples of a generator arrive: evenly, at random, in bursts, or at rates that change."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headway.clock import SECOND
from headway.columns import Int64s
from headway.connectors.readers import LONGEST, whole_moments
from headway.connectors.registry import FASTEST, check_keys, is_whole
from headway.durations import Duration
from headway.errors import InputError, NetworkError, check_known, choices, within

_YEARS = LONGEST // (365 * 86_400 * SECOND)
_KINDS = ("constant", "poisson", "bursty")


class Arrivals(NamedTuple):
    """When tuples arrive, and the mean rate in tuples per second: in the long term, or that of the fastest phase.

    `due` maps tuple numbers and a random stream to ascending arrival times in nanoseconds; it is called for blocks in
    ascending order. With phases the source ends: the last block yields fewer times than numbers, later blocks none.
    """

    due: Callable[[Int64s, np.random.Generator], Int64s]
    rate: float


def _constant(rate: float) -> Arrivals:
    """Let tuple i arrive at i/rate."""
    gap = SECOND / rate
    return Arrivals(lambda numbers, random: whole_moments(numbers * gap), rate)


def _poisson(rate: float) -> Arrivals:
    """Draw independent, exponentially distributed gaps with mean 1/rate; `rate` is in tuples per second."""
    gap, last = SECOND / rate, 0

    def due(numbers: Int64s, random: np.random.Generator) -> Int64s:
        nonlocal last
        gaps = whole_moments(random.standard_exponential(len(numbers)) * gap)  # whole nanoseconds, so sums are exact
        moments: Int64s = np.cumsum(gaps) + last
        moments[np.cumsum(gaps.astype(np.float64)) + last > LONGEST] = LONGEST  # the integer sum may have overflowed
        last = int(moments[-1])
        return moments

    return Arrivals(due, rate)


def _bursts(size: int, every: int, gap: float) -> Arrivals:
    """Emit `size` tuples every `every` nanoseconds, `gap` nanoseconds apart within the burst."""

    def due(numbers: Int64s, random: np.random.Generator) -> Int64s:
        burst, place = np.divmod(numbers, size)
        return _later(whole_moments(place * gap), burst, every)

    return Arrivals(due, size / every * SECOND)


def _on_off(rate: float, on: int, off: int) -> Arrivals:
    """Alternate between evenly spaced tuples for `on` nanoseconds and silence for `off`."""
    gap = SECOND / rate

    def due(numbers: Int64s, random: np.random.Generator) -> Int64s:
        active = whole_moments(numbers * gap)
        return _later(active, active // on, off)

    return Arrivals(due, rate * on / (on + off))


def _later(moments: Int64s, times: Int64s, span: int) -> Int64s:
    """Return each moment plus its number of spans, capped at LONGEST."""
    due: Int64s = moments + times * span
    due[moments + times.astype(np.float64) * span > LONGEST] = LONGEST
    return due


@dataclass(frozen=True, slots=True)
class Phase:
    """A span in nanoseconds with a constant rate in tuples per second; rate 0 is silence."""

    span: int
    rate: float

    @property
    def tuples(self) -> Fraction:
        """The number of tuples, exact for the rate as written in decimal: 10 s at 0.1 is exactly one."""
        return Fraction(repr(self.rate)) * self.span / SECOND


def _phased(phases: Sequence[Phase], kind: str) -> Arrivals:
    """Follow a changing rate r(t): with R(t) its integral from 0, the tuple at position x arrives where R reaches x.

    Constant arrivals are at positions 0, 1, 2, ...; Poisson arrivals at those of a Poisson process with rate 1. Where R
    stays at x for a while, as in silence, the tuple arrives when the rate rises again. All arrive before the last phase
    ends.
    """
    places = list(accumulate([phase.tuples for phase in phases], initial=Fraction(0)))
    spans = np.array([phase.span for phase in phases], np.int64)
    ends = np.cumsum(spans)
    gaps = np.array([min(SECOND / phase.rate, LONGEST) if phase.rate else 0.0 for phase in phases])

    def moments(phase: Int64s, offsets: npt.NDArray[np.float64]) -> Int64s:
        """Convert offsets, in tuples after the start of each phase, to moments."""
        due: Int64s = (ends - spans)[phase] + np.rint(offsets * gaps[phase]).astype(np.int64)
        return np.minimum(due, ends[phase] - 1)  # rounding up must not move a tuple into the next phase

    bounds = [math.ceil(place) for place in places]
    firsts = np.array([min(bound, LONGEST) for bound in bounds], np.int64)
    leads = np.array([float(bound - place) for bound, place in zip(bounds, places, strict=True)])

    def constant(numbers: Int64s, random: np.random.Generator) -> Int64s:
        numbers = numbers[numbers < firsts[-1]]
        phase = np.searchsorted(firsts, numbers, "right") - 1
        return moments(phase, numbers - firsts[phase] + leads[phase])

    starts, last = np.array([float(place) for place in places]), 0.0

    def poisson(numbers: Int64s, random: np.random.Generator) -> Int64s:
        nonlocal last
        steps = random.standard_exponential(len(numbers))
        steps[:1] += last
        found = np.cumsum(steps)  # sums in order, so a longer block begins like a shorter one
        last = float(found[-1])
        found = found[found < starts[-1]]
        phase = np.searchsorted(starts, found, "right") - 1
        return moments(phase, found - starts[phase])

    # Phases are long, so a network must be able to process the fastest.
    return Arrivals(poisson if kind == "poisson" else constant, max(phase.rate for phase in phases))


def parse_arrivals(settings: Mapping[str, object], rate: float | None) -> Arrivals | None:
    """Read `arrivals`, `rate`, `burst` and `phases` of a generator; None if it produces tuples on demand.

    `rate` is the rate from the settings, or the run's override. The caller puts the source before an error's message.
    """
    burst = settings.get("burst")
    kind = settings.get("arrivals", "constant" if burst is None else "bursty")
    check_known("arrivals", [kind], _KINDS, InputError)
    if settings.get("phases") is not None:
        if burst is not None or kind == "bursty":
            raise InputError("phases go with arrivals: constant or poisson, not with bursts")
        if settings.get("rate") is not None:
            raise InputError("rate and phases exclude each other")
        if rate is not None:
            raise InputError("phases say how fast tuples come, so no other rate can be set from outside")
        return _phased(parse_phases(settings["phases"]), str(kind))
    if kind == "bursty":
        return _parse_burst(burst, rate)
    if burst is not None:
        raise InputError(f"burst goes with arrivals: bursty, not {kind}")
    if kind == "poisson" and rate is None:
        raise InputError("arrivals: poisson needs a rate, tuples per second, or phases")
    if rate is None:
        return None
    return _poisson(rate) if kind == "poisson" else _constant(rate)


def parse_phases(phases: object) -> tuple[Phase, ...]:
    """Parse a list such as [[10s, 500], [1m, 2000]]: spans and rates."""
    form = "[span, tuples per second], such as [10s, 500]"
    if not isinstance(phases, list | tuple) or not phases:
        raise InputError(f"phases is a list of {form}, not {phases!r}")
    found = []
    for number, pair in enumerate(phases, 1):
        with within(f"phase {number}", InputError):
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                raise InputError(f"expected {form}, not {pair!r}")
            rate = pair[1]
            if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= FASTEST:
                raise InputError(f"its rate is a number of tuples per second from 0 to {FASTEST:g}, not {rate!r}")
            found.append(Phase(nanoseconds(pair[0]), float(rate)))
    if sum(phase.span for phase in found) > LONGEST:
        raise InputError(f"phases: together they are too long; at most {_YEARS} years")
    if not any(phase.rate for phase in found):
        raise InputError("phases: at least one rate must be above 0")
    return tuple(found)


def _parse_burst(burst: object, rate: float | None) -> Arrivals:
    forms = "{size: 100, every: 1s} or {on: 1s, off: 4s}"
    if burst is None:
        raise InputError(f"arrivals: bursty needs burst: {forms}")
    spec = check_keys(burst, ("size", "every", "on", "off"), "burst")
    with within("burst", InputError):
        spans = {}
        for key in ("every", "on", "off"):
            if key in spec:
                with within(key, InputError):
                    spans[key] = nanoseconds(spec[key])
        if set(spec) == {"size", "every"}:
            size = spec["size"]
            if not is_whole(size, 1) or size > LONGEST:
                raise InputError(f"size is a whole number from 1 to {LONGEST}, not {size!r}")
            gap = 0.0 if rate is None else SECOND / rate
            if gap * (size - 1) > spans["every"]:
                raise InputError(f"{size} tuples at {rate:g} per second do not fit into {spec['every']}")
            return _bursts(size, spans["every"], gap)
        if set(spec) == {"on", "off"}:
            if rate is None:
                raise InputError("{on, off} needs a rate, the tuples per second while on")
            return _on_off(rate, spans["on"], spans["off"])
    raise InputError(f"burst is {forms}, not {choices(spec)}")


def nanoseconds(value: object) -> int:
    """Parse a positive time span: a duration such as 5s, or a number of seconds; raises an InputError."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        span = round(value * SECOND) if 0 < value < 2**32 else 0
    else:
        try:
            span = Duration.parse(value).nanoseconds
        except NetworkError as error:
            raise InputError(str(error)) from None
    if span <= 0:
        raise InputError(f"expected a span of time above 0, such as 5s, not {value!r}")
    if span > LONGEST:
        raise InputError(f"{value!r} is too long; at most {_YEARS} years")
    return span
