"""The specification of Universal."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from headway.boxes import Universal
from headway.boxes.costs import Constant, Uniform
from headway.builder import NetworkBuilder
from headway.errors import NetworkError, SchemaError
from headway.files import load
from tests.boxes.specs import R, S, infer, parse


def test_defaults() -> None:
    spec = parse(Universal)
    assert spec == Universal(Constant(0.0), 1, 0, "random")
    assert spec.to_mapping() == {}
    assert spec.ports == ("",)
    assert not spec.counts


def test_all_keys() -> None:
    spec = parse(Universal, cost="2ms", selectivity=0.5, seed=7, mode="even")
    assert spec == Universal(Constant(0.002), 0.5, 7, "even")
    assert spec.to_mapping() == {"cost": "2ms", "selectivity": 0.5, "seed": 7, "mode": "even"}
    assert spec.counts
    assert parse(Universal, cost={"uniform": [0, "1ms"]}).cost == Uniform(0.0, 0.001)


def test_one_or_more_inputs_of_one_schema() -> None:
    assert infer(Universal(), S) == [str(S)]
    assert infer(Universal(), S, S, S) == [str(S)]
    with pytest.raises(SchemaError, match=r"^box 'b': in: schemas do not agree"):
        Universal().infer("b", [S, R])
    with pytest.raises(NetworkError, match=r"^box 'b': in: universal takes 1 or more inputs, not 0"):
        Universal().infer("b", [])


@pytest.mark.parametrize(
    ("selectivity", "ratio"),
    [
        (0, Fraction(0)),
        (3, Fraction(3)),
        (0.1, Fraction(1, 10)),
        (2.125, Fraction(17, 8)),
        (0.123456789, Fraction(123456789, 10**9)),
        # What has more digits than a decimal that somebody writes is a quotient that was computed.
        (1 / 3, Fraction(1, 3)),
        (0.1 + 0.2, Fraction(3, 10)),
        (1e-30, Fraction(0)),
    ],
)
def test_the_selectivity_is_the_decimal_that_was_written(selectivity: float, ratio: Fraction) -> None:
    assert parse(Universal, selectivity=selectivity).ratio == ratio


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"selectivity": -0.5}, "selectivity: must be a number, zero or more, not -0.5"),
        ({"selectivity": "half"}, "selectivity: must be a number, zero or more, not 'half'"),
        ({"selectivity": True}, "selectivity: must be a number, zero or more, not True"),
        ({"selectivity": float("inf")}, "selectivity: must be a number, zero or more, not inf"),
        ({"selectivity": 10_001}, "selectivity: 10001 is too large; the largest selectivity is 10000"),
        ({"seed": -1}, "seed: must be a whole number, zero or more, not -1"),
        ({"seed": 1.5}, "seed: must be a whole number, zero or more, not 1.5"),
        ({"mode": "evn"}, "mode: unknown mode 'evn'; did you mean 'even'? choices: even, random"),
        ({"mode": ["even"]}, "mode: unknown mode"),
        ({"cost": {"gamma": [1, 2]}}, "cost: unknown distribution 'gamma'; choices: uniform, zipf"),
        ({"cost": {"uniform": [1]}}, "cost: uniform: expected [lowest, highest]"),
        ({"ordered": "no"}, "ordered: "),
        ({"order": False}, "unknown key 'order'"),
    ],
)
def test_what_cannot_be_asked(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(NetworkError) as caught:
        Universal.parse("b", keys)
    assert str(caught.value).startswith(f"box 'b': {said}")


def test_the_builder_gives_what_the_file_gives() -> None:
    builder = NetworkBuilder("n")
    one, other = builder.source("s", "a int"), builder.source("r", "a int")
    both = one.universal(other, cost="2ms", selectivity=0.5, seed=7, mode="even", name="both")
    both.universal(cost={"zipf": [1.5, 10, "1us"]}, name="last").universal(name="free").output("o")
    boxes = """
      both: {op: universal, in: [s, r], cost: 2ms, selectivity: 0.5, seed: 7, mode: even}
      last: {op: universal, in: both, cost: {zipf: [1.5, 10, 1us]}}
      free: {op: universal, in: last}
    """
    sources = "sources: {s: {schema: a int}, r: {schema: a int}}"
    file = f"network: n\n{sources}\nboxes:{boxes}\noutputs: {{o: {{from: free}}}}\n"
    assert builder.build() == load(file)
    assert load(load(file).to_mapping()) == load(file)
