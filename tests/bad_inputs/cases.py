"""Bad inputs and bad arguments of a run: the files, the arguments, and what the one message must say."""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet

NETWORK = """network: bad
sources:
  s: {schema: {sid: int, time: bigint, name: string}}
  r: {schema: {sid: int, time: bigint}, source: {generate: {count: 3, fields: {sid: 1, time: i}}}}
boxes:
  b: {op: filter, in: s, where: "100 / sid > 0"}
outputs:
  o: {from: b}
  p: {from: r}
"""
GOOD = b"sid,time,name\n1,1,a\n2,2,b\n"
FOLDER = None
"""Instead of a file's bytes: a folder."""


class BadInput(NamedTuple):
    """A run that cannot be. The folder also has net.yaml and good.csv, and s reads good.csv if nothing else is said."""

    id: str
    argv: tuple[str, ...]
    expected: tuple[str, ...]
    files: dict[str, bytes | None]


def parquet(**columns: Any) -> bytes:
    """Return a Parquet file."""
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(columns), sink)
    return sink.getvalue()


def _case(name: str, argv: str, *expected: str, **files: bytes | None) -> BadInput:
    """Return a case; the arguments are words apart by spaces, file names have `__` for the dot."""
    named = {file.replace("__", "."): content for file, content in files.items()}
    return BadInput(name, tuple(argv.split()), expected, named)


_INPUTS = (
    # the file
    _case("no such file", "--input s=nowhere.csv", "source 's'", "nowhere.csv", ".csv, .jsonl, .parquet"),
    _case("a folder", "--input s=data.csv", "source 's'", "data.csv", "directory", data__csv=FOLDER),
    _case("a suffix nobody reads", "--input s=x.xls", "source 's'", "x.xls", ".csv, .jsonl, .parquet", x__xls=GOOD),
    _case("no suffix", "--input s=x", "source 's'", "'x'", ".parquet", x=GOOD),
    _case("an empty CSV file", "--input s=x.csv", "source 's'", "x.csv", x__csv=b""),
    _case("binary garbage as CSV", "--input s=x.csv", "source 's'", "x.csv", x__csv=bytes(range(256)) * 40),
    _case("a header that is not UTF-8", "--input s=x.csv", "source 's'", "x.csv", x__csv=b"sid,time,n\xffame\n1,2,3\n"),
    _case("a missing column", "--input s=x.csv", "source 's'", "'time'", x__csv=b"sid,name\n1,a\n"),
    _case("a misspelt column", "--input s=x.csv", "source 's'", "'time'", x__csv=b"sid,tiem,name\n1,1,a\n"),
    _case("Parquet that is none", "--input s=x.parquet", "source 's'", "x.parquet", x__parquet=b"PAR1 not really"),
    _case("an empty Parquet file", "--input s=x.parquet", "source 's'", "x.parquet", x__parquet=b""),
    _case(
        "Parquet with text for a number",
        "--input s=x.parquet",
        "source 's'",
        "'sid'",
        "int",
        x__parquet=parquet(sid=["1"], time=[1], name=["a"]),
    ),
    _case(
        "Parquet without a column",
        "--input s=x.parquet",
        "source 's'",
        "'name'",
        x__parquet=parquet(sid=[1], time=[1]),
    ),
    # rows, where one bad row is enough
    _case(
        "a bad number", "--strict --input s=x.csv", "x.csv", "line 3", "'two'", x__csv=GOOD.replace(b"2,2", b"two,2")
    ),
    _case("too few values", "--strict --input s=x.csv", "x.csv", "line 3", x__csv=GOOD.replace(b"2,2,b", b"2,2")),
    _case("too many values", "--strict --input s=x.csv", "x.csv", "line 3", x__csv=GOOD.replace(b"2,2,b", b"2,2,b,c")),
    _case(
        "a number too large", "--strict --input s=x.csv", "line 2", "int", x__csv=GOOD.replace(b"1,1", b"3000000000,1")
    ),
    _case("a row that is not UTF-8", "--strict --input s=x.csv", "line 3", "UTF-8", x__csv=GOOD.replace(b"b", b"\xff")),
    _case("a quote left open", "--strict --input s=x.csv", "x.csv", "line 3", x__csv=GOOD.replace(b",b", b',"b')),
    _case("JSON that is none", "--strict --input s=x.jsonl", "x.jsonl", "line 1", "JSON", x__jsonl=b"{sid: 1}\n"),
    _case("a JSON list", "--strict --input s=x.jsonl", "x.jsonl", "line 2", "object", x__jsonl=b'{"sid": 1}\n[1, 2]\n'),
    _case("a JSON value", "--strict --input s=x.jsonl", "line 1", "sid", "int", x__jsonl=b'{"sid": "one"}\n'),
    _case("garbage as JSON", "--strict --input s=x.jsonl", "x.jsonl", "line 1", x__jsonl=bytes(range(128, 256))),
    _case(
        "a tuple that fails",
        "--strict --input s=x.csv",
        "box 'b'",
        "division by zero",
        x__csv=b"sid,time,name\n0,1,a\n",
    ),
    _case(
        "a Parquet value too large",
        "--strict --input s=x.parquet",
        "'sid'",
        "int",
        x__parquet=parquet(sid=[1, 3_000_000_000], time=[1, 2], name=["a", "b"]),
    ),
)

