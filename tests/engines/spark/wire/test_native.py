"""The native front against the kernels, on values at the edges of their types."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import headway as hw
from headway.checking import check
from headway.columns import UNREAD, to_arrow
from headway.engines.spark.driver.cut import cut, make_work
from headway.engines.spark.wire.messages import Lane, Work, merge_rows
from headway.engines.spark.wire.native import NativePlan, plan_native
from headway.engines.spark.worker.tasks import UnitCode
from headway.functions import functions
from headway.network.schema import Schema
from headway.program import Program, compile_program
from headway.trains import Train

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIELDS = {
    "i": "bigint",
    "k": "int",
    "h": "smallint",
    "v": "double",
    "w": "double",
    "g": "float",
    "p": "boolean",
    "s": "string",
    "t": "timestamp",
    "n": "timestamp_ntz",
    "d": "date",
    "m": "decimal(10,2)",
    "y": "binary",
}
SCHEMA = Schema.parse(FIELDS)
_NAN, _INF = math.nan, math.inf
EDGES: dict[str, list[object]] = {
    "i": [None, 0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1, 10],
    "k": [None, 0, 1, -1, 2**31 - 1, -(2**31), 7],
    "h": [None, 0, 1, -1, 2**15 - 1, -(2**15)],
    "v": [None, 0.0, -0.0, _NAN, _INF, -_INF, 1.5, 0.1, 1e308, 5e-324, 9223372036854775807.0],
    "w": [None, -0.0, 0.0, _NAN, _INF, 1.5, -1e308],
    "g": [None, 0.0, -0.0, _NAN, _INF, 0.1, 16777216.0, 3.4e38],
    "p": [None, True, False],
    "s": [
        None,
        "",
        " ",
        "a",
        "A",
        "aé",
        "é",
        "ß",
        "日本",
        "😀x",
        " a ",
        "a\nb",
        "a%b",
        "Z",
        "\U0010ffff",
        "\uffee",
        "it's",
    ],
    "t": [None, 0, 1, -1, 1769853600000000, -62135596800000000],
    "n": [None, 0, -1, 1769853600000000],
    "d": [None, 0, -1, 20484, -719162],
    "m": [None, "0.00", "-0.01", "99999999.99", "1.50"],
    "y": [None, b"", b"\x00", b"\xff", b"a"],
}


def array(name: str, values: Sequence[Any]) -> pa.Array:
    type_ = SCHEMA.field(name).type
    if pa.types.is_decimal(type_):
        return pa.array(values, pa.string()).cast(type_)
    if pa.types.is_timestamp(type_):
        return pa.array(values, pa.int64()).cast(type_)
    return pa.array(values, pa.int32()).cast(type_) if pa.types.is_date(type_) else pa.array(values, type_)


def batch(count: int, seed: int = 0) -> pa.RecordBatch:
    """Return rows whose fields go through their edges with periods of their own, so that they meet each other."""
    rng = np.random.default_rng(seed)
    arrays = [array(name, [edges[at] for at in rng.integers(0, len(edges), count)]) for name, edges in EDGES.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(EDGES))


def network(
    boxes: Mapping[str, Any], outputs: Mapping[str, str], sources: Sequence[str] = ("a",), fields: Any = FIELDS
) -> dict[str, Any]:
    return {
        "network": "n",
        "sources": {name: {"schema": fields} for name in sources},
        "boxes": dict(boxes),
        "outputs": {name: {"from": arc} for name, arc in outputs.items()},
    }


def prepare(description: dict[str, Any], discarded: frozenset[str] = frozenset()) -> tuple[Program, Work]:
    program = compile_program(check(hw.load(description), functions()))
    (unit,) = cut(program, 1, "one").units
    return program, make_work(program, unit, 1, discarded, {}, "test")


def planned(description: dict[str, Any], discarded: frozenset[str] = frozenset()) -> tuple[NativePlan, Work]:
    program, work = prepare(description, discarded)
    plan = plan_native(program, work.unit, work.lanes)
    assert isinstance(plan, NativePlan), plan
    return plan, work


def refusal(description: dict[str, Any]) -> str:
    program, work = prepare(description)
    plan = plan_native(program, work.unit, work.lanes)
    assert isinstance(plan, str)
    return plan


def arriving(sources: Sequence[str], rows: pa.RecordBatch) -> dict[str, Train]:
    """Deal rows to sources in turn, with numbers that are not dense."""
    count, many = rows.num_rows, len(sources)
    trains = {}
    for at, name in enumerate(sources):
        mine = np.arange(at, count, many)
        trains[name] = Train.from_batch(rows.take(pa.array(mine)), 1_000 + mine // 5, mine * 3)
    return trains


def by_spark(spark: SparkSession, plan: NativePlan, trains: Mapping[str, Train], tasks: int = 3) -> pa.Table:
    """Run a plan over trains that Spark reads as it reads the log: by tasks, some of which find nothing."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    parts: list[list[pa.RecordBatch]] = [[] for _ in range(tasks)]
    for name, train in trains.items():
        for part, (low, high) in zip(parts, pairwise(np.linspace(0, len(train), tasks + 1).astype(int)), strict=True):
            part.append(plan.scan_batch(name, train.slice(int(low), int(high))))

    class Reader(DataSourceReader):
        def partitions(self) -> list[InputPartition]:
            return [InputPartition(at) for at in reversed(range(tasks))]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            yield from parts[partition.value]

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "native_test"

        def schema(self) -> str:
            return plan.scan_schema

        def reader(self, schema: object) -> DataSourceReader:
            return Reader()

    spark.dataSource.register(Source)
    return plan.frame(spark.read.format("native_test").load()).toArrow()


