"""What is kept of the outputs of a running network, and when their files are complete, as its file says."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import headway as hw
from headway.errors import OutputError

NETWORK: dict[str, Any] = {
    "network": "n",
    "sources": {"s": {"schema": {"v": "bigint"}, "push": True}},
    "points": {"p": {"on": "s", "keep": "all"}},
    "boxes": {"b": {"op": "filter", "in": "s", "where": "v >= 0"}},
}
ASK: dict[str, Any] = {
    "attach": "q",
    "boxes": {"b": {"op": "filter", "in": "p", "where": "true"}},
    "outputs": {"o": {"from": "b", "keep": 2}},
}


def network(**output: Any) -> dict[str, Any]:
    return {**NETWORK, "outputs": {"o": {"from": "b", **output}}}


def push(run: Any, start: int, stop: int) -> None:
    """Push numbers, and wait until they are delivered."""
    run.push("s", [(at,) for at in range(start, stop)])
    deadline = time.monotonic() + 10
    while run.status().outputs["o"].tuples < stop and time.monotonic() < deadline:
        time.sleep(0.001)


def values(table: Any) -> list[int]:
    found: list[int] = table["v"].to_pylist()
    return found


def test_the_last_results_are_kept() -> None:
    with hw.start(network(keep=3), engine="local") as run:
        push(run, 0, 10)
        assert values(run.read("o")) == [7, 8, 9]
        push(run, 10, 12)
        assert values(run.stop().outputs["o"]) == [9, 10, 11]


def test_the_results_of_a_fragment_are_kept_as_it_says() -> None:
    with hw.start(network(), engine="local") as run:
        run.push("s", [(at,) for at in range(5)])
        attached = run.attach(ASK)
        run.push("s", [(5,)])
        assert values(run.stop().outputs[attached.outputs["o"]]) == [4, 5]


def test_results_grow_old_by_the_simulation_s_clock() -> None:
    fragment = {**ASK, "since": "now", "outputs": {"o": {"from": "b", "keep": "4500 ms"}}}
    run = hw.start(network(keep="4500 ms"), engine="sim")
    attached = run.attach(fragment, at=0.5)
    for at in range(1, 21):
        run.push("s", [(at,)], at=at)
    result = run.wait()
    assert values(result.outputs["o"]) == [16, 17, 18, 19, 20]
    assert values(result.outputs[attached.outputs["o"]]) == [16, 17, 18, 19, 20]


def test_another_amount_is_kept_after_a_change() -> None:
    with hw.start(network(), engine="local") as run:
        push(run, 0, 10)
        assert run.change(network(keep=4)).outputs_changed == ("o",)
        assert values(run.read("o")) == [6, 7, 8, 9]
        run.change(network(keep="1 hour"))
        push(run, 10, 12)
        assert values(run.read("o")) == [6, 7, 8, 9, 10, 11]
        run.change(network())
        assert len(values(run.read("o"))) == 6


def test_files_appear_while_it_runs(tmp_path: Path) -> None:
    rolled = network(sink=str(tmp_path / "o.csv"), roll="20 B", keep=6)
    with hw.start(rolled, engine="local") as run:
        push(run, 0, 30)
        names = [path.name for path in sorted(tmp_path.glob("*.csv"))]
        assert names[0] > "o-000001.csv", "what is not kept is deleted"
        assert (tmp_path / names[-1]).read_text().startswith("v\n")
    assert sorted(tmp_path.glob("*.csv"))[-1].read_text().endswith("29\n")


def test_files_are_complete_after_a_time_also_if_nothing_comes(tmp_path: Path) -> None:
    with hw.start(network(sink=str(tmp_path / "o.csv"), roll=["200 ms", "1 MB"]), engine="local") as run:
        push(run, 0, 2)
        deadline = time.monotonic() + 10
        while not (tmp_path / "o-000001.csv").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert (tmp_path / "o-000001.csv").read_text() == "v\n0\n1\n"


def test_a_change_may_begin_with_parts(tmp_path: Path) -> None:
    with hw.start(network(sink=str(tmp_path / "o.csv")), engine="local") as run:
        push(run, 0, 2)
        run.change(network(sink=str(tmp_path / "o.csv"), roll="150 ms"))
        assert (tmp_path / "o.csv").read_text() == "v\n0\n1\n"
        run.push("s", [(2,)])
        deadline = time.monotonic() + 10
        while not (tmp_path / "o-000001.csv").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert (tmp_path / "o-000001.csv").read_text() == "v\n2\n"


def test_what_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="output 'o': keep: nothing is deleted from a file; with roll"):
        hw.start(network(sink=str(tmp_path / "o.csv"), keep=5), engine="local")
    with pytest.raises(OutputError, match="output 'o': roll: only outputs to files roll over"):
        hw.start(network(sink={"console": {}}, roll="1h"), engine="local")
    with hw.start(network(), engine="local") as run:
        with pytest.raises(OutputError, match="nothing is deleted from a file"):
            run.change(network(sink=str(tmp_path / "o.csv"), keep=5))
        push(run, 0, 3)
        assert len(run.read("o")) == 3
