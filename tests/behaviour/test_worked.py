"""Every worked example of squal.md on operators, in every way to run it."""

from __future__ import annotations

import pytest

from tests.behaviour.running import EVERY_WAY, rows_of, run
from tests.reference.compare import assert_same
from tests.reference.worked import STOCKS_0, STOCKS_1, WORKED, Worked
from tests.streams import Running


@pytest.mark.parametrize("how", EVERY_WAY, ids=lambda how: f"{how.policy}-{how.train}")
@pytest.mark.parametrize("worked", WORKED, ids=lambda worked: worked.name)
def test_worked_example(engine: str, worked: Worked, how: Running) -> None:
    result = run(engine, worked.twin, worked.inputs, how)
    for name, rows in worked.expected.items():
        assert_same(rows_of(result, name), rows, name)


@pytest.mark.parametrize("worked", WORKED, ids=lambda worked: worked.name)
def test_empty_inputs_give_empty_outputs_with_the_right_fields(engine: str, worked: Worked) -> None:
    result = run(engine, worked.twin, {name: [] for name in worked.inputs})
    for name, rows in worked.expected.items():
        assert rows_of(result, name) == []
        assert result.outputs[name].column_names == list(rows[0])


def test_the_late_quote_is_counted(engine: str) -> None:
    for worked, count in ((STOCKS_0, 1), (STOCKS_1, 0)):
        result = run(engine, worked.twin, worked.inputs)
        assert result.summary["boxes"]["hourly"]["ignored"] == count