def by_kernels(work: Work, trains: Mapping[str, Train]) -> dict[int, Train]:
    code = UnitCode(work)
    rows = list(code.front(trains, 0, 0))
    found = {}
    for lane in work.lanes:
        mine = [row for row in rows if row.lane == lane.number]
        schema = code.checked.arcs[lane.arc]
        found[lane.number] = merge_rows(mine, schema) if mine else Train.empty(schema)
    return found


def values_of(train: Train, schema: Schema) -> list[object]:
    """Return numbers, stamps and fields in a form in which NaN equals itself and -0.0 differs from 0.0."""
    fields: list[object] = []
    for column, type_ in zip(train.columns, schema.types, strict=True):
        found = to_arrow(column, type_)
        assert found.type == type_
        fields.append(repr((found.cast(pa.int64()) if pa.types.is_timestamp(type_) else found).to_pylist()))
    return [train.numbers.tolist(), train.stamps.tolist(), *fields]


def assert_same(spark: SparkSession, description: dict[str, Any], rows: pa.RecordBatch) -> None:
    plan, work = planned(description)
    trains = arriving(work.unit.sources, rows)
    table = by_spark(spark, plan, trains)
    native, kernels = plan.split(table), by_kernels(work, trains)
    assert native.keys() == kernels.keys()
    for lane in plan.lanes:
        mine, theirs = native[lane.number], kernels[lane.number]
        assert values_of(mine, lane.schema) == values_of(theirs, lane.schema), lane


