"""Results for people: a short line, bounded tables, and HTML in which data stays data."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest

import headway as hw
from headway.engines.runs import RunResult
from headway.errors import InputError, OutputError

EVIL = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def result() -> RunResult:
    net = hw.Network("odd")
    source = net.source("s", {"a": "int", "<b>": "string"})
    source.output("all")
    source.filter("a < 0", name="none").output("none")
    return hw.run(net, {"s": [(at, EVIL if at else None) for at in range(1000)]}, engine="local")


def test_the_repr_is_a_line(result: RunResult) -> None:
    text = repr(result)
    assert text == (
        "<RunResult: network 'odd', engine local: 1,000 tuples in, 1,000 out to 2 outputs (2 as tables); "
        ".show() prints tuples>"
    )
    assert repr(dataclasses.replace(result, outputs={})).count("\n") == 0


def test_show_prints_the_first_tuples(result: RunResult, capsys: pytest.CaptureFixture[str]) -> None:
    result.show()
    lines = capsys.readouterr().out.splitlines()
    assert "output 'all': 1,000 tuples" in lines
    assert "… and 990 more" in lines
    assert lines[-1] == "output 'none': 0 tuples"
    assert len(lines) == 18
    result.show("all", rows=2)
    assert "… and 998 more" in capsys.readouterr().out


def test_an_output_that_has_no_table(result: RunResult) -> None:
    with pytest.raises(OutputError, match="unknown output 'al'; did you mean 'all'"):
        result.show("al")


def test_data_cannot_inject_html(result: RunResult) -> None:
    text = result._repr_html_()
    assert "<script" not in text
    assert "&lt;script&gt;alert(&#x27;x&#x27;)" in text
    assert "<th>&lt;b&gt;</th>" in text
    odd = dataclasses.replace(
        result, summary={**result.summary, "network": EVIL}, outputs={EVIL: result.outputs["all"]}
    )
    assert "<script" not in odd._repr_html_()


def test_it_has_a_bound(result: RunResult, capsys: pytest.CaptureFixture[str]) -> None:
    wide = pa.table({f"column{at}": ["x" * 10_000] * 100 for at in range(300)})
    large = dataclasses.replace(result, outputs={f"output{at}": wide for at in range(300)})
    assert len(large._repr_html_()) < 100_000
    assert len(repr(large)) < 300
    large.show()
    text = capsys.readouterr().out
    assert len(text) < 100_000
    assert "… and 295 more outputs; show(NAME) shows one: 'output5', 'output6'" in text


def test_text_cannot_steer_a_terminal(result: RunResult, capsys: pytest.CaptureFixture[str]) -> None:
    odd = dataclasses.replace(result, outputs={"o": pa.table({"a\x1b": ["\x1b[2J\n"]})})
    odd.show()
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert "\\x1b[2J" in text


def test_without_rows_or_columns(result: RunResult) -> None:
    empty = dataclasses.replace(result, outputs={"o": pa.table({"a": pa.array([], pa.int32())}), "p": pa.table({})})
    assert "<b>p</b>: 0 tuples" in empty._repr_html_()


def test_one_is_singular_and_rows_are_counted_from_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    network = {"network": "n", "sources": {"s": {"schema": {"a": "int"}}}, "outputs": {"o": {"from": "s"}}}
    result = hw.run(network, {"s": [(1,)]}, engine="local")
    result.show(rows=0)
    assert capsys.readouterr().out.splitlines() == [
        "network 'n', engine local: 1 tuple in, 1 out to 1 output (1 as tables)",
        "",
        "output 'o': 1 tuple",
        "… and 1 more",
    ]
    with pytest.raises(OutputError, match="show: rows is 0 or more, not -1"):
        result.show(rows=-1)
    with pytest.raises(InputError, match=r"unknown connector 'a'; .*; columns can be given as a pyarrow\.Table"):
        hw.run(network, {"s": {"a": [1]}}, engine="local")
