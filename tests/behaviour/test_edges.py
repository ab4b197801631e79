"""Values at the edges of their types: a clear dead letter, never a wrong result."""

from __future__ import annotations

import decimal
import json
from typing import Any

import pyarrow as pa
import pytest

import headway as hw
from headway.kernels import selects


def run(engine: str, schema: dict[str, str], box: dict[str, Any], rows: list[tuple[Any, ...]]) -> hw.RunResult:
    network = {
        "network": "edges",
        "sources": {"s": {"schema": schema}},
        "boxes": {"box": {"in": "s", **box}},
        "outputs": {"out": {"from": "box"}},
    }
    return hw.run(network, {"s": rows}, engine=engine)


def counts(size: float, advance: float | None = None) -> dict[str, Any]:
    box = {"op": "aggregate", "select": "count(*) as n", "order": {"on": "t"}, "size": size}
    return box if advance is None else {**box, "advance": advance}


@pytest.mark.parametrize(("type_", "size", "lost"), [("tinyint", 1000, -1000), ("smallint", 40_000, -40_000)])
def test_a_window_that_starts_outside_of_a_narrow_type(engine: str, type_: str, size: int, lost: int) -> None:
    result = run(engine, {"t": type_}, counts(size), [(-5,), (7,)])
    assert result.outputs["out"].to_pylist() == [{"t": 0, "n": 1}]
    (letter,) = result.dead_letters.to_pylist()
    assert letter["reason"] == f"the window's start does not fit {type_}"
    assert lost < -128


def test_order_values_beyond_the_grid(engine: str) -> None:
    result = run(engine, {"t": "bigint"}, counts(10, 3), [(-(2**63),), (0,), (2**63 - 1,)])
    assert [row["t"] for row in result.outputs["out"].to_pylist()] == [-9, -6, -3, 0]
    assert result.dead_letters["reason"].to_pylist() == ["the order value is too far out for windows of this size"] * 2


@pytest.mark.parametrize("far", [1e300, float("inf"), -1e300])
def test_doubles_beyond_the_grid(engine: str, far: float) -> None:
    result = run(engine, {"t": "double"}, counts(1.0, 0.5), [(0.25,), (far,)])
    assert [row["t"] for row in result.outputs["out"].to_pylist()] == [-0.5, 0.0]
    assert result.dead_letters.num_rows == 1


def test_a_failed_result_says_which_window(engine: str) -> None:
    box = {"op": "aggregate", "select": "1 / sum(v) as x", "order": {"on": "t", "by": ["k"]}, "size": 10}
    result = run(engine, {"t": "int", "k": "string", "v": "int"}, box, [(1, "a", 0), (25, "a", 2), (51, "b", 0)])
    assert result.outputs["out"].to_pylist() == [{"t": 20, "k": "a", "x": 0.5}]
    shown = [json.loads(text) for text in result.dead_letters["tuple"].to_pylist()]
    assert [(one["t"], one["k"]) for one in shown] == [(0, "a"), (50, "b")]


@pytest.mark.parametrize("select", ["sum(v)", "avg(v)", "sum(v) filter (where t > 0)"])
def test_sums_of_decimals_that_do_not_fit(engine: str, select: str) -> None:
    fields = {"t": "int", "v": "decimal(38,0)"}
    big = decimal.Decimal(10**38 - 1)
    box = {"op": "aggregate", "select": f"{select} as x", "order": {"on": "t"}, "size": 10}
    result = run(engine, fields, box, [(1, big), (2, big), (11, big), (12, big.copy_negate()), (25, None)])
    assert [(row["t"], row["x"]) for row in result.outputs["out"].to_pylist()] == [(10, 0), (20, None)]
    (letter,) = result.dead_letters.to_pylist()
    assert letter["reason"].startswith(select[:3] + ": the result does not fit decimal(38,")
    assert json.loads(letter["tuple"])["t"] == 0


