"""The JSON Schema of the network file agrees with the code."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
from hypothesis import given

from headway.boxes import REGISTRY
from headway.files import load
from headway.jsonschema import PATH, schema, text
from headway.network.yamls import read_text
from tests.bad_networks.cases import CASES
from tests.networks import ALL, BORDER, network_mappings
from tests.searching import examples

VALIDATOR = jsonschema.Draft202012Validator(schema())


def test_the_file_is_current() -> None:
    assert PATH.read_text("utf-8") == text(), "run: python -m headway.jsonschema"


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("source", [BORDER, ALL])
def test_good_files_are_valid(source: str) -> None:
    VALIDATOR.validate(read_text(source))
    VALIDATOR.validate(load(source).to_mapping())


@examples(60)
@given(network_mappings())
def test_what_is_written_is_valid(mapping: dict[str, Any]) -> None:
    VALIDATOR.validate(load(mapping).to_mapping())


def places(data: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return the mappings of a file in which only known keys may stand."""
    found = [("top", data), ("schedule", data["schedule"])]
    found += [(f"source {name}", value) for name, value in data["sources"].items()]
    for name, value in data["boxes"].items():
        found.append((f"box {name}", value))
        orders = value.get("order", [])
        found += [(f"order of {name}", order) for order in (orders if isinstance(orders, list) else [orders])]
    for name, value in data["outputs"].items():
        found += [(f"output {name}", value), *([(f"qos of {name}", value["qos"])] if "qos" in value else [])]
    return found


def test_unknown_keys_are_not_valid() -> None:
    data = read_text(ALL)
    data["outputs"]["tens"]["qos"] = {"latency": [[0, 1]]}
    assert {box["op"] for box in data["boxes"].values()} | {"filter", "map"} == set(REGISTRY)
    for number, (where, _) in enumerate(places(data)):
        changed = copy.deepcopy(data)
        places(changed)[number][1]["surprise"] = 1
        assert not VALIDATOR.is_valid(changed), where


def test_many_bad_files_are_not_valid() -> None:
    ids = {
        *("no name", "unknown top key", "no sources", "empty sources", "sources as a list", "no outputs", "bad train"),
        *("source without schema", "source as text", "unknown source key", "empty schema", "two connectors"),
        *(
            "name of a box",
            "box without keys",
            "no op",
            "unknown op",
            "no in",
            "in that is a number",
            "in that is empty",
        ),
        *(
            "filter without where",
            "unknown key",
            "key of another op",
            "empty where",
            "no predicates",
            "map without select",
        ),
        *("bsort without order", "order as text", "order without on", "unknown order key", "negative slack"),
        *("slack that is no integer", "by as a number", "aggregate without order", "size zero", "negative size"),
        *("negative duration", "no duration", "advance zero", "advance with a wrong key", "unknown alignment"),
        *("timeout without a unit", "join without on", "join with one order", "resample without size"),
        *(
            "negative cost",
            "cost without a unit",
            "unknown distribution",
            "zipf without a unit",
            "negative selectivity",
        ),
        *("huge selectivity", "unknown mode", "seed that is text"),
        *("output without from", "output from a list", "unknown output key", "unknown qos key", "qos as a list"),
        *("graph as a number", "empty graph", "graph with a bad point", "utility above one", "value without a field"),
    }
    cases = {case.id: case.text for case in CASES}
    assert ids <= set(cases)
    for name in sorted(ids):
        assert not VALIDATOR.is_valid(read_text(cases[name])), name


def test_every_key_has_a_line_about_it() -> None:
    for op, spec in REGISTRY.items():
        assert spec.doc.endswith("."), op
        assert all(key.doc for key in spec.keys), op
