"""How much of a stream is kept, and when an output to files begins a new one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from headway.durations import Duration, parse_duration
from headway.errors import NetworkError
from headway.sizes import parse_size, show_size

_NUMBER = re.compile(r"\d{1,18}")
KEEP_HINT = "keep is a duration such as '1 hour', a number of tuples, or all"
ROLL_HINT = "roll is a duration such as '1 hour', a size such as '100 MB', or a list of both"


@dataclass(frozen=True, slots=True)
class Keep:
    """How much is kept: the last tuples, those of the last duration, or all."""

    tuples: int | None = None
    time: Duration | None = None

    def __post_init__(self) -> None:
        """Refuse both at once, and less than a tuple."""
        if (self.tuples is not None and self.time is not None) or (self.tuples is not None and self.tuples < 1):
            raise NetworkError(f"{KEEP_HINT}, not {self.tuples}")

    @classmethod
    def parse(cls, value: object) -> Keep:
        """Read ``1 hour``, ``1000`` or ``all``; raise a NetworkError that says how to write it."""
        if isinstance(value, Keep):
            return value
        if value == "all":
            return cls()
        if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return cls(tuples=value)
        if not isinstance(value, str | Duration):
            raise NetworkError(f"{KEEP_HINT}, not {value!r}")
        try:
            return cls(time=parse_duration(value))
        except NetworkError as error:
            raise NetworkError(f"{KEEP_HINT}: {error}") from None

    @property
    def everything(self) -> bool:
        """Whether nothing is ever dropped."""
        return self.tuples is None and self.time is None

    def __str__(self) -> str:
        """Return a text that `parse` reads back."""
        return "all" if self.everything else str(self.time or self.tuples)


@dataclass(frozen=True, slots=True)
class Roll:
    """When an output's file is complete and the next one begins: after a time, at a size, or at whichever is first."""

    time: Duration | None = None
    """Since the part's first tuple was delivered."""
    size: int | None = None
    """In bytes."""

    def __post_init__(self) -> None:
        """Refuse neither, and what no part can be."""
        if (self.time is None and self.size is None) or (self.size is not None and self.size < 1):
            raise NetworkError(f"{ROLL_HINT}, not {self.size}")

    @classmethod
    def parse(cls, value: object) -> Roll:
        """Read ``1 hour``, ``100 MB``, or both, in a list or after a comma; a NetworkError says how to write it."""
        if isinstance(value, Roll):
            return value
        parts = [value] if isinstance(value, Duration) else value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, Sequence) or not parts or not all(isinstance(one, str | Duration) for one in parts):
            raise NetworkError(f"{ROLL_HINT}, not {value!r}")
        times = [one for one in parts if not _is_size(one)]
        sizes = [one for one in parts if _is_size(one)]
        if len(times) > 1 or len(sizes) > 1:
            raise NetworkError(f"{ROLL_HINT}, not two {'durations' if len(times) > 1 else 'sizes'}")
        try:
            return cls(parse_duration(times[0]) if times else None, parse_size(sizes[0]) if sizes else None)
        except NetworkError as error:
            raise NetworkError(f"{ROLL_HINT}: {error}") from None

    def __str__(self) -> str:
        """Return a text that `parse` reads back."""
        given = [] if self.time is None else [str(self.time)]
        return ", ".join([*given, *([] if self.size is None else [f"{show_size(self.size)}B"])])


def _is_size(text: object) -> bool:
    """Whether a text is a size: it has a unit that ends in b, such as MB; ``5m`` alone means minutes."""
    return isinstance(text, str) and re.search(r"\d\s*[kmgt]?i?b\s*$", text, re.IGNORECASE) is not None
