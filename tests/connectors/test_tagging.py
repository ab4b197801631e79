"""Several outputs on standard output."""

from __future__ import annotations

import json
from typing import Any

import pytest

import headway as hw
from headway.connectors.jsonl import Tagged, tag_shared


def test_only_what_is_shared_is_tagged() -> None:
    assert tag_shared({"a": "-", "b": "b.jsonl", "c": None}) == {}
    assert tag_shared({"a": "-", "b": {"jsonl": "-"}, "c": print}) == {"a": "-", "b": "-"}
    found = tag_shared({"a": "-", "b": {"csv": "-"}, "c": {"generate": {"file": "-"}}})
    assert found == {"a": "-"}, "lines of CSV have no room for it"
    assert isinstance(found["a"], Tagged)


@pytest.fixture
def net() -> hw.Network:
    net = hw.Network("n")
    source = net.source("s", {"output": "string", "n": "int"})
    source.filter("n > 1", name="large").output("large")
    source.map("output", "10 / n as share", name="shares").output("shares")
    return net


ROWS = [("x", 0), ('"y', 1), ("z", 2)]


def printed(capsys: pytest.CaptureFixture[str], net: hw.Network, **settings: Any) -> list[Any]:
    hw.run(net, {"s": ROWS}, engine="local", **settings)
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_lines_of_several_outputs_say_which(net: hw.Network, capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, net, outputs={"large": "-", "shares": {"jsonl": "-"}}, dead_letters="-")
    assert {line["output"] for line in lines} == {"large", "shares", "dead letters"}
    assert [line["tuple"] for line in lines if line["output"] == "large"] == [{"output": "z", "n": 2}]
    assert [line["tuple"] for line in lines if line["output"] == "shares"] == [
        {"output": '"y', "share": 10.0},
        {"output": "z", "share": 5.0},
    ]
    assert all(set(line) == {"output", "tuple"} for line in lines)


def test_lines_of_one_output_are_its_tuples(net: hw.Network, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, net, outputs={"large": "-"}) == [{"output": "z", "n": 2}]
