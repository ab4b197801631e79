"""Tables of databases as sources."""

from __future__ import annotations

import gc
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import headway as hw
from headway.connectors import open_source
from headway.connectors.registry import permit_source
from headway.errors import HeadwayError, InputError
from headway.network.schema import Schema
from headway.network.trust import OWN, Trust
from tests.connectors.helpers import drain, rows
from tests.postgres import ESCAPED, PASSWORD, Postgres

SCHEMA = Schema.parse("id bigint, name string")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, name text, extra real)")
        connection.executemany("INSERT INTO t VALUES (?, ?, 1.5)", [(3, "c"), (1, "a"), (2, None)])
        connection.commit()
    return tmp_path


def settings(**given: Any) -> dict[str, Any]:
    return {"sql": {"url": "sqlite:///x.db", "table": "t", **given}}


def test_a_table_is_streamed_in_the_order_of_its_key(folder: Path) -> None:
    wanted = [{"id": 1, "name": "a"}, {"id": 2, "name": None}, {"id": 3, "name": "c"}]
    for limits in ((1,), (2, 1), (1000,)):
        assert rows(open_source("s", SCHEMA, settings(), base=folder), limits) == wanted


def test_closed_early_it_says_nothing(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with closing(sqlite3.connect(folder / "x.db")) as connection:
        connection.executemany("INSERT INTO t VALUES (?, 'x', 1.5)", [(at,) for at in range(10, 40_000)])
        connection.commit()
    reader = open_source("s", SCHEMA, settings(), base=folder)
    assert reader.read(1) is not None
    reader.close()
    del reader
    gc.collect()
    assert not caplog.records


def test_a_server_closed_early_is_left_properly(postgres: Postgres, caplog: pytest.LogCaptureFixture) -> None:
    postgres.run("DROP TABLE IF EXISTS early", "CREATE TABLE early AS SELECT * FROM generate_series(1, 40000) AS id")
    reader = open_source("s", Schema.parse("id int"), settings(url=postgres.url, table="early"))
    assert reader.read(1) is not None
    reader.close()
    del reader
    gc.collect()  # warns of cursors that are open still, and warnings are errors
    assert not caplog.records


def test_values_that_do_not_fit_the_fields_are_malformed(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "x.db")) as connection:
        connection.execute("UPDATE t SET id = 3000000000 WHERE id = 3")
        connection.commit()
    table, _, malformed = drain(open_source("s", Schema.parse("id int"), settings(), base=folder))
    assert table is not None
    assert table["id"].to_pylist() == [1, 2]
    assert [str(one).partition(":")[0] for one in malformed] == ["source 's'"]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"sql": "sqlite:///x.db"}, "source 's': sql expects a mapping with the keys table, url"),
        ({"sql": {"url": "sqlite:///x.db"}}, "source 's': sql: needs the text 'table'"),
        ({"sql": {"url": 1, "table": "t"}}, "source 's': sql: needs the text 'url'"),
        (settings(tabel="x"), "source 's': sql: unknown key 'tabel'; did you mean 'table'?"),
        (settings(table="u"), "source 's': sql: 'sqlite:///x.db': there is no table 'u'; tables: t"),
        (settings(url="sqlite:///y.db"), "source 's': sql: 'sqlite:///y.db': there is no file '"),
        (settings(url="x"), "source 's': sql: 'x' is not the address of a database"),
    ],
)
def test_settings_that_are_wrong(folder: Path, what: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        open_source("s", SCHEMA, what, base=folder)
    assert str(raised.value).startswith(message)


def test_columns_that_do_not_fit(folder: Path) -> None:
    with pytest.raises(InputError, match="source 's': table 't' has no column 'nobody'"):
        open_source("s", Schema.parse("nobody int"), settings(), base=folder)
    with pytest.raises(InputError, match="column 'name' is string and cannot become int without loss"):
        open_source("s", Schema.parse("name int"), settings(), base=folder)


def test_a_value_that_is_not_of_its_type_ends_the_source(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "x.db")) as connection:
        connection.execute("UPDATE t SET extra = 'x' WHERE id = 3")
        connection.commit()
    reader = open_source("s", Schema.parse("extra double"), settings(), base=folder)
    with closing(reader), pytest.raises(InputError, match=r"^source 's': sql: .*column 'extra': 'x' is not a double$"):
        reader.read(10)
    assert rows(open_source("s", SCHEMA, settings(), base=folder))  # which does not read that column


def test_a_closed_reader_ends_with_an_error(folder: Path, postgres: Postgres) -> None:
    made = "SELECT i AS id, 'x' AS name FROM generate_series(1, 50000) i"
    postgres.run("DROP TABLE IF EXISTS long", f"CREATE TABLE long AS {made}")
    for what in (settings(), {"sql": {"url": postgres.url, "table": "long"}}):
        reader = open_source("s", SCHEMA, what, base=folder)
        reader.close()
        reader.close()
        with pytest.raises(InputError, match=r"source 's': sql: '.*' is closed"):
            reader.read(1)
    reader = open_source("s", SCHEMA, what, base=folder)
    reader.read(100_000)
    reader.close()
    with pytest.raises(InputError, match=r"source 's': sql: '.*' cannot be read: "):
        reader.read(100_000)


def test_strangers_need_leave(folder: Path, postgres: Postgres) -> None:
    server = {"sql": {"url": f"postgresql://127.0.0.1:{postgres.port}/postgres", "table": "t"}}
    for what in (settings(), server):
        with pytest.raises(InputError, match=r"source 's': sql: .*a file from a stranger may not"):
            permit_source("s", SCHEMA, what, folder, Trust())
        permit_source("s", SCHEMA, what, folder, Trust(read_only=[str(folder)], hosts=["127.0.0.1"]))
        permit_source("s", SCHEMA, what, folder, OWN)


@pytest.mark.parametrize("engine", ["local", "sim"])
def test_in_a_network(folder: Path, engine: str) -> None:
    network = {
        "network": "n",
        "sources": {"s": {"schema": {"id": "bigint"}, "source": settings(url=f"sqlite:///{folder}/x.db")}},
        "boxes": {"f": {"op": "filter", "in": "s", "where": "id > 1"}},
        "outputs": {"o": {"from": "f"}},
    }
    assert hw.run(network, engine=engine).outputs["o"].to_pydict() == {"id": [2, 3]}


def test_no_password_anywhere(postgres: Postgres) -> None:
    postgres.run("DROP TABLE IF EXISTS t", "CREATE TABLE t (id int, name text)", "INSERT INTO t VALUES (1, 'x')")
    for table, schema in (("t", "id int"), ("t", "id string"), ("t", "no int"), ("u", "id int")):
        what = {"sql": {"url": postgres.url, "table": table}}
        network = {
            "network": "n",
            "sources": {"s": {"schema": schema, "source": what}},
            "outputs": {"o": {"from": "s"}},
        }
        try:
            result = hw.run(network, engine="local")
            shown = f"{result!r} {result.summary} {result.outputs['o'].to_pydict()}"
        except HeadwayError as error:
            shown = str(error)
        assert ESCAPED not in shown
        assert PASSWORD not in shown
