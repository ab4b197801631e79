"""Delivery: results of micro-batches reach the outputs once, even if the driver dies in between.

With a state directory, the results of each micro-batch are first written to files under its number, and count once they
are in the journal. Other files, left by a killed process, are deleted, and the replay of its micro-batch writes them
again. The user's files are assembled from these. Functions and terminals get results immediately: after a crash, those
of the last micro-batch may be repeated.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from headway.catalog import HALF_LIFE, Statistics
from headway.checking import CheckedNetwork
from headway.clock import Clock, stopwatch
from headway.connectors.memory import CallbackSink, DiscardSink
from headway.connectors.protocol import BatchWriter
from headway.connectors.registry import can_roll
from headway.connectors.rolling import RollingSink
from headway.engines.opening import Destination, Outlet, Outlets
from headway.engines.spark.driver.journal import Record
from headway.engines.spark.driver.queries import RunningUnit
from headway.engines.spark.driver.state import State
from headway.engines.spark.wire.messages import LETTERS, READINGS, Row, merge_rows, receive, unpack_counts
from headway.errors import RunError
from headway.network.schema import Schema
from headway.storage.checked import RESTORE, intact, read_table, seal, unseal, write_table
from headway.storage.filesystems import Place
from headway.storage.segments import quote_name
from headway.trains import Train


class Collector:
    """Collects the results of micro-batches. Written by Spark's callback threads, only read by others."""

    def __init__(
        self, outlets: Outlets[OutputResults], state: State, fading: tuple[float, float], sieves: Callable[[], bool]
    ) -> None:
        """Deliver to these outputs; `sieves` returns whether drop boxes have been adjusted."""
        self._results, self._letters = outlets.outlets, outlets.letters
        self._state = state
        self._sieves = sieves
        self._fading = fading
        self._lock = threading.Lock()
        self._deadlines: dict[tuple[str, int], int | None] = {}
        numbers = {box.name: at for at, box in enumerate(state.program.checked.order)}
        self._measured = numbers, Statistics(len(numbers), *fading)
        self.ignored: Counter[str] = Counter()
        self.carried: dict[str, tuple[int, int]] = {}
        """By arc of a box with several ports: the tuples that the box took, and those that went to the arc."""
        self.spent = 0
        """Nanoseconds spent delivering."""
        self.sifted: Callable[[str, str, int, int, str], None] = lambda *what: None
        """Called with the effect of drop boxes: unit, source, tuples seen, tuples dropped, reason."""
        self.export: Callable[[str, Train | None, int], None] = lambda *what: None
        """Called with what a micro-batch has made on an arc that is exported, and the arrival number up to which."""

    @property
    def statistics(self) -> Statistics:
        """What is known of the boxes."""
        return self._measured[1]

    def exchange(self, checked: CheckedNetwork, outlets: Outlets[OutputResults], going_on: Collection[str]) -> None:
        """Deliver to the outputs of another network, in which the boxes that go on keep their statistics."""
        before, old = self._measured
        numbers = {box.name: at for at, box in enumerate(checked.order)}
        statistics = Statistics(len(numbers), *self._fading)
        statistics.take_over(old, [(at, before[name]) for name, at in numbers.items() if name in going_on])
        self._results = outlets.outlets
        self._measured = numbers, statistics

    def forget_unit(self, unit: str) -> None:
        """Forget the deadlines of a unit that has ended."""
        with self._lock:
            self._deadlines = {key: moment for key, moment in self._deadlines.items() if key[0] != unit}

    def take(self, unit: RunningUnit, rows: Sequence[Row], trains: Mapping[int, Train], batch: int) -> None:
        """Handle one micro-batch, as rows or as trains by lane; it may be a replay of one that was delivered before."""
        work = unit.work
        if batch <= unit.taken:  # the query was lost after the delivery and before its commit
            self._record(unit, batch, _states(receive(row, work.exchange) for row in rows if row.lane == READINGS))
            return
        begun = stopwatch()
        by_lane: dict[int, list[Row]] = {}
        letters: list[Any] = []
        states: dict[int, int] = {}
        for sent in rows:
            row = receive(sent, work.exchange)
            if row.lane == READINGS:
                self._note(unit, row)
                states |= _states([row])
            elif row.lane == LETTERS:
                found = [tuple(one) for one in json.loads(bytes(row.train))]
                letters += [one for one in found if one[0] in unit.cut.owned]
            elif work.lanes[row.lane].counted:
                for one in self._readers(unit, row.lane):
                    one.delivery.count(*unpack_counts(row.train))
            else:
                by_lane.setdefault(row.lane, []).append(row)
        named = f"{self._state.token}-{unit.id}"
        if letters and self._state.keep_letters(f"{named}-{batch:010d}", letters):
            self._letters.add(letters)
        kept: dict[str, tuple[str, int, int]] = {}
        arcs = unit.program.checked.arcs
        merged = ((number, merge_rows(parts, arcs[work.lanes[number].arc])) for number, parts in by_lane.items())
        exported: dict[str, Train | None] = dict.fromkeys(unit.cut.exports)
        for number, train in chain(merged, trains.items()):
            if work.lanes[number].arc in exported:
                exported[work.lanes[number].arc] = train
            for one in self._readers(unit, number):
                file = one.deliver(train, named, batch)
                if file is not None:
                    kept[one.name] = file
        for arc, made in exported.items():
            self.export(arc, made, unit.covering[1])
        self._record(unit, batch, states, kept, f"{named}-{batch:010d}" if letters else None)
        unit.taken = batch
        unit.batches += 1
        unit.tuples += unit.granted
        self.spent += stopwatch() - begun

    def _readers(self, unit: RunningUnit, lane: int) -> list[OutputResults]:
        arc = unit.work.lanes[lane].arc
        outputs = unit.program.checked.outputs
        return [self._results[name] for name in unit.cut.outputs if outputs[name] == arc]

    def _record(
        self,
        unit: RunningUnit,
        batch: int,
        states: Mapping[int, int],
        kept: Mapping[str, tuple[str, int, int]] | None = None,
        letters: str | None = None,
    ) -> None:
        """Write the journal record of a micro-batch, before Spark commits it; a replay updates the states."""
        journal = self._state.journal(unit.id)
        after, upto = unit.covering
        before, known = journal.at(after), journal.of(batch)
        states = {**(before.states if before is not None else {}), **states}
        if known is not None:  # an output added since gets its results from the replay
            again = replace(known, states=states, results={**(kept or {}), **known.results})
            if again != known:
                journal.write(again)
            return
        offset = self._state.offset_sum(unit.id, batch)
        journal.write(Record(batch, after, upto, offset, kept or {}, letters, states, self._sieves()))

    def _note(self, unit: RunningUnit, row: Row) -> None:
        found = json.loads(bytes(row.train))
        numbers, statistics = self._measured
        for name, (calls, tuples_in, tuples_out, spent, size, ignored) in found["boxes"].items():
            unit.worked += spent
            if name in unit.cut.owned:
                statistics.report(numbers[name], tuples_in, tuples_out, spent, size if calls else -1)
                self.ignored[name] += ignored
        for arc, (taken, carried) in found.get("arcs", {}).items():
            with self._lock:  # several units may run the box
                before = self.carried.get(arc, (0, 0))
                self.carried[arc] = before[0] + taken, before[1] + carried
        for source, (seen, dropped, reason) in found.get("sifted", {}).items():
            unit.dropped += dropped
            self.sifted(unit.id, source, seen, dropped, reason)
        if "deadline" in found:
            with self._lock:
                self._deadlines[unit.id, row.shard] = found["deadline"]

    @property
    def deadline(self) -> int | None:
        """The moment at which the next window times out, or None."""
        with self._lock:
            return min((moment for moment in self._deadlines.values() if moment is not None), default=None)

    def forget_deadlines(self) -> None:
        """Clear all deadlines: a tick is on its way to all boxes, which will report their next ones."""
        with self._lock:
            self._deadlines.clear()


