"""Which file an input is: the same, grown, or another one under its name."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headway.connectors.input_files import check_input, describe
from headway.connectors.registry import open_source
from headway.errors import InputError
from headway.network.schema import Schema

SCHEMA = Schema.parse("a bigint, b string")
ROWS = 50_000


def write(path: Path, rows: range, word: str = "x") -> None:
    values = [{"a": at, "b": word} for at in rows]
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(values), path)
    elif path.suffix == ".csv":
        path.write_text("a,b\n" + "".join(f"{one['a']},{one['b']}\n" for one in values))
    else:
        path.write_text("".join(f'{{"a": {one["a"]}, "b": "{one["b"]}"}}\n' for one in values))


def check(path: Path, known: Any, ended: bool = False) -> None:
    reader = open_source("s", SCHEMA, path)
    try:
        check_input("s", reader, known, ended)
    finally:
        reader.close()


def read(path: Path, tuples: int, ended: bool = False) -> Any:
    """Return what is known of an input that was read so far; `ended` if its source is known to have ended."""
    reader = open_source("s", SCHEMA, path, rate=1e9)
    while tuples > 0:
        chunk = reader.read(tuples)
        if chunk is None:
            break
        tuples -= len(chunk)
    reader.close()
    return describe({"s": reader}, {}, {"s"} if ended else ())["s"]


@pytest.fixture(params=[".csv", ".jsonl", ".parquet"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    found = tmp_path / f"day{request.param}"
    write(found, range(ROWS))
    return found


@pytest.mark.parametrize("tuples", [1, 1000, ROWS + 1])
def test_the_same_file_is_accepted(path: Path, tuples: int) -> None:
    known = read(path, tuples)
    write(path, range(ROWS))
    check(path, known)


def test_another_file_is_refused(path: Path) -> None:
    known = read(path, 1000)
    write(path, range(ROWS), "y")
    with pytest.raises(InputError, match=r"source 's': '.*day\.\w+' is not the file .*; give that file, or another --"):
        check(path, known)


def test_a_shorter_file_is_refused(path: Path) -> None:
    known = read(path, ROWS + 1)
    write(path, range(ROWS // 2))
    with pytest.raises(InputError, match="is not the file"):
        check(path, known)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_file_may_grow_until_its_end_was_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"day{suffix}"
    write(path, range(ROWS))
    known = read(path, ROWS + 1)
    write(path, range(ROWS + 5))
    check(path, known)
    with pytest.raises(InputError, match="grown since it was read to its end"):
        check(path, known, ended=True)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_source_that_has_ended_may_not_grow_while_others_go_on(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"day{suffix}"
    write(path, range(ROWS))
    known = read(path, ROWS + 1, ended=True)
    check(path, known)
    write(path, range(ROWS + 5))
    with pytest.raises(InputError, match="grown since it was read to its end"):
        check(path, known)


@pytest.mark.parametrize(
    ("name", "text", "more"),
    [
        ("day.csv", "a,b\n1,x\n12,y", "z\n"),
        ("day.csv", 'a,b\n1,x\n12,"y\n', 'z"\n'),
        ("day.csv", "a,b\n1,x\n12", ",z\n"),  # malformed then, good now
        ("day.jsonl", '{"a": 1, "b": "x"}\n{"a": 1', '2, "b": "y"}\n'),
    ],
)
def test_a_half_written_last_row_may_not_become_another(tmp_path: Path, name: str, text: str, more: str) -> None:
    """As soon as it was parsed: nobody knows any more that its source has not ended."""
    path = tmp_path / name
    path.write_text(text)
    known = read(path, 5)
    check(path, known)
    path.write_text(text + more)
    with pytest.raises(InputError, match="grown since it was read to its end"):
        check(path, known)


def test_a_state_that_does_not_say_whether_its_input_had_ended(tmp_path: Path) -> None:
    """What had read all bytes has perhaps read a last row that nothing ended."""
    path = tmp_path / "day.csv"
    write(path, range(ROWS), "x" * 80)
    part, whole = read(path, 10)[:5], read(path, ROWS + 1)[:5]
    check(path, part)
    check(path, whole)
    write(path, range(ROWS + 5), "x" * 80)
    check(path, part)
    with pytest.raises(InputError, match="grown since it was read to its end"):
        check(path, whole)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_what_comes_behind_the_end_is_not_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"day{suffix}"
    write(path, range(3))
    with closing(open_source("s", SCHEMA, path)) as reader:
        while reader.read(10) is not None:
            pass
        write(path, range(9))
        assert reader.read(10) is None


def test_the_end_is_known_although_no_byte_was_read_since(tmp_path: Path) -> None:
    path = tmp_path / "day.csv"
    write(path, range(3))
    with closing(open_source("s", SCHEMA, path)) as reader:
        reader.read(10)
        known = describe({"s": reader}, {})
        assert describe({"s": reader}, known) == {}
        known |= describe({"s": reader}, known, {"s"})
        assert known["s"][-1] is True
        assert describe({"s": reader}, known) == {}


def test_parquet_does_not_grow(tmp_path: Path) -> None:
    path = tmp_path / "day.parquet"
    write(path, range(ROWS))
    known = read(path, 10)
    write(path, range(ROWS + 5))
    with pytest.raises(InputError, match="its size, its first or its last bytes are others"):
        check(path, known)


def test_what_is_known_does_not_become_less(path: Path) -> None:
    """A run that goes on reads from the beginning."""
    known = {"s": read(path, ROWS + 1)}
    with closing(open_source("s", SCHEMA, path)) as reader:
        assert describe({"s": reader}, known) == {}
        assert describe({"s": reader}, {}).keys() == {"s"}


def test_other_sources_have_no_identity() -> None:
    reader = open_source("s", SCHEMA, [{"a": 1, "b": "x"}])
    assert describe({"s": reader}, {}) == {}
    check_input("s", reader, [1, 1, 1, 1, False], ended=True)
