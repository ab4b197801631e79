"""Sources in virtual time: there is no outside world to wait for."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from headway.connectors.protocol import Chunk, Reader
from headway.connectors.readers import Awaited
from headway.engines.ingest import blame

_LOOK = 0.1
"""Seconds after which whoever waits for a source looks whether the run shall end."""


class Portions(Awaited):
    """A live source that is waited for until a whole portion is there, or its end, or somebody ends the run.

    How many of its tuples come at a time is the outside world's doing; here a run must not depend on it. A thread asks
    the source, one question at a time, so that one that says nothing does not keep the run from ending.
    """

    def __init__(self, reader: Reader, source: str, stopped: Callable[[], bool]) -> None:
        """Wait for a reader of a source until `stopped`; it is asked first when somebody reads."""
        super().__init__(reader)
        self._source = source
        self._stopped = stopped
        self._questions: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Chunk | BaseException | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def read(self, limit: int) -> Chunk | None:
        """Return the next `limit` tuples, fewer at the end or among malformed rows.

        Blocks until they are there or the run shall end.
        """
        chunks: list[Chunk] = []
        while limit > 0 and (chunk := self._next(limit)) is not None:
            chunks.append(chunk)
            limit -= len(chunk)
            if not len(chunk):
                break  # it brings malformed rows, which somebody has to take first
        if len(chunks) < 2:
            return chunks[0] if chunks else None
        due = [chunk.due for chunk in chunks if chunk.due is not None]
        return Chunk(pa.concat_batches([chunk.batch for chunk in chunks]), np.concatenate(due) if due else None)

    def _next(self, limit: int) -> Chunk | None:
        if self._stopped():
            return None
        if self._thread is None:
            name = f"headway-source-{self._source}"
            self._thread = threading.Thread(target=self._answer, name=name, daemon=True)
            self._thread.start()
        self._questions.put(limit)
        while True:
            try:
                answer = self._answers.get(timeout=_LOOK)
            except queue.Empty:
                if self._stopped():
                    return None
                continue
            if isinstance(answer, BaseException):
                raise blame(self._source, answer)
            return answer

    def release(self) -> None:
        """Ask nothing any more; the source is closed by whoever opened it."""
        self._questions.put(None)

    def _answer(self) -> None:
        answer: Chunk | BaseException | None
        while (limit := self._questions.get()) is not None:
            try:
                answer = self._reader.read(limit)
            except BaseException as error:  # handed to the run, which fails with it
                answer = error
            self._answers.put(answer)
