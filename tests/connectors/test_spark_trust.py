"""Hostile network files against a real Spark session, and a stranger's file that keeps to what is allowed."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headway as hw
from headway.connectors.spark_columns import select_columns
from headway.engines.spark.driver import backend
from headway.engines.spark.driver.gate import Gate
from headway.errors import HeadwayError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SET = "reflect('java.lang.System', 'setProperty', 'headway.hole', 'open')"


def _network(source: dict[str, Any], sink: dict[str, Any] | None = None, table: str | None = None) -> dict[str, Any]:
    box: dict[str, Any] = {"op": "map", "in": "s", "select": "a"}
    if table is not None:
        box = {"op": "join", "in": ["s", {"table": table}], "on": "left.a = right.a", "select": "left.a as a"}
    made: dict[str, Any] = {
        "network": "n",
        "sources": {"s": {"schema": {"a": "int"}, "source": source}},
        "boxes": {"m": box},
        "outputs": {"o": {"from": "m"}},
    }
    if sink is not None:
        made["outputs"]["o"]["sink"] = sink
    return made


def _json(folder: Path) -> dict[str, Any]:
    folder.mkdir()
    (folder / "1.json").write_text('{"a": 1}\n{"a": 5}\n')
    return {"spark": {"format": "json", "path": str(folder), "available_now": True}}


def _is_open(spark: SparkSession) -> bool:
    jvm: Any = spark._jvm
    return jvm.java.lang.System.getProperty("headway.hole") is not None


def test_java_cannot_be_called(spark: SparkSession, tmp_path: Path) -> None:
    source = _json(tmp_path / "in")
    for text in (f"length({SET}) as a", f"if({SET} is null, a, a) as a", f"`reflect`{SET[7:]} as a"):
        hostile = {"spark": source["spark"] | {"select": ["a as x", text], "schema": "a int"}}
        with pytest.raises(HeadwayError, match=r"source 's': spark: select: function '`?reflect`?' is not known"):
            hw.run(_network(hostile), engine="local")
    # Even a name that came through is a name, and no expression.
    with contextlib.suppress(Exception):
        frame = spark.range(1)
        frame.select(*select_columns([f"`{SET}` as a", f"id.`{SET}`"], frame.columns)).collect()
    for box in ("filter", "map"):
        network = _network(source)
        network["boxes"]["m"] = {"op": box, "in": "s", "where" if box == "filter" else "select": f"{SET} = 'x'"}
        with pytest.raises(HeadwayError, match="unknown function 'reflect'"):
            hw.run(network, engine="spark")
    assert not _is_open(spark)


def test_a_table_s_name_is_no_sql(spark: SparkSession, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "x.txt").write_text("hunter2\n")
    source = {"generate": {"count": 1, "fields": {"a": "cast(i as int)"}}}
    for ref in (f"text.`{secret}`", f"text.`file:{secret}`", f"binaryFile.`{secret}`", f"json.`{secret}/{{x,y}}.txt`"):
        with pytest.raises(HeadwayError, match=r"box 'm': in: table .*(stranger|unknown format)") as caught:
            hw.run(_network(source, table=ref), engine="local", trust="stranger")
        assert "hunter2" not in str(caught.value)
    spark.sql("create or replace temp view secrets as select 1 as a")
    with pytest.raises(HeadwayError, match=r"may not use the table 'secrets' .*--allow-table secrets lets it"):
        hw.run(_network(source, table="secrets"), engine="local", trust="stranger")
    for allowed in (("secrets",), ("s*",)):
        hw.run(_network(source, table="secrets"), engine="local", trust=hw.Trust(tables=allowed))
    hw.run(_network(source, table="secrets"), engine="local")


def test_a_stranger_s_file_works_in_its_folders(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    source = _json(tmp_path / "in")
    sink = {"spark": {"format": "parquet", "path": str(out / "o"), "options": {"compression": "gzip"}}}
    trust = hw.Trust(paths=(str(out),), read_only=(str(tmp_path / "in"),), formats=("json", "parquet"))
    hw.run(_network(source, sink), engine="spark", trust=trust)
    assert sorted(spark.read.parquet(str(out / "o")).toArrow().column("a").to_pylist()) == [1, 5]
    for path in (f"{out}/../in2", f"{tmp_path}/in", f"{out}/{{..,x}}/in2", f"file:{tmp_path}/in2"):
        bad = {"spark": sink["spark"] | {"path": path}}
        with pytest.raises(HeadwayError, match="output 'o': spark: path: a file from a stranger may not"):
            hw.run(_network(source, bad), engine="local", trust=trust)
    assert not (tmp_path / "in2").exists()


def test_the_secret_of_the_gate_shows_nowhere(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gates: list[Gate] = []
    looked: list[int] = []

    class Kept(Gate):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            gates.append(self)

    def look(status: object) -> None:
        if not gates:
            return
        secret, seen = gates[-1].secret.encode(), 0
        for process in Path("/proc").iterdir():
            for name in ("cmdline", "environ"):
                with contextlib.suppress(OSError):
                    text = (process / name).read_bytes()
                    seen += b"python" in text or b"java" in text
                    assert secret not in text, process
        looked.append(seen)

    monkeypatch.setattr(backend, "Gate", Kept)
    source = {"generate": {"count": 3000, "rate": 1500, "fields": {"a": "cast(i as int)"}}}
    state = tmp_path / "state"
    hw.run(json.dumps(_network(source)), engine="spark", on_status=look, state=state)
    assert gates
    assert max(looked) > 0
    for path in state.rglob("*"):
        assert not path.is_file() or gates[-1].secret.encode() not in path.read_bytes(), path
