"""Temporary folders: for their owner only; removed by the next run after a kill, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from headway.storage import temporary
from headway.storage.temporary import clean_temporary, make_temporary, remove_temporary


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def killed(folder: Path) -> Path:
    """Return what a process leaves that made a folder and was killed."""
    code = (
        "import os, signal\nfrom headway.storage.temporary import make_temporary\n"
        "made = make_temporary()\nopen(made + '/large', 'w').close()\nprint(made, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    return Path(done.stdout.strip())


def test_a_folder_of_a_killed_run_is_removed(folder: Path) -> None:
    left = killed(folder)
    assert (left / "large").exists()
    assert left.stat().st_mode & 0o077 == 0
    assert clean_temporary() == [str(left)]
    assert not left.exists()


def test_a_folder_in_use_stays(folder: Path) -> None:
    mine = make_temporary()
    handle = temporary._held.pop(mine)  # as another process sees it
    assert clean_temporary() == []
    temporary._held[mine] = handle
    remove_temporary(mine)
    assert not Path(mine).exists()


def test_what_is_not_ours_stays(folder: Path) -> None:
    (folder / "headway-unmarked").mkdir()
    (folder / "headway-file").write_text("mine")
    (folder / "others").mkdir()
    (folder / "others" / ".headway-lock").touch()
    assert clean_temporary() == []
    assert len(list(folder.iterdir())) == 3


def test_links_are_not_followed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    victim = tmp_path_factory.mktemp("victim")
    (victim / "precious").write_text("keep me")
    (victim / ".headway-lock").touch()
    (folder / "headway-link").symlink_to(victim)
    (folder / "headway-mark").mkdir()
    (folder / "headway-mark" / ".headway-lock").symlink_to(victim / "precious")
    left = killed(folder)
    (left / "inside").symlink_to(victim)
    assert clean_temporary() == [str(left)]
    assert not left.exists()
    assert (victim / "precious").read_text() == "keep me"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_folders_of_others_stay(folder: Path) -> None:
    left = killed(folder)
    os.chown(left, 12345, 12345)
    assert clean_temporary() == []
    os.chown(left, 0, 0)
    os.chown(left / ".headway-lock", 12345, 12345)
    assert clean_temporary() == []
