"""Figure 7: memory over a superbox run."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from headway_experiments.rows import Rows
from headway_experiments.scheduling.figure7 import BASE, EXPERIMENT, Curve, last_above, memory, rows_of


def test_memory_by_hand() -> None:
    """Six tuples; a call takes three and leaves one, a mark takes nothing, the root takes what is left."""
    curve = memory([(1.0, 3, 1), (1.5, 0, 0), (3.0, 4, 0)], 6)
    assert curve == Curve((0.0, 1.0, 3.0), (6, 4, 0))
    assert curve.end == 3.0
    assert [curve.at(moment) for moment in (0, 0.9, 1, 2.9, 3, 10)] == [6, 6, 4, 4, 0, 0]
    assert curve.total() == 1 * 6 + 2 * 4


def test_until_when_a_curve_is_above_another() -> None:
    slow, fast = Curve((0.0, 2.0, 4.0), (6, 3, 0)), Curve((0.0, 1.0, 3.0), (6, 2, 0))
    assert last_above(slow, fast) == 4.0
    assert last_above(fast, slow) == 0.0
    late = Curve((0.0, 1.0, 5.0), (6, 1, 0))
    assert last_above(slow, late) == 4.0
    assert last_above(late, slow) == 5.0


def test_rows_are_relative_to_min_memory() -> None:
    mm = Curve((0.0, 1.0, 4.0), (8, 4, 0))
    rows = Rows(rows_of({"variant": BASE, "seed": 1}, {"mc": Curve((0.0, 2.0, 3.0), (8, 4, 0)), "mm": mm}))
    [run] = rows.where(part="run", traversal="mc")
    assert (run["seconds"], run["memory"], run["until"]) == (3.0, 20.0, 0.5)
    assert [rows.where(part="moment", traversal="mc", time=at)[0]["relative"] for at in (0.0, 0.3, 0.6, 0.8)] == [
        1,
        2,
        1,
        0,
    ]
    assert set(rows.where(part="moment", traversal="mm").values("relative")) == {1.0}


LINES = {  # a straight fall, in nearly so many seconds
    "mc": Curve(tuple(float(at) for at in range(96)), tuple(95 - at for at in range(96))),
    "ml": Curve(tuple(1.1 * at for at in range(101)), tuple(100 - at for at in range(101))),
    "mm": Curve((*(float(at) for at in range(100)), 100.0), (*(1 + 60 * (100 - at) // 100 for at in range(100)), 0)),
}


def _wrong(names: Mapping[str, str]) -> set[str]:
    curves = {name: LINES[names[name]] for name in ("mc", "ml", "mm")}
    rows = Rows([row for seed in (1, 2) for row in rows_of({"variant": BASE, "seed": seed}, curves)])
    return {check.key for check in EXPERIMENT.check(rows) if not check.holds}


def test_claims_hold_where_they_should() -> None:
    assert _wrong({"mc": "mc", "ml": "ml", "mm": "mm"}) == set()


@pytest.mark.parametrize(
    ("names", "wrong"),
    [
        ({"mc": "ml", "ml": "mc", "mm": "mm"}, {"ml-most", "ml-above-mc", "mc-shortest", "mc-catches-up"}),
        ({"mc": "mm", "ml": "ml", "mm": "mc"}, {"mc-second", "mc-above-mm", "mc-shortest"}),
        ({"mc": "mm", "ml": "ml", "mm": "mm"}, {"mc-second", "mc-above-mm", "mc-late"}),
    ],
)
def test_claims_can_fail(names: dict[str, str], wrong: set[str]) -> None:
    assert _wrong(names) >= wrong