PREDICATES = (
    "i > 5", "i >= k", "i = 9007199254740993", "i > 1.5", "i < 1e19", "i = v", "k = v", "g = v", "g > 0.1", "g = k",
    "v = w", "v <> w", "v < w", "v <= w", "v > w", "v >= w", "v > 0", "v <= 0.1", "v = 0", "v <=> w", "s <=> 'a'",
    "v is distinct from w", "isnan(v)", "not isnan(v)", "v in (0, 1.5)", "v not in (1, 0.1, 1e308)", "i in (1, 10)",
    "i in (0, 1, 2, 3, 10, NULL)", "k in (1,2,3,4,5,6,7,8,9,10,11,12)", "s in ('a', 'é', '')", "s not in ('a', NULL)",
    "s = 'a'", "s < 'é'", "s > '\U0001f600'", "s >= ''", "s like 'a%'", "s like '%b'", "s like 'a_b'", "s like '%a%'",
    "s like '_'", "s not like '_%'", "s like '__'", "s like ''", "s like '%'", "length(s) = 1", "p", "not p",
    "p and v > 0", "p or v > 0", "p = (v > 0)", "p is true", "p is not true", "p is false", "s is null",
    "s is not null", "v between 0 and 1.5", "k between -1 and h", "k % 10 = 7", "i % -1 = 0", "i % 3 <> 0", "m > 1.5",
    "m = 1.5", "m >= k", "m < v", "d > '2026-01-01'", "d = date '1969-12-31'", "t >= '2026-01-01'",
    "t > timestamp '1969-12-31 23:59:59.999999'", "n <= timestamp_ntz '2026-01-31 10:00:00'", "y = y", "y < y",
    "case when v > 0 then p else v is null end", "case k when 1 then true when 0 then p end", "NULL", "true",
    "v / 2 > 0", "if(p, v, w) > 0", "coalesce(v, w, 0D) >= 0", "nullif(i, 1) > 0", "s = 'it\\'s'", "k & 1 = 1",
    "contains(s, '')", "startswith(s, 'a')", "endswith(s, 'é')", "greatest(v, w) > 0",
    "i <= 9223372036854775807", "k > -2147483648",
)  # fmt: skip
RESULTS = (
    "v + w", "v - w", "v * w", "v * 2", "v + i", "g + g", "g * v", "g + k", "g * 1.5", "-v", "-g", "v / 3", "i / 3",
    "g / 3",
    "k / -7", "i % 7", "h % 3", "k & h", "i | 255", "~h", "h ^ 5", "cast(k as bigint)", "cast(i as double)",
    "cast(i as float)", "cast(g as double)", "cast(k as decimal(12,2))", "cast(m as decimal(20,4))",
    "cast(m as double)",
    "cast(i as string)", "cast(p as string)", "coalesce(v, w)", "coalesce(k, i)", "coalesce(g, k)", "nvl(s, '-')",
    "nvl2(v, w, 1.5D)", "nullif(v, w)", "nullif(s, 'a')", "if(p, k, i)", "if(p, g, v)",
    "case when p then 1 else 2.5D end",
    "case s when 'a' then 1 when 'é' then 2 end", "greatest(v, w)", "least(v, w)", "greatest(g, g)", "least(s, 'b')",
    "greatest(t, t)", "greatest(p, not p)", "nanvl(v, w)", "abs(v)", "abs(g)", "sqrt(v)",
    "length(s)", "char_length(s)", "trim(s)", "reverse(s)", "unix_micros(t)",
    "unix_millis(t)", "unix_seconds(t)", "v > w", "isnull(s)", "isnotnull(v)", "1.5", "-1.5", "1e3", "42L", "-7", "0.1",
    "'é😀'", "'it\\'s'", "date '2026-01-28'", "timestamp '2026-01-28 10:00:00.5'", "cast(NULL as double)", "true",
    "1.50",
)  # fmt: skip


def test_predicates_hold_for_the_same_tuples(spark: SparkSession) -> None:
    boxes = {f"b{at}": {"op": "filter", "in": "a", "where": text} for at, text in enumerate(PREDICATES)}
    select = ", ".join(f"{text} as r{at}" for at, text in enumerate(PREDICATES) if text != "NULL")
    boxes["all"] = {"op": "map", "in": "a", "select": select}  # here NULL and false differ
    some = {f"o{at}": f"b{at}" for at in range(0, len(PREDICATES), 20)}
    assert_same(spark, network(boxes, {**some, "all": "all"}), batch(700, 1))


def test_maps_give_the_same_values(spark: SparkSession) -> None:
    select = ", ".join(f"{text} as r{at}" for at, text in enumerate(RESULTS))
    boxes = {"b": {"op": "map", "in": "a", "select": select}}
    assert_same(spark, network(boxes, {"o": "b", "whole": "a"}), batch(700, 2))


