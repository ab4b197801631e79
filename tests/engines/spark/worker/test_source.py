"""The source of a unit's query: what it answers when the run has gone, and what that leaves in a state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.engines.spark.driver.journal import _Checkpoint
from headway.engines.spark.worker.source import LogReader
from headway.errors import RunError
from headway.storage.filesystems import locate


class Gone(LogReader):
    """A reader whose gate is closed."""

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        return {"stop": True}


def test_a_query_that_has_not_run_begins_no_micro_batch() -> None:
    reader = Gone(None, None, (0, "", 0), -1)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="the driver has gone"):
        reader.latestOffset({"upto": -1}, None)
    assert reader.latestOffset({"upto": 7}, None) == {"upto": 7}


def check(folder: Path, number: int, upto: int) -> None:
    """Hold an offset file of a unit that has delivered nothing against a log with 10 numbers."""
    (folder / "checkpoints" / "0" / "offsets").mkdir(parents=True)
    text = "v1\n{}\n" + json.dumps({"upto": upto})
    (folder / "checkpoints" / "0" / "offsets" / str(number)).write_text(text)
    place = locate(str(folder))
    _Checkpoint(place, "0", place.files("checkpoints"))._check_ahead(-1, -1, 10)


@pytest.mark.parametrize("upto", [-1, 0, 10])
def test_a_first_micro_batch_may_be_of_nothing(tmp_path: Path, upto: int) -> None:
    check(tmp_path, 0, upto)


@pytest.mark.parametrize(("number", "upto"), [(0, -2), (0, 11), (1, 5)])
def test_others_are_damage(tmp_path: Path, number: int, upto: int) -> None:
    with pytest.raises(RunError, match=f"offsets/{number}' is damaged"):
        check(tmp_path, number, upto)
