"""Addresses of databases: what a network file may name, and how they are shown, always without a password."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from headway.errors import HeadwayError
from headway.extras import need_extra
from headway.network.secrets import mask
from headway.network.trust import Trust

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

DATABASES = ("postgresql", "sqlite")
"""The databases that any file may name; `--allow-format` allows more of SQLAlchemy's, whose drivers are code."""
_DRIVERS = {
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
}
_OPTIONS = ("application_name", "connect_timeout", "sslmode", "target_session_attrs")
_OWN_OPTIONS = ("host", "options", "passfile", "password", "port", "sslcert", "sslrootcert", "user")
_PLAIN = re.compile(r"[^:/?#@]+://([^:/?#@]*(:[^/?#@]*)?@)?[^@\0]*")
_NAME = re.compile(r"[\w.$ -]+")
HINT = "an address is text such as postgresql://user@host/database or sqlite:///file.db"


@dataclass(frozen=True, slots=True)
class Address:
    """A database's address, checked: its kind, and either the file of SQLite or the URL of a server."""

    shown: str
    """Without passwords, for messages."""
    kind: str
    file: Path | None
    url: URL = field(repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The texts that must not appear in messages."""
        given = [self.url.password, *(self.url.query.get(name) for name in ("password", "sslpassword"))]
        return tuple(text for one in given for text in ([one] if isinstance(one, str) else one or ()) if text)


def read_address(url: str, base: Path | None, trust: Trust, who: str, error: type[HeadwayError]) -> Address:
    """Return an address if `trust` allows it, or raise `error`; contacts nothing.

    SQLite's are files, which follow the rules of files; a relative one is resolved against `base`. All others are on
    hosts, which a file from a stranger may name only if the operator allows them.
    """
    need_extra("sql", f"{who}: reading a database")
    shown = mask(url)
    parsed = _parse(url, f"{who}: '{shown}'", error)
    driver = _DRIVERS.get(parsed.drivername.lower())
    if driver is None:
        trust.check_format(parsed.drivername, DATABASES, who, error, kind="database")
    kind = (driver or parsed.drivername).partition("+")[0].lower()
    if kind == "sqlite":
        return Address(shown, kind, _sqlite_file(parsed, shown, base, trust, who, error), parsed)
    _permit_server(parsed, kind, base, trust, f"{who}: '{shown}'", error)
    return Address(shown, kind, None, parsed if driver is None else parsed.set(drivername=driver))


def _parse(url: str, who: str, error: type[HeadwayError]) -> URL:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise error(f"{who} is not the address of a database; {HINT}") from None
    if not _PLAIN.fullmatch(url):  # parts of a password would be taken for hosts, names and options
        raise error(f"{who} is not the address of a database: in a user or a password, @ : / ? # are written %40 %3A …")
    return parsed


def _sqlite_file(parsed: URL, shown: str, base: Path | None, trust: Trust, who: str, error: type[HeadwayError]) -> Path:
    if parsed.host or parsed.username or parsed.query or not parsed.database or parsed.database == ":memory:":
        raise error(f"{who}: '{shown}' names no file; SQLite's address is sqlite:///file.db, and no more")
    trust.check_path(f"./{parsed.database}" if ":" in parsed.database else parsed.database, base, who, error)
    return Path(parsed.database) if base is None else base / parsed.database


def _permit_server(
    parsed: URL, kind: str, base: Path | None, trust: Trust, who: str, error: type[HeadwayError]
) -> None:
    settings = {name: [value] if isinstance(value, str) else list(value) for name, value in parsed.query.items()}
    known, own = (_OPTIONS, _OWN_OPTIONS) if kind == "postgresql" else ((), ())
    for name, values in settings.items():
        trust.check_option(name, kind, known, own, who, error)
        if name == "host":
            for value in values:
                _permit_host(unquote(value), base, trust, who, error)
    if parsed.host:
        port = "" if parsed.port is None else f":{parsed.port}"
        _permit_host((f"[{parsed.host}]" if ":" in parsed.host else parsed.host) + port, base, trust, who, error)
    if trust.own:
        return
    if not parsed.host and "host" not in settings:
        raise error(f"{who} names no host that could be allowed")
    if not _NAME.fullmatch(parsed.database or ""):
        raise error(f"{who} names no plain database, as a file from a stranger must")


def _permit_host(host: str, base: Path | None, trust: Trust, who: str, error: type[HeadwayError]) -> None:
    """Check a host, or the folder of a socket on this machine."""
    if host.startswith("/"):
        trust.check_path(host, base, who, error)
    else:
        trust.check_hosts(host, who, error)