ROUTES = {
    "split": {"op": "filter", "in": "a", "where": ["v > 0", "v is null or p", "s = 'a'"]},
    "wide": {"op": "map", "in": "split.2", "select": "v * 2 as x, s, i"},
    "again": {"op": "map", "in": "wide", "select": "x + x as x, reverse(s) as s, i"},
    "kept": {"op": "filter", "in": "again", "where": "x is null or x > 1"},
    "rest": {"op": "map", "in": "split.else", "select": "w as x, s, i"},
    "both": {"op": "union", "in": ["rest", "kept", "kept.else", "other", "rest"]},
    "other": {"op": "map", "in": "b", "select": "v as x, s, i"},
    "late": {"op": "filter", "in": "both", "where": "s is not null"},
    "end": {"op": "map", "in": "late", "select": "nanvl(x, 0D) as x, i"},
}
ENDS = {"one": "split.1", "three": "split.3", "end": "end", "both": "both", "late": "late.else", "source": "b"}


@pytest.mark.parametrize("count", [0, 1, 300])
def test_routes_maps_and_unions_of_two_sources(spark: SparkSession, count: int) -> None:
    assert_same(spark, network(ROUTES, ENDS, ("a", "b")), batch(count, 3))


def test_the_same_results_as_the_local_engine(spark: SparkSession) -> None:
    description = network(ROUTES, ENDS, ("a", "b"))
    rows = batch(120, 4)
    plan, work = planned(description)
    trains = arriving(("a", "b"), rows)
    native = plan.split(by_spark(spark, plan, trains))
    inputs = {name: pa.Table.from_batches([trains[name].to_batch(SCHEMA.to_arrow())]) for name in ("a", "b")}
    local = hw.run(hw.load(description), inputs, engine="local")
    for output, arc in ENDS.items():
        (lane,) = (lane for lane in work.lanes if lane.arc == arc)
        mine = native[lane.number].to_batch(plan.lanes[lane.number].schema.to_arrow())
        assert repr(mine.to_pydict()) == repr(local.outputs[output].to_pydict())


def test_lanes_that_are_only_counted_bring_no_columns(spark: SparkSession) -> None:
    description = network(
        {"f": {"op": "filter", "in": "a", "where": "v > 0"}, "u": {"op": "union", "in": ["f", "a"]}},
        {"f": "f", "u": "u"},
    )
    plan, work = planned(description, frozenset(("f", "u")))
    assert plan.delivered == ()
    assert [one.name for one in plan.scanned] == ["s0_3"]
    trains = arriving(("a",), batch(50, 5))
    table = by_spark(spark, plan, trains)
    assert table.column_names == ["number", "stamp", "f0_0", "f1_0", "f1_1"]
    native, kernels = plan.split(table), by_kernels(replace(work, lanes=tuple(map(kept, work.lanes))), trains)
    assert native.keys() == kernels.keys()
    for number, train in native.items():
        assert set(train.columns) == {UNREAD}
        assert train.numbers.tolist() == kernels[number].numbers.tolist()
        assert train.stamps.tolist() == kernels[number].stamps.tolist()


def kept(lane: Lane) -> Lane:
    return replace(lane, counted=False)


def test_only_what_is_needed_is_scanned_and_lanes_share_columns() -> None:
    boxes = {
        "f": {"op": "filter", "in": "a", "where": "v > 0"},
        "m": {"op": "map", "in": "a", "select": "s, w + w as unused"},
        "n": {"op": "map", "in": "m", "select": "s"},
        "g": {"op": "filter", "in": "n", "where": "s > 'a'"},
    }
    plan, _ = planned(network({**boxes, "h": {"op": "map", "in": "f", "select": "s"}}, {"x": "n", "y": "g", "z": "h"}))
    assert plan.scan_schema == "source int, number bigint, stamp bigint, s0_3 double, s0_7 string"
    assert plan.delivered == ("s0_7",)
    assert [one.sql for one in plan.computed] == ["`s0_3` > 0", "`s0_7` > 'a'"]


