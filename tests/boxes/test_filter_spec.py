"""The specification of Filter."""

from __future__ import annotations

import pytest

from headway.boxes import Filter
from headway.errors import ExpressionError, NetworkError
from tests.boxes.specs import S, infer, parse


def test_one_predicate() -> None:
    spec = parse(Filter, where="pos > 3")
    assert spec == Filter(("pos > 3",))
    assert spec.ports == ("", "else")
    assert infer(spec, S) == [str(S)] * 2
    assert parse(Filter, where=["pos > 3"]) == spec


def test_routes() -> None:
    spec = parse(Filter, where=["pos > 3", "pos > 2", "name is null"])
    assert spec.ports == ("1", "2", "3", "else")
    assert infer(spec, S) == [str(S)] * 4
    assert [predicate.text for predicate in spec.predicates(S)] == list(spec.where)


def test_a_truth_value_is_a_predicate() -> None:
    assert infer(parse(Filter, where=True), S) == [str(S)] * 2


def test_errors_name_box_and_key() -> None:
    with pytest.raises(ExpressionError, match=r"^box 'b': where: "):
        Filter(("nothing > 3",)).infer("b", [S])
    with pytest.raises(ExpressionError, match=r"^box 'b': where 2: "):
        Filter(("pos > 3", "sid")).infer("b", [S])
    with pytest.raises(NetworkError, match=r"^box 'b': in: filter takes 1 input, not 2"):
        Filter(("pos > 3",)).infer("b", [S, S])
