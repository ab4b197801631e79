"""Directories of whole files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headway.connectors import open_sink, output_files, sink_suffixes
from headway.connectors.output_files import DirectorySink
from headway.errors import OutputError
from headway.network.schema import Schema

SCHEMA = Schema.parse("a int")


def _batch(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"a": list(values)}, SCHEMA.to_arrow())


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _open(what: object, base: Path) -> DirectorySink:
    sink = open_sink("o", SCHEMA, what, base=base)
    assert isinstance(sink, DirectorySink)
    return sink


@pytest.mark.parametrize(
    ("what", "suffix"),
    [
        ({"parquet": "out/"}, "parquet"),
        ({"csv": "out/"}, "csv"),
        ({"jsonl": "out/"}, "jsonl"),
        ({"directory": "out"}, "parquet"),
        ({"directory": {"path": "out", "format": "csv"}}, "csv"),
    ],
)
def test_a_micro_batch_is_a_file_and_repeating_it_changes_nothing(tmp_path: Path, what: object, suffix: str) -> None:
    sink = _open(what, tmp_path)
    for unit, batch, values in (("0f", 0, (1, 2)), ("0f", 3, (3,)), ("0f", 3, (3,))):
        sink.begin(unit, batch)
        sink.write(_batch(*values))
    folder = tmp_path / "out"
    assert _names(folder) == [f"0f-0000000000.{suffix}", f"0f-0000000003.{suffix}"]
    content = {path: path.read_bytes() for path in folder.iterdir()}
    again = _open(what, tmp_path)  # another process goes on
    again.begin("0f", 3)
    again.write(_batch(3))
    again.abort()
    assert {path: path.read_bytes() for path in folder.iterdir()} == content


def test_paths_with_a_suffix_and_a_slash(tmp_path: Path) -> None:
    sink = _open(f"{tmp_path}/out.parquet/", tmp_path)
    sink.begin("u", 1)
    sink.write(_batch(1))
    sink.write(_batch(2))
    assert pq.read_table(tmp_path / "out.parquet").to_pydict() == {"a": [1, 2]}
    assert sink_suffixes() == (".csv", ".jsonl", ".parquet")


def test_without_micro_batches_files_are_numbered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_files, "GROUP_ROWS", 3)
    sink = _open({"parquet": "out/"}, tmp_path)
    for at in range(7):
        sink.write(_batch(at))
    assert len(_names(tmp_path / "out")) == 2
    sink.close()
    sink.close()
    sink.abort()
    assert [pq.read_table(tmp_path / "out" / name).column("a").to_pylist() for name in _names(tmp_path / "out")] == [
        [0, 1, 2],
        [3, 4, 5],
        [6],
    ]


def test_giving_up_takes_only_own_files_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_files, "GROUP_ROWS", 1)
    first = _open({"parquet": "out/"}, tmp_path)
    first.write(_batch(1))
    first.close()
    second = _open({"parquet": "out/"}, tmp_path)
    second.write(_batch(2))
    assert len(_names(tmp_path / "out")) == 2
    second.abort()
    assert pq.read_table(tmp_path / "out").to_pydict() == {"a": [1]}


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"parquet": "no/where/"}, "output 'o': the folder '.*no' does not exist"),
        ({"parquet": "file/"}, "'.*file' is a file; expected a directory"),
        ({"parquet": "s3://bucket/x/"}, "is not a directory on this machine; {spark: {format, path}} writes there"),
        ({"directory": {"path": "out", "format": "orc"}}, "unknown format 'orc'; .*choices: csv, jsonl, parquet"),
        ({"directory": {"paths": "out"}}, "unknown key 'paths'; did you mean 'path'"),
        ({"directory": {}}, "directory: expected a path, not None"),
        ({"directory": 5}, "directory expects a path"),
    ],
)
def test_what_cannot_be_opened(tmp_path: Path, what: object, message: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=message):
        open_sink("o", SCHEMA, what, base=tmp_path)
