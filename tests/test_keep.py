"""How much is kept, and when files roll over."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.durations import Duration
from headway.errors import NetworkError
from headway.network import Keep, Roll
from headway.network.keep import distance
from tests.searching import examples

HOUR = Duration.parse("1 hour")
_spans = st.integers(1, 2**62).map(Duration)


@pytest.mark.parametrize(
    ("written", "keep"),
    [
        ("1 hour", Keep(span=HOUR)),
        (HOUR, Keep(span=HOUR)),
        (100_000, Keep(tuples=100_000)),
        ("100000", Keep(tuples=100_000)),
        ("all", Keep()),
        (" All ", Keep()),
        (Keep(3), Keep(3)),
    ],
)
def test_keep(written: object, keep: Keep) -> None:
    assert Keep.parse(written) == keep
    assert keep.all == (keep == Keep())


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (0, "one tuple or more"),
        (-1, "one tuple or more"),
        (2**63, "62 bits"),
        (10**400, "62 bits"),
        (True, "must be a duration such as '1 hour', a number of tuples such as 100000, or 'all', not True"),
        (1.5, "a number of tuples"),
        ([1], "a number of tuples"),
        ("al", "did you mean 'all'"),
        ("", "must be a duration"),
        ("1 fortnight", "unknown unit 'fortnight'"),
        ("0s", "larger than zero"),
        ("-1 hour", "larger than zero"),
        (None, "must be a duration"),
        ({}, "must be a duration"),
    ],
)
def test_bad_keep(written: object, message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        Keep.parse(written)


@examples(60)
@given(st.builds(Keep, st.integers(1, 2**62)) | st.builds(Keep, st.none(), _spans) | st.just(Keep()))
def test_keep_is_read_as_it_is_written(keep: Keep) -> None:
    assert Keep.parse(keep.to_mapping()) == keep


@pytest.mark.parametrize(
    ("written", "roll"),
    [
        ("1 hour", Roll(span=HOUR)),
        (HOUR, Roll(span=HOUR)),
        ("100 MB", Roll(size=100 << 20)),
        ("1.5GiB", Roll(size=3 << 29)),
        ("7 b", Roll(size=7)),
        ("2 KB", Roll(size=2 << 10)),
        ("5m", Roll(Duration.parse("5 minutes"))),  # a size ends in b
        (["1 hour", "100 MiB"], Roll(HOUR, 100 << 20)),
        (("1MB", HOUR), Roll(HOUR, 1 << 20)),
    ],
)
def test_roll(written: object, roll: Roll) -> None:
    assert Roll.parse(written) == roll


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (100, "must be a duration such as '1 hour', a size such as '100 MB', or a list of both, not 100"),
        ("100", "a size such as"),
        ("100 mumb", "a size such as|unknown unit"),
        ("0.5 B", "not a size of at least a byte"),
        ("0 MB", "not a size of at least a byte"),
        ("99999999999 TB", "a list of both, not 1099"),
        ("0s", "larger than zero"),
        ("often", "a size such as"),
        ("1h,", "a size such as"),
        (None, "not None"),
        ([], "a list of both"),
        ({}, "a list of both"),
        ([1], "a list of both"),
        (["1h", "2h"], "not two durations"),
        (["1MB", "2MB"], "not two sizes"),
    ],
)
def test_bad_roll(written: object, message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        Roll.parse(written)


@examples(60)
@given(st.builds(Roll, _spans) | st.builds(Roll, st.none() | _spans, st.integers(1, 2**62)))
def test_roll_is_read_as_it_is_written(roll: Roll) -> None:
    assert Roll.parse(roll.to_mapping()) == roll


def test_what_neither_is() -> None:
    for tuples, span in ((1, HOUR), (0, None)):
        with pytest.raises(NetworkError, match="one tuple or more"):
            Keep(tuples, span)
    for size in (None, 0):
        with pytest.raises(NetworkError, match="must be a duration"):
            Roll(size=size)


@pytest.mark.parametrize(
    ("span", "type_", "expected"),
    [
        ("90s", pa.timestamp("us"), 90_000_000),
        ("90s", pa.timestamp("us", "UTC"), 90_000_000),
        ("90s", pa.int32(), 90),
        ("1500ms", pa.int64(), 1),
        ("1500ms", pa.float64(), 1.5),
        ("25 hours", pa.date32(), 1),
        ("1 day", pa.date32(), 1),
    ],
)
def test_how_far_a_span_reaches(span: str, type_: pa.DataType, expected: float) -> None:
    """As far as whole values can be apart and are still within the span; histories reach as far (`Kept.reach`)."""
    assert distance(Duration.parse(span), type_) == expected
