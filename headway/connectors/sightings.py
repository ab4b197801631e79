"""Which fields of a source occur among the keys of its rows: one that never does is most often misspelt."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from headway.errors import did_you_mean

LOOKED_AT = 1000
"""So many rows of a source are looked at; after them nothing is done."""

_KEYS = 1000
_log = logging.getLogger("headway")


class Sightings:
    """Looks at the keys of a source's first rows, and warns once of each field that is in none of them."""

    def __init__(self, who: str, fields: Iterable[str]) -> None:
        """Start with no row seen; `who` begins the warning."""
        self._who = who
        self._fields = tuple(fields)
        self._unseen = set(self._fields)
        self._keys: dict[str, None] = {}
        self._looked = self._rows = 0

    def look(self, rows: Iterable[Any]) -> None:
        """Look at the next rows, as far as need be; rows without keys say nothing."""
        if not self._unseen:
            return
        for row in islice(rows, LOOKED_AT - self._looked):
            self._looked += 1
            if isinstance(row, Mapping):
                self._rows += 1
                self._unseen.difference_update(row)
                if not self._unseen:
                    return
                if len(self._keys) < _KEYS:
                    self._keys.update(dict.fromkeys(row))
        if self._looked >= LOOKED_AT:
            self._warn(" so far")

    def end(self) -> None:
        """Say what is missing when there are no more rows."""
        self._warn("")

    def _warn(self, so_far: str) -> None:
        others = [str(key) for key in self._keys if key not in self._fields]
        for field in self._fields:
            if field in self._unseen and self._rows:
                _log.warning("%s: no row%s has the field '%s'%s", self._who, so_far, field, did_you_mean(field, others))
        self._unseen = set()
