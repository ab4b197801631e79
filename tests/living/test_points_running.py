"""Connection points, views and stored data of a running network."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headway as hw
from headway.errors import HeadwayError, InputError, NetworkError, RunError
from headway.history import History

NETWORK: dict[str, Any] = {
    "network": "n",
    "sources": {"s": {"schema": {"k": "int", "v": "bigint"}, "push": True}},
    "points": {"p": {"on": "f", "keep": "all", "time": "v", "key": "k"}},
    "boxes": {"f": {"op": "filter", "in": "s", "where": "v >= 0"}},
    "views": {"busy": {"from": "f", "keep": 5}},
    "outputs": {"all": {"from": "f"}},
}
ASK: dict[str, Any] = {
    "attach": "q",
    "until": "now",
    "boxes": {"g": {"op": "filter", "in": "p", "where": "k = 1"}},
    "outputs": {"o": {"from": "g"}},
}


def rows(start: int, stop: int) -> list[tuple[int, int]]:
    return [(at % 3, at) for at in range(start, stop)]


def ones(start: int, stop: int) -> list[dict[str, int]]:
    return [{"k": k, "v": v} for k, v in rows(start, stop) if k == 1]


def test_history_is_in_files_that_others_read_and_a_later_run_goes_on_with(tmp_path: Path) -> None:
    with hw.start(NETWORK, engine="local", history=str(tmp_path)) as run:
        run.push("s", rows(0, 100))
        assert run.attach(ASK).result().to_pylist() == ones(0, 100)
    files = sorted((tmp_path / "p").glob("*.parquet"))
    table = pa.concat_tables([pq.read_table(file) for file in files])
    assert sorted(table["v"].to_pylist()) == list(range(100))
    assert table["k"].to_pylist() == sorted(table["k"].to_pylist()), "sorted by storage key"
    with duckdb.connect() as other:
        [[count]] = other.execute(f"select count(*) from '{tmp_path}/p/*.parquet' where k = 1").fetchall()
    assert count == len(ones(0, 100))
    with hw.start(NETWORK, engine="local", history=str(tmp_path)) as run:
        last = run.push("s", rows(100, 110))
        assert last >= 109, "numbers go on, or a point could not tell old from new"
        assert run.attach(ASK).result().to_pylist() == ones(0, 110)


def test_a_history_of_another_point_is_refused(tmp_path: Path) -> None:
    with hw.start(NETWORK, engine="local", history=str(tmp_path)) as run:
        run.push("s", rows(0, 10))
    other = {**NETWORK, "points": {"p": {"on": "f", "keep": "all", "time": "v", "key": "v"}}}
    with pytest.raises(HeadwayError, match="key"):
        hw.start(other, engine="local", history=str(tmp_path))


def test_what_is_asked_of_points_in_vain() -> None:
    with hw.start({**NETWORK, "points": {"p": {"on": "f", "keep": 10, "time": "v"}}}, engine="local") as run:
        run.push("s", rows(0, 100))
        with pytest.raises(NetworkError, match=r"unknown input 'nope'.*choices: p"):
            run.attach({**ASK, "boxes": {"g": {"op": "filter", "in": "nope", "where": "true"}}})
        with pytest.raises(HeadwayError, match="'name'"):
            run.attach({**ASK, "boxes": {"g": {"op": "filter", "in": "p", "where": "name = 'x'"}}})
        with pytest.raises(RunError, match=r"point 'p' does not keep so much: since 50s.*not older than 90"):
            run.attach(ASK, since="50 seconds")
        with pytest.raises(RunError, match="until is 'now'"):
            run.attach(ASK, until="tomorrow")
        assert run.attach(ASK, since="5 seconds").result().to_pylist() == ones(94, 100)
        assert run.push("s", rows(100, 101)) > 0, "the run goes on undisturbed"


def test_a_view_keeps_what_its_keep_says_and_is_read_at_any_time() -> None:
    with hw.start(NETWORK, engine="local") as run:
        run.push("s", rows(0, 20))
        deadline = time.monotonic() + 10
        while run.read("busy").num_rows < 5 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert run.read("busy")["v"].to_pylist() == [15, 16, 17, 18, 19]
        assert run.attach({**ASK, "boxes": {"g": {"op": "filter", "in": "busy", "where": "true"}}}).result(
            timeout=10
        ).num_rows == len(run.read("busy"))
        assert run.read("p")["v"].to_pylist() == list(range(20))


def test_a_failing_disk_is_said_once_and_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(history: History, train: Any) -> None:
        raise RunError("the history cannot be written: no space left on device")

    with hw.start(NETWORK, engine="local") as run:
        run.push("s", rows(0, 10))
        monkeypatch.setattr(History, "append", full)
        run.push("s", rows(10, 20))
        while run.status().queued:
            time.sleep(0.01)
        with pytest.raises(RunError, match=r"point 'p' keeps nothing more: .*no space left"):
            run.attach(ASK)
        assert run.read("all")["v"].to_pylist() == list(range(20))
        result = run.stop()
    assert "no space left" in result.summary["points"]["p"]["failed"]


def test_stored_data_is_read_again_at_a_seam(tmp_path: Path) -> None:
    names = tmp_path / "names.csv"
    names.write_text("k,name\n0,Ada\n1,Ben\n")
    network = {
        **NETWORK,
        "points": {"names": {"data": str(names)}},
        "views": {},
        "boxes": {"j": {"op": "join", "in": ["s", "names"], "on": "left.k = right.k", "select": "v, name"}},
        "outputs": {"all": {"from": "j"}},
    }
    with hw.start(network, engine="local") as run:
        run.push("s", [(0, 1), (1, 2)])
        names.write_text("k,name\n0,Cleo\n1,Dan\n")
        run.push("s", [(0, 3)])
        run.refresh("names")
        run.push("s", [(1, 4)])
        with pytest.raises(NetworkError, match="choices: names"):
            run.refresh("nope")
        result = run.stop()
    found = [(row["v"], row["name"]) for row in result.outputs["all"].to_pylist()]
    assert found == [(1, "Ada"), (2, "Ben"), (3, "Ada"), (4, "Dan")]


def test_the_way_to_read_history_is_explained() -> None:
    with hw.start(NETWORK, engine="local") as run:
        run.push("s", rows(0, 10))
        assert "reads point 'p': " in run.explain(ASK)
        now = {**ASK, "since": "now"}
        del now["until"]
        assert "its input begins now" in run.explain(now)


def test_only_one_run_at_a_time_uses_a_folder(tmp_path: Path) -> None:
    with hw.start(NETWORK, engine="local", history=str(tmp_path)) as run:
        run.push("s", rows(0, 10))
        with pytest.raises(RunError, match="in use by another run"):
            hw.start(NETWORK, engine="local", history=str(tmp_path))
    with hw.start(NETWORK, engine="local", history=str(tmp_path)) as run:
        assert run.read("p").num_rows == 10
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="is not a folder"):
        hw.start(NETWORK, engine="local", history=str(tmp_path / "file"))


def test_a_damaged_history_is_the_askers_error_and_the_run_goes_on(tmp_path: Path) -> None:
    with hw.start(NETWORK, engine="local", history=str(tmp_path)) as run:
        run.push("s", rows(0, 1000))
    [file] = (tmp_path / "p").glob("*.parquet")
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 1
    file.write_bytes(data)
    with hw.start(NETWORK, engine="local", history=str(tmp_path)) as run:
        with pytest.raises(HeadwayError, match=file.name):
            run.attach({**ASK, "boxes": {"g": {"op": "filter", "in": "p", "where": "true"}}}).result(timeout=10)
        run.push("s", rows(0, 5))
        run.settle(10)
        assert run.read("all").num_rows == 5


def test_a_push_that_does_not_wait_is_refused_by_a_run_that_is_held_up() -> None:
    with hw.start({**NETWORK, "points": {}, "views": {}}, engine="local", memory=1000) as run:
        run.pause("f")

        def push() -> None:
            for at in range(100):
                run.push("s", rows(at * 100, at * 100 + 100), wait=False)

        with pytest.raises(InputError, match="was not let in"):
            push()
        run.resume("f")


def test_views_are_in_the_result_and_points_while_the_run_goes_on() -> None:
    with hw.start(NETWORK, engine="local") as run:
        run.push("s", rows(0, 20))
    assert run.wait().outputs["busy"]["v"].to_pylist() == [15, 16, 17, 18, 19]
    assert run.read("busy").num_rows == 5
    with pytest.raises(HeadwayError, match="while the run goes on"):
        run.read("p")
    assert not run.wait().summary["interrupted"], "it was stopped as its inputs were ended"


def test_in_virtual_time_queries_come_and_go() -> None:
    with hw.start(NETWORK, engine="sim") as run:
        run.push("s", rows(0, 10), at=1.0)
        attached = run.attach({k: v for k, v in ASK.items() if k != "until"}, at=2.0)
        with pytest.raises(RunError, match="has not begun"):
            _ = attached.seam
        run.push("s", rows(10, 20), at=3.0)
        attached.detach(at=4.0)
        run.push("s", rows(20, 30), at=5.0)
        with pytest.raises(RunError, match="a moment in seconds"):
            run.push("s", rows(30, 31), at="noon")  # type: ignore[arg-type]
    assert attached.read().to_pylist() == ones(0, 20)
    assert attached.seam > 0


def test_a_history_without_its_list_of_files_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    with hw.start(NETWORK, engine="local", history=str(tmp_path)) as run:
        run.push("s", rows(0, 10))
    files = sorted(path.name for path in (tmp_path / "p").glob("*.parquet"))
    next((tmp_path / "p").glob("manifest*")).unlink()
    with pytest.raises(RunError, match="has files, but not"):
        hw.start(NETWORK, engine="local", history=str(tmp_path))
    assert sorted(path.name for path in (tmp_path / "p").glob("*.parquet")) == files


def test_an_output_that_has_begun_at_a_seam_delivers_without_a_gate_then() -> None:
    more = {**NETWORK, "outputs": {"all": {"from": "f"}, "again": {"from": "f"}}}
    with hw.start(NETWORK, engine="local") as run:
        run.push("s", rows(0, 5))
        run.change(more)
        run.push("s", rows(5, 9))
        run.settle(10)
        deliveries = run.ask(lambda carrier: list(carrier.runtime.arcs["f"].deliveries)).result(10)
        assert [type(one).__name__ for one in deliveries] == ["Delivery"] * 3
        assert run.read("again")["v"].to_pylist() == [5, 6, 7, 8]


def test_a_question_to_a_history_that_has_failed_gets_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(history: History, since: Any = None, upto: Any = None) -> Any:
        raise RunError("history file 'x.parquet' is damaged")

    with hw.start(NETWORK, engine="local") as run:
        run.push("s", rows(0, 5))
        monkeypatch.setattr(History, "first_since", damaged)
        with pytest.raises(RunError, match="is damaged"):
            run.attach(ASK).result(timeout=10)
        run.push("s", rows(5, 6))
        run.settle(10)
        assert run.read("all").num_rows == 6


def test_what_was_only_tried_leaves_nothing_behind(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    more = {**NETWORK, "outputs": {"all": {"from": "f"}, "file": {"from": "f", "sink": str(target)}}}
    with hw.start(NETWORK, engine="local") as run:
        assert run.change(more, try_only=True).outputs_added == ("file",)
        assert list(tmp_path.iterdir()) == []
        with pytest.raises(HeadwayError, match="r2"):
            run.change({**NETWORK, "sources": {**NETWORK["sources"], "r2": {"schema": {"a": "int"}}}}, try_only=True)
        run.change(more)
        run.push("s", rows(0, 3))
    assert target.read_text().count("\n") == 4
