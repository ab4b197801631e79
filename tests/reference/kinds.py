"""Kinds of order fields: the same small whole numbers as values of several types."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from tests.reference.order import EPOCH, EPOCH_DAY, EPOCH_NTZ, NUMBER, Axis

MINUTE = 60_000_000


@dataclass(frozen=True)
class Kind:
    """A type of order field; `value`, `size` and `axis` turn a whole number of units into what is needed."""

    type: str

    def value(self, units: int | None) -> Any:
        """Return an order value; None is NULL. Doubles go in halves, so that they are exact."""
        if units is None:
            return None
        match self.type:
            case "double" | "float":
                return units / 2
            case "timestamp":
                return EPOCH + dt.timedelta(minutes=units)
            case "timestamp_ntz":
                return EPOCH_NTZ + dt.timedelta(minutes=units)
            case "date":
                return EPOCH_DAY + dt.timedelta(days=units)
        return units

    def size(self, units: int) -> int | float | str:
        """Return a size as a network file writes it."""
        match self.type:
            case "double" | "float":
                return units / 2
            case "timestamp" | "timestamp_ntz":
                return f"{units} minutes"
            case "date":
                return f"{units} days"
        return units

    def axis(self, units: int) -> Axis:
        """Return a size as the reference computes with it."""
        match self.type:
            case "double" | "float":
                return units / 2
            case "timestamp" | "timestamp_ntz":
                return units * MINUTE
        return units


BIGINT = Kind("bigint")
DOUBLE = Kind("double")
TIMESTAMP = Kind("timestamp")
DATE = Kind("date")
COUNT = Kind(NUMBER)
"""The tuple number; it is no field."""

KINDS = (BIGINT, DOUBLE, TIMESTAMP, Kind("int"), Kind("float"), Kind("timestamp_ntz"), DATE)
