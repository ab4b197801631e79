"""The specification of BSort."""

from __future__ import annotations

import pytest

from headway.boxes import BSort, Order
from headway.errors import NetworkError
from tests.boxes.specs import S, infer, parse


def test_order() -> None:
    spec = parse(BSort, order={"on": "time", "slack": 2, "by": ["sid"]})
    assert spec == BSort(Order("time", 2, ("sid",)))
    assert infer(spec, S) == [str(S)]
    assert infer(parse(BSort, order={"on": "#"}), S) == [str(S)]


def test_errors() -> None:
    with pytest.raises(NetworkError, match=r"^box 'b': order: on: field 'price' is a decimal"):
        BSort(Order("price")).infer("b", [S])
    with pytest.raises(NetworkError, match=r"^box 'b': order: by: unknown field 'side'.*did you mean 'sid'"):
        BSort(Order("time", by=("side",))).infer("b", [S])
