"""When the tuples of a generator arrive: evenly, at random, or in bursts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from headway.boxes.durations import Duration
from headway.clock import SECOND
from headway.columns import Int64s
from headway.connectors.base import check_keys
from headway.errors import InputError, NetworkError, choices, unknown

ARRIVALS = ("constant", "poisson", "bursty")


class Arrivals(Protocol):
    """Gives the moments of tuples, block after block."""

    def due(self, numbers: Int64s, random: np.random.Generator) -> Int64s:
        """Return the moments, ascending, of the tuples with these numbers; blocks are asked for in order."""
        ...


class Constant:
    """Tuple i arrives at i/rate."""

    def __init__(self, rate: float) -> None:
        """Take the rate in tuples per second."""
        self._gap = SECOND / rate

    def due(self, numbers: Int64s, random: np.random.Generator) -> Int64s:
        """Return evenly spaced moments."""
        due: Int64s = np.rint(numbers * self._gap).astype(np.int64)
        return due


class Poisson:
    """Gaps between tuples are independent and exponential, with a mean of 1/rate."""

    def __init__(self, rate: float) -> None:
        """Take the mean rate in tuples per second."""
        self._gap = SECOND / rate
        self._last = 0

    def due(self, numbers: Int64s, random: np.random.Generator) -> Int64s:
        """Return the moments of a Poisson process; whole nanoseconds, so their sum is exact."""
        gaps = np.rint(random.standard_exponential(len(numbers)) * self._gap).astype(np.int64)
        due: Int64s = np.cumsum(gaps) + self._last
        self._last = int(due[-1])
        return due


class Bursts:
    """Bursts of `size` tuples, one burst every `every` nanoseconds; in a burst they are `gap` apart."""

    def __init__(self, size: int, every: int, gap: float) -> None:
        """Take the size of a burst, its period and the gap in a burst, in nanoseconds."""
        self._size, self._every, self._gap = size, every, gap

    def due(self, numbers: Int64s, random: np.random.Generator) -> Int64s:
        """Return the moments of the bursts."""
        burst, place = np.divmod(numbers, self._size)
        due: Int64s = burst * self._every + np.rint(place * self._gap).astype(np.int64)
        return due


class OnOff:
    """Evenly spaced tuples for `on`, then silence for `off`, and so on."""

    def __init__(self, rate: float, on: int, off: int) -> None:
        """Take the rate while on, and both spans in nanoseconds."""
        self._gap, self._on, self._off = SECOND / rate, on, off

    def due(self, numbers: Int64s, random: np.random.Generator) -> Int64s:
        """Return the moments, with the silences put in."""
        active = np.rint(numbers * self._gap).astype(np.int64)
        due: Int64s = active + active // self._on * self._off
        return due


def parse_arrivals(settings: Mapping[str, object], rate: float | None, who: str) -> Arrivals | None:
    """Read `arrivals`, `rate` and `burst` of a generator; None if its tuples come as fast as they are asked for."""
    burst = settings.get("burst")
    kind = settings.get("arrivals", "constant" if burst is None else "bursty")
    if kind not in ARRIVALS:
        raise InputError(f"{who}: {unknown('arrivals', str(kind), ARRIVALS)}")
    if kind == "bursty":
        return _parse_burst(burst, rate, who)
    if burst is not None:
        raise InputError(f"{who}: burst goes with arrivals: bursty, not {kind}")
    if kind == "poisson" and rate is None:
        raise InputError(f"{who}: arrivals: poisson needs a rate, tuples per second")
    if rate is None:
        return None
    return Poisson(rate) if kind == "poisson" else Constant(rate)


def _parse_burst(burst: object, rate: float | None, who: str) -> Arrivals:
    forms = "{size: 100, every: 1s} or {on: 1s, off: 4s}"
    if burst is None:
        raise InputError(f"{who}: arrivals: bursty needs burst: {forms}")
    spec = check_keys(burst, ("size", "every", "on", "off"), who, "burst")
    if set(spec) == {"size", "every"}:
        size, every = spec["size"], nanoseconds(spec["every"], f"{who}: burst: every")
        if isinstance(size, bool) or not isinstance(size, int) or size <= 0:
            raise InputError(f"{who}: burst: size is a whole number above 0, not {size!r}")
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
    return span
