"""Whole networks: any boxes in any arrangement."""

from __future__ import annotations

from hypothesis import given

from tests.behaviour.running import EVERY_WAY, check, rows_of, run
from tests.reference.worked import QUERY_1
from tests.streams import Case, Running, networks, runnings


@given(case=networks(), how=runnings(), other=runnings())
def test_random_networks(engine: str, case: Case, how: Running, other: Running) -> None:
    check(engine, case, how, other)


def test_results_do_not_depend_on_the_number_of_workers(engine: str) -> None:
    inputs = {"positions": [row | {"sid": sid} for row in QUERY_1.inputs["positions"] for sid in range(50)]}
    expected = QUERY_1.twin.expected(inputs)
    for workers in (1, 2, 4):
        for how in EVERY_WAY[1::3]:
            result = run(engine, QUERY_1.twin, inputs, Running(how.policy, how.train, workers))
            for name, rows in expected.items():
                assert rows_of(result, name) == rows


def test_an_output_may_show_a_source_and_an_arc_may_have_many_readers(engine: str) -> None:
    twin = QUERY_1.twin
    mapping_outputs = {"raw": "positions", "again": "positions", "inner": "across", "alarms": "crowded"}
    wider = type(twin)(twin.sources, twin.boxes, mapping_outputs)
    check(engine, Case(wider, dict(QUERY_1.inputs)), *EVERY_WAY[::4])  # type: ignore[arg-type]
