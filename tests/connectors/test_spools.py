"""A spool gives every tuple once, whenever the process dies."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.connectors.protocol import Malformed
from headway.connectors.spools import Spool
from headway.errors import InputError
from tests.searching import examples

SCHEMA = pa.schema([("a", pa.int64())])


def _table(values: list[int]) -> pa.Table:
    return pa.table({"a": values}, schema=SCHEMA)


def _bad(number: int) -> Malformed:
    return Malformed("s", f"row {number}", str(number), "bad")


def _values(spool: Spool) -> list[int]:
    return [value for rest in spool.rest() for value in rest.table.column("a").to_pylist()]


def _refused(spool: Spool) -> list[str]:
    return [row.text for rest in spool.rest() for row in rest.malformed]


@examples(50)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=6),
    st.data(),
)
def test_what_is_not_logged_comes_again_and_nothing_else(sizes: list[tuple[int, int]], data: st.DataObject) -> None:
    """Batches of so many tuples and malformed rows; the log stops anywhere, trimmed or not, and again."""
    tuples, refused = sum(size for size, _ in sizes), sum(bad for _, bad in sizes)
    with TemporaryDirectory() as folder:
        spool = Spool(folder, SCHEMA, "s", 0, 0)
        at = worst = 0
        for number, (size, bad) in enumerate(sizes):
            spool.keep(number, _table(list(range(at, at + size))), [_bad(worst + one) for one in range(bad)])
            at, worst = at + size, worst + bad
        logged = logged_refused = 0
        for _ in range(2):
            logged = data.draw(st.integers(logged, tuples))
            logged_refused = data.draw(st.integers(logged_refused, refused))
            if data.draw(st.booleans()):
                spool.trim(logged, logged_refused)
            spool = Spool(folder, SCHEMA, "s", logged, logged_refused)
            assert _values(spool) == list(range(logged, tuples))
            assert _refused(spool) == [str(one) for one in range(logged_refused, refused)]
            assert spool.newest == len(sizes) - 1


def test_the_newest_batch_stays_until_there_is_another(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), SCHEMA, "s", 0, 0)
    spool.keep(0, _table([1]), [])
    spool.keep(1, _table([2]), [])
    spool.trim(2, 0)
    assert [path.name.partition(".")[0] for path in tmp_path.rglob("*.arrow")] == ["0000000001-1-2-0-0"]
    assert Spool(str(tmp_path), SCHEMA, "s", 2, 0).newest == 1
    spool.keep(2, _table([3]), [])
    spool.trim(2, 0)
    assert [path.name.partition(".")[0] for path in tmp_path.rglob("*.arrow")] == ["0000000002-2-3-0-0"]


def test_an_empty_spool_starts_where_the_log_is(tmp_path: Path) -> None:
    """The source had another input before."""
    spool = Spool(str(tmp_path), SCHEMA, "s", 1000, 3)
    spool.keep(0, _table([1, 2]), [])
    assert _values(Spool(str(tmp_path), SCHEMA, "s", 1001, 3)) == [2]


def test_an_unfinished_file_does_not_count(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), SCHEMA, "s", 0, 0)
    spool.keep(0, _table([1]), [])
    (tmp_path / "batches" / "0000000001-1-2-0-0.arrow.tmp").write_bytes(b"half")
    assert Spool(str(tmp_path), SCHEMA, "s", 0, 0).newest == 0


def test_other_fields(tmp_path: Path) -> None:
    Spool(str(tmp_path), SCHEMA, "s", 0, 0).keep(0, _table([1]), [])
    with pytest.raises(InputError, match=r"source 's': the saved run has taken tuples with other fields \(a: int64\)"):
        _values(Spool(str(tmp_path), pa.schema([("b", pa.int64())]), "s", 0, 0))


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="source 's': cannot use"):
        Spool(str(tmp_path / "file"), SCHEMA, "s", 0, 0)
