"""Claims as checks that can fail.

A check is judged by means; its evidence shows the 95 % interval, and a check that holds (or not) by less than that is
marked as not certain: it confirms nothing. What follows from the setting, and so could not have come out otherwise, is
marked as given: it is shown, but confirms and explains nothing. Bounds are those of the paper, wherever it gives a
number. `ABOUT` is what "about" means everywhere: nobody widens it for one claim.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headway_experiments.intervals import Interval

ABOUT = 1.5
"""A value is about x if it lies between x / 1.5 and 1.5 x."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that the paper claims, and whether these runs show it."""

    key: str
    """A short name, unique in its experiment; a finding refers to it."""
    claim: str
    """A sentence in our own words, with its bound: what must hold."""
    holds: bool
    evidence: str
    """The numbers it was judged by."""
    certain: bool = True
    """Whether the 95 % interval is on one side of the bound."""
    given: bool = False
    """Whether it follows from the setting and cannot fail."""


def less(key: str, claim: str, value: Interval, bound: float, what: str) -> Check:
    """Check that a value is below a bound; `what` says what the value is, for the evidence."""
    certain = value.high < bound or value.low >= bound
    return Check(key, claim, value.mean < bound, f"{what}: {value}", certain)


def more(key: str, claim: str, value: Interval, bound: float, what: str) -> Check:
    """Check that a value is above a bound."""
    certain = value.low > bound or value.high <= bound
    return Check(key, claim, value.mean > bound, f"{what}: {value}", certain)


def about(key: str, claim: str, value: Interval, want: float, what: str) -> Check:
    """Check that a value is about a number above 0."""
    low, high = want / ABOUT, want * ABOUT
    inside = low <= value.low and value.high <= high
    outside = value.high < low or value.low > high
    return Check(key, claim, low <= value.mean <= high, f"{what}: {value}", inside or outside)


def all_of(key: str, claim: str, parts: dict[str, Check]) -> Check:
    """Check that all parts hold; the evidence names those that do not, or else the closest thing to all of them."""
    wrong = {name: one for name, one in parts.items() if not one.holds}
    shown = wrong or parts
    evidence = "; ".join(f"{name}: {one.evidence}" for name, one in shown.items())
    text = f"not for {evidence}" if wrong else evidence
    return Check(key, claim, not wrong, text, all(one.certain for one in (wrong or parts).values()))


def given(check: Check) -> Check:
    """Mark a check as one that cannot fail: it follows from the setting."""
    return replace(check, given=True)
