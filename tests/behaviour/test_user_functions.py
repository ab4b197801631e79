"""User-defined functions and aggregates, named in a network file."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given

import headway as hw
from tests.behaviour.running import check, rows_of, run_mapping
from tests.reference.kinds import BIGINT
from tests.reference.order import Order
from tests.reference.tuples import Row
from tests.reference.twins import Pair, Result, Twin, aggregates, maps, resamples, sessions
from tests.streams import WHENS, Case, Running, runnings, schema, streams


@hw.aggregate("spelled", args=["int"], returns="string")
class Spelled:
    """The values of a window in their order: it shows every mistake in it."""

    def init(self) -> str:
        """Start with nothing."""
        return ""

    def incr(self, state: str, value: int) -> str:
        """Append a value."""
        return f"{state} {value}"

    def final(self, state: str) -> str:
        """Return all of them."""
        return state.strip()


@hw.aggregate("span", args=["int"], returns="bigint", vectorised=True)
def span(values: Any) -> int:
    """Return last minus first."""
    return int(values[-1].as_py()) - int(values[0].as_py())


@hw.function("halved", args=["int"], returns="double")
def halved(value: int) -> float:
    """Return half, but refuse 3."""
    if value == 3:
        raise ValueError("three is refused")
    return value / 2


@hw.function("tripled", args=["int"], returns="int", vectorised=True)
def tripled(values: Any) -> Any:
    """Return three times each value."""
    return pc.multiply(values, pa.scalar(3, pa.int32()))


CHOSEN = (
    Result("spelling", "spelled(id)", lambda rows: " ".join(str(row["id"]) for row in rows)),
    Result("reach", "span(id)", lambda rows: rows[-1]["id"] - rows[0]["id"]),
    Result("longer", "span(id) + count(*)", lambda rows: rows[-1]["id"] - rows[0]["id"] + len(rows)),
)
BOXES: tuple[Pair, ...] = (
    aggregates("box", "s", CHOSEN, Order("a", 2, ("k",)), 5, 2),
    aggregates("counts", "s", CHOSEN, Order("#", 0, ("g",)), 3, 2),
    sessions("visits", "s", CHOSEN, Order("a", 1, ("k",)), *WHENS[0]),
    resamples("near", ("s", "s"), CHOSEN, 2, (Order("a"), Order("a", 1, ("k",)))),
)


@given(rows=streams(), how=runnings())
def test_aggregates_see_windows_in_order(engine: str, rows: list[Row], how: Running) -> None:
    twin = Twin({"s": schema(BIGINT)}, BOXES, {box.name: box.name for box in BOXES})
    check(engine, Case(twin, {"s": rows}), how)


@given(rows=streams(), how=runnings())
def test_scalar_functions(engine: str, rows: list[Row], how: Running) -> None:
    def both(row: Row) -> Row:
        v = row["v"]
        return {"id": row["id"], "half": None if v is None else v / 2, "triple": None if v is None else v * 3}

    rows = [row for row in rows if row["v"] != 3]
    box = maps("box", "s", "id, halved(v) as half, tripled(v) as triple", both)
    check(engine, Case(Twin({"s": schema(BIGINT)}, (box,), {"out": "box"}), {"s": rows}), how)


def test_a_function_that_raises_sends_the_tuple_away(engine: str) -> None:
    mapping = {
        "network": "refusal",
        "sources": {"s": {"schema": {"v": "int"}}},
        "boxes": {"box": {"op": "map", "in": "s", "select": "halved(v) as half"}},
        "outputs": {"out": {"from": "box"}},
    }
    for train in (1, 3, 1000):
        inputs = {"s": [{"v": v} for v in (2, 3, None, 4)]}
        result = run_mapping(engine, mapping, inputs, Running(train=train))
        assert [row["half"] for row in rows_of(result)] == [1.0, None, 2.0]
        [letter] = result.dead_letters.to_pylist()
        assert letter["box"] == "box"
        assert "three is refused" in letter["reason"]


@hw.function("half_int", args=["int"], returns="int")
def half_int(value: int) -> float:
    """Return half of it, which is not always an int."""
    return value / 2


@hw.function("half_ints", args=["int"], returns="int", vectorised=True)
def half_ints(values: Any) -> Any:
    """Return halves as a list."""
    return [value / 2 for value in values.to_pylist()]


@hw.aggregate("mean_int", args=["int"], returns="int")
class MeanInt:
    """The mean, which is not always an int."""

    def init(self) -> tuple[int, int]:
        """Start with nothing."""
        return (0, 0)

    def incr(self, state: tuple[int, int], value: int) -> tuple[int, int]:
        """Add a value."""
        return (state[0] + value, state[1] + 1)

    def final(self, state: tuple[int, int]) -> float:
        """Return the mean."""
        return state[0] / state[1]


@hw.aggregate("mean_ints", args=["int"], returns="int", vectorised=True)
def mean_ints(values: Any) -> Any:
    """Return the mean as an Arrow scalar."""
    return pc.mean(values)


def test_what_does_not_fit_the_declared_type_is_never_cut(engine: str) -> None:
    mapping = {
        "network": "halves",
        "sources": {"s": {"schema": {"v": "int"}}},
        "boxes": {
            "rows": {"op": "map", "in": "s", "select": "v, half_int(v) as half"},
            "arrays": {"op": "map", "in": "s", "select": "v, half_ints(v) as half"},
            "means": {"op": "aggregate", "in": "s", "select": "mean_int(v) as m", "order": {"on": "#"}, "size": 2},
            "vector": {"op": "aggregate", "in": "s", "select": "mean_ints(v) as m", "order": {"on": "#"}, "size": 2},
        },
        "outputs": {name: {"from": name} for name in ("rows", "arrays", "means", "vector")},
    }
    result = run_mapping(engine, mapping, {"s": [{"v": v} for v in (1, 2, 3, 5)]}, Running(train=1000))
    for name in ("rows", "arrays"):
        assert [(row["v"], row["half"]) for row in rows_of(result, name)] == [(2, 1)]
    for name in ("means", "vector"):
        assert [row["m"] for row in rows_of(result, name)] == [4]
    reasons = sorted((letter["box"], letter["reason"]) for letter in result.dead_letters.to_pylist())
    halves = [
        (box, f"{name} did not return int: it returned {half}")
        for box, name in (("arrays", "half_ints"), ("rows", "half_int"))
        for half in (0.5, 1.5, 2.5)
    ]
    means = [
        (box, f"{name} did not return int: it returned 1.5")
        for box, name in (("means", "mean_int"), ("vector", "mean_ints"))
    ]
    assert reasons == sorted(halves + means)
