"""Tables of SQLite and PostgreSQL as data sets: types, order, keys, and what goes wrong."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.errors import NetworkError, RunError
from headway.extras import EXTRAS
from headway.network.trust import OWN, Trust
from headway.tables import DataSet, connect, data_schema, data_table, load_table, lookup, read_data, table_schema
from headway.tables.databases import KEYS, ROWS
from tests.postgres import ESCAPED, PASSWORD, Postgres

Make = Callable[..., DataSet]


def in_sqlite(folder: Path, *statements: str) -> DataSet:
    """Execute statements in a new database, and return its table t."""
    with closing(sqlite3.connect(folder / "x.db")) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return read_data({"sql": "sqlite:///x.db", "table": "t"}, "data", folder)


def in_postgres(server: Postgres, *statements: str) -> DataSet:
    server.run("DROP SCHEMA public CASCADE", "CREATE SCHEMA public", *statements)
    return read_data({"sql": server.url, "table": "t"}, "data")


@pytest.fixture(params=["sqlite", "postgres"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Both databases: executes statements and returns the table t."""
    if request.param == "sqlite":
        return lambda *statements: in_sqlite(tmp_path, *statements)
    server = request.getfixturevalue("postgres")
    return lambda *statements: in_postgres(server, *statements)


PEOPLE = ("CREATE TABLE t (id bigint PRIMARY KEY, name text)", "INSERT INTO t VALUES (3,'c'), (1,'a'), (2,NULL)")
ROWS_BY_KEY = [{"id": 1, "name": "a"}, {"id": 2, "name": None}, {"id": 3, "name": "c"}]


def test_a_table_comes_in_the_order_of_its_key(make: Make) -> None:
    data = make(*PEOPLE)
    assert str(data_schema(data)) == "id bigint, name string"
    assert data_table(data).to_pylist() == ROWS_BY_KEY


def test_it_is_a_static_table(make: Make) -> None:
    data = make(*PEOPLE)
    described = {"sql": data.place if data.base is None else f"sqlite:///{data.base}/x.db", "table": "t"}
    for given_ in (data, described):
        assert load_table("people", {"people": given_}).to_pylist() == ROWS_BY_KEY
        assert table_schema("people", {"people": given_}).names == ("id", "name")


def test_many_batches(make: Make) -> None:
    count = 2 * ROWS + 1
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) "
    data = make("CREATE TABLE t (i int PRIMARY KEY)", f"INSERT INTO t {numbers} SELECT i FROM n")
    with closing(connect(data)) as table:
        sizes = [batch.num_rows for batch in table.batches()]
        assert sizes == [ROWS, ROWS, 1]
        assert table.table()["i"].to_pylist() == list(range(1, count + 1))
        wanted = list(range(0, 2 * KEYS + 2))
    assert sorted(lookup(data, "i", wanted)["i"].to_pylist()) == wanted[1:]


def test_an_empty_table(make: Make) -> None:
    data = make("CREATE TABLE t (i int)")
    assert data_table(data).num_rows == 0
    assert data_table(data).schema == data_schema(data).to_arrow()
    assert lookup(data, "i", [1]).num_rows == 0
    assert lookup(data, "i", []).num_rows == 0


def test_views_and_names_that_need_quotes(make: Make) -> None:
    data = make(
        'CREATE TABLE u ("select" int, "a b" text)', "INSERT INTO u VALUES (1,'x')", "CREATE VIEW t AS SELECT * FROM u"
    )
    assert data_table(data).to_pylist() == [{"select": 1, "a b": "x"}]
    assert lookup(data, "a b", ["x"]).num_rows == 1


