"""The cost of a tuple in a box: constant, or drawn from a distribution.

Draws are deterministic: each is a hash (splitmix64) of a key, which follows from a seed, the name of the box and the
tuple's arrival number. So trains, policies and engines cannot change what a tuple costs.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from headway.boxes.keys import DURATION, Fragment, KeyKind, inside
from headway.columns import Floats, Int64s, splitmix64
from headway.durations import DURATION_HINT, Duration
from headway.errors import NetworkError, check_known, choices, finite

Keys = npt.NDArray[np.uint64]

LONGEST = 86_400.0
"""The most seconds that one tuple may cost, so that sums of costs fit into clocks."""
MOST_RANKS = 1_000_000
_COST = 1
"""The draw of a tuple's key that decides its cost; other draws are for other questions."""


class LastTuple(NamedTuple):
    """The last tuple that a box has seen: its arrival number, and its place among those with the same number."""

    number: int = -1
    place: int = 0


def places_of(numbers: Int64s, last: LastTuple = LastTuple()) -> tuple[Int64s, LastTuple]:  # noqa: B008 - it is immutable
    """Return for each tuple of a train how many with its arrival number came just before it, and the new last tuple.

    `last` is the last tuple of the train before: an engine may cut a train between tuples of one number.
    """
    count = len(numbers)
    if count == 0:
        return np.zeros(0, np.int64), last
    if count == 1:  # nothing to vectorise, and trains of one tuple are common
        only = int(numbers[0])
        place = last.place + 1 if only == last.number else 0
        return np.full(1, place, np.int64), LastTuple(only, place)
    index = np.arange(count)
    fresh = np.ones(count, np.bool_)
    fresh[1:] = numbers[1:] != numbers[:-1]
    places: Int64s = index - np.maximum.accumulate(np.where(fresh, index, 0))
    if int(numbers[0]) == last.number:
        others = np.flatnonzero(fresh)
        places[: int(others[1]) if len(others) > 1 else count] += last.place + 1
    return places, LastTuple(int(numbers[-1]), int(places[-1]))


