"""Large trains travel as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.engines.spark.wire.messages import LARGE, Row, clear, receive, send


@pytest.mark.parametrize("size", [0, 10, LARGE - 1, LARGE, 3 * LARGE])
def test_what_is_received_is_what_was_sent(size: int, tmp_path: Path) -> None:
    row = Row(3, 1, 7, bytes(range(256)) * (size // 256) + b"x" * (size % 256))
    travelling = send(row, str(tmp_path))
    assert len(travelling.train) < LARGE
    assert len(list(tmp_path.iterdir())) == (size >= LARGE)
    arrived = receive(travelling, str(tmp_path))
    assert arrived[:3] == row[:3]
    assert bytes(arrived.train) == row.train


def test_without_a_folder_rows_travel_as_they_are() -> None:
    row = Row(0, 0, 0, b"x" * (2 * LARGE))
    assert send(row, None) is row
    assert receive(row, None) is row


def test_a_task_that_is_tried_again_writes_another_file(tmp_path: Path) -> None:
    row = Row(0, 0, 0, b"y" * LARGE)
    first, second = send(row, str(tmp_path)), send(row, str(tmp_path))
    assert first.train != second.train
    assert bytes(receive(first, str(tmp_path)).train) == bytes(receive(second, str(tmp_path)).train) == row.train


def test_what_was_mapped_outlives_the_file(tmp_path: Path) -> None:
    row = Row(0, 0, 0, b"z" * LARGE)
    arrived = receive(send(row, str(tmp_path)), str(tmp_path))
    clear(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    assert bytes(arrived.train) == row.train
    clear(str(tmp_path / "nowhere"))
    clear(None)
