"""Those who do the work of a workload: Headway, and plain pyarrow, numpy, polars and duckdb as one batch.

Each contender is the code that a good user of the library writes over the whole table. Its `run` is what is
timed and gives results in the library's own form; `collect` turns them into Arrow tables, one for each output
of the network, to compare them. Headway's results go to a sink that counts tuples and lets them go; the other
libraries keep theirs, which costs them nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

import headway as hw
from benchmarks.workloads import KEYS, SECOND, THRESHOLDS, Workload
from headway.network import Network

TRAIN = 65_536
STAMP = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class Contender:
    """A named way to do a workload's work."""

    name: str
    run: Callable[[], Any]
    collect: Callable[[], Sequence[pa.Table]]


def contenders(workload: Workload, table: pa.Table) -> list[Contender]:
    """Return everybody who does this workload; plain pyarrow, to which all are compared, is the first."""
    work = _WORK[workload.name]
    found: list[Contender] = []
    views = {"pyarrow": table, "numpy": _arrays(table), "polars": pl.from_arrow(table), "duckdb": _connection(table)}
    for label, (library, function) in work.items():
        run = partial(function, views[library])
        found.append(Contender(label, run, lambda run=run: [_normal(one) for one in run()]))  # type: ignore[misc]
    network = hw.load(workload.network)
    for label, settings in HEADWAY.items():
        found.append(
            Contender(
                label,
                partial(discard, network, table, **settings),
                partial(_collect, network, table, **settings),
            )
        )
    return found


HEADWAY: Mapping[str, Mapping[str, Any]] = {
    "headway": {"policy": "round-robin/superbox", "train": TRAIN},
    "headway, 2 workers": {"policy": "round-robin/superbox", "train": TRAIN, "workers": 2},
    "headway, box by box": {"policy": "round-robin/box", "train": TRAIN},
}
"""Headway's settings, by the label in the table."""


def discard(network: Network, table: pa.Table, **settings: Any) -> hw.RunResult:
    """Run a network over the table and let the results go."""
    outputs = {output.name: _forget for output in network.outputs}
    return hw.run(network, {"events": table}, engine="local", outputs=outputs, **settings)


def _forget(batch: pa.RecordBatch) -> None:
    """Be a sink that keeps nothing."""


def _collect(network: Network, table: pa.Table, **settings: Any) -> list[pa.Table]:
    result = hw.run(network, {"events": table}, engine="local", **settings)
    return [result.outputs[output.name] for output in network.outputs]


def _arrays(table: pa.Table) -> dict[str, Any]:
    """View the table's columns as numpy arrays, without copying."""
    time = table["time"].cast(pa.int64())
    return {
        "time": time.chunk(0).to_numpy(),
        "key": table["key"].chunk(0).to_numpy(),
        "value": table["value"].chunk(0).to_numpy(),
    }


def _normal(result: Any) -> pa.Table:
    """Return a library's result as an Arrow table with Headway's names and types."""
    if isinstance(result, dict):
        result = pa.table(result)
    elif isinstance(result, pl.DataFrame):
        result = result.to_arrow()
    columns = {}
    for name in result.column_names:
        column = result[name]
        if name == "time" and column.type != STAMP:
            seconds = not pa.types.is_timestamp(column.type)
            column = (pc.multiply(column, SECOND) if seconds else column).cast(STAMP)
        columns[name] = column.cast({"key": pa.int32(), "n": pa.int64()}.get(name, column.type))
    return pa.table(columns)


# Plain pyarrow


def _pyarrow_w1(table: pa.Table) -> list[pa.Table]:
    for predicate in _pyarrow_predicates():
        table = table.filter(predicate(table))
    scaled = pc.add(pc.multiply(table["value"], 2.0), 1.0)
    return [pa.table({"time": table["time"], "key": table["key"], "scaled": scaled})]


def _pyarrow_w1_merged(table: pa.Table) -> list[pa.Table]:
    """Evaluate all predicates on the whole table, and filter once: what fusing by hand gives."""
    mask = None
    for predicate in _pyarrow_predicates():
        one = predicate(table)
        mask = one if mask is None else pc.and_(mask, one)
    table = table.filter(mask)
    scaled = pc.add(pc.multiply(table["value"], 2.0), 1.0)
    return [pa.table({"time": table["time"], "key": table["key"], "scaled": scaled})]


def _pyarrow_predicates() -> list[Callable[[pa.Table], Any]]:
    return [
        lambda table: pc.less(table["value"], 0.9),
        lambda table: pc.greater_equal(table["key"], 10),
        lambda table: pc.greater_equal(table["value"], 0.09),
        lambda table: pc.less(table["key"], 91),
        lambda table: pc.less(table["value"], 0.819),
    ]


def _pyarrow_w2(table: pa.Table) -> list[pa.Table]:
    # Division of the plain number is eight times faster than floor_temporal.
    window = pc.divide(table["time"].cast(pa.int64()), SECOND)
    groups = pa.table({"time": window, "key": table["key"], "value": table["value"]})
    return [groups.group_by(["time", "key"]).aggregate([("value", "mean")]).rename_columns(["time", "key", "mean"])]


