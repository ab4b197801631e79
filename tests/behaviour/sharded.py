"""The Spark engine's semantics without Spark: an engine for tests, fast enough for property tests.

It cuts the network, keeps the arrivals in a real log, and drives the same reader and unit code as the executors, as
Spark would: micro-batches of random size for random units, each read in random tasks, rows that reach a shard in any
order, tasks that are tried twice, and a shard's state written to bytes after every micro-batch. What it does at random
follows from the network and the settings, so that a failure repeats itself.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from headway.checking import CheckedNetwork
from headway.clock import SECOND, Clock, WallClock
from headway.connectors import open_source
from headway.connectors.protocol import Malformed, Reader
from headway.engines.dead_letters import DeadLetters
from headway.engines.ingest import Feed, Ingest
from headway.engines.opening import Destination
from headway.engines.runs import RunResult, RunSettings, register_engine
from headway.engines.spark.driver.cut import cut, make_work
from headway.engines.spark.driver.delivery import OutputResults
from headway.engines.spark.driver.reading import Arrivals, split_tasks
from headway.engines.spark.driver.relays import Inputs
from headway.engines.spark.wire.messages import LETTERS, READINGS, CutUnit, Row, Work, merge_rows, unpack_counts
from headway.engines.spark.worker.sharding import shard_keys
from headway.engines.spark.worker.source import LogReader, Pickled, Task
from headway.engines.spark.worker.tasks import unit_code
from headway.network import Table, thaw
from headway.program import compile_program
from headway.storage.checked import write_table
from headway.storage.filesystems import locate
from headway.storage.log import Log
from headway.tables import load_table
from headway.trains import NOTHING, Train

_MANY = 8
"""Micro-batches of random size that a unit gets; what is left after them comes in long ones, so that runs are quick."""
_runs = itertools.count()


class ShardedEngine:
    """Runs networks as the Spark engine does, in this process."""

    def run(self, checked: CheckedNetwork, settings: RunSettings) -> RunResult:
        """Run until all inputs have ended."""
        with contextlib.ExitStack() as stack:
            return _Run(checked, settings, stack).go()


class _Unit:
    """A query: how far it is, and the states of its shards."""

    def __init__(self, cut_unit: CutUnit, work: Work) -> None:
        self.cut = cut_unit
        self.work = work
        self.reader = LogReader(Pickled(work.key, work), (0, "", 0), NOTHING)
        self.position = NOTHING
        self.batches = 0
        self.states: dict[int, bytes] = {}


class _Run:
    def __init__(self, checked: CheckedNetwork, settings: RunSettings, stack: contextlib.ExitStack) -> None:
        self.checked = checked
        self.settings = settings
        self.stack = stack
        network = checked.network
        self.chance = random.Random(f"{network} {settings.schedule} {settings.workers}")
        self.clock: Clock = settings.clock or WallClock()
        self.folder = stack.enter_context(tempfile.TemporaryDirectory())
        self.log = Log(
            f"{self.folder}/log", {source.name: source.schema for source in network.sources}, sync=False, keep_seconds=0
        )
        self.arrivals = Arrivals(self.log, self.clock)
        self.results = {
            output.name: OutputResults(
                Destination(
                    output,
                    checked.output_schema(output.name),
                    settings.outputs.get(output.name, thaw(output.sink)),
                    None if output.name in settings.outputs else network.folder,
                ),
                self.clock,
            )
            for output in network.outputs
        }
        self.letters = DeadLetters(settings.strict, None)
        self.ignored: Counter[str] = Counter()
        self.deadlines: dict[tuple[str, int], int] = {}
        self.units = self.cut()
        feeds = [
            Feed(
                source.name,
                self.open(source.name),
                self.arrivals.feeder(source.name),
                lambda number: None,
                Train.empty(source.schema),
            )
            for source in network.sources
        ]
        self.feeds = feeds
        self.ingest = Ingest(feeds, self.clock, self.chance.choice((7, 65_536, 65_536)), self.refuse)
        for feed in feeds:
            stack.callback(feed.reader.close)
        stack.callback(self.ingest.stop)

    def open(self, name: str) -> Reader:
        source = self.checked.network.source(name)
        given = name in self.settings.inputs
        return open_source(
            name,
            source.schema,
            self.settings.inputs[name] if given else thaw(source.connector),
            rate=self.settings.rates.get(name),
            strict=self.settings.strict,
            base=None if given else self.checked.network.folder,
        )

    def cut(self) -> list[_Unit]:
        asked = {
            "units": self.chance.choice(("qos", "one", "output")),
            "spread": self.chance.choice(("auto", "auto", "none")),
            **self.settings.cut,
        }
        shards = asked.pop("shards", self.chance.randint(1, 4))
        arcs = self.checked.outputs
        discarded = frozenset(
            arc for arc in arcs.values() if all(self.results[name].counted for name, one in arcs.items() if one == arc)
        )
        tables = self.write_tables()
        program = compile_program(self.checked)
        return [
            _Unit(unit, make_work(program, unit, shards, discarded, tables, f"sharded-{next(_runs)}"))
            for unit in cut(program, shards, **asked).units
        ]

    def write_tables(self) -> dict[str, str]:
        network = self.checked.network
        place = locate(self.folder)
        refs = sorted({item.ref for box in network.boxes for item in box.inputs if isinstance(item, Table)})
        found = {}
        for at, ref in enumerate(refs):
            file, _ = write_table(place, f"{at}.arrow", load_table(ref, self.settings.tables, network.folder))
            found[ref] = place.name(file)
        return found

    def go(self) -> RunResult:
        while not self.finished():
            deadline = min(self.deadlines.values(), default=None)
            if deadline is not None and deadline <= self.clock.now() and not self.ingest.ended:
                self.deadlines.clear()
                self.ingest.tick()
            self.ingest.pull(True)
            if self.ingest.ended and self.log.end is None and not self.arrivals.marked:
                self.ingest.end()
            self.seal()
            ready = [unit for unit in self.units if unit.position < self.log.issued]
            if ready:
                self.step(self.chance.choice(ready))
            elif not self.ingest.more_in_turn and not self.finished():
                self.wait(deadline)
        for result in self.results.values():
            result.writer.close()
        tables = {name: one.table for name, one in self.results.items() if one.table is not None}
        return RunResult(tables, self.summary(), self.letters.table())

    def finished(self) -> bool:
        end = self.log.end
        return end is not None and all(unit.position >= end for unit in self.units)

    def seal(self) -> None:
        positions = {feed.name: feed.tuples for feed in self.feeds}
        self.arrivals.seal(self.ingest.issued, positions, self.ingest.reached)

    def refuse(self, rows: Sequence[Malformed]) -> None:
        self.arrivals.refuse(rows)
        self.letters.refuse(rows)

    def wait(self, deadline: int | None) -> None:
        """Sleep until a tuple is due, a window times out, or a live source speaks."""
        moments = [moment for moment in (self.ingest.next_due(), deadline) if moment is not None]
        pause = min(moments, default=self.clock.now() + SECOND // 20) - self.clock.now()
        if pause <= 0 or self.ingest.ended:
            return
        if isinstance(self.clock, WallClock):
            self.ingest.wake.wait(pause / SECOND)
            self.ingest.wake.clear()
        else:
            self.clock.sleep(pause)

    def step(self, unit: _Unit) -> None:
        """Run a unit's next micro-batch, as long as it likes to be."""
        most = self.settings.schedule.most
        unit.batches += 1
        size = self.chance.choice((1, 2, 3, 7, most)) if unit.batches <= _MANY else 1_000_000
        after, upto = (
            unit.position,
            self.log.cut(unit.cut.sources, unit.position, min(size, most) if size < 99 else size),
        )
        if upto <= after:  # only others' tuples and marks lie ahead
            upto = self.log.issued
        tasks = list(self.tasks(unit, after, upto))
        rows = [row for task in tasks for row in self.read(unit, task)]
        if unit.cut.stateful:
            rows = [row for key in shard_keys(unit.work.shards) for row in self.shard(unit, key, rows)]
        self.chance.shuffle(rows)
        self.take(unit, rows)
        unit.position = upto
        self.log.drop(min(one.position for one in self.units), self.clock.now())

    def tasks(self, unit: _Unit, after: int, upto: int) -> Iterator[Task]:
        """Return the tasks of a micro-batch, cut at random numbers."""
        ticks, end = self.log.marks(after, upto)
        marks = [upto, ticks, end is not None, []]
        within = range(after + 1, upto)
        bounds = sorted(self.chance.sample(within, min(len(within), self.chance.randint(0, 3))))
        number = itertools.count()
        for low, high in pairwise([after, *bounds, upto]):
            for slices, _, mine, sieves in split_tasks(Inputs(self.log, unit.cut.sources), low, high, 2, marks):
                at = next(number)
                plain = json.loads(json.dumps([slices, self.log.moment_at(upto), mine if at == 0 else None, sieves]))
                yield Task(at, *plain)

    def read(self, unit: _Unit, task: Task) -> Iterator[Row]:
        """Return what the front makes of a task."""
        for batch in unit.reader.read(task):
            columns = [batch.column(name).to_pylist() for name in ("shard", "lane", "first", "train")]
            yield from (Row(*fields) for fields in zip(*columns, strict=True))

    def shard(self, unit: _Unit, key: int, rows: list[Row]) -> list[Row]:
        """Return what a shard makes of its rows, which come in any order; sometimes at the second try."""
        mine = [row for row in rows if row.shard == key]
        code = unit_code(Pickled(unit.work.key, unit.work))
        for _ in range(self.chance.choice((1, 1, 1, 2))):
            self.chance.shuffle(mine)
            out, state = code.shard(key, mine, unit.states.get(key))
        if state is not None:
            unit.states[key] = state
        return out

    def take(self, unit: _Unit, rows: list[Row]) -> None:
        """Deliver the results of a micro-batch."""
        lanes: dict[int, list[Row]] = {}
        for row in rows:
            if row.lane == READINGS:
                self.note(unit, row)
            elif row.lane == LETTERS:
                letters = [tuple(one) for one in json.loads(row.train)]
                self.letters.add([one for one in letters if one[0] in unit.cut.owned])
            else:
                lanes.setdefault(row.lane, []).append(row)
        for number, parts in lanes.items():
            lane = unit.work.lanes[number]
            for name in unit.cut.outputs:
                if self.checked.outputs[name] != lane.arc:
                    continue
                if lane.counted:
                    for part in parts:
                        self.results[name].delivery.count(*unpack_counts(part.train))
                else:
                    self.results[name].deliver(merge_rows(parts, self.checked.arcs[lane.arc]), "", unit.batches)

    def note(self, unit: _Unit, row: Row) -> None:
        found: dict[str, Any] = json.loads(row.train)
        for name, counts in found["boxes"].items():
            self.ignored[name] += counts[-1] * (name in unit.cut.owned)
        if "deadline" not in found:
            return  # of the front, which has no windows
        if found["deadline"] is not None:
            self.deadlines[unit.cut.name, row.shard] = found["deadline"]
        else:
            self.deadlines.pop((unit.cut.name, row.shard), None)

    def summary(self) -> dict[str, Any]:
        return {
            "engine": "sharded",
            "tuples_in": sum(feed.tuples for feed in self.feeds),
            "boxes": {box.name: {"ignored": self.ignored[box.name]} for box in self.checked.order},
            "outputs": {name: one.delivery.summary() for name, one in self.results.items()},
            "dead_letters": self.letters.summary(),
        }


register_engine("sharded", ShardedEngine)