_ARGUMENTS = (
    _case("no input", "", "source 's'", "no input"),
    _case("an unknown source", "--input t=good.csv", "--input", "unknown source 't'", "choices: r, s"),
    _case("an unknown output", "--output oo=x.csv", "--output", "unknown output 'oo'", "did you mean 'o'"),
    _case("no name", "--input good.csv", "--input", "SOURCE=PATH", "good.csv"),
    _case("no path", "--output o=", "--output", "OUTPUT=PATH", "'o='"),
    _case("an input twice", "--input s=good.csv --input s=x.csv", "--input", "'s'", "twice", "x.csv"),
    _case("an output twice", "--output o=a.csv --output o=b.csv", "--output", "'o'", "twice", "a.csv"),
    _case("standard input twice", "--input s=- --input r=-", "standard input", "'s'", "'r'"),
    _case("two outputs in one file", "--output o=x.csv --output p=./x.csv", "output 'p'", "output 'o'", "x.csv"),
    _case("over the input", "--input s=good.csv --output o=good.csv", "output 'o'", "good.csv", "source 's'"),
    _case("dead letters over the input", "--input s=good.csv --dead-letters good.csv", "--dead-letters", "source 's'"),
    _case("dead letters into an output", "--output o=x.csv --dead-letters x.csv", "--dead-letters", "output 'o'"),
    _case("summary over the network", "--summary net.yaml", "--summary", "net.yaml", "network file"),
    _case("a suffix nobody writes", "--input s=good.csv --output o=x.doc", "output 'o'", "x.doc", ".csv, .jsonl"),
    _case("no folder for an output", "--input s=good.csv --output o=no/x.csv", "output 'o'", "'no'", "does not exist"),
    _case("a folder as an output", "--input s=good.csv --output o=x.csv", "output 'o'", "directory", x__csv=FOLDER),
    _case("no folder for the summary", "--input s=good.csv --summary no/s.json", "summary", "'no'", "does not exist"),
    _case("a folder as the summary", "--input s=good.csv --summary s.json", "summary", "directory", s__json=FOLDER),
    _case("no folder for dead letters", "--input s=good.csv --dead-letters no/d.csv", "dead letters", "does not exist"),
    _case("dead letters in no format", "--input s=good.csv --dead-letters d.txt", "dead letters", "d.txt", ".csv"),
    _case("a rate of text", "--input s=good.csv --rate s=fast", "--rate", "'s'", "'fast'", "tuples per second"),
    _case("a rate of 0", "--input s=good.csv --rate s=0", "--rate", "'s'", "above 0"),
    _case("a negative rate", "--input s=good.csv --rate s=-5", "--rate", "'s'", "'-5'"),
    _case("a rate without end", "--input s=good.csv --rate s=inf", "--rate", "'inf'"),
    _case("a rate of no source", "--rate t=5", "--rate", "unknown source 't'"),
    _case("an unknown policy", "--input s=good.csv --policy rund-robin", "'rund-robin'", "did you mean 'round-robin'"),
    _case("an unknown unit", "--input s=good.csv --policy round-robin/boxes", "'boxes'", "box, superbox"),
    _case("a train of 0", "--input s=good.csv --train 0", "--train", "above 0", "'0'"),
    _case("a negative train", "--input s=good.csv --train -3", "--train", "above 0", "'-3'"),
    _case("a train of text", "--input s=good.csv --train many", "--train", "'many'"),
    _case("a policy's train of 0", "--input s=good.csv --policy round-robin/box/0", "'0'", "train"),
    _case("workers below 0", "--input s=good.csv --workers -1", "--workers", "from 1 to 65536", "'-1'"),
    _case("half a worker", "--input s=good.csv --workers 1.5", "--workers", "'1.5'"),
    _case("memory of text", "--input s=good.csv --memory lots", "--memory", "256M", "'lots'"),
    _case("no memory", "--input s=good.csv --memory 0M", "--memory", "'0M'"),
    _case("an engine that is not there", "--input s=good.csv --engine warp", "unknown engine 'warp'", "local"),
    _case("a master for one process", "--input s=good.csv --master local[2]", "--master", "spark", "local"),
    _case("an unknown module", "--functions no_such_module", "no_such_module", "cannot be imported"),
    _case("a module that fails", "--functions bad_module_1", "ZeroDivision", bad_module_1__py=b"1 / 0\n"),
    _case("a module that is no Python", "--functions bad_module_2", "SyntaxError", bad_module_2__py=b"def :\n"),
    _case("a table nobody names", "--input s=good.csv --table t=good.csv", "--table", "unknown table 't'"),
    _case("an unknown option", "--input s=good.csv --speed 5", "unknown option '--speed'", "--rate"),
    _case("an option without its value", "--input", "--input", "expected one argument"),
    _case("control characters", "--input s=\x1b[2Jx.csv", "source 's'", r"\x1b[2Jx.csv"),
    _case("a path of NUL", "--input s=\0.csv", "source 's'"),
)  # fmt: skip

_FILES = {
    "no network file": ("nowhere.yaml", None),
    "a folder as the network": ("folder.yaml", FOLDER),
    "a network of garbage": ("x.yaml", bytes(range(128, 256))),
    "a network of NULs": ("x.yaml", b"\0" * 100),
    "an empty network file": ("x.yaml", b""),
    "a CSV file as the network": ("x.yaml", GOOD),
}

CASES = _INPUTS + _ARGUMENTS
NETWORK_FILES = tuple((name, file, content) for name, (file, content) in _FILES.items())
