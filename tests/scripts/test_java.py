"""scripts/java.sh: silent when Java is there, installs it where it can, otherwise says what to do."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/java.sh"
TOOLS = ("sh", "sed", "head")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Return a folder with all programs that the script may find: there is no Java and nothing to install with."""
    made = tmp_path / "bin"
    made.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found is not None
        (made / name).symlink_to(found)
    put(made, "id", "echo 0")
    return made


def put(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def java(version: str) -> str:
    return f"echo 'openjdk version \"{version}\" 2025-04-15' >&2"


def run(programs: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(programs), **variables}
    return subprocess.run([programs / "sh", SCRIPT], env=environment, capture_output=True, text=True)


def apt(programs: Path, install: str = "", update: str = "") -> Path:
    """Put an apt-get there that notes its calls."""
    calls = programs.parent / "calls"
    put(
        programs,
        "apt-get",
        f'echo "$*" >> "{calls}"\ncase "$1" in install) {install or ":"};; *) {update or ":"};; esac',
    )
    return calls


@pytest.mark.parametrize("version", ["17.0.15", "21", "17"])
def test_silent_when_java_is_there(programs: Path, version: str) -> None:
    put(programs, "java", java(version))
    calls = apt(programs)
    done = run(programs)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not calls.exists()


def test_java_home_counts_first(programs: Path, tmp_path: Path) -> None:
    home = tmp_path / "home" / "bin"
    home.mkdir(parents=True)
    put(home, "java", java("17.0.1"))
    assert run(programs, JAVA_HOME=str(home.parent)).returncode == 0
    put(programs, "java", java("17.0.1"))
    put(home, "java", java("11.0.2"))
    calls = apt(programs)
    done = run(programs, JAVA_HOME=str(home.parent))
    assert done.returncode == 1
    assert "version 11" in done.stderr
    assert not calls.exists()


@pytest.mark.parametrize("old", [None, "11.0.2", "1.8.0_302"])
def test_root_installs_it(programs: Path, tmp_path: Path, old: str | None) -> None:
    if old:
        put(programs, "java", java(old))
    put(tmp_path, "new", java("17.0.15"))
    calls = apt(programs, f'{shutil.which("cp")} "{tmp_path / "new"}" "{programs / "java"}"')
    done = run(programs)
    assert done.returncode == 0, done.stderr
    assert calls.read_text() == "install -y -qq --no-install-recommends openjdk-17-jre-headless\n"
    assert "installing Java 17" in done.stderr
    assert run(programs).stderr == ""


def test_the_list_of_packages_is_fetched_when_it_is_missing(programs: Path, tmp_path: Path) -> None:
    put(tmp_path, "new", java("17.0.15"))
    listed = tmp_path / "listed"
    install = f'test -e "{listed}" && {shutil.which("cp")} "{tmp_path / "new"}" "{programs / "java"}"'
    calls = apt(programs, install, f'{shutil.which("touch")} "{listed}"')
    done = run(programs)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in calls.read_text().splitlines()] == ["install", "update", "install"]


@pytest.mark.parametrize("why", ["nobody", "no apt-get", "apt-get fails", "still too old"])
def test_otherwise_it_says_what_to_do(programs: Path, why: str) -> None:
    if why == "nobody":
        put(programs, "id", "echo 1000")
    if why == "still too old":
        put(programs, "java", java("11.0.2"))
    calls = None if why == "no apt-get" else apt(programs, "false" if why == "apt-get fails" else "")
    done = run(programs)
    assert done.returncode == 1
    assert "needs Java 17" in done.stderr
    assert "openjdk-17-jre-headless" in done.stderr
    assert "--engine local" in done.stderr
    assert done.stdout == ""
    if why == "nobody":
        assert calls is not None
        assert not calls.exists()