def test_types_of_postgres(postgres: Postgres) -> None:
    columns = {
        "a": ("smallint", pa.int16(), "1", 1),
        "b": ("integer", pa.int32(), "2", 2),
        "c": ("bigint", pa.int64(), "9223372036854775807", 2**63 - 1),
        "d": ("numeric(10,2)", pa.decimal128(10, 2), "1.5", Decimal("1.50")),
        "e": ("numeric(38)", pa.decimal128(38, 0), "9" * 38, Decimal("9" * 38)),
        "f": ("real", pa.float32(), "1.5", 1.5),
        "g": ("double precision", pa.float64(), "0.1", 0.1),
        "h": ("boolean", pa.bool_(), "true", True),
        "i": ("text", pa.string(), "'ä'", "ä"),
        "j": ("varchar(9)", pa.string(), "'x'", "x"),
        "k": ("char(3)", pa.string(), "'x'", "x  "),
        "l": ("bytea", pa.binary(), r"'\x00ff'", b"\x00\xff"),
        "m": ("date", pa.date32(), "'2024-02-29'", date(2024, 2, 29)),
        "n": ("timestamp", pa.timestamp("us"), "'2024-01-01 12:00:00.000001'", datetime(2024, 1, 1, 12, 0, 0, 1)),
        "o": ("timestamptz", pa.timestamp("us", "UTC"), "'2024-01-01 12:00+02'", datetime(2024, 1, 1, 10, tzinfo=UTC)),
    }
    declared = ", ".join(f"{name} {kind}" for name, (kind, *_) in columns.items())
    values = ", ".join(text for _, _, text, _ in columns.values())
    nulls = ", ".join("NULL" for _ in columns)
    data = in_postgres(postgres, f"CREATE TABLE t ({declared})", f"INSERT INTO t VALUES ({values}), ({nulls})")
    found = data_table(data)
    assert found.schema == pa.schema([(name, type_) for name, (_, type_, *_) in columns.items()])
    assert found.schema == data_schema(data).to_arrow()
    assert found.to_pylist() == [{name: value for name, (*_, value) in columns.items()}, dict.fromkeys(columns)]
    for name, (*_, value) in columns.items():
        assert lookup(data, name, [value, None]).num_rows == 1, name


def test_types_of_sqlite(tmp_path: Path) -> None:
    columns = {
        "a": ("SMALLINT", pa.int64(), "70000", 70000),  # SQLite stores 64 bits, whatever is declared
        "b": ("INTEGER", pa.int64(), "2", 2),
        "c": ("DECIMAL(10,2)", pa.decimal128(10, 2), "1.5", Decimal("1.50")),
        "d": ("NUMERIC(10,2)", pa.decimal128(10, 2), "7", Decimal("7.00")),
        "e": ("REAL", pa.float64(), "0.1", 0.1),
        "f": ("DOUBLE", pa.float64(), "2", 2.0),
        "g": ("BOOLEAN", pa.bool_(), "1", True),
        "h": ("TEXT", pa.string(), "'ä'", "ä"),
        "i": ("VARCHAR(9)", pa.string(), "'x'", "x"),
        "j": ("BLOB", pa.binary(), "x'00ff'", b"\x00\xff"),
        "k": ("DATE", pa.date32(), "'2024-02-29'", date(2024, 2, 29)),
        "l": ("DATETIME", pa.timestamp("us"), "'2024-01-01T12:00:00.5'", datetime(2024, 1, 1, 12, 0, 0, 500_000)),
        "m": ("TIMESTAMP", pa.timestamp("us"), "'2024-01-01 12:00:00'", datetime(2024, 1, 1, 12)),
    }
    declared = ", ".join(f"{name} {kind}" for name, (kind, *_) in columns.items())
    values = ", ".join(text for _, _, text, _ in columns.values())
    nulls = ", ".join("NULL" for _ in columns)
    data = in_sqlite(tmp_path, f"CREATE TABLE t ({declared})", f"INSERT INTO t VALUES ({values}), ({nulls})")
    found = data_table(data)
    assert found.schema == pa.schema([(name, type_) for name, (_, type_, *_) in columns.items()])
    assert found.to_pylist() == [{name: value for name, (*_, value) in columns.items()}, dict.fromkeys(columns)]
    for name, (*_, value) in columns.items():
        assert lookup(data, name, [value, None]).num_rows == 1, name


@pytest.mark.parametrize(
    "type_",
    ["json", "jsonb", "uuid", "int[]", "interval", "time", "inet", "numeric", "numeric(50,2)", "mood", "point", "xml"],
)
def test_other_types_of_postgres_are_refused(postgres: Postgres, type_: str) -> None:
    data = in_postgres(postgres, "CREATE TYPE mood AS ENUM ('sad')", f"CREATE TABLE t (id int, odd {type_})")
    with pytest.raises(
        NetworkError, match=r"table 't': column 'odd' is .*; types: integers, .*; cast it in a view"
    ) as raised:
        data_schema(data)
    assert ESCAPED not in str(raised.value)


