"""Runs that are ended in every way, one after the other in one process; prints what came of each as JSON.

Arguments: the folder for the state and the outputs, and which ends: killed, terminated, continued, stopped. Must lead a
process group of its own.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession

import headway as hw

COUNT = 1500
folder = Path(sys.argv[1])
network: dict[str, Any] = {
    "network": "ending",
    "sources": {
        "s": {
            "schema": {"i": "bigint"},
            "source": {"generate": {"rate": 300, "count": COUNT, "fields": {"i": "i"}}},
        }
    },
    "boxes": {
        "c": {"op": "aggregate", "in": "s", "select": "count(*) as n", "order": {"on": "i"}, "size": 100},
    },
    "outputs": {"all": {"from": "s"}, "counts": {"from": "c"}, "seen": {"from": "s"}},
}


def attempt(name: str, disturb: Any, **how: Any) -> None:
    """Run, disturb at the second batch of results, and print what came of it."""
    batches: list[int] = []

    def see(batch: pa.RecordBatch) -> None:
        batches.append(batch.num_rows)
        if len(batches) == 2 and disturb is not None:
            disturb()

    outputs: dict[str, Any] = {"all": str(folder / "all.csv"), "counts": str(folder / "counts.parquet"), "seen": see}
    try:
        result = hw.run(network, engine="spark", outputs=outputs, **how)
    except hw.HeadwayError as error:
        told: dict[str, Any] = {"error": str(error)}
    else:
        told = {key: result.summary.get(key) for key in ("interrupted", "stopped_by", "state", "tuples_in")}
    files = sorted(path.name for path in folder.iterdir() if path.is_file())
    print(json.dumps({"name": name, "files": files, **told}), flush=True)


def kill_jvm() -> None:
    """Kill the JVM, as the system does when memory runs out."""
    process: Any = SparkContext._gateway
    os.kill(process.proc.pid, signal.SIGKILL)


def terminate() -> None:
    """Send SIGTERM to all processes of the run."""
    os.killpg(0, signal.SIGTERM)


def stop_session() -> None:
    """Stop the session from another thread."""
    session = SparkSession.getActiveSession()
    assert session is not None
    threading.Thread(target=session.stop, daemon=True).start()


ends = {"killed": kill_jvm, "terminated": terminate, "continued": None, "stopped": stop_session}
for end in sys.argv[2:]:
    for file in ("all.csv", "counts.parquet"):
        (folder / file).unlink(missing_ok=True)
    attempt(end, ends[end], **({} if end == "stopped" else {"state": str(folder / "state")}))
