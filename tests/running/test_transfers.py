"""Data in and out of running networks: pushes and subscriptions."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

import headway as hw
from headway.errors import InputError, OutputError, RunError
from headway.running import Running
from tests.running.networks import PATIENCE, network, pairs, rows, until


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
