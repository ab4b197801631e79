"""Running networks: what their handles do, what they refuse, and how they end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import headway as hw
from headway.engines.process.runtime import Runtime
from headway.errors import HeadwayError, InputError, NetworkError, OutputError, RunError
from headway.running import Running
from tests.running.networks import COUNT, PATIENCE, network, rows, until


def test_after_the_run_handles_say_that_it_has_ended(run: Running) -> None:
    attached = run.attach(COUNT)
    run.push("s", rows(0, 4))
    run.stop()
    for late in (
        lambda: run.change(network(5)),
        lambda: run.attach({**COUNT, "attach": "late"}),
        lambda: run.subscribe("passed"),
        run.status,
        lambda: run.arc("f"),
    ):
        with pytest.raises(RunError, match="has ended"):
            late()
    assert run.read("passed").num_rows == 4
    assert attached.read().to_pylist() == [{"a": 0, "n": 2}, {"a": 2, "n": 2}]
    attached.detach()
    assert attached.result().num_rows == 2
    assert run.stop().outputs["passed"].num_rows == 4


@pytest.mark.parametrize(
    ("wrong", "error", "choice"),
    [
        (lambda run: run.push("t", []), InputError, "choices: s"),
        (lambda run: run.end("t"), InputError, "choices: s"),
        (lambda run: run.subscribe("x"), OutputError, "passed, counts|counts, passed"),
        (lambda run: run.read("x"), OutputError, "passed, counts|counts, passed"),
        (lambda run: run.pause("x"), RunError, "choices: f, w"),
        (lambda run: run.step("x"), RunError, "choices: f, w"),
        (lambda run: run.arc("x"), RunError, "choices: "),
        (lambda run: run.queue("x"), RunError, "choices: f, w"),
        (
            lambda run: run.attach({**COUNT, "boxes": {"c": {"op": "filter", "in": "x", "where": "true"}}}),
            NetworkError,
            "f",
        ),
        (lambda run: run.change(network(1), keep=["x"]), RunError, "choices: "),
        (lambda run: run.refresh("x"), NetworkError, "x"),
    ],
)
def test_unknown_names_list_the_choices(run: Running, wrong: Any, error: type[HeadwayError], choice: str) -> None:
    with pytest.raises(error, match=choice):
        wrong(run)
    assert run.push("s", rows(0, 1)) == 0
    assert run.version == 1
    assert "x" not in run._paused


def test_stepping_a_box(run: Running) -> None:
    run.pause("f")
    run.push("s", rows(0, 5))
    assert run.queue("f")["s"].num_rows == 5
    assert run.step("f", 2) == 2
    until(lambda: run.read("passed").num_rows == 2)
    assert run.queue("f")["s"].to_pylist() == rows(2, 5)
    run.resume("f")
    with pytest.raises(RunError, match="not paused"):
        run.step("f")
    with pytest.raises(RunError, match="pause it first"):
        run.step()
    assert run.arc("f", wait=0).num_rows <= 5
    assert run.stop().outputs["passed"].num_rows == 5


def test_policies_and_pauses_by_command(run: Running) -> None:
    run.policy("fifo")
    run.pause()
    until(lambda: run.status().paused)
    run.push("s", rows(0, 5))
    assert run.read("passed").num_rows == 0
    run.step("all", 2)
    until(lambda: run.read("passed").num_rows == 2)
    run.resume()
    until(lambda: run.read("passed").num_rows == 5)
    with pytest.raises(HeadwayError, match="unknown policy"):
        run.policy("x")
    with pytest.raises(RunError, match="without load shedding"):
        run.shed(True)
    with pytest.raises(RunError, match="no adaptive layer"):
        run.specify({})
    run.stop()


def test_a_run_ends_when_its_inputs_have(run: Running) -> None:
    run.push("s", rows(0, 4))
    with pytest.raises(TimeoutError):
        run.wait(0.01)
    run.end("s")
    assert run.wait(PATIENCE).outputs["counts"].to_pylist() == [{"a": 0, "n": 3}, {"a": 3, "n": 1}]


def test_without_a_state_a_run_cannot_be_kept(run: Running) -> None:
    with pytest.raises(RunError, match="state"):
        run.stop(drain=False)
    assert run.stop(drain=True).outputs["passed"].num_rows == 0


def test_stop_resumes_what_is_paused(run: Running) -> None:
    run.pause("f")
    run.push("s", rows(0, 5))
    assert run.stop().outputs["passed"].num_rows == 5


def test_a_context_ends_the_run() -> None:
    with hw.start(network(), engine="local") as run:
        run.push("s", rows(0, 5))
    assert run.wait(PATIENCE).outputs["passed"].num_rows == 5


def test_a_context_that_fails_ends_the_run_although_a_box_is_paused() -> None:
    running = []

    def fail() -> None:
        with hw.start(network(), engine="local") as run:
            running.append(run)
            run.pause("f")
            run.push("s", rows(0, 5))
            raise ValueError("no")

    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="no"):
        pool.submit(fail).result(PATIENCE)
    assert running[0].ended


def test_a_box_that_raises_ends_all_handles_with_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    call, calls = Runtime.call, [0]

    def explode(self: Runtime, *arguments: Any) -> Any:
        calls[0] += 1
        if calls[0] > 20:
            raise ValueError("boom")
        return call(self, *arguments)

    monkeypatch.setattr(Runtime, "call", explode)
    run = hw.start(network(), engine="local")
    heard = run.subscribe("passed")
    with ThreadPoolExecutor(4) as pool:
        reading = pool.submit(list, heard)

        def push() -> None:
            for at in range(10_000):
                run.push("s", rows(at, at + 1))

        pushing = pool.submit(push)
        with pytest.raises(RunError, match="boom"):
            run.wait(PATIENCE)
        with pytest.raises(HeadwayError, match=r"boom|ended"):
            pushing.result(PATIENCE)
        with pytest.raises(RunError, match="boom"):
            reading.result(PATIENCE)
    with pytest.raises(HeadwayError):
        run.change(network(1), keep="all")


def test_handles_may_be_used_from_many_threads() -> None:
    run = hw.start(network(), engine="local", train=5)
    end = time.monotonic() + 1.5
    pushed: list[tuple[int, int, int]] = []
    windows: list[tuple[int, Any]] = []
    lock = threading.Lock()

    def push(which: int) -> None:
        sequence = 0
        while time.monotonic() < end:
            value = which * 1_000_000 + sequence * 10
            last = run.push("s", [{"a": 0, "v": value + at} for at in range(3)])
            with lock:
                pushed.append((last, value, 3))
            sequence += 1

    def attach(which: int) -> None:
        at = 0
        while time.monotonic() < end:
            at += 1
            boxes = {"m": {"op": "map", "in": "s", "select": "v"}}
            fragment = {"attach": f"q{which}n{at}", "since": "now", "boxes": boxes, "outputs": {"x": {"from": "m"}}}
            attached = run.attach(fragment)
            first = attached.seam
            time.sleep(0.01)
            attached.detach()
            with lock:
                windows.append((first, attached.read().column("v").to_pylist()))

    def change() -> None:
        floor = 0
        while time.monotonic() < end:
            floor += 1
            run.change(network(-floor), keep="all")

    with ThreadPoolExecutor(6) as pool:
        for work in [
            pool.submit(push, 0),
            pool.submit(push, 1),
            pool.submit(attach, 0),
            pool.submit(attach, 1),
            pool.submit(change),
        ]:
            work.result(PATIENCE)
    result = run.stop()
    wanted = [value + at for last, value, count in sorted(pushed) for at in range(count)]
    assert result.outputs["passed"].column("v").to_pylist() == wanted
    numbers = {value + at: last - count + 1 + at for last, value, count in pushed for at in range(count)}
    assert len(windows) > 4
    for first, values in windows:
        if values:
            begin = wanted.index(values[0])
            assert values == wanted[begin : begin + len(values)]
            assert numbers[values[0]] > first
            assert not begin or numbers[wanted[begin - 1]] < first


def test_commands_for_moments_in_virtual_time() -> None:
    run = hw.start(network(), engine="sim")
    assert run.push("s", rows(0, 4), at=1.0) == -1
    change = run.change(network(3), keep="all", at=2.0)
    attached = run.attach(COUNT, at=2.0)
    run.push("s", rows(0, 8), at=3.0)
    late = run.change(network(6), keep="all", at=4.0)
    with pytest.raises(RunError, match="in their order"):
        run.push("s", rows(0, 1), at=2.5)
    result = run.wait(PATIENCE)
    assert (change.seam, attached.seam, late.seam) == (4, 5, 14)
    assert result.outputs["passed"].to_pylist() == rows(0, 4) + rows(3, 8)
    assert attached.read().to_pylist() == [{"a": 2, "n": 1}, {"a": 4, "n": 2}, {"a": 6, "n": 2}]
    with pytest.raises(RunError, match="has run"):
        run.push("s", rows(0, 1), at=5.0)


def test_moments_are_for_virtual_time(run: Running) -> None:
    with pytest.raises(RunError, match="'sim'"):
        run.push("s", rows(0, 1), at=1.0)


def test_windows_time_out_as_if_others_had_not_been_changed() -> None:
    def outputs(changes: bool) -> list[dict[str, int]]:
        mapping = network()
        mapping["boxes"]["w"]["timeout"] = "1s"
        run = hw.start(mapping, engine="sim")
        for at in range(6):
            run.push("s", rows(at, at + 1), at=at * 0.7)
            if changes:
                run.attach({**COUNT, "attach": f"q{at}"}, at=at * 0.7 + 0.1)
        return list(run.wait(PATIENCE).outputs["counts"].to_pylist())

    assert outputs(True) == outputs(False)
    assert [row["n"] for row in outputs(True)] != [3, 3]


@pytest.mark.parametrize(
    "ask",
    [
        lambda run: run.push("s", rows(0, 1), timeout="x"),
        lambda run: run.wait("x"),
        lambda run: run.settle(-1),
        lambda run: run.arc("f", wait="x"),
        lambda run: run.arc("f", tuples="x"),
        lambda run: run.queue("f", 0),
        lambda run: run.step("f", True),
        lambda run: run.pause(["f"]),
    ],
)
def test_arguments_of_wrong_types_are_named(run: Running, ask: Callable[[Any], Any]) -> None:
    with pytest.raises(RunError, match=r"seconds, not|at least 1, not|by its name"):
        ask(run)
    run.push("s", rows(0, 1))
