"""The log of changes: all are counted, the first ones are kept, and a summary tells some kinds."""

from __future__ import annotations

from headway.clock import SECOND
from headway.engines.traces import CHANGES, Change, ChangeLog


def change(seconds: float, kind: str = "shed") -> Change:
    return Change(round(seconds * SECOND), kind, "s -> b", "removed", "because")


def test_changes_are_told_by_kind_from_the_start_on() -> None:
    log = ChangeLog(100 * SECOND)
    for one in (change(101.5), change(102, "switch"), change(103, "overload"), change(104)):
        log.add(*one)
    assert log.changes == [change(101.5), change(102, "switch"), change(103, "overload"), change(104)]
    told = {"subject": "s -> b", "change": "removed", "reason": "because"}
    assert log.summary("shed") == [{"moment": 1.5, **told}, {"moment": 4.0, **told}]
    assert [one["moment"] for one in log.summary("switch", "overload")] == [2.0, 3.0]
    assert log.summary("other") == []
    assert log.counts == {"shed": 2, "switch": 1, "overload": 1}


def test_all_are_counted_but_not_all_are_kept() -> None:
    log = ChangeLog(0, most=3)
    for at in range(10):
        log.add(*change(at))
    assert [one.moment for one in log.changes] == [0, SECOND, 2 * SECOND]
    assert log.counts["shed"] == 10
    assert CHANGES >= 1000
