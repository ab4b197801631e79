"""Tasks of Headway's own, which executors run beside those of the streaming queries."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from headway.errors import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("headway")

A = TypeVar("A")
B = TypeVar("B")


class Tasks:
    """Runs functions on executors. Thread-safe."""

    def __init__(self, session: SparkSession) -> None:
        """Run them in a session, whose queries they do not hinder: they have a pool of their own."""
        self._context = session.sparkContext
        self._group = f"headway-{uuid4().hex}"
        self._lock = threading.Lock()
        self._open = True

    def each(self, work: Callable[[A], B], items: Sequence[A]) -> list[B] | None:
        """Return what a function makes of each item, one task for each; None if executors cannot do it.

        Then the caller does it, now and from then on. Tasks may run several times, also at the same moment.
        """
        if not self._open or not items:
            return None if items else []
        context: Any = self._context
        try:
            context.setJobGroup(self._group, "Headway: history of connection points")
            context.setLocalProperty("spark.scheduler.pool", "headway-history")
            try:
                found: list[B] = context.parallelize(list(items), len(items)).map(work).collect()
                return found
            finally:  # what this thread starts next is something else
                context.setLocalProperty("spark.jobGroup.id", None)
                context.setLocalProperty("spark.scheduler.pool", None)
        except Exception as error:  # whatever Spark says: it may be about to end
            self.give_up(first_line(error))
            return None

    def give_up(self, why: str) -> None:
        """Let executors do nothing more, because something failed; say so once."""
        with self._lock:
            told, self._open = self._open, False
        if told:
            _log.warning("executors cannot write and read the history of points, the driver does it now: %s", why)

    def close(self) -> None:
        """End what runs, and run nothing more."""
        with self._lock:
            if not self._open:
                return
            self._open = False
        try:
            self._context.cancelJobGroup(self._group)
        except Exception as error:  # the session has ended before
            _log.debug("jobs were not cancelled: %s", first_line(error))
