"""What people are told of overloads, dropped tuples and switches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from headway.cli.summary import steering_text


def change(moment: float, subject: str, what: str, reason: str = "because") -> dict[str, Any]:
    return {"moment": moment, "subject": subject, "change": what, "reason": reason}


CALM: Mapping[str, Any] = {
    "overload": {"seconds": 0.0, "spells": 0, "changes": []},
    "shedding": {"strategy": "loss", "dropped": {}, "active": {}, "count": 0, "changes": []},
}
OVERLOAD = {
    "seconds": 6.5,
    "spells": 2,
    "changes": [
        change(2.5, "run", "begins", "needs 1.4 s/s of work"),
        change(9, "run", "ends", "what arrives can be done"),
        change(20, "run", "begins", "needs 1.2 s/s of work"),
    ],
}
SHEDDING = {
    "strategy": "loss",
    "dropped": {"random": 1234, "value": 5},
    "active": {},
    "count": 2,
    "changes": [change(3, "s -> b", "inserted: keeps 54%"), change(0.0105, "s -> b", "removed")],
}
AMOS = {
    "layer": "amos",
    "policies": ["fifo", "chain"],
    "now": {"o": "chain"},
    "time": {"fifo": 0.25, "chain": 0.75},
    "switches": 1,
    "changes": [change(1, "all", "fifo -> chain")],
}


def lines(**found: Any) -> list[str]:
    return steering_text({**CALM, **found}).splitlines()


def test_nothing_is_said_where_nothing_happened() -> None:
    assert steering_text(CALM) == ""
    assert steering_text({}) == "", "of a summary of an engine that does not steer"
    assert lines(shedding={**SHEDDING, "dropped": {}}) == []


def test_why_nothing_was_dropped() -> None:
    held = {"looks": 7, "reason": "it would not pay"}
    told = lines(overload=OVERLOAD, shedding={**CALM["shedding"], "held": held})
    assert told[-1] == "  nothing was dropped: it would not pay"
    told = lines(overload=OVERLOAD, shedding={**SHEDDING, "held": held})
    assert not any("nothing was dropped" in line for line in told)


def test_overloads() -> None:
    assert lines(overload=OVERLOAD) == [
        "overloaded 2 times, for 6.50 s in total:",
        "  at 2.50 s  needs 1.4 s/s of work",
        "  at 20.0 s  needs 1.2 s/s of work",
    ]
    once = {**OVERLOAD, "spells": 1, "changes": OVERLOAD["changes"][:2]}  # type: ignore[index]
    assert lines(overload=once)[0] == "overloaded 1 time, for 6.50 s in total:"


def test_who_sheds_nothing_is_told_how() -> None:
    told = lines(overload=OVERLOAD, shedding={**CALM["shedding"], "strategy": None})
    assert "nothing was dropped" in told[-1]
    assert "--shed on" in told[-1]
    assert not any("--shed" in line for line in lines(overload=OVERLOAD))


def test_what_a_layer_let_be_dropped_is_not_denied() -> None:
    told = lines(overload=OVERLOAD, shedding={**SHEDDING, "strategy": None})
    assert not any("nothing was dropped" in line for line in told)


def test_what_was_dropped() -> None:
    assert lines(shedding=SHEDDING) == [
        "dropped tuples: random 1,234, value 5; drop boxes changed 2 times:",
        "  at 3.00 s  s -> b: inserted: keeps 54%: because",
        "  at 10.5 ms  s -> b: removed: because",
    ]


def test_what_is_still_dropped_at_the_end() -> None:
    told = lines(shedding={**SHEDDING, "active": {"s -> b": 0.54, "m -> x": 0.1}})
    assert told[-1] == "  still dropping at the end: 'm -> x' keeps 10 %, 's -> b' keeps 54 %"
    many = lines(shedding={**SHEDDING, "active": {f"s -> b{at}": at / 100 for at in range(30)}})
    assert many[-1].endswith("'s -> b4' keeps 4 % and 25 more")


def test_one_reason_is_told_once() -> None:
    thirty = [change(3, f"s -> b{at}", "inserted: keeps 54%", "needs 1.4 s/s of work") for at in range(30)]
    assert lines(shedding={**SHEDDING, "count": 30, "changes": thirty})[1:] == [
        "  at 3.00 s  ×30  s -> b0; s -> b1; s -> b2; and 27 more: inserted: keeps 54%: needs 1.4 s/s of work"
    ]


def test_switches() -> None:
    assert lines(adaptive=AMOS) == [
        "amos switched 1 time; used: chain 75 %, fifo 25 %",
        "  at 1.00 s  all: fifo -> chain: because",
    ]
    assert lines(adaptive={**AMOS, "switches": 0, "changes": []}) == [
        "amos switched 0 times; used: chain 75 %, fifo 25 %"
    ]


@pytest.mark.parametrize("count", [5, 6, 100])
def test_of_many_changes_some_are_shown(count: int) -> None:
    many = [change(at + 1, "all", f"change {at}") for at in range(count)]
    told = lines(adaptive={**AMOS, "switches": count, "changes": many})[1:]
    shown = [line for line in told if line.startswith("  at ")]
    assert len(shown) == 5
    assert "change 0" in shown[0], "how it began"
    assert f"change {count - 1}" in shown[-1], "and how it ended"
    (rest,) = [line for line in told if line not in shown] or [""]
    assert bool(rest) == (count > 5)
    if rest:
        assert rest.strip().startswith(f"{count - 5} ")
        assert "--summary" in rest


def test_names_cannot_steer_a_terminal() -> None:
    odd = {**SHEDDING, "changes": [change(1, "s\x1b[2J", "re\nmoved")], "active": {"\x07": 0.5}}
    for line in lines(shedding=odd):
        assert line.isprintable()
    assert any("s\\x1b[2J" in line for line in lines(shedding=odd))
