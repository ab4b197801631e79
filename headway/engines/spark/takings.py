"""What micro-batches bring back: results for the outputs, dead letters, and what boxes report of themselves."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headway.catalog import HALF_LIFE, REMEMBER, Statistics
from headway.checking import CheckedNetwork
from headway.clock import stopwatch
from headway.engines.letters import DeadLetters
from headway.engines.spark.exchange import receive
from headway.engines.spark.journal import Record
from headway.engines.spark.packing import unpack_counts
from headway.engines.spark.results import Result
from headway.engines.spark.rows import Row
from headway.engines.spark.state import State
from headway.engines.spark.unitcode import merge_rows
from headway.engines.spark.units import RunningUnit
from headway.engines.spark.wire import LETTERS, READINGS
from headway.engines.spark.work import Lane, Work
from headway.trains import Train


class Takings:
    """Takes rows from Spark's callback threads; everybody else only reads."""

    def __init__(
        self,
        checked: CheckedNetwork,
        results: Mapping[str, Result],
        letters: DeadLetters,
        state: State,
        fading: tuple[float, float] = (REMEMBER, HALF_LIFE),
    ) -> None:
        """Deliver to these results."""
        self._checked = checked
        self._results = results
        self._letters = letters
        self._state = state
        self._numbers = {box.name: at for at, box in enumerate(checked.order)}
        self._lock = threading.Lock()
        self._deadlines: dict[tuple[int, int], int | None] = {}
        self.statistics = Statistics(len(self._numbers), *fading)
        self.ignored: Counter[str] = Counter()
        self.spent = 0
        """Nanoseconds spent delivering."""
        self.sifted: Callable[[int, str, int, int, str], None] | None = None
        """Who counts what drop boxes did: unit, source, tuples seen, tuples dropped, reason."""
        self.sieves: Callable[[], bool] = lambda: False
        """Who says whether drop boxes have been adjusted."""

    def take(self, unit: RunningUnit, work: Work, rows: Sequence[Row], trains: Mapping[int, Train], batch: int) -> None:
        """Take one micro-batch, as rows or as trains by lane; it may be a replay of one that was delivered before."""
        if batch <= unit.taken:  # the query was lost between this and its commit
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
                letters += [tuple(one) for one in json.loads(bytes(row.train))]
            else:
                by_lane.setdefault(row.lane, []).append(row)
        named = f"{self._state.token}-{self._state.unit_id(unit.cut)}"
        if letters and self._state.keep_letters(f"{named}-{batch:010d}", letters):
            self._letters.add(letters)
        kept: dict[str, tuple[str, int, int]] = {}
        for number, parts in by_lane.items():
            lane = work.lanes[number]
            outputs = self._outputs(unit, lane)
            if lane.counted:
                for part in parts:
                    for name in outputs:
                        self._results[name].delivery.count(*unpack_counts(part.train))
                continue
            kept |= self._deliver(outputs, merge_rows(parts, self._checked.arcs[lane.arc]), named, batch)
        for number, train in trains.items():
            lane = work.lanes[number]
            outputs = self._outputs(unit, lane)
            kept |= self._deliver(outputs, train, named, batch)
        self._record(unit, batch, states, kept, f"{named}-{batch:010d}" if letters else None)
        unit.taken = batch
        unit.batches += 1
        unit.tuples += unit.granted
        self.spent += stopwatch() - begun

    def _outputs(self, unit: RunningUnit, lane: Lane) -> list[str]:
        return [name for name in unit.cut.outputs if self._checked.outputs[name] == lane.arc]

    def _deliver(self, outputs: Sequence[str], train: Train, unit: str, batch: int) -> dict[str, tuple[str, int, int]]:
        kept = {name: self._results[name].deliver(train, unit, batch) for name in outputs}
        return {name: one for name, one in kept.items() if one is not None}

    def _record(
        self,
        unit: RunningUnit,
        batch: int,
        states: Mapping[int, int],
        kept: Mapping[str, tuple[str, int, int]] | None = None,
        letters: str | None = None,
    ) -> None:
        """Write down what a micro-batch did, before Spark commits it; of a replay its states count."""
        journal = self._state.journal(unit.cut)
        after, upto = unit.covering
        before, known = journal.at(after), journal.of(batch)
        states = {**(before.states if before is not None else {}), **states}
        if known is not None:  # an output that is new gets its results of a replay
            again = replace(known, states=states, results={**(kept or {}), **known.results})
            if again != known:
                journal.write(again)
            return
        offset = self._state.offset_sum(unit.cut, batch)
        journal.write(Record(batch, after, upto, offset, kept or {}, letters, states, self.sieves()))

    def _note(self, unit: RunningUnit, row: Row) -> None:
        found = json.loads(bytes(row.train))
        for name, (calls, tuples_in, tuples_out, spent, size, ignored) in found["boxes"].items():
            self.statistics.report(self._numbers[name], tuples_in, tuples_out, spent, size if calls else -1)
            unit.worked += spent
            self.ignored[name] += ignored
        for source, (seen, dropped, reason) in found.get("sifted", {}).items():
            unit.dropped += dropped
            if self.sifted is not None:
                self.sifted(unit.number, source, seen, dropped, reason)
        if "deadline" in found:
            with self._lock:
                self._deadlines[unit.number, row.shard] = found["deadline"]

    @property
    def deadline(self) -> int | None:
        """The moment at which the next window times out, or None."""
        with self._lock:
            return min((moment for moment in self._deadlines.values() if moment is not None), default=None)

    def forget_deadlines(self) -> None:
        """Wait for news: a tick is on its way to all boxes, and they will say what is next."""
        with self._lock:
            self._deadlines.clear()


def _states(rows: Iterable[Row]) -> dict[int, int]:
    """Return by shard the checksum of its new state, of those that have one."""
    found = {row.shard: json.loads(bytes(row.train)).get("state") for row in rows}
    return {shard: crc for shard, crc in found.items() if crc is not None}
