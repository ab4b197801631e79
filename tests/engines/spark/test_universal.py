"""The universal box on Spark: the very tuples that pass elsewhere, and the time that they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import headway as hw
from headway.engines.spark.driver.cut import cut, make_work
from headway.engines.spark.wire.native import plan_native
from headway.program import compile_program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NETWORK: dict[str, Any] = {
    "network": "universal",
    "sources": {"s": {"schema": "a int"}, "r": {"schema": "a int"}},
    "boxes": {
        "drawn": {"op": "universal", "in": ["s", "r"], "selectivity": 1.4, "seed": 7, "cost": {"uniform": [0, "1us"]}},
        "even": {"op": "universal", "in": "drawn", "selectivity": 0.3, "mode": "even"},
        "again": {"op": "universal", "in": "drawn", "selectivity": 0.5, "cost": "1ms"},
        "late": {"op": "universal", "in": "even", "selectivity": 0.5},
    },
    "outputs": {"drawn": {"from": "drawn"}, "again": {"from": "again"}, "late": {"from": "late"}},
}


def test_the_same_tuples_as_on_the_local_engine(spark: SparkSession) -> None:
    rows = {"s": [(at,) for at in range(100)], "r": [(at,) for at in range(1000, 1060)]}
    here, there = (hw.run(NETWORK, rows, engine=engine) for engine in ("local", "spark"))
    for name in NETWORK["outputs"]:
        assert there.outputs[name].to_pydict() == here.outputs[name].to_pydict()
    assert 160 < here.outputs["drawn"].num_rows < 320
    box = there.summary["boxes"]["again"]
    assert box["seconds"] >= 0.001 * box["tuples_in"]


def test_spark_itself_never_runs_it() -> None:
    program = compile_program(hw.check(hw.load(NETWORK)))
    (unit,) = cut(program, 2, [["drawn", "again"]]).units[:1]
    work = make_work(program, unit, 2)
    assert plan_native(program, unit, work.lanes) == "box 'drawn': universal is not native; filter, map and union are"
