"""The universal box, one tuple at a time, with plain Python numbers."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction

from tests.reference.tuples import Emitted, Operator, Tuple

_WORD = 2**64


def splitmix64(value: int) -> int:
    """Return one step of the well-known generator."""
    mixed = (value + 0x9E3779B97F4A7C15) % _WORD
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) % _WORD
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) % _WORD
    return mixed ^ (mixed >> 31)


def key(seed: int, box: str, number: int, place: int = 0) -> int:
    """Return the key of a box's tuple."""
    base = int.from_bytes(hashlib.blake2b(f"{seed} {box}".encode(), digest_size=8).digest(), "little")
    return splitmix64((splitmix64((base + number) % _WORD) + place) % _WORD)


def drawn(key: int, question: int) -> Fraction:
    """Return the answer of a key to a question, from 0 to 1."""
    return Fraction(splitmix64(key ^ splitmix64(question)) >> 11, 2**53)


class Universal(Operator):
    """Every tuple as often as the selectivity says: by chance, or evenly."""

    def __init__(self, box: str, selectivity: str, mode: str = "random", seed: int = 0) -> None:
        super().__init__()
        self.box = box
        self.selectivity = Fraction(selectivity)
        self.mode = mode
        self.seed = seed
        self.seen = 0
        self.last = (-1, 0)

    def push(self, at: int, arrived: Tuple) -> list[Emitted]:
        """Pass one tuple on, as often as it is its turn."""
        self.seen += 1
        number, place = self.last
        self.last = (arrived.number, place + 1 if number == arrived.number else 0)
        return [Emitted(0, arrived)] * self._copies()

    def _copies(self) -> int:
        if self.mode == "even":
            return math.floor(self.seen * self.selectivity) - math.floor((self.seen - 1) * self.selectivity)
        whole = math.floor(self.selectivity)
        lucky = drawn(key(self.seed, self.box, *self.last), 2) < self.selectivity - whole
        return whole + lucky