def test_sums_of_decimals_around_each_beat(engine: str) -> None:
    network = {
        "network": "resample",
        "sources": {"beats": {"schema": {"t": "int"}}, "s": {"schema": {"t": "int", "v": "decimal(38,0)"}}},
        "boxes": {
            "box": {
                "op": "resample",
                "in": ["beats", "s"],
                "select": "sum(v) as x",
                "size": 1,
                "order": [{"on": "t"}, {"on": "t"}],
            }
        },
        "outputs": {"out": {"from": "box"}},
    }
    big = decimal.Decimal(10**38 - 1)
    result = hw.run(network, {"beats": [(1,), (9,)], "s": [(0, big), (2, big), (9, big)]}, engine=engine)
    assert result.outputs["out"].to_pylist() == [{"t": 9, "x": big}]
    assert result.dead_letters["reason"].to_pylist() == ["sum: the result does not fit decimal(38,0)"]


def test_texts_joined_of_nothing(engine: str) -> None:
    """Arrow leaves such rows out, which shifts all others."""
    rows = [(1, None, None), (2, "a", "b"), (3, "c", None)]
    schema = {"n": "int", "x": "string", "y": "string"}
    result = run(engine, schema, {"op": "map", "select": "n, concat_ws(',', x, y) as r"}, rows)
    assert [row["r"] for row in result.outputs["out"].to_pylist()] == ["", "a,b", "c"]
    result = run(engine, schema, {"op": "filter", "where": "concat_ws(',', x, y) = 'a,b'"}, rows)
    assert [row["n"] for row in result.outputs["out"].to_pylist()] == [2]


def test_whole_numbers_that_do_not_fit(engine: str) -> None:
    box = {"op": "map", "select": "ceil(v) as c, floor(v) as f"}
    result = run(engine, {"v": "double"}, box, [(1.5,), (1e300,), (float("nan"),), (-1e19,)])
    assert result.outputs["out"].to_pylist() == [{"c": 2, "f": 1}, {"c": 0, "f": 0}]
    assert set(result.dead_letters["reason"].to_pylist()) == {"bigint overflow in ceil"}


def test_a_list_of_too_many_values(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selects, "MOST_ITEMS", 3)
    box = {"op": "aggregate", "select": "collect_list(t) as x, count(*) as n", "order": {"on": "t"}, "size": 10}
    result = run(engine, {"t": "int"}, box, [(1,), (2,), (3,), (4,), (11,), (12,), (13,)])
    assert result.outputs["out"].to_pylist() == [{"t": 10, "x": [11, 12, 13], "n": 3}]
    assert result.dead_letters["reason"].to_pylist() == ["collect_list: more than 3 values, which is the limit"]


def test_windows_of_a_tenth_on_a_float(engine: str) -> None:
    result = run(engine, {"t": "float"}, counts(0.1), [(0.15,), (0.25,)])
    assert [round(row["t"], 6) for row in result.outputs["out"].to_pylist()] == [0.1, 0.2]
    assert result.dead_letters.num_rows == 0


@hw.function("shortened", args=["int"], returns="int", vectorised=True)
def shortened(values: pa.Array) -> pa.Array:
    return values[:-1]


def test_a_function_that_returns_too_little(engine: str) -> None:
    result = run(engine, {"t": "int"}, {"op": "map", "select": "shortened(t) as x"}, [(1,), (2,), (3,)])
    assert result.outputs["out"].num_rows == 0
    assert result.dead_letters["box"].to_pylist() == ["box"] * 3
    assert "shortened" in result.dead_letters["reason"][0].as_py()


def test_partitions_that_appear_while_many_wait(engine: str) -> None:
    network = {
        "network": "resample",
        "sources": {"beats": {"schema": {"t": "int"}}, "s": {"schema": {"t": "int", "k": "int"}}},
        "boxes": {
            "box": {
                "op": "resample",
                "in": ["beats", "s"],
                "select": "count(*) as n",
                "size": 5,
                "order": [{"on": "t"}, {"on": "t", "by": ["k"]}],
            }
        },
        "outputs": {"out": {"from": "box"}},
    }
    count = 600
    inputs = {"beats": [(at,) for at in range(count)], "s": [(at, at) for at in range(count)]}
    result = hw.run(network, inputs, engine=engine)
    near = sum(1 for t in range(count) for k in range(max(0, t - 5), min(count, t + 6)))
    assert result.outputs["out"].num_rows == near