@pytest.mark.parametrize(
    ("declared", "value", "message"),
    [
        ("INTEGER", "'many'", "'many' is not a bigint"),
        ("TEXT", "x'ff'", "is not a string"),
        ("BLOB", "'x'", "'x' is not a binary"),
        ("BOOLEAN", "2", "2 is not a boolean, which is 0 or 1"),
        ("DATE", "'soon'", "soon"),
        ("DATE", "20240101", "'20240101' is not a date"),
        ("DATETIME", "1700000000", "is not a timestamp_ntz"),
        ("DATETIME", "'2024-01-01 00:00:00Z'", "expected no zone offset"),
        ("DECIMAL(4,2)", "1.234", "would cause data loss"),
        ("DECIMAL(4,2)", "'much'", "a text is not a decimal(4,2)"),
        ("REAL", "'x'", "'x' is not a double"),
    ],
)
def test_values_that_are_not_of_the_declared_type(tmp_path: Path, declared: str, value: str, message: str) -> None:
    data = in_sqlite(tmp_path, f"CREATE TABLE t (a {declared})", f"INSERT INTO t VALUES (NULL), ({value})")
    with pytest.raises(NetworkError) as raised:
        data_table(data)
    assert str(raised.value).startswith("data: sql: 'sqlite:///x.db': table 't': column 'a': ")
    assert message in str(raised.value)


@pytest.mark.parametrize("declared", ["", "UUID", "JSON", "DECIMAL", "TIME"])
def test_other_types_of_sqlite_are_refused(tmp_path: Path, declared: str) -> None:
    with pytest.raises(NetworkError, match="table 't': column 'a' is"):
        data_schema(in_sqlite(tmp_path, f"CREATE TABLE t (a {declared})"))


@pytest.mark.parametrize("value", ["'NaN'", "'infinity'::timestamp", "'0044-03-15 BC'::timestamp"])
def test_values_that_no_type_has(postgres: Postgres, value: str) -> None:
    kind = "timestamp" if "timestamp" in value else "numeric(5,2)"
    data = in_postgres(postgres, f"CREATE TABLE t (a {kind})", f"INSERT INTO t VALUES ({value})")
    with pytest.raises(NetworkError, match=r"data: sql: '.*/postgres'"):
        data_table(data)


def test_collations_do_not_widen_a_lookup(tmp_path: Path) -> None:
    data = in_sqlite(tmp_path, "CREATE TABLE t (a TEXT COLLATE NOCASE)", "INSERT INTO t VALUES ('x'), ('X')")
    assert lookup(data, "a", ["x"]).to_pylist() == [{"a": "x"}]


def test_a_lookup_is_pushed_down(postgres: Postgres) -> None:
    import sqlalchemy as sa

    data = in_postgres(postgres, *PEOPLE)
    seen: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, values: Any, *rest: Any) -> None:
        seen.append((statement, values))

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        assert lookup(data, "ID", [1, 3]).num_rows == 2
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    statement, values = seen[-1]
    assert "WHERE id IN (" in statement
    assert sorted(values.values()) == [1, 3]


def test_unknown_tables_list_those_there_are(make: Make) -> None:
    data = make(*PEOPLE, "CREATE VIEW people AS SELECT * FROM t")
    wrong = read_data({"sql": data.place, "table": "peple"}, "data", data.base)
    with pytest.raises(NetworkError, match="there is no table 'peple'; did you mean 'people'\\? tables: people, t"):
        data_schema(wrong)


def test_schemas_of_postgres(postgres: Postgres) -> None:
    made = in_postgres(postgres, "DROP SCHEMA IF EXISTS s CASCADE", "CREATE SCHEMA s", "CREATE TABLE s.t (a int)")
    data = read_data({"sql": made.place, "table": "s.t"}, "data")
    assert data_schema(data).names == ("a",)
    assert data_table(data).num_rows == 0
    with pytest.raises(NetworkError, match=r"there is no table 's\.u'; did you mean 's\.t'\? tables: s\.t"):
        data_schema(read_data({"sql": made.place, "table": "s.u"}, "data"))


def test_a_read_sees_one_moment(postgres: Postgres) -> None:
    data = in_postgres(postgres, *PEOPLE)
    with closing(connect(data)) as table:
        assert table.table().num_rows == 3
        postgres.run("DELETE FROM t")
        assert table.table().num_rows == 3
    assert data_table(data).num_rows == 0


