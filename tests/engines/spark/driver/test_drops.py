"""What drop boxes of queries let through: a micro-batch sees the same sieves every time it is read."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.engines.spark.driver.drops import _MOST, SieveHistory
from headway.engines.spark.driver.journal import SIEVES
from headway.errors import RunError
from headway.sieves import KeptShares, Sieve
from headway.storage.filesystems import Place, locate
from tests.searching import examples

HALF, TENTH = Sieve(0.5, 1), Sieve(0.1, 1)
BY_VALUE = Sieve(0.3, 2, 1, (5.0,), (0.0, 1.0), 0.5)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return locate(str(tmp_path))


def names(history: SieveHistory, after: int, unit: str = "u") -> dict[str, float]:
    """Return by source what is kept of a micro-batch that begins after a number."""
    return {source: Sieve.of(mapping).keep for source, mapping in history.at(unit, after).items()}


def test_everything_passes_at_first(place: Place) -> None:
    history = SieveHistory(place)
    assert history.at("u", -1) == {}
    assert history.kept("u") == []
    history.put("u", 7, "s", None)
    history.clear("u", 8)
    assert history.at("u", 100) == {}
    history.write(sync=False)
    assert place.files("") == {}, "there is nothing to remember"


def test_a_sieve_counts_for_micro_batches_that_begin_later(place: Place) -> None:
    history = SieveHistory(place)
    history.put("u", 100, "s", HALF)
    assert [names(history, after) for after in (-1, 99, 100, 101, 10**9)] == [{}, {}, *[{"s": 0.5}] * 3]
    assert history.at("v", 100) == {}, "of another query"
    history.put("u", 200, "s", TENTH)
    history.put("u", 300, "s", None)
    expected: list[dict[str, float]] = [{}, {"s": 0.5}, {"s": 0.5}, {"s": 0.1}, {"s": 0.1}, {}]
    assert [names(history, after) for after in (50, 100, 199, 200, 299, 300)] == expected
    assert Sieve.of(history.at("u", 100)["s"]) == HALF


def test_a_replay_sees_the_old_sieves(place: Place) -> None:
    """The micro-batch (100, 200] is under way when another sieve is put; it is lost, and read again."""
    history = SieveHistory(place)
    history.put("u", 100, "s", HALF)
    history.write(sync=False)
    first = history.at("u", 100)
    history.put("u", 200, "s", BY_VALUE)  # the position is what has been granted
    assert history.at("u", 100) == first
    history.write(sync=False)
    again = SieveHistory(place)  # the whole run was killed
    assert again.at("u", 100) == first == {"s": HALF.to_mapping()}
    assert Sieve.of(again.at("u", 200)["s"]) == BY_VALUE
    assert again.at("u", 99) == {}
    assert again.kept("u") == history.kept("u")


def test_what_was_not_written_is_forgotten_with_the_process(place: Place) -> None:
    history = SieveHistory(place)
    history.put("u", 100, "s", HALF)
    history.write(sync=True)
    history.put("u", 200, "s", TENTH)  # before any grant that it counts for
    assert names(SieveHistory(place), 200) == {"s": 0.5}


def test_after_a_crash_everything_passes_again(place: Place) -> None:
    history = SieveHistory(place)
    history.put("u", 100, "s", HALF)
    history.write(sync=False)
    again = SieveHistory(place)
    again.clear("u", 200)
    assert names(again, 100) == {"s": 0.5}, "but not for what is repeated"
    assert names(again, 200) == {}
    again.write(sync=False)
    assert names(SieveHistory(place), 200) == {}
    again.put("u", 300, "s", TENTH)
    assert [names(again, after) for after in (199, 200, 299, 300)] == [{"s": 0.5}, {}, {}, {"s": 0.1}]


def test_after_a_crash_no_sieve_of_later_numbers_counts(place: Place) -> None:
    """Another query's grant wrote the step of a micro-batch that this one never got to."""
    history = SieveHistory(place)
    history.put("u", 0, "s", HALF)
    history.put("u", 100, "s", TENTH)
    history.write(sync=False)
    again = SieveHistory(place)
    again.clear("u", 50)
    assert [names(again, after) for after in (0, 49)] == [{"s": 0.5}] * 2
    assert [names(again, after) for after in (50, 60, 99, 100, 101)] == [{}] * 5


