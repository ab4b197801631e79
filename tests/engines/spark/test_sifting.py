"""What drop boxes of queries let through: a micro-batch sees the same sieves every time it is read."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.engines.spark.sifting import _FILE, _MOST, Sifting
from headway.errors import RunError
from headway.kept import Kept
from headway.sieves import Sieve
from headway.storage.filesystems import Place, locate
from tests.searching import examples

HALF, TENTH = Sieve(0.5, 1), Sieve(0.1, 1)
BY_VALUE = Sieve(0.3, 2, 1, (5.0,), (0.0, 1.0), 0.5)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return locate(str(tmp_path))


def names(sifting: Sifting, after: int, unit: str = "u") -> dict[str, float]:
    """Return by source what is kept of a micro-batch that begins after a number."""
    return {source: Sieve.of(mapping).keep for source, mapping in sifting.at(unit, after).items()}


def test_everything_passes_at_first(place: Place) -> None:
    sifting = Sifting(place)
    assert sifting.at("u", -1) == {}
    assert sifting.kept("u") == []
    sifting.put("u", 7, "s", None)
    sifting.clear("u", 8)
    assert sifting.at("u", 100) == {}
    sifting.write(sync=False)
    assert place.files("") == {}, "there is nothing to remember"


def test_a_sieve_counts_for_micro_batches_that_begin_later(place: Place) -> None:
    sifting = Sifting(place)
    sifting.put("u", 100, "s", HALF)
    assert [names(sifting, after) for after in (-1, 99, 100, 101, 10**9)] == [{}, {}, *[{"s": 0.5}] * 3]
    assert sifting.at("v", 100) == {}, "of another query"
    sifting.put("u", 200, "s", TENTH)
    sifting.put("u", 300, "s", None)
    expected: list[dict[str, float]] = [{}, {"s": 0.5}, {"s": 0.5}, {"s": 0.1}, {"s": 0.1}, {}]
    assert [names(sifting, after) for after in (50, 100, 199, 200, 299, 300)] == expected
    assert Sieve.of(sifting.at("u", 100)["s"]) == HALF


def test_a_replay_sees_the_old_sieves(place: Place) -> None:
    """The micro-batch (100, 200] is under way when another sieve is put; it is lost, and read again."""
    sifting = Sifting(place)
    sifting.put("u", 100, "s", HALF)
    sifting.write(sync=False)
    first = sifting.at("u", 100)
    sifting.put("u", 200, "s", BY_VALUE)  # the position is what has been granted
    assert sifting.at("u", 100) == first
    sifting.write(sync=False)
    again = Sifting(place)  # the whole run was killed
    assert again.at("u", 100) == first == {"s": HALF.to_mapping()}
    assert Sieve.of(again.at("u", 200)["s"]) == BY_VALUE
    assert again.at("u", 99) == {}
    assert again.kept("u") == sifting.kept("u")


def test_what_was_not_written_is_forgotten_with_the_process(place: Place) -> None:
    sifting = Sifting(place)
    sifting.put("u", 100, "s", HALF)
    sifting.write(sync=True)
    sifting.put("u", 200, "s", TENTH)  # before any grant that it counts for
    assert names(Sifting(place), 200) == {"s": 0.5}


def test_after_a_crash_everything_passes_again(place: Place) -> None:
    sifting = Sifting(place)
    sifting.put("u", 100, "s", HALF)
    sifting.write(sync=False)
    again = Sifting(place)
    again.clear("u", 200)
    assert names(again, 100) == {"s": 0.5}, "but not for what is repeated"
    assert names(again, 200) == {}
    again.write(sync=False)
    assert names(Sifting(place), 200) == {}
    again.put("u", 300, "s", TENTH)
    assert [names(again, after) for after in (199, 200, 299, 300)] == [{"s": 0.5}, {}, {}, {"s": 0.1}]


def test_after_a_crash_no_sieve_of_later_numbers_counts(place: Place) -> None:
    """Another query's grant wrote the step of a micro-batch that this one never got to."""
    sifting = Sifting(place)
    sifting.put("u", 0, "s", HALF)
    sifting.put("u", 100, "s", TENTH)
    sifting.write(sync=False)
    again = Sifting(place)
    again.clear("u", 50)
    assert [names(again, after) for after in (0, 49)] == [{"s": 0.5}] * 2
    assert [names(again, after) for after in (50, 60, 99, 100, 101)] == [{}] * 5