def test_nothing_is_written(make: Make) -> None:
    data = make(*PEOPLE)
    with closing(connect(data)) as table:
        assert table._connection is not None
        with pytest.raises(Exception, match=r"read-only|readonly"):
            table._connection.exec_driver_sql("DELETE FROM t")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://tester:wrong-secret@{place}", "cannot be reached: .*password authentication failed"),
        ("postgresql://tester:wrong-secret@127.0.0.1:1/x", "cannot be reached: "),
        ("postgresql://tester:wrong-secret@no-such-host.invalid/x", "cannot be reached: "),
        ("sqlite:///no.db", "there is no file '.*no.db'"),
        ("sqlite:///text.db", "cannot be read: file is not a database"),
    ],
)
def test_what_cannot_be_reached(postgres: Postgres, tmp_path: Path, url: str, message: str) -> None:
    (tmp_path / "text.db").write_text("text" * 1000)
    data = read_data({"sql": url.format(place=postgres.place), "table": "t"}, "point 'p': data", tmp_path)
    with pytest.raises(NetworkError, match=f"^point 'p': data: sql: '.*{message}") as raised:
        data_schema(data)
    assert "wrong-secret" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert "\n" not in str(raised.value)


def test_no_password_in_any_text(postgres: Postgres) -> None:
    data = in_postgres(postgres, *PEOPLE)
    for text in (str(data), repr(data), f"{data}", str(read_data({"sql": postgres.url, "table": "x"}, "data"))):
        assert ESCAPED not in text
        assert PASSWORD not in text
        assert "***" in text
    with pytest.raises(NetworkError) as raised:
        lookup(data, "nobody", [1])
    assert ESCAPED not in str(raised.value)


def test_strangers_name_no_database(postgres: Postgres, tmp_path: Path) -> None:
    made = in_postgres(postgres, *PEOPLE)
    for url in (made.place, "sqlite:////etc/x.db"):
        with pytest.raises(NetworkError, match="a file from a stranger may not"):
            data_schema(read_data({"sql": url, "table": "t"}, "data", tmp_path, Trust()))
    allowed = read_data({"sql": made.place, "table": "t"}, "data", tmp_path, Trust(hosts=["127.0.0.1"]))
    assert data_table(allowed).num_rows == 3


def test_a_check_contacts_nobody(postgres: Postgres) -> None:
    data = in_postgres(postgres, *PEOPLE)
    with pytest.raises(NetworkError, match="a check contacts nobody"):
        table_schema("p", {"p": data}, None, OWN.contacting_nobody())


def test_missing_libraries_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "psycopg":
            raise ModuleNotFoundError("No module named 'psycopg'", name="psycopg")
        return real(name, *rest)

    data = read_data({"sql": "postgresql://u:secret@h/d", "table": "t"}, "data")
    with monkeypatch.context() as patched:
        patched.setattr(builtins, "__import__", without)
        with pytest.raises(NetworkError, match=r"the driver psycopg is not installed: pip install 'headway\[sql\]'"):
            data_schema(data)
    monkeypatch.setitem(EXTRAS, "sql", "no_such_library")
    with pytest.raises(RunError, match=r"needs no_such_library, which is not installed: pip install 'headway\[sql\]'"):
        data_schema(data)


KEYED = st.lists(st.tuples(st.integers(-3, 3), st.sampled_from(["a", "A", "a ", "", "ä", "'", "%s"])), max_size=8)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=KEYED, wanted=KEYED)
def test_a_lookup_is_a_filter(tmp_path: Path, rows: list[tuple[int, str]], wanted: list[tuple[int, str]]) -> None:
    (tmp_path / "x.db").unlink(missing_ok=True)
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute("CREATE TABLE t (n int, s text)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        connection.commit()
    data = read_data({"sql": "sqlite:///x.db", "table": "t"}, "data", tmp_path)
    for at, name in enumerate("ns"):
        values = [one[at] for one in wanted]
        found = lookup(data, name, values).to_pylist()
        expected = [{"n": n, "s": s} for n, s in rows if (n, s)[at] in values]
        assert sorted(map(str, found)) == sorted(map(str, expected))
