"""Running networks are changed: attached to, detached from, given another version."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import headway as hw
from headway.errors import NetworkError, RunError
from headway.running import Running
from tests.running.networks import COUNT, PATIENCE, POINT, network, pairs, query, rows, until


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
