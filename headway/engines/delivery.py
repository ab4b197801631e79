"""Outputs at run time: sinks, latencies and what results were worth."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headway.catalog import HALF_LIFE, Floats
from headway.checking import CheckedNetwork
from headway.clock import SECOND, Clock
from headway.columns import Column, as_floats, exporter
from headway.connectors import TableSink, open_sink
from headway.connectors.memory import DiscardSink
from headway.connectors.protocol import Writer, prepare
from headway.engines.base import RunSettings
from headway.engines.ingest import ArrivalTimes
from headway.engines.interrupts import Stopping
from headway.engines.opening import open_letters
from headway.fading import Faded, left_after
from headway.network import Output, thaw
from headway.network.qos import Graph
from headway.network.schema import Schema
from headway.scheduling.schedule import Schedule
from headway.scheduling.snapshot import OutputReadings
from headway.trains import Train, is_constant

Counts = npt.NDArray[np.int64]
_FOLD_AFTER = 64


class Delivered(NamedTuple):
    """What an output has had so far."""

    tuples: int
    latency: float
    """Latencies summed, in seconds."""
    utility: float
    """Utilities by latency, summed; 1 each without a graph."""
    late: int
    """Tuples that came outside of the good zone."""


class LatencyHistogram:
    """Latencies in buckets, 64 to each doubling: quantiles within 1 per cent, in constant memory.

    A bucket is the leading bits of the number itself, exponent and six more: no logarithm needs to be taken.
    """

    _SHIFT = 46  # of a double's 52 bits of fraction, 6 remain
    _LEAST = 2.0**-20
    _FIRST = int(np.array(_LEAST).view(np.int64)) >> _SHIFT
    _BUCKETS = 64 * 45

    def __init__(self) -> None:
        """Start empty."""
        self._counts: Counts = np.zeros(self._BUCKETS, np.int64)
        self.count = 0
        self.total = 0.0
        self.largest = 0.0

    def add(self, seconds: npt.NDArray[np.float64], times: int = 1) -> None:
        """Add latencies, each so many times."""
        self._counts += times * np.bincount(self._places(seconds), minlength=self._BUCKETS)
        self.count += times * len(seconds)
        self.total += times * float(seconds.sum())
        self.largest = max(self.largest, float(seconds.max()))

    def add_each(self, seconds: npt.NDArray[np.float64], times: Counts) -> None:
        """Add latencies, each as often as its own number says."""
        np.add.at(self._counts, self._places(seconds), times)
        self.count += int(times.sum())
        self.total += float((seconds * times).sum())
        self.largest = max(self.largest, float(seconds.max()))

    def _places(self, seconds: npt.NDArray[np.float64]) -> Counts:
        places = (np.maximum(seconds, self._LEAST).view(np.int64) >> self._SHIFT) - self._FIRST
        found: Counts = np.minimum(places, self._BUCKETS - 1)
        return found

    def quantile(self, share: float) -> float | None:
        """Return the latency below which this share lies, or None without any."""
        if self.count == 0:
            return None
        place = int(np.searchsorted(np.cumsum(self._counts), share * self.count))
        edges = np.array([place, place + 1]) + self._FIRST
        low, high = (edges << self._SHIFT).view(np.float64).tolist()
        return min(float(low + high) / 2, self.largest)

    @property
    def mean(self) -> float | None:
        """The mean latency, or None without any."""
        return self.total / self.count if self.count else None


class Delivery:
    """One output: hands tuples to its sink and measures when they arrive there."""

    def __init__(
        self, output: Output, schema: Schema, writer: Writer, clock: Clock, half_life: float = HALF_LIFE
    ) -> None:
        """Deliver an output's tuples to a writer; after `half_life` seconds one counts half in the recent utility."""
        self.name = output.name
        self._graph = output.qos.latency
        self._good = float("inf") if self._graph is None else self._graph.good_until
        self._late = 0
        value = output.qos.value
        self._value = None if value is None else (schema.index(value.field), value.graph)
        self._worth = 0.0  # utilities by value, summed
        self._valued = 0
        self.watch: Callable[[npt.NDArray[np.float64]], None] | None = None
        """Who wants to see the values that the value graph is about."""
        self._schema = schema.to_arrow()
        self._exporters = [exporter(type_) for type_ in schema.types]
        self._writer = writer
        self._discarded = isinstance(writer, DiscardSink)  # then there is nobody to make batches for
        self._clock = clock
        self._lock = threading.Lock()
        self._latencies = LatencyHistogram()
        self._measured: list[npt.NDArray[np.int64]] = []
        self._alike: list[tuple[int, int]] = []  # latencies of trains whose tuples arrived together, with their numbers
        self.tuples = 0
        self._utility = 0.0
        self._half_life = half_life * SECOND
        self._recent = Faded(2)  # tuples and utility
        self._faded = clock.now()
        self.arrived: Callable[[int], int | None] | None = None
        """Who knows when a number arrived, where somebody wants to know how long results were held."""
        self.held: npt.NDArray[np.float64] = np.zeros(1)
        """Seconds by which the latest result is older than what caused it; 0 before the first one."""

    def deliver(self, train: Train, moments: Counts | None = None) -> None:
        """Hand a train to the sink. May block, which holds the run back.

        `moments` says when each tuple left, where it is not now for all of them.
        """
        count = len(train)
        if count == 0:
            return
        batch = None
        if not self._discarded:
            arrays = [export(column) for export, column in zip(self._exporters, train.columns, strict=True)]
            batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        with self._lock:
            if batch is not None:
                self._writer.write(batch)
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

    def count(self, stamps: Counts, counts: Counts) -> None:
        """Note that so many tuples of these timestamps have left, without handing them to anybody."""
        if len(stamps) == 0:
            return
        with self._lock:
            self.tuples += int(counts.sum())
            self._note(np.maximum(self._clock.now() - stamps, 0) / SECOND, counts)

    def _note_held(self, train: Train, arrived: Callable[[int], int | None]) -> None:
        """Note by how much the latest result is older than what caused it: however trains are cut, that is the same."""
        moment = arrived(int(train.numbers[-1]))
        if moment is not None:
            self.held[0] = max(0, moment - int(train.stamps[-1])) / SECOND

    def _note_values(self, column: Column, graph: Graph) -> None:
        """Take the values of a train into account; NULL is worth nothing."""
        values = as_floats(column)
        utilities = np.nan_to_num(graph.values(values))
        self._worth += float(utilities.sum())
        self._valued += len(utilities)
        if self.watch is not None:
            self.watch(values)

    def _fold(self) -> None:
        """Take the latencies of many trains into account at once: short trains then cost little."""
        if self._measured:
            measured, self._measured = self._measured, []
            seconds = np.maximum(np.concatenate(measured), 0) / SECOND
            self._latencies.add(seconds)
            if self._graph is not None:
                self._late += int(np.count_nonzero(seconds > self._good))
                self._add_utility(len(seconds), float(self._graph.values(seconds).sum()))
        if self._alike:
            alike, self._alike = np.array(self._alike, np.int64), []
            self._note(np.maximum(alike[:, 0], 0) / SECOND, alike[:, 1])

    def _note(self, seconds: npt.NDArray[np.float64], times: Counts) -> None:
        """Take latencies into account, each so many times."""
        self._latencies.add_each(seconds, times)
        if self._graph is not None:
            self._late += int(times[seconds > self._good].sum())
            self._add_utility(int(times.sum()), float((self._graph.values(seconds) * times).sum()))

    def _add_utility(self, tuples: int, utility: float) -> None:
        now = self._clock.now()
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
        """Return what the output has had so far."""
        with self._lock:
            self._fold()
            count = self._latencies.count
            utility = float(count) if self._graph is None else self._utility
            return Delivered(count, self._latencies.total, utility, self._late)

    @property
    def value_utility(self) -> float | None:
        """The mean utility of the tuples delivered, by their values; None without a graph or without tuples."""
        return self._worth / self._valued if self._valued else None

    @property
    def utility(self) -> float | None:
        """The mean utility of the tuples delivered, by their latency; 1 without a graph, None without tuples."""
        count = self.latencies.count
        if count == 0:
            return None
        return 1.0 if self._graph is None else self._utility / count

    @property
    def recent(self) -> float:
        """The mean utility of what was delivered lately; 1 without a graph or without tuples."""
        with self._lock:
            self._fold()
            tuples, utility = self._recent.sums.tolist()
        return utility / tuples if tuples > 0 else 1.0

    def prepare(self) -> None:
        """Do all that completing the output takes, but for showing it."""
        prepare(self._writer)

    def close(self) -> None:
        """Complete the output."""
        self._writer.close()

    def abort(self) -> None:
        """Give the output up."""
        self._writer.abort()

    def summary(self) -> dict[str, Any]:
        """Return what the summary says of this output; latencies in seconds."""
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