def test_a_plan_travels_and_says_what_it_scans() -> None:
    plan, work = planned(network(ROUTES, ENDS, ("a", "b")))
    assert pickle.loads(pickle.dumps(plan)) == plan
    trains = arriving(("a", "b"), batch(7, 6))
    found = plan.scan_batch("b", trains["b"])
    assert found.schema.names == [part.split()[0] for part in plan.scan_schema.split(", ")]
    assert found.column("source").to_pylist() == [1, 1, 1]
    assert found.column("number").to_pylist() == trains["b"].numbers.tolist()
    assert found.column("s0_3").null_count == 3
    assert found.column("s1_0").to_pylist() == to_arrow(trains["b"].columns[0], pa.int64()).to_pylist()
    assert work.unit.sources == plan.sources


def test_names_that_spark_would_read_otherwise(spark: SparkSession) -> None:
    fields = {"current_date": "bigint", "odd name": "double", "number": "bigint", "s0_0": "double", "user": "string"}
    select = "`current_date`, `odd name`, number, s0_0 + 1e0 as source, reverse(`user`) as stamp"
    boxes = {
        "f": {"op": "filter", "in": "a", "where": "`current_date` > 1 and `user` > ''"},
        "m": {"op": "map", "in": "f", "select": select},
    }
    rows = pa.RecordBatch.from_pydict(
        {
            "current_date": pa.array([1, 2, None, 3]),
            "odd name": pa.array([1.0, 2.0, 3.0, None]),
            "number": pa.array([9, 8, 7, 6]),
            "s0_0": pa.array([0.5, 1.5, 2.5, 3.5]),
            "user": pa.array(["a", "b", "c", "d"]),
        }
    )
    assert_same(spark, network(boxes, {"o": "m"}, fields=fields), rows)


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("i + 1 > 0", "'i + 1' may overflow"),
        ("k / h > 1", "'k / h' may divide by zero"),
        ("upper(s) = 'A'", "upper of some letters differs"),
        ("s ilike 'a%'", "letters without case differ"),
        ("s = 'a\\\\b'", "backslashes or control characters"),
        ("s like 'a\\\\_b'", "backslashes or control characters"),
        ("p = v > 0", "needs brackets"),
        ("v in (1,2,3,4,5,6,7,8,9,10,11)", "floats in a long list"),
        ("native_test(v) > 0", "'native_test' is a user's function"),
        ("cast(s as int) > 0", "may not fit"),
        ("substring(s, 2) = 'a'", "is not known to be safe"),
    ],
)
def test_refusals_name_box_and_part(where: str, reason: str) -> None:
    @hw.function("native_test", args=["double"], returns="double")
    def native_test(value: float) -> float:
        return value

    found = refusal(network({"odd": {"op": "filter", "in": "a", "where": where}}, {"o": "odd"}))
    assert found.startswith("box 'odd': ")
    assert reason in found


def test_a_box_that_leads_nowhere_may_still_have_dead_letters() -> None:
    boxes = {
        "f": {"op": "filter", "in": "a", "where": "v > 0"},
        "m": {"op": "map", "in": "a", "select": "i * i as n"},
    }
    assert refusal(network(boxes, {"o": "f"})) == "box 'm': 'i * i' may overflow"


def test_state_joins_and_nested_fields_are_left_to_kernels() -> None:
    count = {"op": "aggregate", "in": "a", "select": "count(*) as n", "order": {"on": "i"}, "size": 10}
    assert refusal(network({"c": count}, {"o": "c"})) == "box 'c': aggregate in shards is not native"
    fields = {"x": "int", "l": "array<int>"}
    filtered = network({"f": {"op": "filter", "in": "a", "where": "x > 0"}}, {"o": "f"}, fields=fields)
    assert refusal(filtered) == "source 'a': field 'l' is nested: array<int>"
    unread = {"m": {"op": "map", "in": "a", "select": "x"}}
    planned(network(unread, {"o": "m"}, fields=fields))


def test_unions_that_multiply_ways_are_left_to_kernels() -> None:
    boxes: dict[str, Any] = {"u0": {"op": "union", "in": ["a", "a"]}}
    boxes |= {f"u{at}": {"op": "union", "in": [f"u{at - 1}", f"u{at - 1}"]} for at in range(1, 7)}
    assert refusal(network(boxes, {"o": "u6"})) == "box 'u6': more than 64 ways lead to it"
    planned(network({name: box for name, box in boxes.items() if name != "u6"}, {"o": "u5"}))
