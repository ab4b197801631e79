"""The Spark session that Spark's own sources, sinks and tables use: the one there is, or one that an engine opens.

Connectors know no engine. The Spark engine says how a session is opened (`register_session`).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headway.errors import HeadwayError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_openers: list[Callable[[], Any]] = []
_lock = threading.Lock()


def register_session(open_session: Callable[[], Any]) -> None:
    """Set how a session is opened when there is none."""
    _openers[:] = [open_session]


def java_context(session: Any) -> Any:
    """Return the JVM's side of a session's context; None if somebody has stopped it, as far as Python knows."""
    return getattr(getattr(session, "_sc", None), "_jsc", None)


def find_session() -> SparkSession | None:
    """Return this process's live session, whichever thread opened it, or None. Starts nothing."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    anyone: Any = SparkSession
    # The active session belongs to a thread; the instantiated one to the process.
    for session in (anyone.getActiveSession(), anyone._instantiatedSession):
        context = java_context(session)
        if context is not None and not context.sc().isStopped():
            found: SparkSession = session
            return found
    return None


def need_session(who: str, error: type[HeadwayError]) -> SparkSession:
    """Return the live session, or open one, which takes seconds; raises `error` if nobody can."""
    with _lock:  # several sources may start at once
        session = find_session()
        if session is not None:
            return session
        if not _openers:
            raise error(f"{who}: there is no Spark session; make one with SparkSession.builder.getOrCreate() first")
        opened: SparkSession = _openers[0]()
        return opened


def first_line(problem: BaseException) -> str:
    """Return the line of a Spark error that says what is wrong."""
    text = str(problem).strip()
    cause = getattr(problem, "java_exception", None)
    if cause is not None:
        text = str(cause.toString()).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(problem).__name__
