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
        ("100 MB", Roll(size=100_000_000)),
        ("1.5GiB", Roll(size=3 << 29)),
        ("7 b", Roll(size=7)),
        ("2 KB", Roll(size=2000)),
    ],
)
def test_roll(written: object, roll: Roll) -> None:
    assert Roll.parse(written) == roll


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (100, "must be a duration such as '1 hour', or a size such as '100 MB'; units: kB, .*, not 100"),
        ("100", "a size such as"),
        ("100 mumb", "a size such as|unknown unit"),
        ("0.5 B", "whole number of bytes"),
        ("0 MB", "above zero"),
        ("99999999999 TB", "62 bits"),
        ("0s", "larger than zero"),
    ],
)
def test_bad_roll(written: object, message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        Roll.parse(written)


@examples(60)
@given(st.builds(Roll, _spans) | st.builds(Roll, st.none(), st.integers(1, 2**62)))
def test_roll_is_read_as_it_is_written(roll: Roll) -> None:
    assert Roll.parse(roll.to_mapping()) == roll


@pytest.mark.parametrize(
    ("span", "type_", "expected"),
    [
        ("90s", pa.timestamp("us"), 90_000_000),
        ("90s", pa.timestamp("us", "UTC"), 90_000_000),
        ("90s", pa.int32(), 90),
        ("1500ms", pa.int64(), 2),
        ("1500ms", pa.float64(), 1.5),
        ("25 hours", pa.date32(), 2),
        ("1 day", pa.date32(), 1),
    ],
)
def test_how_far_a_span_reaches(span: str, type_: pa.DataType, expected: float) -> None:
    """Rounded up, so that never too little is kept."""
    assert distance(Duration.parse(span), type_) == expected
