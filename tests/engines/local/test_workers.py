"""Who carries steps out."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from headway.engines.local.engine import Job, Pool


def job(unit: int) -> Job:
    """Return a step of one tuple."""
    return Job(unit, 1, None, None, 1)


def test_a_pool_runs_steps_at_the_same_time() -> None:
    together = threading.Barrier(2, timeout=10)
    wake = threading.Event()
    names: set[str] = set()

    def run(one: Job, worker: int) -> None:
        together.wait()
        names.add(threading.current_thread().name)
        np.float64(1) / np.float64(0)  # numpy is quiet in workers
        if one.unit == 1:
            raise KeyError("one")

    pool = Pool(run, 2, wake)
    try:
        pool.start(job(0))
        pool.start(job(1))
        assert pool.free == 0
        done: list[tuple[Job, BaseException | None]] = []
        while len(done) < 2:
            done += pool.done(5.0)
        assert pool.free == 2
        assert wake.is_set()
        assert len(names) == 2
        assert sorted(type(error).__name__ for _, error in done) == ["KeyError", "NoneType"]
        assert pool.done(None) == []
        assert pool.done(0.001) == []
    finally:
        pool.close()
    assert not [one for one in threading.enumerate() if one.name in names]


@pytest.mark.parametrize("count", [1, 3])
def test_a_pool_finishes_what_it_was_given_before_it_closes(count: int) -> None:
    ran: list[int] = []
    pool = Pool(lambda one, worker: ran.append(one.unit), count, threading.Event())
    for at in range(count):
        pool.start(job(at))
    pool.close()
    assert sorted(ran) == list(range(count))
    pool.close()
