"""The source of a unit's query: its answers when the run has gone, what that leaves, and work that travels unopened."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from headway.engines.spark.driver.journal import _Checkpoint
from headway.engines.spark.worker.source import LogReader, Pickled
from headway.errors import RunError
from headway.storage.filesystems import locate


class Gone(LogReader):
    """A reader whose gate is closed."""

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        return {"stop": True}


def test_a_query_that_has_not_run_begins_no_micro_batch() -> None:
    reader = Gone(None, (0, "", 0), -1)  # type: ignore[arg-type]
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


PROGRAM = """
import sys
from pyspark import cloudpickle
work = cloudpickle.loads(bytes.fromhex(sys.argv[1]))
assert work.key == "k" and "fractions" not in sys.modules
again = cloudpickle.loads(cloudpickle.dumps(work))
assert "fractions" not in sys.modules
print(again.open(), "fractions" in sys.modules)
"""


def test_a_process_that_passes_it_on_does_not_import_what_it_is_made_of() -> None:
    from fractions import Fraction

    data: bytes = cloudpickle.dumps(Pickled("k", Fraction(1, 3)))  # type: ignore[no-untyped-call]
    done = subprocess.run([sys.executable, "-c", PROGRAM, data.hex()], capture_output=True, text=True, check=False)
    assert done.stdout == "1/3 True\n", done.stderr


def test_who_sealed_it_opens_it_without_unpacking() -> None:
    content = [1]
    assert Pickled("k", content).open() is content
