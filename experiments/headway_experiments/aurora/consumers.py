"""The network of forty boxes: position reports for ten consumers, four boxes deep, and how it is run.

The paper's network had about forty boxes, was about four deep, and served consumers whose QoS differed; more is not
said. Here each consumer gets the reports of a region, in other units, of some units only, and with a label. In the
paper 3,200 box calls gave 830 results. A region holds about half of all reports and a consumer cares for about half
of the units, so that a train of four that goes through four boxes leaves one result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from headway.builder import NetworkBuilder
from headway.network import Network
from headway.runner import run

CONSUMERS = 10
UNITS = 500
WIDTH = 100.0
TRAIN = 4
SCHEMA = "time bigint, unit int, x double"

ALONE, TRAINS, BOTH = "a tuple at a time", "trains", "trains and superboxes"


def policy(discipline: str, train: int = TRAIN, plans: str = "/plan:1") -> str:
    """Return a discipline's schedule: with `plan:1` the scheduler is asked for each step, as in the paper."""
    schedules = {
        ALONE: "round-robin/box/1",
        TRAINS: f"round-robin/box/{train}",
        BOTH: f"round-robin/superbox/mc/{train}",
    }
    return schedules[discipline] + plans


def make_network() -> Network:
    """Return the forty boxes."""
    network = NetworkBuilder("consumers")
    reports = network.source("reports", SCHEMA)
    for at in range(CONSUMERS):
        low = at * WIDTH / 2 / CONSUMERS
        here = reports.filter(f"x >= {low} and x < {low + WIDTH / 2}", name=f"region{at}")
        scaled = here.map("time, unit, x * 0.54 as x", name=f"scaled{at}")
        mine = scaled.filter(f"unit >= {at * UNITS // 20} and unit < {at * UNITS // 20 + UNITS // 2}", name=f"mine{at}")
        labelled = mine.map(f"time, unit, x + {at} as place", name=f"labelled{at}")
        good = 0.5 * (1 + at)
        labelled.output(f"consumer{at}", latency=[[0, 1], [good, 1], [2 * good, 0]])
    return network.build()


def make_reports(tuples: int, seed: int) -> pa.Table:
    """Return position reports, the same for the same seed."""
    chance = np.random.default_rng(seed)
    columns = {
        "time": np.arange(tuples, dtype=np.int64),
        "unit": chance.integers(0, UNITS, tuples).astype(np.int32),
        "x": chance.random(tuples) * WIDTH,
    }
    return pa.table(columns)


def run_reports(schedule: str, tuples: int, seed: int) -> Mapping[str, float]:
    """Run the network on the engine `local`, as fast as it takes reports; return times (s) and counts."""
    network = make_network()
    nowhere = dict.fromkeys([output.name for output in network.outputs])
    inputs = {"reports": make_reports(tuples, seed)}
    summary: Mapping[str, Any] = run(network, inputs, engine="local", policy=schedule, outputs=nowhere).summary
    return {
        "seconds": summary["seconds"],
        "scheduler": summary["time"]["scheduler"],
        "decisions": summary["plans"],
        "calls": summary["box_calls"],
        "results": summary["tuples_out"],
        "calls_per_second": summary["box_calls"] / summary["seconds"],
        "results_per_second": summary["tuples_out"] / summary["seconds"],
        "results_per_call": summary["tuples_out"] / summary["box_calls"],
    }