class Outlets:
    """Deliveries by output, and the dead letters."""

    def __init__(
        self,
        checked: CheckedNetwork,
        settings: RunSettings,
        clock: Clock,
        stack: contextlib.ExitStack,
        stopping: Stopping | None = None,
    ) -> None:
        """Open all sinks; when `stack` ends before `complete`, they are given up."""
        self._stopping = stopping or Stopping()
        self._checked = checked
        self._settings = settings
        self._tables: dict[str, TableSink] = {}
        self.deliveries: dict[str, Delivery] = {}
        self._completed = False
        self._letter_sink: Writer | None = None
        stack.callback(self._abort)
        with self._stopping.held():  # a file that is made is known to whoever gives it up
            for output in checked.network.outputs:
                schema = checked.output_schema(output.name)
                writer = self._open(output.name, schema, thaw(output.sink))
                self.deliveries[output.name] = Delivery(output, schema, writer, clock, settings.half_life)
            self.letters, self._letter_sink = open_letters(settings)

    def _open(self, name: str, schema: Schema, sink: object) -> Any:
        network = self._checked.network
        if name in self._settings.outputs:
            return open_sink(name, schema, self._settings.outputs[name], trust=network.trust.by_operator())
        if sink is not None:
            return open_sink(name, schema, sink, network.folder, network.trust)
        self._tables[name] = TableSink(schema)
        return self._tables[name]

    def complete(self) -> dict[str, pa.Table]:
        """Complete all outputs, or none; return the tables of those that no sink was named for.

        What takes long, and what may fail, comes first, and can be given up. Files then get their names all together.
        """
        for delivery in self.deliveries.values():
            delivery.prepare()
        if self._letter_sink is not None:
            prepare(self._letter_sink)
        self._stopping.shield()
        for delivery in self.deliveries.values():
            delivery.close()
        if self._letter_sink is not None:
            self._letter_sink.close()
        self._completed = True
        return {name: sink.table for name, sink in self._tables.items()}

    def _abort(self) -> None:
        if not self._completed:
            for delivery in self.deliveries.values():
                delivery.abort()
            if self._letter_sink is not None:
                self._letter_sink.abort()


def know_arrivals(deliveries: Iterable[Delivery], times: ArrivalTimes, schedule: Schedule) -> Callable[[], Floats]:
    """Let outputs measure how long results are held, if trains wait while results stay good; return who tells it."""
    if not schedule.waits:
        return lambda: np.zeros(0)
    outlets = list(deliveries)
    held: Floats = np.zeros(len(outlets))
    for at, one in enumerate(outlets):
        one.arrived, one.held = times.moment, held[at : at + 1]
    return held.copy


def output_readings(deliveries: Sequence[Delivery]) -> OutputReadings:
    """Return how outputs do, as policies read it."""
    return OutputReadings(
        np.array([one.tuples for one in deliveries], np.int64),
        np.array([one.latencies.mean or 0.0 for one in deliveries]),
        np.array([1.0 if one.utility is None else one.utility for one in deliveries]),
        np.array([one.recent for one in deliveries]),
    )
