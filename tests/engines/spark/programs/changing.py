"""Run a network on Spark that changes again and again: EVENTS STATE FOLDER RATE PAUSE.

Every process goes on with the network as of the log, and makes the changes that are left. Executors write history in
many small files, so that kills hit them at it.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.feather as feather

import headway as hw
from headway.clock import SECOND
from headway.engines import histories
from headway.engines.spark.driver import points
from headway.history import Writers

LATE = {"op": "aggregate", "in": "high", "select": "count(*) as n", "order": {"on": "time"}, "size": 5}
BOTH = {"op": "aggregate", "in": "counts", "select": "sum(n) as n", "order": {"on": "time", "slack": 3}, "size": 50}
STEPS: list[tuple[int, int, bool, dict[str, Any]]] = [
    (3, 0, False, {}),
    (6, 0, False, {"keep": "all"}),
    (6, 5, True, {}),
    (2, 5, True, {"keep": "all"}),
    (2, 9, True, {"restart": ["late"]}),
    (4, 0, False, {"keep": "all", "flush": "all"}),
]
"""By change: the threshold, the size of the windows of another query (0: there is none), whether a query reads what the
count makes, and what happens to state."""


def network(threshold: int, size: int, both: bool = False) -> dict[str, Any]:
    """Return the network of a step."""
    quick, slow = ({"latency": [[0, 1], [good, 1], [5, 0]]} for good in (1, 2))
    order = {"on": "time"}
    return {
        "network": "changing",
        "sources": {"s": {"schema": {"id": "int", "time": "bigint", "k": "int", "v": "int"}}},
        "boxes": {
            "high": {"op": "filter", "in": "s", "where": [f"v > {threshold}"]},
            "counts": {
                "op": "aggregate",
                "in": "high",
                "select": "count(*) as n, sum(v) as total, last(id) as last",
                "order": {**order, "by": ["k"]},
                "size": 10,
            },
            "plain": {"op": "aggregate", "in": "s", "select": "count(*) as n", "order": order, "size": 7},
            **({"late": {**LATE, "size": size}} if size else {}),
            **({"both": BOTH} if both else {}),
        },
        "points": {"arrived": {"on": "s", "keep": "all"}},
        "outputs": {
            "counts": {"from": "counts", "qos": quick},
            "plain": {"from": "plain", "qos": slow},
            **({"late": {"from": "late", "qos": slow}} if size else {}),
            **({"both": {"from": "both", "qos": slow}, "again": {"from": "counts", "qos": quick}} if both else {}),
        },
    }


def main() -> None:
    """Run to the end; tables are left in the folder."""
    events, state, folder, rate, pause = sys.argv[1:]
    opened: Any = histories
    points.LEAST, opened.Writers = 1, partial(Writers, patience=SECOND // 2)
    networks = [hw.load(network(threshold, size, both)) for threshold, size, both, _ in STEPS]
    options: dict[str, Any] = {"master": "local[2]", "state": state, "rates": {"s": float(rate)}, "keep": 1e6}
    run = hw.start(networks[0], {"s": events}, engine="spark", train=60, **options)
    for step in range(networks.index(run.network) + 1, len(STEPS)):
        time.sleep(float(pause))
        Path(folder, f"asked-{step}").touch()
        run.change(networks[step], **STEPS[step][3])
        Path(folder, f"done-{step}").touch()
    for name, table in run.wait().outputs.items():
        feather.write_feather(table, str(Path(folder, f"{name}.arrow")), compression="uncompressed")
    print("complete")


if __name__ == "__main__":
    main()
