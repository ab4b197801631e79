"""Outputs at run time: sinks, latencies and utilities."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headway.catalog import HALF_LIFE
from headway.clock import SECOND, Clock
from headway.columns import Column, Floats, Mask, as_floats, exporter
from headway.connectors.memory import DiscardSink
from headway.connectors.protocol import Ageing, Writer
from headway.fading import Faded, left_after
from headway.network import Output
from headway.network.qos import Graph, QoS
from headway.network.schema import Schema
from headway.trains import Train, is_constant

Counts = npt.NDArray[np.int64]
_FOLD_AFTER = 64


class Delivered(NamedTuple):
    """What an output has delivered so far."""

    tuples: int
    latency: float
    """Sum of latencies, in seconds."""
    utility: float
    """Sum of utilities by latency; 1 each without a graph."""
    late: int
    """Tuples delivered outside of the good zone."""


def _sum(values: Floats | Mask, times: Counts | None) -> float:
    """Return the sum of values, weighted by `times` if given; weighting long trains costs several times as much."""
    return float(values.sum() if times is None else (values * times).sum())


class Listener(Protocol):
    """Gets what an output delivers."""

    def hear(self, batch: pa.RecordBatch) -> None:
        """Take a batch; must not block for long."""

    def end(self, reason: str) -> None:
        """Take note that nothing more will come; the reason is empty at the regular end of a run."""


class LatencyHistogram:
    """Latencies in buckets, 64 to each doubling: quantiles within 1 per cent, in constant memory.

    A bucket is given by the leading bits of the float: the exponent and six more. No logarithm is needed.
    """

    _SHIFT = 46  # 6 of a double's 52 fraction bits remain
    _LEAST = 2.0**-20
    _FIRST = int(np.array(_LEAST).view(np.int64)) >> _SHIFT
    _BUCKETS = 64 * 45

    def __init__(self) -> None:
        self._counts: Counts = np.zeros(self._BUCKETS, np.int64)
        self.count = 0
        self.total = 0.0
        self.largest = 0.0

    def add(self, seconds: Floats, times: Counts | None = None) -> None:
        """Add latencies, each once or `times` times."""
        self._counts += np.bincount(self._places(seconds), times, self._BUCKETS).astype(np.int64, copy=False)
        self.count += len(seconds) if times is None else int(times.sum())
        self.total += _sum(seconds, times)
        self.largest = max(self.largest, float(seconds.max()))

    def _places(self, seconds: Floats) -> Counts:
        places = (np.maximum(seconds, self._LEAST).view(np.int64) >> self._SHIFT) - self._FIRST
        found: Counts = np.minimum(places, self._BUCKETS - 1)
        return found

    def quantile(self, share: float) -> float | None:
        """Return the latency at quantile `share`; None if there are none."""
        if self.count == 0:
            return None
        place = int(np.searchsorted(np.cumsum(self._counts), share * self.count))
        edges = np.array([place, place + 1]) + self._FIRST
        low, high = (edges << self._SHIFT).view(np.float64).tolist()
        return min(float(low + high) / 2, self.largest)

    @property
    def mean(self) -> float | None:
        """The mean latency; None if there are none."""
        return self.total / self.count if self.count else None


class Delivery:
    """One output: hands tuples to its sink and measures their latency and utility."""

    def __init__(
        self, output: Output, schema: Schema, writer: Writer, clock: Clock, half_life: float = HALF_LIFE
    ) -> None:
        """Deliver to a writer; in the recent utility, a tuple's weight halves every `half_life` seconds."""
        self.name = output.name
        self._late = 0
        self._fields = schema
        self.judge(output.qos)
        self._worth = 0.0  # utilities by value, summed
        self._valued = 0
        self.watch: Callable[[Floats], None] | None = None
        """Called with the values of the value graph's field, if set."""
        self._schema = schema.to_arrow()
        self._exporters = [exporter(type_) for type_ in schema.types]
        self._writer = writer
        self._discarded = isinstance(writer, DiscardSink)  # then no batches need to be made
        self._clock = clock
        self._listeners: tuple[Listener, ...] = ()
        self._lock = threading.Lock()
        self._latencies = LatencyHistogram()
        self._measured: list[Counts] = []
        self._alike: list[tuple[int, int]] = []  # (latency, tuples) of trains whose tuples arrived together
        self.tuples = 0
        self._utility = 0.0
        self._half_life = half_life * SECOND
        self._recent = Faded(2)  # tuples and utility
        self._faded = clock.now()
        self.arrived: Callable[[int], int | None] | None = None
        """Returns when an arrival number arrived; set if the schedule needs to know how long results are held."""
        self.held: Floats = np.zeros(1)
        """Seconds from the latest result's timestamp to the arrival that triggered it; 0 before the first one."""

    def judge(self, qos: QoS) -> None:
        """Measure by these graphs from now on."""
        self._graph = qos.latency
        self._good = float("inf") if self._graph is None else self._graph.good_until
        self._value = None if qos.value is None else (self._fields.index(qos.value.field), qos.value.graph)

    def listen(self, listener: Listener) -> None:
        """Let a listener have every batch from now on."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

    @property
    def heard(self) -> bool:
        """Whether somebody listens."""
        return bool(self._listeners)

    def forget(self, listener: Listener) -> None:
        """Give a listener nothing more."""
        with self._lock:
            self._listeners = tuple([one for one in self._listeners if one is not listener])

    def end(self, reason: str) -> None:
        """Tell all listeners that nothing more will come."""
        with self._lock:
            listeners, self._listeners = self._listeners, ()
        for listener in listeners:
            listener.end(reason)

    def deliver(self, train: Train, moments: Counts | None = None) -> None:
        """Hand a train to the sink. May block, which holds the run back.

        `moments` gives the time at which each tuple left, if not now.
        """
        count = len(train)
        if count == 0:
            if train.end:
                self.end("")
            return
        batch = None
        if not self._discarded or self._listeners:
            arrays = [export(column) for export, column in zip(self._exporters, train.columns, strict=True)]
            batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        with self._lock:
            if batch is not None:
                self._writer.write(batch)
                for listener in self._listeners:
                    listener.hear(batch)
            if self._value is not None:
                self._note_values(train.columns[self._value[0]], self._value[1])
            self.tuples += count
            if self.arrived is not None:
                self._note_held(train, self.arrived)
            now = self._clock.now()
            if moments is not None:
                self._measured.append(moments - train.stamps)
            elif count > 1 and is_constant(train.stamps):
                self._alike.append((now - int(train.stamps[0]), count))
            else:
                self._measured.append(now - train.stamps)
            if len(self._measured) + len(self._alike) >= _FOLD_AFTER:
                self._fold()
        if train.end:
            self.end("")

    def look(self) -> None:
        """Let the sink complete and drop what is due by its clock; not while it is being written, which may block."""
        if isinstance(self._writer, Ageing) and self._lock.acquire(blocking=False):
            try:
                self._writer.look()
            finally:
                self._lock.release()

    def count(self, stamps: Counts, counts: Counts) -> None:
        """Count tuples that have left, by timestamp, without handing them to the sink."""
        if len(stamps) == 0:
            return
        with self._lock:
            self.tuples += int(counts.sum())
            self._note(self._clock.now() - stamps, counts)

    def _note_held(self, train: Train, arrived: Callable[[int], int | None]) -> None:
        """Record how much older the latest result is than the arrival that triggered it, however trains are cut."""
        moment = arrived(int(train.numbers[-1]))
        if moment is not None:
            self.held[0] = max(0, moment - int(train.stamps[-1])) / SECOND

    def _note_values(self, column: Column, graph: Graph) -> None:
        """Add the values of a train; NULL has no utility."""
        values = as_floats(column)
        utilities = np.nan_to_num(graph.values(values))
        self._worth += float(utilities.sum())
        self._valued += len(utilities)
        if self.watch is not None:
            self.watch(values)

    def _fold(self) -> None:
        """Add the latencies of many trains at once, so that short trains cost little."""
        if self._measured:
            measured, self._measured = np.concatenate(self._measured), []
            self._note(measured)
        if self._alike:
            alike, self._alike = np.array(self._alike, np.int64), []
            self._note(alike[:, 0], alike[:, 1])

    def _note(self, latencies: Counts, times: Counts | None = None) -> None:
        """Add latencies (ns), each once or `times` times."""
        seconds = np.maximum(latencies, 0) / SECOND
        self._latencies.add(seconds, times)
        if self._graph is not None:
            now, utility = self._clock.now(), _sum(self._graph.values(seconds), times)
            self._late += int(_sum(seconds > self._good, times))
            tuples = len(seconds) if times is None else int(times.sum())
            self._utility += utility
            self._recent.add((tuples, utility), left_after(now - self._faded, self._half_life))
            self._faded = now

    @property
    def latencies(self) -> LatencyHistogram:
        """The latencies of all tuples delivered so far."""
        with self._lock:
            self._fold()
        return self._latencies

    def delivered(self) -> Delivered:
        """Return what the output has delivered so far."""
        with self._lock:
            self._fold()
            count = self._latencies.count
            utility = float(count) if self._graph is None else self._utility
            return Delivered(count, self._latencies.total, utility, self._late)

    @property
    def value_utility(self) -> float | None:
        """The mean utility of the delivered tuples by value; None without a graph or without tuples."""
        return self._worth / self._valued if self._valued else None

    @property
    def utility(self) -> float | None:
        """The mean utility of the delivered tuples by latency; 1 without a graph, None without tuples."""
        count = self.latencies.count
        if count == 0:
            return None
        return 1.0 if self._graph is None else self._utility / count

    @property
    def recent(self) -> float:
        """The mean utility by latency of recently delivered tuples; 1 without a graph or without tuples."""
        with self._lock:
            self._fold()
            tuples, utility = self._recent.sums.tolist()
        return utility / tuples if tuples > 0 else 1.0

    def summary(self) -> dict[str, Any]:
        """Return the summary's entry for this output; latencies in seconds."""
        latencies = self.latencies
        return {
            "tuples": self.tuples,
            "latency": {
                "mean": latencies.mean,
                "p50": latencies.quantile(0.5),
                "p99": latencies.quantile(0.99),
                "max": latencies.largest if self.tuples else None,
            },
            "utility": self.utility,
            "outside": self._late / latencies.count if latencies.count else None,
            "value_utility": self.value_utility,
        }
