"""The query of MavStream's experiments, the streams that feed it, and runs of it as series over time.

Eight operators over three streams: a selection on each stream, two hash joins with windows of 500 tuples, and three
more operators. The paper says no more of it, so costs and selectivities are ours. Universal boxes stand for all
operators. For a hash join with a tuple window that is exact enough: a tuple meets the last 500 of the other stream,
whatever the rates are, and makes 500 / keys results of them at a constant cost. Our own join box has windows in time,
and counts the latency of a result from the older of its two tuples, so that windows would add to all latencies.

Streams are fed as the paper's section 3.2 says: by threads that wake up now and then and put in what has come since
(a Poisson number of tuples), at a rate that changes over time, with pauses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headway.clock import SECOND
from headway_experiments.rows import Row
from headway_experiments.watching import intervals, run_watched

PCS, SEGMENT, SIMPLIFIED = "path-capacity", "segment", "simplified-segment"
STRATEGIES = (PCS, SEGMENT, SIMPLIFIED)
OPTIMIZER = "optimizer"
LABELS = {PCS: "PCS", SEGMENT: "segment", SIMPLIFIED: "simplified segment", OPTIMIZER: "optimizer"}

HIGH_RATES = (2000.0, 1800.0, 2200.0)
LOW_RATES = (800.0, 950.0, 500.0)
"""Tuples per second of the three streams, as in the paper."""

TUPLE = 40
"""Bytes of a tuple: three numbers, its arrival number and its timestamp."""
TRAIN = 1024
CALL = "1ms"
"""The most tuples of a step, and what a step costs besides its tuples: MavStream's operators are threads, which its
scheduler wakes and suspends."""


Feed = Sequence[tuple[float, float]]
"""Spans in seconds, and how many times the given rates tuples come in them."""


@dataclass(frozen=True, slots=True)
class Query:
    """What operators cost, in microseconds for a tuple, and what they let through."""

    select: float = 50.0
    join: float = 180.0
    other: float = 15.0
    """Of the three operators after the second join: a projection, a selection and a projection."""
    selected: float = 0.3
    first_join: float = 0.5
    """Results for each tuple that comes in: windows of 500 tuples, 1,000 keys."""
    second_join: float = 0.8
    """625 keys."""
    selected_last: float = 0.25

    def load(self, rates: Sequence[float]) -> float:
        """Return the share of the time that the work takes, without what calls cost."""
        left, right, third = (rate * self.selected for rate in rates)
        joined = (left + right) * self.first_join + third
        last = joined * self.second_join
        tail = last * self.other * (2 + self.selected_last)
        return (sum(rates) * self.select + (left + right + joined) * self.join + tail) / 1e6

    def times(self, factor: float) -> Query:
        """Return the query with all costs so many times as high."""
        return replace(self, select=self.select * factor, join=self.join * factor, other=self.other * factor)


QUERY = Query()
THIN = Query(join=200.0, other=60.0, first_join=0.1)
"""A query in which few results come of the streams that are joined first, though their paths are the cheaper ones."""


def bursts(length: float, seconds: float) -> list[tuple[float, float]]:
    """Return a feed of bursts at twice the rate and pauses, each so long, that is the given rate in the mean."""
    return [(length, 2.0), (length, 0.0)] * round(seconds / (2 * length))


def network(feed: Feed, seed: int, rates: Sequence[float], query: Query = QUERY, tick: float = 0.05) -> dict[str, Any]:
    """Return the query with its streams, which are fed every `tick` seconds."""

    def source(rate: float, own: int) -> dict[str, Any]:
        phases: list[list[float]] = []
        for span, factor in feed:
            for _ in range(round(span / tick)):
                # All that comes at a tick comes within one nanosecond, and so at once: one event, not many.
                phases += [[1e-9, factor * rate * tick * 1e9], [tick - 1e-9, 0.0]]
        fields = {"key": {"uniform": [1, 1000]}, "value": "t", "number": "i"}
        made = {"phases": phases, "arrivals": "poisson", "seed": own, "fields": fields}
        return {"schema": {"key": "bigint", "value": "double", "number": "bigint"}, "source": {"generate": made}}

    def box(reads: Any, cost: float, selectivity: float) -> dict[str, Any]:
        settings = {"cost": cost / 1e6, "selectivity": selectivity, "seed": seed, "ordered": False}
        return {"op": "universal", "in": reads, **settings}

    return {
        "network": "eight",
        "sources": {f"s{at}": source(rate, 10 * seed + at) for at, rate in enumerate(rates, 1)},
        "boxes": {
            **{f"select{at}": box(f"s{at}", query.select, query.selected) for at in (1, 2, 3)},
            "join1": box(["select1", "select2"], query.join, query.first_join),
            "join2": box(["join1", "select3"], query.join, query.second_join),
            "project1": box("join2", query.other, 1.0),
            "select4": box("project1", query.other, query.selected_last),
            "project2": box("select4", query.other, 1.0),
        },
        "outputs": {"results": {"from": "project2"}},
    }


def optimizer(interval: float, **goals: Any) -> dict[str, Any]:
    """Return the runtime optimizer with these goals, which begins with segment and drops nothing."""
    queries = {"results": goals}
    chosen = {"policies": list(STRATEGIES), "start": SEGMENT, "interval": interval, "shed": []}
    return {"use": "optimizer", **chosen, "queries": queries}


def follow(made: Mapping[str, Any], layer: str | Mapping[str, Any], every: float, **columns: Any) -> list[Row]:
    """Run a network; return a row for every so many seconds, with these columns first.

    `latency` is the mean of what was delivered since the row before, in seconds, or without any the age of what has
    waited longest; `memory` the mean of what waited in queues, in kilobytes; `using` the strategy at work.
    """
    schedule = f"round-robin/box/{TRAIN}/wait:off"
    summary, seen = run_watched(made, schedule, layer, every, model={"overheads": {"call": CALL}})
    changes = [(change["moment"], change["change"].split(" -> ")[1]) for change in summary["adaptive"]["changes"]]
    first = layer if isinstance(layer, str) else layer["start"]
    rows: list[Row] = []
    for interval in intervals(seen):
        moment = interval.after.now / SECOND
        using = [strategy for at, strategy in [(0.0, first), *changes] if at < moment][-1]
        rows.append(
            {
                **columns,
                "moment": round(moment / every) * every,  # one that came while nothing was to be done is a little late
                "latency": interval.latency(),
                # All tuples have the same size. The layers' own measure leaves out boxes that were not called yet.
                "memory": interval.queued() * TUPLE / 1000,
                "results": round(interval.throughput() * interval.seconds),
                "using": using,
            }
        )
    return rows
