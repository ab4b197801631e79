"""The frozen model."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from headway.boxes import Filter
from headway.errors import NetworkError
from headway.files import load
from headway.network import Box, FrozenMap, Network, Output, Source, arc_name, check_name, freeze, thaw
from headway.network.qos import Graph, QoS
from headway.network.schema import Schema
from tests.networks import ALL, BORDER


def small() -> Network:
    source = Source("s", Schema.parse("a int"), freeze({"csv": "x.csv"}))
    return Network("n", (source,), (Box("b", ("s",), Filter(("a > 1",))),), (Output("o", "b"),))


def test_equality_and_hash_are_by_value() -> None:
    assert small() == small()
    assert hash(small()) == hash(small())
    for text in (BORDER, ALL):
        assert load(text) == load(text)
        assert hash(load(text)) == hash(load(text))


def test_the_folder_is_not_compared() -> None:
    assert dataclasses.replace(small(), folder=Path("x")) == small()


def test_a_network_is_frozen() -> None:
    network = small()
    with pytest.raises(dataclasses.FrozenInstanceError):
        network.name = "m"  # type: ignore[misc]
    connector = network.sources[0].connector
    assert isinstance(connector, FrozenMap)
    with pytest.raises(TypeError):
        connector["csv"] = "y.csv"  # type: ignore[index]


def test_parts_by_name() -> None:
    network = small()
    assert network.source("s").name == "s"
    assert network.box("b").spec == Filter(("a > 1",))
    assert network.output("o").input == "b"
    with pytest.raises(KeyError):
        network.box("c")


def test_order_of_sources_is_kept_and_matters() -> None:
    text = "network: n\nsources: {z: {schema: a int}, a: {schema: a int}}\noutputs: {o: {from: z}}\n"
    other = "network: n\nsources: {a: {schema: a int}, z: {schema: a int}}\noutputs: {o: {from: z}}\n"
    assert [source.name for source in load(text).sources] == ["z", "a"]
    assert load(text) != load(other)


def test_freeze_and_thaw() -> None:
    data = {"generate": {"rate": 10, "fields": {"a": {"uniform": [0, 9.5]}, "b": None, "c": [True, "x"]}}}
    frozen = freeze(data)
    assert thaw(frozen) == data
    assert frozen == freeze(dict(reversed(data.items())))
    assert hash(frozen) == hash(freeze(data))
    assert "rate" in repr(frozen)
    assert freeze(Path("a") / "b") == str(Path("a") / "b")
    with pytest.raises(NetworkError, match="source: set values"):
        freeze({"a": {1}}, "source")


def test_freeze_refuses_endless_data() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(NetworkError, match="levels deep"):
        freeze(endless, "source")


def test_names() -> None:
    for good in ("a", "a-b", "a_1", "9lives", "größe"):
        assert check_name(good, "box") == good
    for bad in ("", "a.b", "a b", "-a", "a/b", "a\n", 5, None):
        with pytest.raises(NetworkError, match="box"):
            check_name(bad, "box")
    assert arc_name("b", "") == "b"
    assert arc_name("b", "else") == "b.else"


def test_output_mapping_has_its_graphs() -> None:
    qos = QoS(Graph(((0.0, 1.0), (2.5, 0.0))), Graph(((0.0, 0.0), (100.0, 1.0))))
    assert Output("o", "b", qos).to_mapping() == {
        "from": "b",
        "qos": {"latency": [[0, 1], [2.5, 0]], "loss": [[100, 1], [0, 0]]},
    }
