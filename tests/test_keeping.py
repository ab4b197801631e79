"""How much is kept, and when files roll over, as users write it."""

from __future__ import annotations

import pytest

from headway.durations import Duration
from headway.errors import NetworkError
from headway.network.keeping import Keep, Roll

HOUR = Duration.parse("1 hour")


@pytest.mark.parametrize(
    ("value", "keep"),
    [
        ("all", Keep()),
        (9, Keep(tuples=9)),
        ("9", Keep(tuples=9)),
        ("1 hour", Keep(time=HOUR)),
        (HOUR, Keep(time=HOUR)),
    ],
)
def test_keep(value: object, keep: Keep) -> None:
    assert Keep.parse(value) == keep
    assert Keep.parse(str(keep)) == Keep.parse(keep) == keep
    assert keep.everything == (value == "all")


@pytest.mark.parametrize("value", [None, "", "many", 0, -1, True, 1.5, "0s", "-1h", [], {}, "9" * 100])
def test_what_keep_is_not(value: object) -> None:
    with pytest.raises(NetworkError, match=r"^keep is a duration such as '1 hour', a number of tuples, or all"):
        Keep.parse(value)


def test_not_both() -> None:
    with pytest.raises(NetworkError, match="keep is"):
        Keep(1, HOUR)


@pytest.mark.parametrize(
    ("value", "roll"),
    [
        ("1 hour", Roll(HOUR)),
        (HOUR, Roll(HOUR)),
        ("100 MB", Roll(size=100 << 20)),
        ("64kB", Roll(size=1 << 16)),
        ("500 b", Roll(size=500)),
        (["1h", "100 MiB"], Roll(HOUR, 100 << 20)),
        ("100MB, 1h", Roll(HOUR, 100 << 20)),
        ("5m", Roll(Duration.parse("5 minutes"))),  # a size ends in b
    ],
)
def test_roll(value: object, roll: Roll) -> None:
    assert Roll.parse(value) == roll
    assert Roll.parse(str(roll)) == Roll.parse(roll) == roll


@pytest.mark.parametrize("value", [None, "", "often", 5, [], {}, ["1h", "2h"], "1MB,2MB", "0 MB", "0s", [1], "1h,"])
def test_what_roll_is_not(value: object) -> None:
    with pytest.raises(NetworkError, match=r"^roll is a duration such as '1 hour', a size such as '100 MB', or a list"):
        Roll.parse(value)


def test_one_of_them() -> None:
    for size in (None, 0):
        with pytest.raises(NetworkError, match="roll is"):
            Roll(size=size)
