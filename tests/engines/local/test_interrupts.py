"""Ctrl-C ends the inputs; what has arrived is processed and delivered."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import headway as hw
from tests.engines.local.networks import COUNT, POSITIVE, network, rows


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_drains(workers: int) -> None:
    seen: list[int] = []

    def interrupting(batch: pa.RecordBatch) -> None:
        if not seen:
            os.kill(os.getpid(), signal.SIGINT)
        seen.extend(batch.column(0).to_pylist())

    made = network({"b": POSITIVE, "c": COUNT}, {"o": "b", "n": "c"})
    before = signal.getsignal(signal.SIGINT)
    result = hw.run(made, {"s": rows(500_000)}, outputs={"o": interrupting}, train=100, workers=workers, engine="local")
    assert signal.getsignal(signal.SIGINT) is before
    assert result.summary["interrupted"]
    arrived = result.summary["tuples_in"]
    assert 0 < arrived < 500_000
    assert seen == list(range(arrived))
    assert sum(result.outputs["n"].column("n").to_pylist()) == arrived


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_ends_a_live_source_that_is_silent(workers: int) -> None:
    release = threading.Event()

    def live() -> Iterator[tuple[int, int]]:
        yield (1, 1)
        yield (2, 1)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        release.wait(20)

    made = network({"b": POSITIVE, "c": COUNT}, {"o": "b", "n": "c"})
    try:
        result: Any = hw.run(made, {"s": live()}, workers=workers, engine="local")
    finally:
        release.set()
    assert result.summary["interrupted"]
    assert result.outputs["o"].num_rows == 2
    assert result.outputs["n"].to_pylist() == [{"a": 0, "n": 2}]
