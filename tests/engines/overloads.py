"""Networks that have too much to do for a while, run for real; and the reading of networks that are fed by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import headway as hw
from headway.checking import check
from headway.clock import SECOND, ManualClock
from headway.connectors import TableSink, open_source
from headway.engines.dead_letters import DeadLetters
from headway.engines.delivery import Delivery
from headway.engines.ingest import Ingest
from headway.engines.process.capacity import Effort
from headway.engines.process.drops import RuntimeDrops
from headway.engines.process.reading import RuntimeReading
from headway.engines.process.runtime import Runtime
from headway.network import thaw
from headway.scheduling.schedule import Schedule
from headway.scheduling.superboxes import box_units

PEAK = [["2s", 50], ["4s", 200], ["8s", 50]]
"""1,300 tuples; with boxes of 10 ms a tuple the load is 0.5, then 2, then 0.5."""
CALM = [["4s", 50]]
SOON = {"latency": [[0, 1], [1, 1], [2, 0]]}
"""Wants its results within a second, and all of them: it has no loss graph."""
TOLERANT = {**SOON, "loss": [[100, 1], [0, 0.5]]}
"""May lose tuples, and loses half of its worth at most."""
SCHEMA = {"a": "bigint", "v": "double"}


def box(reads: str | Sequence[str], cost: str = "10ms", **more: Any) -> dict[str, Any]:
    """Return a box that costs this much for each tuple and passes all of them on."""
    return {"op": "universal", "in": reads if isinstance(reads, str) else list(reads), "cost": cost, **more}


def output(arc: str, qos: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"from": arc, "qos": dict(qos or {})}


def source(phases: Sequence[Sequence[Any]] = PEAK, seed: int = 1) -> dict[str, Any]:
    """Return a source of numbered tuples with values from 0 to 100 that come at these rates."""
    fields = {"a": {"sequence": [0, 1]}, "v": {"uniform": [0, 100]}}
    return {"schema": SCHEMA, "source": {"generate": {"phases": list(phases), "seed": seed, "fields": fields}}}


def network(
    boxes: Mapping[str, Any], outputs: Mapping[str, Any], *phases: Sequence[Sequence[Any]], **schedule: Any
) -> dict[str, Any]:
    """Return a network over a source `s`; `t` and `u` are further sources, if there are more rows of phases."""
    sources = {
        name: source(some, at + 1) for at, (name, some) in enumerate(zip("stu", phases or (PEAK,), strict=False))
    }
    made: dict[str, Any] = {"network": "n", "sources": sources, "boxes": dict(boxes), "outputs": dict(outputs)}
    return {**made, "schedule": schedule} if schedule else made


def simulate(made: Mapping[str, Any], **settings: Any) -> hw.RunResult:
    """Run in virtual time, by box, ten tuples at a time if nothing else is said."""
    return hw.run(made, engine="sim", **{"policy": "round-robin/box/10", **settings})


def numbers(result: hw.RunResult, name: str = "o") -> list[int]:
    """Return the numbers of the tuples that came to an output, in their order."""
    found: list[int] = result.outputs[name].column("a").to_pylist()
    return found


class Bench:
    """A network made ready to run, with reading and drop boxes; clock, steps and statistics are the test's."""

    def __init__(self, made: Mapping[str, Any], workers: int = 1, train: int = 100) -> None:
        self.checked = check(hw.load(made))
        self.clock = ManualClock()
        network = self.checked.network
        self.sinks = {one.name: TableSink(self.checked.output_schema(one.name)) for one in network.outputs}
        deliveries = {
            one.name: Delivery(one, self.checked.output_schema(one.name), self.sinks[one.name], self.clock)
            for one in network.outputs
        }
        self.deliveries = list(deliveries.values())
        self.runtime = Runtime(self.checked, deliveries, None, DeadLetters(False, None), self.clock)
        self.feeds = [
            self.runtime.feed(one.name, open_source(one.name, one.schema, thaw(one.connector)))
            for one in network.sources
        ]
        self.ingest = Ingest(self.feeds, self.clock, 1000, lambda rows: None)
        self.busy = 0  # nanoseconds
        self.reading = RuntimeReading(self.checked, self.runtime, box_units(self.runtime.topology))
        self.reading.attach(self.ingest, self.feeds, self.deliveries, self.runtime.letters, Schedule())
        self.reading.workers = workers
        self.drops = RuntimeDrops(self.reading, train, lambda: Effort(self.busy))

    def arrive(self, seconds: float) -> None:
        """Let time go on, and what is due arrive."""
        self.clock.advance(round(seconds * SECOND))
        while self.ingest.pull(False):
            pass

    def report(self, name: str, tuples_in: int, tuples_out: int, seconds: float) -> None:
        """Let a box have done something."""
        self.runtime.statistics.report(self.runtime.index[name], tuples_in, tuples_out, round(seconds * SECOND), -1)
