"""Stored data sets of a running network: looked up and streamed in, and read again only when somebody says so."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headway as hw
from headway.errors import HeadwayError, NetworkError
from tests.postgres import PASSWORD, Postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Write = Callable[[list[tuple[int, str]]], None]
FIRST = [(0, "Ada"), (1, "Ben")]
SECOND = [(0, "Cleo"), (1, "Dan")]
STREAMED = {"f": {"op": "filter", "in": {"point": "names", "as": "stream"}, "where": "true"}}


def network(data: Any, **boxes: Any) -> dict[str, Any]:
    """Return a network that looks names up, and has other boxes, each with an output."""
    looked_up = {"op": "join", "in": ["s", "names"], "on": "left.k = right.k", "select": "v, name"}
    return {
        "network": "n",
        "sources": {"s": {"schema": {"k": "bigint", "v": "bigint"}, "push": True}},
        "points": {"names": {"data": data}},
        "boxes": {"j": looked_up, **boxes},
        "outputs": {name: {"from": name} for name in ("j", *boxes)},
    }


@pytest.fixture(params=["csv", "sqlite", "postgres"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, Write]:
    """Return the description of a data set, and a function that writes it."""
    if request.param == "csv":
        file = tmp_path / "names.csv"

        def write(rows: list[tuple[int, str]]) -> None:
            file.write_text("k,name\n" + "".join(f"{k},{name}\n" for k, name in rows))

        return {"csv": str(file)}, write
    if request.param == "sqlite":
        return in_sqlite(tmp_path / "names.db")
    postgres: Postgres = request.getfixturevalue("postgres")
    postgres.run("DROP TABLE IF EXISTS names", "CREATE TABLE names (k bigint PRIMARY KEY, name text)")
    insert = "INSERT INTO names VALUES (%s, %s)"
    return {"sql": postgres.url, "table": "names"}, lambda rows: postgres.run("DELETE FROM names", rows=(insert, rows))


def in_sqlite(file: Path) -> tuple[Any, Write]:
    def write(rows: list[tuple[int, str]]) -> None:
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS names (k bigint PRIMARY KEY, name text)")
            connection.execute("DELETE FROM names")
            connection.executemany("INSERT INTO names VALUES (?, ?)", rows)
            connection.commit()

    return {"sql": f"sqlite:///{file}", "table": "names"}, write


def found(result: hw.RunResult, output: str = "j") -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in result.outputs[output].to_pylist()]


def test_it_is_looked_up_and_streamed_in(stored: tuple[Any, Write]) -> None:
    data, write = stored
    write(FIRST)
    with hw.start(network(data, **STREAMED), engine="local") as run:
        run.push("s", [(0, 1), (1, 2), (7, 3)])
        assert PASSWORD not in repr(run.network)
        result = run.stop()
    assert found(result) == [(1, "Ada"), (2, "Ben")]
    assert found(result, "f") == FIRST


def test_it_is_only_streamed_in(stored: tuple[Any, Write]) -> None:
    data, write = stored
    write(FIRST)
    only = {**network(data), "boxes": STREAMED, "outputs": {"f": {"from": "f"}}}
    with hw.start(only, engine="local") as run:
        assert found(run.stop(), "f") == FIRST
    assert found(hw.run(only, {"s": []}, engine="sim"), "f") == FIRST


def test_it_stays_as_it_was_read_until_it_is_refreshed(stored: tuple[Any, Write]) -> None:
    data, write = stored
    write(FIRST)
    before = network(data)
    after = network(data, other=before["boxes"]["j"])
    changed = network(data, other={**before["boxes"]["j"], "select": "name, v"})
    again = {
        "attach": "again",
        "boxes": {"f": {**STREAMED["f"]}, "j": {**before["boxes"]["j"], "in": ["s", "names"]}},
        "outputs": {"f": {"from": "f"}, "j": {"from": "j"}},
        "since": "now",
    }
    with hw.start(before, engine="local") as run:
        run.push("s", [(0, 1)])
        write(SECOND)
        run.change(after)  # a box that begins sees what the others see
        run.push("s", [(0, 2)])
        run.change(changed, restart="all")
        run.push("s", [(1, 3)])
        with run.attach(again) as attached:
            run.push("s", [(0, 4)])
            run.refresh("names")
            run.push("s", [(0, 5)])
            streamed = attached.outputs["f"]
            joined = attached.outputs["j"]
            result = run.stop()
    assert found(result) == [(1, "Ada"), (2, "Ada"), (3, "Ben"), (4, "Ada"), (5, "Cleo")]
    assert found(result, "other")[-3:] == [("Ben", 3), ("Ada", 4), ("Cleo", 5)]
    assert found(result, joined) == [(4, "Ada"), (5, "Cleo")]
    assert found(result, streamed) == FIRST, "also what is streamed is what the others look up"


def test_what_is_streamed_later_is_closed_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "names.csv"
    file.write_text("k,name\n0,Ada\n")
    only = {**network(str(file)), "boxes": {}, "outputs": {"s": {"from": "s"}}}
    with hw.start(only, engine="local") as run:
        attached = run.attach({"attach": "q", "boxes": STREAMED, "outputs": {"f": {"from": "f"}}, "since": "now"})
        assert found(run.stop(), attached.outputs["f"]) == [(0, "Ada")]
    del run, attached
    gc.collect()  # warns of files that are open still, and warnings are errors


def test_a_simulation_reads_at_each_command(tmp_path: Path) -> None:
    data, write = in_sqlite(tmp_path / "names.db")
    write(FIRST)
    run = hw.start(network(data), engine="sim")
    write(SECOND)
    run.push("s", [(0, 1)], at=1)
    run.refresh("names", at=2)
    write([(0, "Eve")])
    run.push("s", [(0, 2)], at=3)
    assert found(run.wait()) == [(1, "Ada"), (2, "Cleo")]


def test_a_refresh_may_change_the_fields(tmp_path: Path) -> None:
    file = tmp_path / "names.csv"
    file.write_text("k,name\n0,Ada\n")
    with hw.start(network(str(file)), engine="local") as run:
        run.push("s", [(0, 1)])
        file.write_text("k,name,extra\n0,Cleo,1.5\n")
        assert run.refresh().replaced == ("j",)
        run.push("s", [(0, 2)])
        file.write_text("k,nom\n0,Eve\n")
        with pytest.raises(HeadwayError, match="name"):
            run.refresh()
        run.push("s", [(0, 3)])
        assert found(run.stop()) == [(1, "Ada"), (2, "Cleo"), (3, "Cleo")]


def test_a_point_that_names_something_else_is_read(tmp_path: Path) -> None:
    for name, rows in (("a.db", FIRST), ("b.db", SECOND)):
        in_sqlite(tmp_path / name)[1](rows)
    one, other = (network(in_sqlite(tmp_path / name)[0]) for name in ("a.db", "b.db"))
    with hw.start(one, engine="local") as run:
        run.push("s", [(0, 1)])
        assert run.change(other).replaced == ("j",)
        run.push("s", [(0, 2)])
        assert found(run.stop()) == [(1, "Ada"), (2, "Cleo")]


def test_a_table_without_a_point_is_read_again_when_nobody_has_it(tmp_path: Path) -> None:
    file = tmp_path / "names.csv"
    file.write_text("k,name\n0,Ada\n")
    join = {"op": "join", "in": ["s", {"table": str(file)}], "on": "left.k = right.k", "select": "v, name"}
    plain = {**network(str(file)), "points": {}, "boxes": {}, "outputs": {"s": {"from": "s"}}}
    fragment = {"attach": "q", "since": "now", "boxes": {"j": join}, "outputs": {"j": {"from": "j"}}}
    with hw.start(plain, engine="local") as run:
        with run.attach(fragment) as first:
            file.write_text("k,name\n0,Cleo\n")
            with run.attach({**fragment, "attach": "r"}) as second:
                run.push("s", [(0, 1)])
        with run.attach(fragment) as third:
            run.push("s", [(0, 2)])
        named = [one.read()["name"].to_pylist() for one in (first, second, third)]
    assert named == [["Ada"], ["Ada"], ["Cleo"]]


def test_the_run_may_give_it(tmp_path: Path) -> None:
    given = network("nowhere.csv", **STREAMED)
    rows = [{"k": k, "name": name} for k, name in FIRST]
    with hw.start(given, engine="local", tables={"names": rows}) as run:
        run.push("s", [(1, 1)])
        result = run.stop()
    assert (found(result), found(result, "f")) == ([(1, "Ben")], FIRST)


def test_a_stranger_reads_only_what_is_allowed(tmp_path: Path) -> None:
    data, write = in_sqlite(tmp_path / "names.db")
    write(FIRST)
    for made in (network(data), {**network(data), "boxes": STREAMED, "outputs": {"f": {"from": "f"}}}):
        with pytest.raises(NetworkError, match=r"point 'names': data: .*a file from a stranger may not read"):
            hw.start(made, engine="local", trust="stranger")
        hw.start(made, engine="local", trust={"read_only": [str(tmp_path)]}).stop()


def test_a_table_of_spark(spark: SparkSession) -> None:
    def write(rows: list[tuple[int, str]]) -> None:
        spark.createDataFrame(rows, "k bigint, name string").createOrReplaceTempView("names")

    write(FIRST)
    with hw.start(network({"spark": "names"}, **STREAMED), engine="local") as run:
        run.push("s", [(0, 1)])
        write(SECOND)
        run.refresh("names")
        run.push("s", [(0, 2)])
        result = run.stop()
    assert (found(result), found(result, "f")) == ([(1, "Ada"), (2, "Cleo")], FIRST)


def test_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    data, write = in_sqlite(tmp_path / "names.db")
    write(FIRST)
    spark.createDataFrame(SECOND, "k bigint, name string").createOrReplaceTempView("others")
    streamed = {"op": "filter", "in": {"point": "others", "as": "stream"}, "where": "true"}
    made = {**network(data, **STREAMED, g=streamed), "sources": {"s": {"schema": "k bigint, v bigint"}}}
    made["points"] = {**made["points"], "others": {"data": {"spark": "others"}}}
    result = hw.run(made, {"s": [(0, 1), (1, 2), (7, 3)]}, engine="spark")
    assert sorted(found(result)) == [(1, "Ada"), (2, "Ben")]
    assert (sorted(found(result, "f")), sorted(found(result, "g"))) == (FIRST, SECOND)


def test_a_fragment_finds_what_its_file_names(tmp_path: Path) -> None:
    in_sqlite(tmp_path / "names.db")[1](FIRST)
    (tmp_path / "q.yaml").write_text(
        "attach: q\nsince: now\noutputs: {j: {from: j}}\nboxes:\n"
        "  j: {op: join, in: [s, {table: {sql: 'sqlite:///names.db', table: names}}], on: left.k = right.k}\n"
    )
    plain = {**network("x.csv"), "points": {}, "boxes": {}, "outputs": {"s": {"from": "s"}}}
    with hw.start(plain, engine="local") as run:
        with run.attach(str(tmp_path / "q.yaml")) as attached:
            run.push("s", [(1, 1)])
        assert attached.read()["name"].to_pylist() == ["Ben"]