def _states(rows: Iterable[Row]) -> dict[int, int]:
    """Return by shard the checksum of its new state, where it has one."""
    found = {row.shard: json.loads(bytes(row.train)).get("state") for row in rows}
    return {shard: crc for shard, crc in found.items() if crc is not None}


_OWN = re.compile(r"-\d+[sf]-\d{10}\.[0-9a-f]{8}\.arrow(?:\.tmp)?$")
"""Names of the files that may be deleted: those written by this module."""


class OutputResults(Outlet):
    """The results of one output: delivered once, also if the driver dies in between."""

    def __init__(
        self,
        to: Destination,
        clock: Clock,
        half_life: float = HALF_LIFE,
        place: Place | None = None,
        delivered: Sequence[str] = (),
        listed: Collection[str] | None = None,
        clean: bool = True,
        heard: bool = False,
    ) -> None:
        """Deliver to a destination, and keep results at `place` if given.

        `delivered` are the result files delivered by earlier processes, in order. Files in their folder that are not
        `listed` (by default: not delivered) count for nothing, and are deleted; not so without `clean`, while a run
        goes on. If it may be `heard`, all results are delivered, also where the sink discards them.
        """
        self.name = to.output.name
        self._place, self._heard = place, heard
        self._folder = f"results/{quote_name(self.name)}"
        rolls = to.output.roll is not None and can_roll(to.what)
        self._later = place is not None and is_file(to.what) and not rolls
        self._clock = clock
        self._named: dict[str, str] = {name.partition(".")[0]: name for name in delivered}
        if place is not None:
            place.make([self._folder], False)
            counted = {f"{self._folder}/{name}" for name in (delivered if listed is None else listed)}
        if place is not None and clean:
            place.delete([name for name in place.files(self._folder) if name not in counted and _OWN.search(name)])
        if self._later:
            to.open(clock).abort()  # fail early if it cannot be written
            to = to._replace(writer=None)
        super().__init__(to, clock, half_life, DiscardSink() if self._later else None)
        if place is not None and isinstance(self.writer, RollingSink):
            self.writer.resume(PartsLedger(place, f"{self._folder}/parts.json"))
        # Results of earlier processes: memory starts empty, so it is filled again; other sinks already have them.
        for batch in self._stored():
            self.delivery.tuples += batch.num_rows
            if not isinstance(self.writer, DiscardSink | CallbackSink) and not self._streams:
                self.writer.write(batch)

    @property
    def _streams(self) -> bool:
        return str(self.to.what) == "-" or isinstance(self.writer, BatchWriter)

    @property
    def counted(self) -> bool:
        """Whether the tuples are discarded, so that only their number is needed."""
        return not self._heard and self._place is None and isinstance(self.writer, DiscardSink)

    def deliver(self, train: Train, unit: str, batch: int) -> tuple[str, int, int] | None:
        """Deliver the results of one micro-batch, which may have been delivered before.

        Returns the new file in which they are kept, with its bytes and rows, or None.
        """
        name = f"{unit}-{batch:010d}"
        known = name in self._named
        kept = None
        if self._place is not None and not known and len(train):
            table = pa.Table.from_batches([train.to_batch(self.to.schema.to_arrow())])
            file, size = write_table(self._place, f"{self._folder}/{name}.arrow", table, sync=True)
            self._named[name] = file.rpartition("/")[2]
            kept = self._named[name], size, len(train)
        if isinstance(self.writer, BatchWriter):
            self.writer.begin(unit, batch)
        if known and not self._streams and not isinstance(self.writer, CallbackSink):
            return kept
        before = self.delivery.tuples
        self.delivery.deliver(train)
        if known:
            self.delivery.tuples = before
        return kept

    def _stored(self) -> Iterator[pa.RecordBatch]:
        for name in self._named.values():
            assert self._place is not None
            table, schema = read_table(self._place.name(f"{self._folder}/{name}")), self.to.schema.to_arrow()
            if table.schema.names != schema.names or table.schema.types != schema.types:
                raise RunError(
                    f"the state cannot go on: output '{self.name}' has the columns {self.to.schema} now, and the "
                    f"results so far have {Schema.from_arrow(table.schema)}; give the output another name, or another "
                    "--state"
                )
            for batch in table.to_batches():
                yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    def prepare(self) -> None:
        """Do everything needed to complete the output, except making it visible."""
        if self._later:
            self.writer = self.to.open(self._clock)
            for batch in self._stored():
                self.writer.write(batch)
        super().prepare()


