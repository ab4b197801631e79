"""Running networks: what their handles do, and what they refuse."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

import headway as hw
from headway.engines.process.runtime import Runtime
from headway.errors import HeadwayError, InputError, NetworkError, OutputError, RunError
from headway.running import Running

PATIENCE = 20.0


def network(floor: int = 0, size: int = 3, **more: Any) -> dict[str, Any]:
    return {
        "network": "living",
        "sources": {"s": {"schema": {"a": "bigint", "v": "int"}, "push": True}},
        "boxes": {
            "f": {"op": "filter", "in": "s", "where": f"v >= {floor}"},
            "w": {"op": "aggregate", "in": "f", "select": "count(*) as n", "order": {"on": "a"}, "size": size},
        },
        "outputs": {"passed": {"from": "f"}, "counts": {"from": "w"}},
    } | more


COUNT = {
    "attach": "q",
    "since": "now",
    "boxes": {"c": {"op": "aggregate", "in": "f", "select": "count(*) as n", "order": {"on": "a"}, "size": 2}},
    "outputs": {"x": {"from": "c"}},
}


def rows(first: int, last: int) -> list[dict[str, int]]:
    return [{"a": at, "v": at} for at in range(first, last)]


@pytest.fixture
def run() -> Iterator[Running]:
    running = hw.start(network(), engine="local")
    yield running
    if not running.ended:
        running._control.stop()
        running.wait(PATIENCE)


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


# Pushing


def test_pushed_tuples_get_numbers_one_after_the_other(run: Running) -> None:
    assert run.push("s", rows(0, 10)) == 9
    assert run.push("s", pa.Table.from_pylist(rows(10, 12), pa.schema([("a", pa.int64()), ("v", pa.int32())]))) == 11
    assert run.push("s", []) == 11
    assert run.stop().outputs["passed"].to_pylist() == rows(0, 12)


def test_a_full_inbox_refuses_what_does_not_want_to_wait(run: Running) -> None:
    run.pause()
    inbox = run._inboxes["s"]
    inbox._limit = 5  # type: ignore[union-attr]
    with inbox._room:  # type: ignore[union-attr]
        inbox._waiting += 5  # type: ignore[union-attr]
    for options in ({"wait": False}, {"timeout": 0.02}):
        with pytest.raises(InputError, match="no room for 2 tuples"):
            run.push("s", rows(0, 2), **options)
    with inbox._room:  # type: ignore[union-attr]
        inbox._waiting -= 5  # type: ignore[union-attr]
    run.resume()
    assert run.push("s", rows(0, 2)) == 1


def test_a_push_that_is_not_let_in_in_time_is_taken_back() -> None:
    run = hw.start(network(), engine="local", memory=100)
    run.pause()
    run.push("s", rows(0, 20))
    for _ in range(2):
        with pytest.raises(InputError, match="not let in"):
            run.push("s", rows(50, 60), timeout=0.05, client="a", sequence=1)
    run.resume()
    run.push("s", rows(20, 30), client="a", sequence=1)
    assert run.stop().outputs["passed"].to_pylist() == rows(0, 30)


def test_a_numbered_push_counts_once(run: Running) -> None:
    assert run.push("s", rows(0, 5), client="a", sequence=1) == 4
    assert run.push("s", rows(0, 5), client="a", sequence=1) == 4
    assert run.push("s", rows(0, 5), client="b", sequence=1) == 9
    assert run.push("s", rows(5, 6), client="a", sequence=7) == 10
    assert run.push("s", rows(5, 6), client="a", sequence=3) == 10
    assert run.stop().summary["sources"]["s"]["tuples"] == 11


def test_a_numbered_push_that_is_repeated_in_flight_counts_once() -> None:
    run = hw.start(network(), engine="local", memory=100)
    run.pause()
    run.push("s", rows(0, 20))
    with ThreadPoolExecutor(8) as pool:
        pushes = [pool.submit(run.push, "s", rows(20, 30), client="a", sequence=1) for _ in range(8)]
        time.sleep(0.05)
        run.resume()
        assert {push.result(PATIENCE) for push in pushes} == {29}
    assert run.stop().outputs["passed"].to_pylist() == rows(0, 30)


def test_client_and_sequence_belong_together(run: Running) -> None:
    with pytest.raises(InputError, match="both client and sequence"):
        run.push("s", rows(0, 1), client="a")


def test_of_rows_that_do_not_fit_none_enters(run: Running) -> None:
    with pytest.raises(InputError, match="'s'"):
        run.push("s", [{"a": 1, "v": 1}, {"a": "x", "v": 2}])
    with pytest.raises(InputError, match="not str"):
        run.push("s", "rows.csv")
    assert run.push("s", rows(0, 1)) == 0


def test_nothing_is_pushed_after_the_end(run: Running) -> None:
    run.push("s", rows(0, 4))
    run.end("s")
    run.end("s")
    run.wait(PATIENCE)
    with pytest.raises(InputError, match="source 's' has ended"):
        run.push("s", rows(4, 5))


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


def test_a_push_that_waits_ends_with_the_run() -> None:
    run = hw.start(network(), engine="local", memory=100)
    run.pause()
    run.push("s", rows(0, 20))
    with ThreadPoolExecutor(1) as pool:
        push = pool.submit(run.push, "s", rows(20, 30))
        time.sleep(0.05)
        run._control.stop()
        with pytest.raises(RunError, match="ended"):
            push.result(PATIENCE)


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


# Subscriptions


def test_a_subscription_gets_what_comes_and_ends_with_the_run(run: Running) -> None:
    run.push("s", rows(0, 3))
    until(lambda: run.read("passed").num_rows == 3)
    heard = run.subscribe("passed")
    run.push("s", rows(3, 7))
    run.stop()
    assert [row for batch in heard for row in batch.to_pylist()] == rows(3, 7)
    assert heard.reason == ""


def test_a_subscription_ends_when_its_output_is_removed(run: Running) -> None:
    heard = run.subscribe("counts")
    run.push("s", rows(0, 7))
    left = network()
    del left["outputs"]["counts"]
    run.change(left)
    assert [row["n"] for batch in heard for row in batch.to_pylist()] == [3, 3]
    assert "was removed" in heard.reason
    assert run.stop().outputs["counts"].num_rows == 2


def test_a_subscription_ends_when_its_output_has_another_schema(run: Running) -> None:
    heard = run.subscribe("counts")
    run.push("s", rows(0, 7))
    other = network()
    other["boxes"]["w"]["select"] = "count(*) as many, sum(v) as total"
    with pytest.raises(RunError, match="restart"):
        run.change(other, restart=["w"])
    run.change(other, restart=["w", "counts"])
    assert [row["n"] for batch in heard for row in batch.to_pylist()] == [3, 3]
    assert "begins anew" in heard.reason
    run.push("s", rows(9, 15))
    assert run.stop().outputs["counts"].to_pylist() == [
        {"a": 9, "many": 3, "total": 30},
        {"a": 12, "many": 3, "total": 39},
    ]


def test_an_output_goes_to_another_file_from_the_seam_on(run: Running, tmp_path: Any) -> None:
    def to(name: str) -> dict[str, Any]:
        mapping = network()
        mapping["outputs"]["passed"] = {"from": "f", "sink": str(tmp_path / name)}
        return mapping

    run.change(to("one.jsonl"))
    run.push("s", rows(0, 4))
    run.change(to("two.jsonl"))
    run.push("s", rows(4, 9))
    run.stop()
    assert len((tmp_path / "one.jsonl").read_text().splitlines()) == 4
    assert len((tmp_path / "two.jsonl").read_text().splitlines()) == 5


def test_a_slow_reader_loses_its_subscription_or_the_oldest(run: Running) -> None:
    failing, dropping = run.subscribe("passed", limit=30), run.subscribe("passed", limit=30, slow="drop")
    for at in range(20):
        run.push("s", rows(at, at + 1))
    run.stop()
    with pytest.raises(OutputError, match="too slow"):
        list(failing)
    kept = [row for batch in dropping for row in batch.to_pylist()]
    assert kept == rows(20 - len(kept), 20)
    assert dropping.dropped == 20 - len(kept) > 0


def test_the_run_waits_for_a_reader_that_wants_everything(run: Running) -> None:
    heard = run.subscribe("passed", limit=30, slow="wait")
    with ThreadPoolExecutor(1) as pool:

        def push() -> Any:
            for at in range(30):
                run.push("s", rows(at, at + 1))
            return run.stop()

        result = pool.submit(push)
        assert [row for batch in heard for row in batch.to_pylist()] == rows(0, 30)
        assert result.result(PATIENCE).outputs["passed"].num_rows == 30


def test_a_subscription_may_be_closed(run: Running) -> None:
    with run.subscribe("passed") as heard:
        run.push("s", rows(0, 1))
    run.push("s", rows(1, 2))
    assert len(list(heard)) <= 1
    assert heard.reason == "closed"


# Changing


def test_a_change_that_would_lose_state_is_refused_and_the_run_goes_on(run: Running) -> None:
    run.push("s", rows(0, 4))
    for wrong, options in ((network(2), {}), (network(0, 5), {}), (network(0, 5), {"keep": ["w"]})):
        with pytest.raises(RunError, match="'w'"):
            run.change(wrong, **options)  # type: ignore[arg-type]
    assert run.version == 1
    run.push("s", rows(4, 6))
    assert run.stop().outputs["counts"].to_pylist() == [{"a": 0, "n": 3}, {"a": 3, "n": 3}]


def test_trying_changes_nothing(run: Running) -> None:
    change = run.change(network(3), keep="all", try_only=True)
    assert (change.seam, change.carried, change.replaced, run.version) == (None, ("w",), ("f",), 1)
    assert run.push("s", rows(0, 3)) == 2
    assert run.read("passed").num_rows == 3 or run.stop().outputs["passed"].num_rows == 3


def test_a_change_on_a_version_that_has_gone_is_refused(run: Running) -> None:
    base = run.version
    run.change(network(1), keep="all", base=base)
    with pytest.raises(RunError, match="at version 2"):
        run.change(network(2), keep="all", base=base)
    assert run.change(network(2), keep="all", base=2).version == 3


def test_kept_state_and_restarted_state(run: Running) -> None:
    run.push("s", rows(0, 5))
    kept = run.change(network(5), keep=["w"])
    assert kept.seam == 5
    run.push("s", rows(0, 6))
    again = run.change(network(5, 2), restart=["w"], flush=["w"])
    assert again.seam == 12
    run.push("s", rows(6, 9))
    result = run.stop().outputs["counts"].to_pylist()
    assert result == [{"a": 0, "n": 3}, {"a": 3, "n": 3}, {"a": 6, "n": 2}, {"a": 8, "n": 1}]


def test_what_is_paused_cannot_be_changed(run: Running) -> None:
    run.pause("w")
    run.push("s", rows(0, 9))
    with pytest.raises(RunError, match="'w' is paused"):
        run.change(network(1), keep="all")
    with pytest.raises(RunError, match="'w' is paused"):
        run.change(network(1), keep="all", try_only=True)
    run.resume("w")
    run.pause("f")
    behind = {
        "attach": "q",
        "boxes": {"g": {"op": "filter", "in": "w", "where": "true"}},
        "outputs": {"o": {"from": "g"}},
    }
    attached = run.attach(behind, since="now")
    with pytest.raises(RunError, match="'f' is paused"):
        attached.detach()
    run.resume("f")
    attached.detach()
    run.change(network(1), keep="all")
    assert [row["n"] for row in run.stop().outputs["counts"].to_pylist()] == [3, 3, 3]


def test_attached_again_under_its_name(run: Running) -> None:
    for first in (0, 10):
        with run.attach(COUNT) as attached:
            with pytest.raises(NetworkError, match="there is one of this name"):
                run.attach(COUNT)
            run.push("s", rows(first, first + 5))
            until(lambda one=attached: one.read().num_rows == 2)  # type: ignore[misc]
        assert [row["a"] for row in attached.read().to_pylist()] == [first, first + 2]
    assert dict(run.attached) == {}


def test_detaching_with_a_flush(run: Running) -> None:
    attached = run.attach(COUNT)
    run.push("s", rows(0, 5))
    attached.detach(flush=True)
    run.push("s", rows(5, 9))
    assert attached.read().to_pylist() == [{"a": 0, "n": 2}, {"a": 2, "n": 2}, {"a": 4, "n": 1}]
    attached.detach()


# Looking and steering


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


# The end


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


# In virtual time


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


def test_boxes_that_have_caught_up_read_their_arcs_again_as_if_nothing_had_been_changed(run: Running) -> None:
    run.change(network(1), keep="all")
    run.attach(COUNT)
    run.push("s", rows(0, 9))

    def folded(carrier: Any) -> bool:
        boxes, arcs = carrier.runtime.boxes, carrier.runtime.arcs.values()
        plain = all(box.branches is None and not any(cursor.apart for cursor in box.cursors) for box in boxes)
        return plain and not any(arc.queue.listeners for arc in arcs)

    until(lambda: run._now(folded))
    run.push("s", rows(9, 12))
    assert [row["n"] for row in run.stop().outputs["counts"].to_pylist()] == [2, 3, 3, 3]


def test_between_seal_and_swap_nothing_is_lost_of_arcs_that_nobody_has_read() -> None:
    def two(floor: int, **more: Any) -> dict[str, Any]:
        schema = {"a": "bigint", "v": "int"}
        boxes = {
            "m": {"op": "map", "in": "r", "select": "a, v"},
            "g": {"op": "filter", "in": "r", "where": "v >= 5"},
            "p": {"op": "map", "in": "s", "select": "a, v"},
            "q": {"op": "filter", "in": "p", "where": f"v >= {floor}"},
        }
        sources = {name: {"schema": schema, "push": True} for name in ("s", "r")}
        outputs = {"o": {"from": "q"}, "g": {"from": "g"}, **more}
        return {"network": "two", "sources": sources, "boxes": boxes, "outputs": outputs}

    run = hw.start(two(0), engine="local")
    run.pause("p")
    run._paused.clear()  # a change that has to wait for it is not refused then
    run.push("s", rows(1, 2))
    with ThreadPoolExecutor(1) as pool:
        change = pool.submit(run.change, two(2, late={"from": "m"}, lower={"from": "g.else"}))
        until(lambda: run._now(lambda carrier: carrier._seam is not None))
        run.push("r", rows(0, 9))
        run.push("s", rows(2, 3))
        run.resume("p")
        change.result(PATIENCE)
    with ThreadPoolExecutor(1) as pool:  # what waits within a chain is taken although nothing comes before it
        outputs = pool.submit(run.stop).result(PATIENCE).outputs
    found = {name: table.column("v").to_pylist() for name, table in outputs.items()}
    assert found == {"o": [1, 2], "g": [5, 6, 7, 8], "late": list(range(9)), "lower": list(range(5))}


POINT: dict[str, Any] = {"points": {"p": {"on": "s", "keep": "all"}}}
"""A point on the source of `network`."""


def query(name: str, item: str = "p", **more: Any) -> dict[str, Any]:
    return {
        "attach": name,
        "boxes": {"b": {"op": "filter", "in": item, "where": "true"}},
        "outputs": {"x": {"from": "b"}},
    } | more


def pairs(count: int) -> list[tuple[int, int]]:
    return [(at, 1) for at in range(count)]


def test_a_closed_subscription_lets_a_waiting_run_go_on_and_is_forgotten() -> None:
    with hw.start(network(), engine="local") as run:
        slow = run.subscribe("passed", limit=1, slow="wait")
        with ThreadPoolExecutor() as pool:
            pushes = [pool.submit(run.push, "s", pairs(10)) for _ in range(4)]
            time.sleep(0.1)
            pool.submit(slow.close).result(PATIENCE)
            slow.close()
            for one in pushes:
                one.result(PATIENCE)
        assert run._listening == []


@pytest.mark.parametrize("limit", ["1", -1, None, True, 1.5])
def test_a_bad_limit_of_a_subscription_is_refused(limit: Any) -> None:
    with (
        hw.start(network(), engine="local") as run,
        pytest.raises(OutputError, match="limit: expected a number of bytes"),
    ):
        run.subscribe("passed", limit=limit)


@pytest.mark.parametrize(("client", "sequence"), [("a", "b"), (3, 1), ("a", 1.5), ("a", True)])
def test_a_bad_sequence_is_refused(client: Any, sequence: Any) -> None:
    with hw.start(network(), engine="local") as run:
        with pytest.raises(InputError, match="client is a text and sequence a whole number"):
            run.push("s", pairs(1), client=client, sequence=sequence)
        assert run.push("s", pairs(1), client="a", sequence=1) == 0


def test_a_source_that_was_removed_or_changed_can_be_pushed_to_again() -> None:
    plain = network()
    two = network() | {"sources": {**plain["sources"], "t": plain["sources"]["s"]}}
    two["boxes"] = plain["boxes"] | {"g": {"op": "filter", "in": "t", "where": "true"}}
    two["outputs"] = plain["outputs"] | {"more": {"from": "g"}}
    with hw.start(two, engine="local") as run:
        run.push("t", pairs(2))
        run.change(plain)
        run.change(two)
        run.push("t", pairs(3))
        run.settle(PATIENCE)
        assert run.read("more").num_rows == 3
        wider = two | {"sources": {**two["sources"], "t": {"schema": {"c": "varchar"}, "push": True}}}
        run.change(wider, restart=["more"])
        run.push("t", [("x",)])
        run.settle(PATIENCE)
        assert run.read("more").to_pylist() == [{"c": "x"}]


def test_nothing_until_now_is_refused() -> None:
    with hw.start(network(**POINT), engine="local") as run:
        for item, since in (("p", "now"), ("f", "now"), ("f", None)):
            with pytest.raises(NetworkError, match=r"so nothing of '.' would ever be read"):
                run.attach(query("q", item, until="now"), since=since)


def test_a_question_that_another_fragment_reads_from_holds_up_nobody() -> None:
    with hw.start(network(points={"p": {"on": "f", "keep": "all"}}), engine="local") as run:
        run.pause("f")
        run.push("s", pairs(3))
        ask = run.attach(query("q", until="now"))
        reader = run.attach(query("r", "q/b", since="now"))
        run.resume("f")
        until(lambda: all(end.ended.done() for end in ask._done.values()))
        run.attach(query("other")).detach()
        reader.detach()
        assert ask.result(timeout=PATIENCE).num_rows == 3


def test_a_question_that_has_been_answered_does_not_keep_a_run_from_settling() -> None:
    with hw.start(network(**POINT), engine="local") as run:
        run.push("s", pairs(3))
        ask = run.attach(query("q", until="now"))
        until(lambda: all(end.ended.done() for end in ask._done.values()))
        run.push("s", pairs(3))
        run.settle(PATIENCE)
        assert ask.result(timeout=PATIENCE).num_rows == 3


def test_many_ask_at_once() -> None:
    with hw.start(network(**POINT), engine="local") as run, ThreadPoolExecutor(6) as pool:
        run.push("s", pairs(20))

        def ask(at: int) -> int:
            return len(run.attach(query(f"q{at}", until="now")).result(timeout=PATIENCE))

        assert list(pool.map(ask, range(40))) == [20] * 40


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("other", [{"on": "f"}, {"on": "s", "key": "v"}])
def test_a_point_that_is_restarted_begins_anew(tmp_path: Any, kept: bool, other: dict[str, Any]) -> None:
    history = str(tmp_path) if kept else None
    with hw.start(network(**POINT), engine="local", history=history) as run:
        run.push("s", pairs(5))
        run.settle(PATIENCE)
        run.change(network(points={"p": {**other, "keep": "all"}}), restart=["p"])
        run.push("s", pairs(3))
        run.settle(PATIENCE)
        assert run.read("p").num_rows == 3
        assert run.attach(query("q", until="now")).result(timeout=PATIENCE).num_rows == 3


def test_a_point_that_comes_back_has_no_gap() -> None:
    with hw.start(network(**POINT), engine="local") as run:
        for now in (network(), network(**POINT)):
            run.push("s", pairs(5))
            run.settle(PATIENCE)
            run.change(now)
        run.push("s", pairs(3))
        run.settle(PATIENCE)
        assert run.read("p").num_rows == 3


def test_a_history_that_cannot_be_opened_refuses_the_change(tmp_path: Any) -> None:
    with hw.start(network(**POINT), engine="local", history=str(tmp_path)) as run:
        run.push("s", pairs(5))
    (tmp_path / "full").write_text("not a folder")
    with hw.start(network(), engine="local", history=str(tmp_path)) as run:
        for name, error in (("p", "its storage key was"), ("full", "cannot be opened")):
            with pytest.raises(RunError, match=error):
                run.change(network(points={name: {"on": "s", "keep": "all", "key": "v"}}))
        run.push("s", pairs(2))
        run.settle(PATIENCE)
        assert run.read("passed").num_rows == 2


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