def _pyarrow_w3(table: pa.Table) -> list[pa.Table]:
    window = pc.divide(table["time"].cast(pa.int64()), SECOND)
    groups = pa.table({"time": window, "key": table["key"]})
    results = []
    for threshold in THRESHOLDS:
        chosen = groups.filter(pc.less(table["value"], threshold))
        counted = chosen.group_by(["time", "key"]).aggregate([([], "count_all")])
        results.append(counted.rename_columns(["time", "key", "n"]))
    return results


# numpy


def _numpy_w1(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    time, key, value = data["time"], data["key"], data["value"]
    mask = (value < 0.9) & (key >= 10) & (value >= 0.09) & (key < 91) & (value < 0.819)
    at = np.flatnonzero(mask)
    return [{"time": time[at].view("M8[us]"), "key": key[at], "scaled": value[at] * 2 + 1}]


def _groups(data: Mapping[str, Any]) -> tuple[Any, int]:
    window = data["time"] // SECOND
    first = int(window[0])
    return (window - first) * KEYS + data["key"], first


def _numpy_w2(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    groups, first = _groups(data)
    counts = np.bincount(groups)
    sums = np.bincount(groups, data["value"])
    at = np.flatnonzero(counts)
    return [{"time": at // KEYS + first, "key": at % KEYS, "mean": sums[at] / counts[at]}]


def _numpy_w3(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    results = []
    for threshold in THRESHOLDS:
        chosen = data["value"] < threshold
        groups, first = _groups({name: column[chosen] for name, column in data.items()})
        counts = np.bincount(groups)
        at = np.flatnonzero(counts)
        results.append({"time": at // KEYS + first, "key": at % KEYS, "n": counts[at]})
    return results


def _numpy_w3_shared(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Find the groups once for all queries: what sharing by hand gives."""
    groups, first = _groups(data)
    results = []
    for threshold in THRESHOLDS:
        counts = np.bincount(groups[data["value"] < threshold])
        at = np.flatnonzero(counts)
        results.append({"time": at // KEYS + first, "key": at % KEYS, "n": counts[at]})
    return results


# polars


def _polars_w1(frame: Any) -> list[Any]:
    value, key = pl.col("value"), pl.col("key")
    lazy = frame.lazy()
    for predicate in (value < 0.9, key >= 10, value >= 0.09, key < 91, value < 0.819):
        lazy = lazy.filter(predicate)
    return [lazy.select("time", "key", scaled=value * 2 + 1).collect()]


def _polars_window() -> Any:
    return pl.col("time").to_physical() // SECOND


def _polars_w2(frame: Any) -> list[Any]:
    lazy = frame.lazy().group_by(_polars_window().alias("time"), "key")
    return [lazy.agg(pl.col("value").mean().alias("mean")).collect()]


def _polars_w3(frame: Any) -> list[Any]:
    lazy = frame.lazy().with_columns(_polars_window().alias("time"))
    queries = [
        lazy.filter(pl.col("value") < threshold).group_by("time", "key").agg(pl.len().alias("n"))
        for threshold in THRESHOLDS
    ]
    return list(pl.collect_all(queries))


# duckdb


def _connection(table: pa.Table) -> Any:
    """Let duckdb read the table where it lies."""
    connection = duckdb.connect()
    connection.register("events", table)
    return connection


def _duckdb(statements: Sequence[str], connection: Any) -> list[pa.Table]:
    return [connection.sql(statement).to_arrow_table() for statement in statements]


_DUCKDB_WINDOW = f"epoch_us(time) // {SECOND}"
_DUCKDB_W1 = (
    "SELECT time, key, value * 2 + 1 AS scaled FROM events "
    "WHERE value < 0.9 AND key >= 10 AND value >= 0.09 AND key < 91 AND value < 0.819",
)
_DUCKDB_W2 = (f"SELECT {_DUCKDB_WINDOW} AS time, key, avg(value) AS mean FROM events GROUP BY ALL",)
_DUCKDB_W3 = tuple(
    f"SELECT {_DUCKDB_WINDOW} AS time, key, count(*) AS n FROM events WHERE value < {threshold} GROUP BY ALL"
    for threshold in THRESHOLDS
)

_WORK: Mapping[str, Mapping[str, tuple[str, Callable[[Any], Sequence[Any]]]]] = {
    "W1": {
        "pyarrow": ("pyarrow", _pyarrow_w1),
        "pyarrow, one filter": ("pyarrow", _pyarrow_w1_merged),
        "numpy": ("numpy", _numpy_w1),
        "duckdb": ("duckdb", partial(_duckdb, _DUCKDB_W1)),
        "polars": ("polars", _polars_w1),
    },
    "W2": {
        "pyarrow": ("pyarrow", _pyarrow_w2),
        "numpy": ("numpy", _numpy_w2),
        "duckdb": ("duckdb", partial(_duckdb, _DUCKDB_W2)),
        "polars": ("polars", _polars_w2),
    },
    "W3": {
        "pyarrow": ("pyarrow", _pyarrow_w3),
        "numpy": ("numpy", _numpy_w3),
        "numpy, one pass": ("numpy", _numpy_w3_shared),
        "duckdb": ("duckdb", partial(_duckdb, _DUCKDB_W3)),
        "polars": ("polars", _polars_w3),
    },
}
"""By workload: the label, the form of the data that the code wants, and the code."""
