"""Addresses of databases: shown without passwords, and allowed or not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.connectors import open_source
from headway.errors import HeadwayError, NetworkError
from headway.network import FrozenMap
from headway.network.schema import Schema
from headway.network.secrets import mask, masked
from headway.network.trust import OWN, Trust
from headway.tables import read_data
from headway.tables.addresses import Address, read_address


def read(url: str, trust: Trust = OWN, base: Path | None = None) -> Address:
    return read_address(url, base, trust, "data", NetworkError)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://h/d", "postgresql://h/d"),
        ("postgresql://u@h/d", "postgresql://u@h/d"),
        ("postgresql://u:secret@h:1/d", "postgresql://u:***@h:1/d"),
        ("postgresql://u:se@cr:e/t?@h/d", "postgresql://u:***@h/d"),
        ("postgresql://h/d?password=secret&sslmode=require", "postgresql://h/d?password=***&sslmode=require"),
        ("postgresql:///d?host=/tmp", "postgresql:///d?host=/tmp"),
        ("sqlite:///a/b.db", "sqlite:///a/b.db"),
        ("nonsense", "nonsense"),
        ("user:secret@host/db", "user:***@host/db"),
        ("postgresql:/user:secret@host/db", "postgresql:***@host/db"),
    ],
)
def test_masked(url: str, shown: str) -> None:
    assert mask(url) == shown


def test_settings_are_shown_without_secrets() -> None:
    url = "postgresql://u:secret@h/d"
    settings = {"sql": {"url": url}, "options": {"password": "secret", "apiToken": "secret", "n": 1}, "list": [url]}
    assert "secret" not in str(masked(settings))
    assert masked(settings)["options"]["n"] == 1
    frozen = FrozenMap({"sql": FrozenMap({"url": url})})
    assert "secret" not in repr(frozen)
    assert frozen["sql"]["url"] == url


@pytest.mark.parametrize(
    "what", ["postgresql://u:secret@h/d", {"sql": "postgresql://u:secret@h/d"}, {"csv": "xy://u:secret@h"}]
)
def test_what_is_written_in_the_wrong_place_is_shown_without_a_password(what: object) -> None:
    with pytest.raises(HeadwayError) as raised:
        open_source("s", Schema.parse("a int"), what)
    assert "secret" not in str(raised.value)
    assert "sql" in str(raised.value) or "csv" in str(what)
    with pytest.raises(HeadwayError) as raised:
        read_data({"sql": [what]}, "data")
    assert "secret" not in str(raised.value)


@given(st.text("ab:/@?&=%#[] ", min_size=1))
def test_no_password_is_ever_shown(noise: str) -> None:
    url = f"postgresql://user:{noise}SECRET{noise}@host/db"
    assert "SECRET" not in mask(url)
    try:
        shown = repr(read(url))
    except HeadwayError as error:
        shown = str(error)
    assert "SECRET" not in shown


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense", "data: 'nonsense' is not the address of a database; an address is text such as postgresql://"),
        ("postgresql://h:port/d", "is not the address of a database"),
        ("postgresql://u:p@ss@h/d", "in a user or a password, @ : / ? # are written %40"),
        ("mysql://h/d", "unknown database 'mysql'; choices: postgresql, sqlite; if you trust its code, --allow-format"),
        ("sqlite://", "'sqlite://' names no file; SQLite's address is sqlite:///file.db, and no more"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite:///a.db?mode=rwc", "names no file"),
        ("postgresql://h/d?sslengine=x", "option 'sslengine' of postgresql is not known to be harmless; choices: "),
    ],
)
def test_what_is_no_address(url: str, message: str) -> None:
    with pytest.raises(NetworkError) as raised:
        read(url)
    assert message in str(raised.value)


def test_other_databases_are_the_operators_choice() -> None:
    with pytest.raises(NetworkError, match="unknown database"):
        read("mssql://h/d")
    assert read("mssql://h/d", Trust(own=True, formats=["mssql"])).kind == "mssql"


def test_a_relative_file_is_next_to_the_network_file(tmp_path: Path) -> None:
    assert read("sqlite:///a.db", base=tmp_path).file == tmp_path / "a.db"
    assert read("sqlite:////x/a.db", base=tmp_path).file == Path("/x/a.db")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://other/d", "a file from a stranger may not contact 'other'; allowed: db.lan:5432, *.ok;"),
        ("postgresql://db.lan/d", "may not contact 'db.lan'"),
        ("postgresql://u:secret@db.lan:5433/d", "may not contact 'db.lan'"),
        ("postgresql://a.ok,other/d", "may not contact 'other'"),
        ("postgresql:///d", "names no host that could be allowed"),
        ("postgresql:///d?host=other", "may not give the option 'host' of postgresql; --allow-option host lets it"),
        ("postgresql://db.lan:5432/d?passfile=/etc/x", "may not give the option 'passfile'"),
        ("postgresql://%2Ftmp/d", "is not a plain host or host:port"),
        ("postgresql://a.ok/host=x", "names no plain database"),
        ("sqlite:////etc/x.db", "a file from a stranger may not read '/etc/x.db'; folders that it may read:"),
        ("sqlite:///../x.db", "a file from a stranger may not read"),
        ("mysql://a.ok/d", "a file from a stranger may not use the database 'mysql'"),
    ],
)
def test_strangers_need_leave(tmp_path: Path, url: str, message: str) -> None:
    with pytest.raises(NetworkError) as raised:
        read(url, Trust(hosts=["db.lan:5432", "*.ok"], read_only=[str(tmp_path)]), tmp_path)
    assert message in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "url", ["postgresql://u@db.lan:5432/d?sslmode=require", "postgresql://x.ok/d", "sqlite:///x.db"]
)
def test_what_strangers_may(tmp_path: Path, url: str) -> None:
    read(url, Trust(hosts=["db.lan:5432", "*.ok"], read_only=[str(tmp_path)]), tmp_path)


def test_an_allowed_option_is_no_way_around_the_hosts(tmp_path: Path) -> None:
    trust = Trust(hosts=["a"], options=["host"])
    read("postgresql:///d?host=a", trust)
    for where in ("b", "a&host=b", "/tmp"):
        with pytest.raises(NetworkError, match="a file from a stranger may not"):
            read(f"postgresql:///d?host={where}", trust, tmp_path)


def test_a_check_contacts_nobody() -> None:
    with pytest.raises(NetworkError, match="a check contacts nobody, and this is on 'h'; --allow-host h lets it"):
        read("postgresql://h/d", OWN.contacting_nobody())
    read("postgresql://h/d", Trust(own=True, hosts=["h"]).contacting_nobody())
    read("postgresql:///d?host=/tmp", OWN.contacting_nobody())
    read("sqlite:///a.db", OWN.contacting_nobody())