def test_sources_of_a_query_have_sieves_of_their_own(place: Place) -> None:
    history = SieveHistory(place)
    history.put("u", 10, "s", HALF)
    history.put("u", 20, "t", TENTH)
    history.put("u", 30, "s", None)
    assert [names(history, after) for after in (10, 20, 30)] == [{"s": 0.5}, {"s": 0.5, "t": 0.1}, {"t": 0.1}]


def test_of_sieves_for_the_same_grant_the_last_counts(place: Place) -> None:
    history = SieveHistory(place)
    history.put("u", 10, "s", HALF)
    history.put("u", 10, "s", TENTH)
    history.put("u", 10, "t", HALF)
    assert names(history, 10) == {"s": 0.1, "t": 0.5}
    assert names(history, 9) == {}
    assert len(history.kept("u")) == 1
    history.put("u", 10, "s", None)
    history.put("u", 10, "t", None)
    assert names(history, 10) == {}


def test_only_what_has_changed_is_written(place: Place) -> None:
    history = SieveHistory(place)
    history.put("u", 10, "s", HALF)
    history.write(sync=False)
    place.delete([SIEVES])
    history.put("u", 20, "s", HALF)
    history.write(sync=False)
    assert place.files("") == {}
    history.put("u", 20, "s", TENTH)
    history.write(sync=False)
    assert list(place.files("")) == [SIEVES]


def test_how_much_was_kept_by_arrival_number(place: Place) -> None:
    history = SieveHistory(place)
    history.put("u", 99, "s", HALF)
    history.put("u", 199, "t", TENTH)
    history.put("u", 299, "t", None)
    history.put("u", 399, "s", None)
    steps = history.kept("u")
    assert steps == [(100, 0.5), (200, 0.1), (300, 0.5), (400, 1.0)], (
        "the least of all sources: nobody is promised more"
    )
    assert KeptShares.of(steps).to_list() == [[0, 1.0], [100, 0.5], [200, 0.1], [300, 0.5], [400, 1.0]]


def test_the_last_steps_are_remembered(place: Place) -> None:
    history = SieveHistory(place)
    for at in range(2 * _MOST):
        history.put("u", at, "s", Sieve((at % 100) / 100, 0))
    assert len(history.kept("u")) == _MOST
    assert names(history, 2 * _MOST - 1) == {"s": ((2 * _MOST - 1) % 100) / 100}
    assert names(history, _MOST) == {"s": (_MOST % 100) / 100}


@pytest.mark.parametrize("text", ["{", "[]", '{"u": [3]}', '{"u": [["x", {}]]}', '{"u": {"a": 1}}'])
def test_a_damaged_file_is_named(place: Place, text: str) -> None:
    place.write(SIEVES, text.encode(), sync=False)
    with pytest.raises(RunError, match=r"sieves\.json' is damaged: its checksum is wrong; restore it, or give"):
        SieveHistory(place)


puts = st.tuples(st.sampled_from("st"), st.none() | st.integers(0, 9), st.integers(0, 3), st.booleans())


@examples(50)
@given(steps=st.lists(puts, max_size=12))
def test_a_micro_batch_is_read_with_the_same_sieves_for_ever(steps: list[tuple[str, int | None, int, bool]]) -> None:
    """Grants follow each other, and sieves are put between them; a grant always finds what counted for it."""
    with TemporaryDirectory() as folder:
        place, position = locate(folder), 0
        history, granted = SieveHistory(place), []
        for source, tenths, further, crash in steps:
            history.put("u", position, source, None if tenths is None else Sieve(tenths / 10, 0))
            if further:
                history.write(sync=False)
                granted.append((position, history.at("u", position)))
                position += further
            if crash:
                history = SieveHistory(place)
                history.clear("u", position)
                assert history.at("u", position) == {}
        for read in (history, SieveHistory(place)):
            for after, sieves in granted:
                assert read.at("u", after) == sieves
