"""Sources of a run that may be a continued one: each gives what the log does not have."""

from __future__ import annotations

import logging

from headway.connectors.base import Reader
from headway.connectors.resuming import Resumable, begins_anew
from headway.connectors.skipping import skip
from headway.storage.log import Log
from headway.storage.segments import quote_name

_log = logging.getLogger("headway")


def read_on(reader: Reader, source: str, log: Log, feeds: str | None) -> Reader:
    """Return a reader of what follows in a source behind what the log has; `feeds` is where sources keep their place.

    Malformed rows are followed up, too, also those that the log has of a source without any tuple yet. A source
    that neither begins anew nor keeps its own place, such as a pipe, goes on with what comes.
    """
    if log.end is not None:
        return reader
    tuples, refused = log.positions.get(source, 0), log.refused.get(source, 0)
    if feeds is not None and isinstance(reader, Resumable):
        reader.resume(f"{feeds}/{quote_name(source)}", tuples, refused)
        return reader
    if not begins_anew(reader):
        return reader
    if reader.live and tuples:  # nobody can see whether it begins anew, so the user hears what that would mean
        _log.warning("source '%s': its first %s tuples are passed over: the saved run has them", source, f"{tuples:,}")
    return skip(reader, tuples, source, refused)
