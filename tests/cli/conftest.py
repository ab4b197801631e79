"""A folder with a network and its data."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import BORDER, ROWS, write_rows


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with border.yaml and day.csv in it."""
    (tmp_path / "border.yaml").write_text(BORDER)
    write_rows(tmp_path / "day.csv", ROWS)
    monkeypatch.chdir(tmp_path)
    return tmp_path