def test_sources_of_a_query_have_sieves_of_their_own(place: Place) -> None:
    sifting = Sifting(place)
    sifting.put("u", 10, "s", HALF)
    sifting.put("u", 20, "t", TENTH)
    sifting.put("u", 30, "s", None)
    assert [names(sifting, after) for after in (10, 20, 30)] == [{"s": 0.5}, {"s": 0.5, "t": 0.1}, {"t": 0.1}]


def test_of_sieves_for_the_same_grant_the_last_counts(place: Place) -> None:
    sifting = Sifting(place)
    sifting.put("u", 10, "s", HALF)
    sifting.put("u", 10, "s", TENTH)
    sifting.put("u", 10, "t", HALF)
    assert names(sifting, 10) == {"s": 0.1, "t": 0.5}
    assert names(sifting, 9) == {}
    assert len(sifting.kept("u")) == 1
    sifting.put("u", 10, "s", None)
    sifting.put("u", 10, "t", None)
    assert names(sifting, 10) == {}


def test_only_what_has_changed_is_written(place: Place) -> None:
    sifting = Sifting(place)
    sifting.put("u", 10, "s", HALF)
    sifting.write(sync=False)
    place.delete([_FILE])
    sifting.put("u", 20, "s", HALF)
    sifting.write(sync=False)
    assert place.files("") == {}
    sifting.put("u", 20, "s", TENTH)
    sifting.write(sync=False)
    assert list(place.files("")) == [_FILE]


def test_how_much_was_kept_by_arrival_number(place: Place) -> None:
    sifting = Sifting(place)
    sifting.put("u", 99, "s", HALF)
    sifting.put("u", 199, "t", TENTH)
    sifting.put("u", 299, "t", None)
    sifting.put("u", 399, "s", None)
    steps = sifting.kept("u")
    assert steps == [(100, 0.5), (200, 0.1), (300, 0.5), (400, 1.0)], (
        "the least of all sources: nobody is promised more"
    )
    assert Kept.of(steps).to_list() == [[0, 1.0], [100, 0.5], [200, 0.1], [300, 0.5], [400, 1.0]]


def test_the_last_steps_are_remembered(place: Place) -> None:
    sifting = Sifting(place)
    for at in range(2 * _MOST):
        sifting.put("u", at, "s", Sieve((at % 100) / 100, 0))
    assert len(sifting.kept("u")) == _MOST
    assert names(sifting, 2 * _MOST - 1) == {"s": ((2 * _MOST - 1) % 100) / 100}
    assert names(sifting, _MOST) == {"s": (_MOST % 100) / 100}


@pytest.mark.parametrize("text", ["{", "[]", '{"u": [3]}', '{"u": [["x", {}]]}', '{"u": {"a": 1}}'])
def test_a_damaged_file_is_named(place: Place, text: str) -> None:
    place.write(_FILE, text.encode(), sync=False)
    with pytest.raises(RunError, match=r"sieves\.json' is damaged; restore it, or give another --state"):
        Sifting(place)


puts = st.tuples(st.sampled_from("st"), st.none() | st.integers(0, 9), st.integers(0, 3), st.booleans())


@examples(50)
@given(steps=st.lists(puts, max_size=12))
def test_a_micro_batch_is_read_with_the_same_sieves_for_ever(steps: list[tuple[str, int | None, int, bool]]) -> None:
    """Grants follow each other, and sieves are put between them; a grant always finds what counted for it."""
    with TemporaryDirectory() as folder:
        place, position = locate(folder), 0
        sifting, granted = Sifting(place), []
        for source, tenths, further, crash in steps:
            sifting.put("u", position, source, None if tenths is None else Sieve(tenths / 10, 0))
            if further:
                sifting.write(sync=False)
                granted.append((position, sifting.at("u", position)))
                position += further
            if crash:
                sifting = Sifting(place)
                sifting.clear("u", position)
                assert sifting.at("u", position) == {}
        for read in (sifting, Sifting(place)):
            for after, sieves in granted:
                assert read.at("u", after) == sieves
