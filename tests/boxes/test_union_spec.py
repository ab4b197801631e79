"""The specification of Union."""

from __future__ import annotations

import pytest

from headway.boxes import Union
from headway.errors import SchemaError
from headway.network.schema import Schema
from tests.boxes.specs import R, S, infer, parse


def test_schemas_that_agree() -> None:
    spec = parse(Union)
    assert spec == Union(ordered=True)
    assert spec.to_mapping() == {}
    assert infer(spec, S, S, S) == [str(S)]
    assert parse(Union, ordered=False).ordered is False


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ("sid int, tyme bigint, label string", "field 2 is 'time' in input 1 and 'tyme' in input 2"),
        ("sid int, time int, label string", "field 'time' is bigint in input 1 and int in input 2"),
        ("sid int, time bigint", "input 1 alone has the fields label"),
        ("sid int, time bigint, label string, x int, y int", "input 2 alone has the fields x, y"),
    ],
)
def test_schemas_that_do_not(other: str, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Union().infer("b", [R, Schema.parse(other)])
    assert str(caught.value).startswith("box 'b': in: schemas do not agree: " + message)
