"""A PostgreSQL server for tests: on a loopback port, with a password, in a folder that disappears with it."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

USER, PASSWORD = "tester", "se:cr/et@1"
ESCAPED = "se%3Acr%2Fet%401"
_SECONDS = 30


@dataclass(frozen=True)
class Postgres:
    """A running server."""

    port: int
    folder: Path
    """Where its socket is."""

    @property
    def place(self) -> str:
        """Host, port and database, as in an address."""
        return f"127.0.0.1:{self.port}/postgres"

    @property
    def url(self) -> str:
        """The address, with the password."""
        return f"postgresql://{USER}:{ESCAPED}@{self.place}"

    def run(self, *statements: str, rows: tuple[str, list[tuple[Any, ...]]] | None = None) -> None:
        """Execute statements, and then one for each of the rows."""
        import psycopg

        with psycopg.connect(
            host="127.0.0.1", port=self.port, user=USER, password=PASSWORD, dbname="postgres"
        ) as connection:
            for statement in statements:
                connection.execute(statement.encode())
            if rows is not None:
                connection.cursor().executemany(rows[0].encode(), rows[1])


def installed() -> bool:
    """Whether PostgreSQL's programs are on this machine."""
    return _program("initdb") is not None and _program("postgres") is not None


@contextlib.contextmanager
def serving() -> Iterator[Postgres]:
    """Start a server, and stop it at the end; as root it runs as another user, because it refuses to run as root."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    process = None
    try:
        password = folder / "password"
        password.write_text(PASSWORD)
        user = _user()
        if user is not None:
            for path in (folder, password):
                os.chown(path, user, -1)
        auth = ["--auth=scram-sha-256", f"--username={USER}", f"--pwfile={password}"]
        made = [str(_program("initdb")), "-D", f"{folder}/data", "--no-sync", "-E", "UTF8", "--locale=C", *auth]
        done = subprocess.run(made, user=user, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [str(_program("postgres")), "-D", f"{folder}/data", "-F", "-p", str(port), "-k", str(folder)]
        command += ["-c", "listen_addresses=127.0.0.1", "-c", "shared_buffers=16MB", "-c", "max_connections=20"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, user=user, cwd=folder, stdout=log, stderr=log)
        server = Postgres(port, folder)
        _wait(server, process)
        yield server
    finally:
        if process is not None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait(server: Postgres, process: subprocess.Popen[bytes]) -> None:
    import psycopg

    until = time.monotonic() + _SECONDS
    while True:
        try:
            return server.run("SELECT 1")
        except psycopg.OperationalError:
            assert process.poll() is None, (server.folder / "log").read_text()
            assert time.monotonic() < until, "PostgreSQL did not start"
            time.sleep(0.05)


def _user() -> int | None:
    """Return the user to run it as; None: this one."""
    if os.geteuid() != 0:
        return None
    known = {one.pw_name: one.pw_uid for one in pwd.getpwall()}
    return known.get("postgres", known.get("nobody", 65534))


def _program(name: str) -> str | None:
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(found[-1]) if found else None)
