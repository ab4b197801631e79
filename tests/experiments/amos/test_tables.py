"""Tables 1 and 2: what is read off a run, and checks that notice a wrong cell."""

from __future__ import annotations

import pytest

from headway.scheduling.policy import _policies
from headway_experiments.amos.tables import (
    TABLES,
    check_fifo,
    check_mtiq,
    first_result,
    mean_total,
    measure,
    most_at_once,
)
from headway_experiments.rows import Rows
from tests.experiments.amos.made import held


@pytest.fixture(scope="module")
def rows() -> Rows:
    return Rows(row for policy in TABLES for row in measure({"policy": policy}))


def test_printed_totals_add_up() -> None:
    for table in TABLES.values():
        for line in table:
            assert line.total == line.q1 + line.q2 + line.q3


def test_both_end_with_six_tenths_of_a_tuple(rows: Rows) -> None:
    # Six tuples, of which 0.25 x 0.5 x 0.8 = 0.1 each are delivered; the work takes six units, from 1 to 7.
    for policy in TABLES:
        last = rows.where(policy=policy, time=7.0)[0]
        assert last["total"] == 0
        assert last["throughput"] == pytest.approx(0.6)


def test_the_claims_hold_and_the_policy_is_known_no_more(rows: Rows) -> None:
    assert all(held(check_fifo(rows)).values())
    assert all(held(check_mtiq(rows)).values())
    assert "amos-tables" not in _policies.names()


def test_a_wrong_cell_is_noticed_and_named(rows: Rows) -> None:
    wrong = Rows({**row, "q2": 0.5} if row["policy"] == "fifo" and row["time"] == 2.5 else row for row in rows)
    found = {check.key: check for check in check_fifo(wrong)}
    assert [key for key, check in found.items() if not check.holds] == ["q2"]
    assert found["q2"].evidence == "8 of 9 cells are equal: at 2.5: 0.5 instead of 0.25"


def test_swapped_policies_fail(rows: Rows) -> None:
    other = {"fifo": "most-tuples", "most-tuples": "fifo"}
    swapped = Rows({**row, "policy": other[str(row["policy"])]} for row in rows)
    found = held(check_mtiq(swapped))
    assert not any(found[key] for key in ("q1", "total", "throughput", "smaller", "later", "bursty"))


def test_readings_by_hand() -> None:
    # A tuple waits from 0 to 0.5; three quarters of a result come at 0.5, another quarter at 2.
    done = (0, 0, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 1.0)
    some = Rows(
        {"time": at * 0.25, "total": 1.0 if at < 2 else 0.0, "throughput": value} for at, value in enumerate(done)
    )
    assert first_result(some) == 0.5
    assert most_at_once(some) == 0.75
    assert mean_total(some, 1.0) == 0.5