class PartsLedger:
    """How many tuples of an output are in complete parts, kept with its results: none is in two parts, or in none.

    The next part is noted before it gets its name. Whether it has it tells if it counts.
    """

    def __init__(self, place: Place, name: str) -> None:
        self._place, self._name = place, name
        self._upto = 0
        if name in place.files(name.rpartition("/")[0]):
            with intact(place.name(name), RESTORE):
                found = unseal(place.read(name))
            self._upto = found["upto"]
            if "next" in found and Path(found["next"]).exists():
                self._upto = found["then"]

    def upto(self) -> int:
        """Return the tuples in the parts that are complete."""
        return self._upto

    def next(self, path: Path, upto: int) -> None:
        """Note that the parts have so many tuples as soon as there is a file with this path."""
        self._write({"upto": self._upto, "next": str(path.absolute()), "then": upto})

    def done(self, upto: int) -> None:
        """Note that the parts have so many tuples."""
        self._upto = upto
        self._write({"upto": upto})

    def _write(self, values: Mapping[str, Any]) -> None:
        self._place.write(self._name, seal(values), sync=True)


def is_file(what: object) -> bool:
    """Return whether an output goes to a single file, which appears only when it is complete."""
    if isinstance(what, Mapping):
        ((kind, settings),) = what.items() if len(what) == 1 else ((None, None),)
        return kind in ("csv", "jsonl", "parquet", "arrow") and str(settings) != "-" and not str(settings).endswith("/")
    return isinstance(what, str | Path) and str(what) != "-" and not str(what).endswith("/")
