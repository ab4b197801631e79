"""Learning strategies: which algorithm to use next, given how each did. Importing it registers them."""

from headway.adaptive.learning import roulette, thompson, upper_confidence
from headway.adaptive.learning.base import Choice, Learning, Record, Turn, make_learning, register_learning

__all__ = [
    "Choice",
    "Learning",
    "Record",
    "Turn",
    "make_learning",
    "register_learning",
    "roulette",
    "thompson",
    "upper_confidence",
]