@lru_cache(maxsize=1 << 17)
def _base(seed: int, box: str) -> np.uint64:
    digest = hashlib.blake2b(f"{seed} {box}".encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


@lru_cache
def _salt(question: int) -> np.uint64:
    salted: np.uint64 = splitmix64(np.full(1, question, np.uint64))[0]
    return salted


def tuple_keys(seed: int, box: str, numbers: Int64s, places: Int64s) -> Keys:
    """Return the keys of a box's tuples, by their arrival numbers and their places among equal ones (`places_of`)."""
    keys = splitmix64(numbers.astype(np.uint64) + _base(seed, box))
    return splitmix64(keys + places.astype(np.uint64))


def draw(keys: Keys, question: int) -> Floats:
    """Return a number from 0 to less than 1 for each key; the answers to different questions are independent."""
    return (splitmix64(keys ^ _salt(question)) >> np.uint64(11)).astype(np.float64) * 2.0**-53


class Cost(ABC):
    """Seconds of work per tuple. Frozen data; equal costs are equal objects and have the same file form."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """The expected seconds per tuple."""

    @abstractmethod
    def seconds(self, keys: Keys) -> Floats:
        """Return the cost of the tuples with these keys, each by its own key alone."""

    @abstractmethod
    def to_plain(self) -> Any:
        """Return the cost as written in a file; `parse_cost` reads it back as an equal one."""


@dataclass(frozen=True, slots=True)
class Constant(Cost):
    """Every tuple costs the same."""

    each: float = 0.0

    @property
    def mean(self) -> float:
        """The cost itself."""
        return self.each

    def seconds(self, keys: Keys) -> Floats:
        """Return the same for all."""
        return np.full(len(keys), self.each)

    def to_plain(self) -> Any:
        """Return ``2ms``, or seconds as a number."""
        return _write(self.each)


@dataclass(frozen=True, slots=True)
class Uniform(Cost):
    """Uniformly distributed from `low` to `high`."""

    low: float
    high: float

    @property
    def mean(self) -> float:
        """The middle."""
        return (self.low + self.high) / 2

    def seconds(self, keys: Keys) -> Floats:
        """Return a cost between the bounds for each key."""
        return self.low + (self.high - self.low) * draw(keys, _COST)

    def to_plain(self) -> Any:
        """Return ``{uniform: [1ms, 3ms]}``."""
        return {"uniform": [_write(self.low), _write(self.high)]}


@dataclass(frozen=True, slots=True)
class Zipf(Cost):
    """A rank times `unit`, where rank k, from 1 to `ranks`, has a probability proportional to k^-exponent."""

    exponent: float
    ranks: int
    unit: float

    @property
    def mean(self) -> float:
        """The mean rank times the unit."""
        return _ranking(self.exponent, self.ranks)[1] * self.unit

    def seconds(self, keys: Keys) -> Floats:
        """Return a rank times the unit for each key."""
        bounds, _ = _ranking(self.exponent, self.ranks)
        # By rounding, the cumulative sums may end just below 1, and a draw may lie beyond the last rank.
        below = np.minimum(np.searchsorted(bounds, draw(keys, _COST), "right"), self.ranks - 1)
        return (below + 1) * self.unit

    def to_plain(self) -> Any:
        """Return ``{zipf: [1.5, 100, 10us]}``."""
        return {"zipf": [self.exponent, self.ranks, _write(self.unit)]}


@lru_cache(maxsize=16)
def _ranking(exponent: float, ranks: int) -> tuple[Floats, float]:
    """Return the upper bound of each rank's draws, and the mean rank."""
    numbers = np.arange(1, ranks + 1, dtype=np.float64)
    # Logarithms first: a steep exponent would overflow or underflow otherwise.
    logs = -exponent * np.log(numbers)
    weights = np.exp(logs - logs.max())
    bounds: Floats = np.cumsum(weights) / weights.sum()
    return bounds, float((weights * numbers).sum() / weights.sum())


NOTHING = Constant()


def parse_cost(value: object) -> Cost:
    """Read a duration (``2ms``), seconds (0.002), ``{uniform: [1ms, 3ms]}`` or ``{zipf: [exponent, ranks, unit]}``."""
    if isinstance(value, Cost):
        return value
    if not isinstance(value, Mapping):
        return Constant(_span(value))
    kinds = [str(kind) for kind in value]
    check_known("distribution", kinds, _KINDS, NetworkError)
    if len(kinds) != 1:
        raise NetworkError(f"name one distribution, not {choices(kinds)}; choices: {choices(_KINDS)}")
    with inside(kinds[0]):
        return _KINDS[kinds[0]](value[kinds[0]])


def _uniform(value: object) -> Cost:
    low, high = (_span(part) for part in _listed(value, 2, "[lowest, highest], such as [1ms, 3ms]"))
    if low > high:
        raise NetworkError(f"the lower bound {_write(low)} is above the upper bound {_write(high)}")
    return Uniform(low, high)


def _zipf(value: object) -> Cost:
    exponent, ranks, unit = _listed(value, 3, "[exponent, number of ranks, unit], such as [1.5, 100, 10us]")
    if finite(exponent) is None:
        raise NetworkError(f"the exponent is a number, not {exponent!r}")
    if isinstance(ranks, bool) or not isinstance(ranks, int) or not 1 <= ranks <= MOST_RANKS:
        raise NetworkError(f"the number of ranks is a whole number from 1 to {MOST_RANKS}, not {ranks!r}")
    step = _span(unit)
    if step * ranks > LONGEST:
        raise NetworkError(f"{ranks} times {_write(step)} is too much; a tuple costs a day at most")
    return Zipf(float(exponent), ranks, step)


_KINDS: dict[str, Callable[[object], Cost]] = {"uniform": _uniform, "zipf": _zipf}
_SECONDS: Fragment = {"oneOf": [{"type": "number", "minimum": 0}, DURATION]}
_RANKS: Fragment = {"type": "integer", "minimum": 1, "maximum": MOST_RANKS}


def _drawn(name: str, *parts: Fragment) -> Fragment:
    """Return the JSON Schema of a mapping with one key, whose value is a list of these parts."""
    listed = {"type": "array", "prefixItems": list(parts), "minItems": len(parts), "maxItems": len(parts)}
    return {"type": "object", "properties": {name: listed}, "required": [name], "additionalProperties": False}


COST = KeyKind(
    {
        "oneOf": [
            *_SECONDS["oneOf"],
            _drawn("uniform", _SECONDS, _SECONDS),
            _drawn("zipf", {"type": "number"}, _RANKS, _SECONDS),
        ]
    },
    parse_cost,
    lambda cost: cost.to_plain(),
)
"""The kind of keys that say what a tuple costs."""


def _listed(value: object, count: int, form: str) -> list[Any]:
    if not isinstance(value, list | tuple) or len(value) != count:
        raise NetworkError(f"expected {form}, not {value!r}")
    return list(value)


def _span(value: object) -> float:
    """Read a duration or a number as seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Duration):
        raise NetworkError(
            f"must be a duration such as '2ms', seconds as a number, "
            f"{{uniform: [1ms, 3ms]}} or {{zipf: [1.5, 100, 10us]}}, not {value!r}"
        )
    if isinstance(value, str) and value.strip().startswith("-"):
        raise NetworkError(f"must be zero or more, not '{value}'; {DURATION_HINT}")
    seconds = value if isinstance(value, int | float) else Duration.parse(value).seconds
    number = finite(seconds)
    if number is None or number < 0:
        raise NetworkError(f"must be a number of seconds, zero or more, not {value!r}")
    if number > LONGEST:
        raise NetworkError(f"{value!r} is too much; a tuple costs a day at most")
    return number


def _write(seconds: float) -> str | float:
    """Return a duration as text where it is a whole number of microseconds, otherwise seconds."""
    whole = round(seconds * 1_000_000)
    return str(Duration(whole)) if whole / 1_000_000 == seconds else seconds
