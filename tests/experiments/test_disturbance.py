"""How much of the processors' time others took."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway_experiments.disturbance import Used, share, used

LINE = "cpu  100 10 50 800 5 2 3 35 7 0\ncpu0 1 2 3\n"


def test_a_line_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text(LINE)
    assert used(tmp_path / "stat") == Used(wanted=200, stolen=35)


@pytest.mark.parametrize("text", ["", "cpu 1 2\n", "nonsense a b c d e f g h\n"])
def test_what_cannot_be_read_is_not_known(tmp_path: Path, text: str) -> None:
    (tmp_path / "stat").write_text(text)
    assert used(tmp_path / "stat") is None
    assert used(tmp_path / "missing") is None


def test_shares() -> None:
    assert share(Used(100, 10), Used(300, 60)) == 0.25
    assert share(Used(100, 10), Used(100, 10)) == 0.0
    assert share(None, Used(1, 1)) == share(Used(1, 1), None) == 0.0


def test_on_this_machine() -> None:
    now = used()
    assert now is None or 0 <= now.stolen <= now.wanted
