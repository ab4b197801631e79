"""The query merged by hand, in Python: one stateful operator, all applications in numpy over Arrow bytes.

It does by hand what Headway does for any network: the stream travels as Arrow bytes, half of the keys to each core,
and the state is one blob. Counts share the codes of window and key, found once for all applications.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from benchmarks.streaming.apps import KEYS, App

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Counts = npt.NDArray[np.int64]
RESULTS = "app int, window long, k int, n long"
"""Rows of results; those of stateless applications are counted and let go: window and k are -1."""


class Open(NamedTuple):
    """The window that is open, -1 for none, and the counts in it by application and key."""

    window: int
    counts: Counts

    def to_bytes(self) -> bytes:
        """Write to bytes."""
        return np.concatenate([[self.window], self.counts.ravel()]).astype(np.int64).tobytes()

    @classmethod
    def from_bytes(cls, data: bytes | None, apps: int) -> Open:
        """Read what `to_bytes` wrote; nothing gives no window."""
        if data is None:
            return cls(-1, np.zeros((apps, KEYS), np.int64))
        found = np.frombuffer(data, np.int64)
        return cls(int(found[0]), found[1:].reshape(apps, KEYS))


def process(
    batches: Iterable[pa.RecordBatch], apps: Sequence[App], window: int, state: Open
) -> tuple[list[tuple[int, int, int, int]], Open]:
    """Process the tuples of a micro-batch in order; returns rows of results, and the window that is open then."""
    ordered = sorted((batch for batch in batches if batch.num_rows), key=lambda batch: batch.column(0)[0].as_py())
    if not ordered:
        return [], state
    i, k, v = (np.concatenate([np.asarray(batch.column(at)) for batch in ordered]) for at in range(3))
    rows: list[tuple[int, int, int, int]] = []
    for app in apps:
        if not app.windowed:
            passed = np.flatnonzero(v > app.bound)
            results = i.take(passed), k.take(passed), v.take(passed) * 2 + 1
            rows.append((app.number, -1, -1, len(results[0])))
    windowed = [app for app in apps if app.windowed]
    number = i // window
    base = int(number[0]) if state.window < 0 else state.window
    last = int(number[-1])
    codes = (number - base) * KEYS + k
    size = (last - base + 1) * KEYS
    counts = np.empty((len(windowed), last - base + 1, KEYS), np.int64)
    for at, app in enumerate(windowed):
        counts[at] = np.bincount(codes[v > app.bound], minlength=size).reshape(-1, KEYS)
    counts[:, 0] += state.counts
    for at, past, key in np.argwhere(counts[:, :-1] > 0).tolist():
        rows.append((windowed[at].number, base + past, key, int(counts[at, past, key])))
    return rows, Open(last, counts[:, -1].copy())


class Merged(StatefulProcessor):
    """All applications over one bucket of keys."""

    def __init__(self, apps: Sequence[App], window: int) -> None:
        """Run these applications."""
        self._apps = tuple(apps)
        self._window = window

    def init(self, handle: Any) -> None:
        """Find the state."""
        self._saved = handle.getValueState("open", "state binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timers: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        """Process one micro-batch of one bucket."""
        batches = [batch for frame in rows for train in frame.train for batch in pa.ipc.open_stream(train)]
        saved = self._saved.get()
        state = Open.from_bytes(None if saved is None else bytes(saved[0]), sum(app.windowed for app in self._apps))
        found, state = process(batches, self._apps, self._window, state)
        self._saved.update((state.to_bytes(),))
        yield pd.DataFrame(found, columns=["app", "window", "k", "n"]).astype({"app": "int32", "k": "int32"})

    def close(self) -> None:
        """Do nothing."""


def merge_python(stream: DataFrame, apps: Sequence[App], window: int) -> DataFrame:
    """Return all applications as one query over blobs."""
    grouped: Any = stream.groupBy("bucket")
    frame: DataFrame = grouped.transformWithStateInPandas(Merged(apps, window), RESULTS, "append", "none")
    return frame
