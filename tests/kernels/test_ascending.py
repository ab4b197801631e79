"""Long ascending trains take a shorter way; it must lead to the same results as the general one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import headway as hw
from tests.searching import examples

SELECT = "count(*) as n, sum(v) as s, avg(v) as m, min(v) as low, max(v) as high, first(v) as f, last(v) as l"


def network(time: str, by: list[str], wheres: list[str], size: int) -> dict[str, Any]:
    boxes: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    for at, where in enumerate(wheres):
        boxes[f"chosen{at}"] = {"op": "filter", "in": "s", "where": where}
        boxes[f"windows{at}"] = {
            "op": "aggregate",
            "in": f"chosen{at}",
            "select": SELECT,
            "order": {"on": "t", "by": by},
            "size": size,
        }
        outputs[f"o{at}"] = {"from": f"windows{at}"}
    schema = {"t": time, "k": "int", "v": "bigint"}
    return {"network": "n", "sources": {"s": {"schema": schema}}, "boxes": boxes, "outputs": outputs}


def naive(rows: list[tuple[Any, int, int]], by: list[str], keep: Any, size: int) -> dict[tuple[Any, ...], list[int]]:
    windows: dict[tuple[Any, ...], list[int]] = {}
    for t, k, v in rows:
        if keep(v):
            windows.setdefault((t // size * size, *([k] if by else [])), []).append(v)
    return windows


@examples(15)
@given(
    seed=st.integers(0, 10_000),
    time=st.sampled_from(["bigint", "double"]),
    by=st.sampled_from([[], ["k"]]),
    keys=st.sampled_from([(0, 1), (-3, 4), (5, 60), (0, 3000)]),
    size=st.sampled_from([1, 7, 100, 100_000]),
    steps=st.sampled_from([1, 5]),
    late=st.booleans(),
)
def test_the_shorter_way_leads_to_the_same(
    seed: int, time: str, by: list[str], keys: tuple[int, int], size: int, steps: int, late: bool
) -> None:
    chance = np.random.default_rng(seed)
    count = 3000
    times = np.cumsum(chance.integers(0, steps + 1, count)) - 50
    if late:  # a few tuples out of order: their trains take the general way, the others go on from there
        times[chance.integers(0, count, 3)] -= 20
    key = chance.integers(*keys, count).astype(np.int32)
    key[: count // 3] = keys[0]  # the others appear later
    table = pa.table(
        {"t": times.astype(np.int64 if time == "bigint" else np.float64), "k": key, "v": chance.integers(-9, 10, count)}
    )
    wheres = ["v > -100", "v > 2", "v > 8", "v > 100"]
    net = hw.load(network(time, by, wheres, size))
    general = hw.run(net, {"s": table}, policy="round-robin/box", train=100, engine="local")
    for train in (100_000, 700):
        direct = hw.run(net, {"s": table}, policy="round-robin/superbox", train=train, engine="local")
        for name, result in general.outputs.items():
            assert direct.outputs[name].equals(result), name
    if not late:
        rows = list(zip(times.tolist(), key.tolist(), table["v"].to_pylist(), strict=True))
        for at, bound in enumerate((-100, 2, 8, 100)):
            expected = naive(rows, by, lambda v, bound=bound: v > bound, size)
            actual = {
                (row["t"], *([row["k"]] if by else [])): [
                    row["n"],
                    row["s"],
                    row["low"],
                    row["high"],
                    row["f"],
                    row["l"],
                ]
                for row in general.outputs[f"o{at}"].to_pylist()
            }
            assert actual == {
                window: [len(vs), sum(vs), min(vs), max(vs), vs[0], vs[-1]] for window, vs in expected.items()
            }
