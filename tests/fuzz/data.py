"""Data files with bad rows between good ones, of which none may be lost; and files that are spoilt all over."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headway.connectors import csv as csv_module
from headway.connectors import jsonl as jsonl_module
from headway.connectors import open_source
from headway.connectors.protocol import Reader
from headway.connectors.readers import SkippingReader
from headway.network.schema import Schema
from headway.tables import load_table
from tests.fuzz.judging import expect
from tests.fuzz.nasty import mutate_bytes

SCHEMA = Schema.parse("id int, x double, s string, t timestamp, u string, n bigint")
MOMENT = "2024-01-01T00:00:{:02d}Z"
_TEXTS = (
    "a",
    "b c",
    "",
    "é",
    '"',
    'say "hi"',
    ",",
    "\n",
    'two\nlines, "quoted"',
    '",',
    ',"',
    "x" * 40,
    "1,2.0,a,,b,7",
    "'",
    "\\",
)
_SIMPLE = ("a", "b c", "é", "x" * 40, "'", "\\")

Row = tuple[Any, ...]


def _row(random: Random, at: int, texts: tuple[str, ...]) -> Row:
    return at, at / 4, random.choice(texts), MOMENT.format(at % 60), random.choice(texts), at * 7


def _csv_line(row: Row, quoting: int) -> bytes:
    text = io.StringIO()
    csv.writer(text, quoting=quoting, lineterminator="\r\n").writerow(row)  # type: ignore[arg-type]
    return text.getvalue().removesuffix("\r\n").encode()


def _spoil(random: Random, at: int) -> bytes:
    """Return a line that is no good row, and whose quotes stray into numbers only: no text can begin with them."""
    cells = [b"%d" % at, b"%.2f" % (at / 4), b"a", MOMENT.format(at % 60).encode(), b"b", b"%d" % (at * 7)]
    number = random.choice((0, 1, 3, 5))
    kind = random.random()
    if kind < 0.35:
        cells[number] = b'"' + cells[number]
    elif kind < 0.6:
        cells[number] += b'"'
    elif kind < 0.7:
        cells[number] = random.choice((b"x", b"\xff\xfe", b"1e999999", b"--1", b"9" * 400, b"\0"))
    elif kind < 0.8:
        del cells[number]
    elif kind < 0.9:
        return bytes(byte for byte in random.randbytes(random.randrange(60)) if byte not in b'"\r\n,')
    else:
        cells.insert(number, b"\xff" if random.random() < 0.5 else b"")
    return b",".join(cells)


def csv_rows(random: Random, size: int, folder: Path) -> None:
    """Read good rows among bad ones: no good one is lost, however the file is cut into reads, or gone on with."""
    quoting = random.choice((csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC, csv.QUOTE_ALL))
    ending = random.choice((b"\n", b"\n", b"\r\n", b"\r"))
    lines, good = [], []
    for at in range(random.randrange(1, 12 * size)):
        if random.random() < 0.2:
            lines.append(_spoil(random, at))
        else:
            good.append(_row(random, at, _TEXTS))
            lines.append(_csv_line(good[-1], quoting))
    mark = random.choice((b"", b"\xef\xbb\xbf"))
    data = mark + ",".join(SCHEMA.names).encode() + ending + ending.join(lines) + random.choice((b"", ending))
    _check(random, folder / "a.csv", data, good)


def json_rows(random: Random, size: int, folder: Path) -> None:
    """The same for JSON lines."""
    lines, good = [], []
    for at in range(random.randrange(1, 12 * size)):
        row = _row(random, at, _TEXTS)
        line = json.dumps(dict(zip(SCHEMA.names, row, strict=True)), ensure_ascii=random.random() < 0.5).encode()
        if random.random() < 0.25:
            spoilt = mutate_bytes(random, line, random.randrange(1, 3)).replace(b"\n", b"")
            lines.append(
                random.choice((spoilt, spoilt, b"null", b"[1]", b"1" * 5000, b"[" * 3000, b'{"x": 1e99999}', b""))
            )
        else:
            good.append(row)
            lines.append(line)
    ending = random.choice((b"\n", b"\r\n"))
    data = random.choice((b"", b"\xef\xbb\xbf")) + ending.join(lines) + random.choice((b"", ending))
    _check(random, folder / "a.jsonl", data, good)


def _check(random: Random, path: Path, data: bytes, good: list[Row]) -> None:
    path.write_bytes(data)
    found, bad = _drain(open_source("s", SCHEMA, path), (1000,))
    left = iter(found)
    for row in good:
        # CSV has no empty text without quotes: it is NULL there.
        expect(any(_same(row, one) for one in left), f"a good row is lost: {row!r}; file: {data[:3000]!r}")
    blocks = csv_module.BLOCK, jsonl_module.BLOCK
    try:
        csv_module.BLOCK = jsonl_module.BLOCK = random.choice((1, 3, 7, 20, 64, 500))
        again, same = _drain(open_source("s", SCHEMA, path), (random.randrange(1, 9), 3))
        expect(repr(again) == repr(found), f"blocks change rows: {data[:3000]!r}")
        expect(same == bad, f"blocks change malformed rows: {bad!r:.500} and {same!r:.500}; file: {data[:2000]!r}")
        count = random.randrange(len(found) + 1)
        rest, _ = _drain(SkippingReader(open_source("s", SCHEMA, path), "s", count), (1000,))
        expect(repr(rest) == repr(found[count:]), f"going on after {count} rows finds others: {data[:3000]!r}")
    finally:
        csv_module.BLOCK, jsonl_module.BLOCK = blocks


def _same(row: Row, one: dict[str, Any]) -> bool:
    moment = one["t"]
    texts = (one["s"] or "", one["u"] or "")
    stamp = None if moment is None else MOMENT.format(moment.second)
    return row == (one["id"], one["x"], texts[0], stamp, texts[1], one["n"])


def _drain(reader: Reader, limits: tuple[int, ...]) -> tuple[list[dict[str, Any]], list[str]]:
    rows: list[dict[str, Any]] = []
    bad: list[str] = []
    turn = 0
    try:
        while (chunk := reader.read(limits[turn % len(limits)])) is not None:
            turn += 1
            rows += chunk.batch.to_pylist()
            bad += _texts(reader)
            expect(all(len(one) < 3_000 for one in bad), "the report of a malformed row is long")
        bad += _texts(reader)
    finally:
        reader.close()
    return rows, bad


def _texts(reader: Reader) -> Iterable[str]:
    return [f"{one} {one.text}" for one in reader.malformed()]


def spoilt(random: Random, size: int, folder: Path) -> None:
    """Spoil a whole file, of any kind: its end is a row, a malformed row or an error."""
    rows = [_row(random, at, _TEXTS) for at in range(20)]
    table = pa.table({name: [row[at] for row in rows] for at, name in enumerate(SCHEMA.names)})
    kind = random.choice(("csv", "jsonl", "parquet"))
    path = folder / f"a.{kind}"
    if kind == "parquet":
        fixed = table.set_column(0, "id", table["id"].cast(pa.int32()))
        fixed = fixed.set_column(3, "t", pa.array([row[0] * 10**6 for row in rows], pa.timestamp("us", tz="UTC")))
        pq.write_table(fixed, path, compression=random.choice(("none", "snappy")))
    elif kind == "csv":
        head = ",".join(SCHEMA.names).encode()
        path.write_bytes(head + b"\n" + b"\n".join(_csv_line(row, csv.QUOTE_MINIMAL) for row in rows))
    else:
        path.write_bytes(b"\n".join(json.dumps(dict(zip(SCHEMA.names, row, strict=True))).encode() for row in rows))
    path.write_bytes(mutate_bytes(random, path.read_bytes(), size))
    if random.random() < 0.3:
        load_table(path.name, folder=folder)
    else:
        _drain(open_source("s", SCHEMA, path), (7,))
