"""Generated tuples: exactly repeatable, whichever way they are read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headway as hw
from headway.connectors import generate, open_source
from headway.errors import InputError
from headway.network.schema import Schema
from tests.connectors.helpers import drain
from tests.searching import examples

SCHEMA = Schema.parse("sid int, pos double, name string, k smallint, c bigint, t timestamp")
FIELDS: dict[str, Any] = {
    "sid": {"uniform": [0, 99]},
    "pos": {"normal": [30, 10], "null": 0.1},
    "name": {"choice": ["a", "b", "c"], "weights": [1, 0, 3]},
    "k": {"zipf": [1.2, 100]},
    "c": {"sequence": [5, 2]},
    "t": {"sequence": ["2024-01-01T00:00:00Z", "250ms"]},
}


def make(
    schema: Schema | str = SCHEMA, limits: tuple[int, ...] = (1 << 20,), **settings: object
) -> tuple[pa.Table, list[int]]:
    """Return all tuples of a generator and their moments."""
    parsed = Schema.parse(schema) if isinstance(schema, str) else schema
    table, due, _ = drain(open_source("g", parsed, {"generate": settings}), limits)
    assert table is not None
    return table, due


@examples(15)
@given(
    cuts=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    arrivals=st.sampled_from(["constant", "poisson"]),
    count=st.integers(1, 150),
)
def test_cuts_do_not_matter(cuts: list[int], arrivals: str, count: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generate, "BLOCK", 32)
        whole, due = make(count=count, rate=10, arrivals=arrivals, fields=FIELDS)
        again, again_due = make(limits=tuple(cuts), count=count, rate=10, arrivals=arrivals, fields=FIELDS)
    assert again.combine_chunks().equals(whole.combine_chunks())
    assert again_due == due
    assert due == sorted(due)


def test_seeds() -> None:
    first, _ = make(count=100, fields=FIELDS, seed=1)
    other, _ = make(count=100, fields=FIELDS, seed=2)
    default, _ = make(count=100, fields=FIELDS)
    assert first.equals(default)
    assert not first.equals(other)
    assert first.column("c").equals(other.column("c"))


def test_distributions() -> None:
    table, _ = make(count=70_000, fields=FIELDS)
    sid = table.column("sid").to_numpy()
    assert (sid.min(), sid.max()) == (0, 99)
    pos = table.column("pos")
    assert pos.null_count == pytest.approx(7000, rel=0.1)
    assert np.mean(pos.drop_null().to_numpy()) == pytest.approx(30, abs=0.3)
    names = {entry["values"]: entry["counts"] for entry in table.column("name").value_counts().to_pylist()}
    assert set(names) == {"a", "c"}
    assert names["c"] == pytest.approx(3 * names["a"], rel=0.1)
    ranks = np.bincount(table.column("k").to_numpy(), minlength=101)
    assert ranks[0] == 0
    assert ranks[1] == pytest.approx(2**1.2 * ranks[2], rel=0.1)
    assert table.column("c").to_pylist()[:3] == [5, 7, 9]
    assert table.column("t")[4].as_py().isoformat() == "2024-01-01T00:00:01+00:00"


def test_constants_and_small_types() -> None:
    fields: dict[str, Any] = {
        "a": 5,
        "b": True,
        "d": {"uniform": ["2024-01-01", "2024-01-02"]},
        "e": {"normal": [0, 1e6]},
    }
    table, _ = make(
        "a decimal(5,2), b boolean, d date, e tinyint", count=50, fields={**fields, "e": {"normal": [0, 1e6]}}
    )
    assert set(table.column("b").to_pylist()) == {True}
    assert {value.day for value in table.column("d").to_pylist()} == {1, 2}
    assert set(table.column("e").to_pylist()) == {-128, 127}


def test_expressions() -> None:
    table, due = make("a bigint, b double, s string", count=4, rate=2, fields={"a": "i * 2", "b": "t + 1", "s": "'x'"})
    assert table.column("a").to_pylist() == [0, 2, 4, 6]
    assert table.column("b").to_pylist() == [1.0, 1.5, 2.0, 2.5]
    assert table.column("s").to_pylist() == ["x"] * 4
    assert due[-1] == 1_500_000_000


def test_expressions_are_cast() -> None:
    table, _ = make("a int", count=3, fields={"a": "i % 2"})
    assert table.column("a").to_pylist() == [0, 1, 0]


def test_poisson_has_the_rate() -> None:
    _, due = make("a int", count=100_000, rate=1000, arrivals="poisson", fields={"a": 1})
    assert due[-1] / 1e9 == pytest.approx(100, rel=0.02)
    assert np.std(np.diff(due)) == pytest.approx(1e6, rel=0.05)


def test_bursts() -> None:
    second = 1_000_000_000
    _, due = make("a int", count=5, burst={"size": 2, "every": "1s"}, fields={"a": 1})
    assert due == [0, 0, second, second, 2 * second]
    _, due = make("a int", count=5, rate=10, burst={"size": 2, "every": 1}, fields={"a": 1})
    assert due == [0, second // 10, second, second + second // 10, 2 * second]
    _, due = make("a int", count=5, rate=2, arrivals="bursty", burst={"on": "1s", "off": "4s"}, fields={"a": 1})
    assert due == [0, second // 2, 5 * second, 5 * second + second // 2, 10 * second]


def test_without_end_and_without_rate() -> None:
    reader = open_source("g", Schema.parse("a int"), {"generate": {"fields": {"a": {"uniform": [1, 1]}}}})
    assert not reader.finite
    assert not reader.timed
    assert not reader.live
    chunk = reader.read(10)
    assert chunk is not None
    assert chunk.due is None
    paced = open_source("g", Schema.parse("a int"), {"generate": {"fields": {"a": 1}}}, rate=5)
    assert paced.timed


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fields": {}}, "source 'g': generate: field 'a' is not defined; define all of a"),
        ({}, "fields maps each field"),
        ({"fields": {"a": 1, "b": 1}}, "unknown field 'b'; fields: a"),
        ({"feilds": {"a": 1}}, "unknown key 'feilds'; did you mean 'fields'"),
        ({"fields": {"a": {"unifrom": [1, 2]}}}, "field 'a': unknown distribution 'unifrom'; did you mean 'uniform'"),
        ({"fields": {"a": {}}}, "name one distribution"),
        ({"fields": {"a": {"uniform": [2, 1]}}}, "uniform: the lower bound 2 is above"),
        ({"fields": {"a": {"uniform": [2]}}}, "expected .lowest, highest."),
        ({"fields": {"a": {"uniform": [0.5, 1]}}}, "expected int, not 0.5"),
        ({"fields": {"a": {"normal": ["x", 1]}}}, "expected .mean, standard deviation."),
        ({"fields": {"a": {"choice": ["x"]}}}, "choice: expected int, not 'x'"),
        ({"fields": {"a": {"choice": [1], "weights": [0]}}}, "not all 0"),
        ({"fields": {"a": {"zipf": [1, 0]}}}, "number of ranks"),
        ({"fields": {"a": {"uniform": [0, 1], "null": 2}}}, "null is a share"),
        ({"fields": {"a": "j + 1"}}, "'j'"),
        ({"fields": {"a": 1.5}}, "expected int, not 1.5"),
        ({"fields": {"a": 1}, "count": -1}, "count is a whole number from 0"),
        ({"fields": {"a": 1}, "seed": "x"}, "seed is a whole number"),
        ({"fields": {"a": 1}, "rate": 0}, "rate is a number"),
        ({"fields": {"a": 1}, "arrivals": "possion"}, "unknown arrivals 'possion'; did you mean 'poisson'"),
        ({"fields": {"a": 1}, "arrivals": "poisson"}, "needs a rate"),
        ({"fields": {"a": 1}, "arrivals": "bursty"}, "needs burst"),
        ({"fields": {"a": 1}, "burst": {"on": "1s", "off": "1s"}}, "needs a rate"),
        ({"fields": {"a": 1}, "burst": {"size": 5}}, "burst is"),
        ({"fields": {"a": 1}, "burst": {"size": 5, "every": "soon"}}, "every: 'soon' is not a duration"),
        ({"fields": {"a": 1}, "burst": {"size": 5, "every": "1s"}, "rate": 1}, "do not fit"),
        ({"fields": {"a": 1}, "phases": []}, "generate: phases is a list of .span, tuples per second."),
        ({"fields": {"a": 1}, "phases": "10s"}, "phases is a list"),
        ({"fields": {"a": 1}, "phases": [["1s", 5], "2s"]}, "phase 2: expected .span, tuples per second., such as"),
        ({"fields": {"a": 1}, "phases": [["1s", 5, 5]]}, "phase 1: expected"),
        ({"fields": {"a": 1}, "phases": [["soon", 5]]}, "phase 1: 'soon' is not a duration"),
        ({"fields": {"a": 1}, "phases": [[0, 5]]}, "phase 1: expected a span of time above 0"),
        ({"fields": {"a": 1}, "phases": [["1s", -1]]}, "phase 1: its rate is a number of tuples per second from 0"),
        ({"fields": {"a": 1}, "phases": [["1s", True]]}, "phase 1: its rate"),
        ({"fields": {"a": 1}, "phases": [["1s", float("nan")]]}, "phase 1: its rate"),
        ({"fields": {"a": 1}, "phases": [["1s", 10**400]]}, "phase 1: its rate"),
        ({"fields": {"a": 1}, "phases": [["1s", 0], ["2s", 0]]}, "at least one rate must be above 0"),
        ({"fields": {"a": 1}, "phases": [["5000w", 1]] * 2}, "phases: together they are too long; at most 146 years"),
        ({"fields": {"a": 1}, "phases": [["1s", 5]], "rate": 5}, "generate: rate and phases exclude each other"),
        ({"fields": {"a": 1}, "phases": [["1s", 5]], "burst": {"size": 5, "every": 1}}, "not with bursts"),
        ({"fields": {"a": 1}, "phases": [["1s", 5]], "arrivals": "bursty"}, "constant or poisson, not with bursts"),
        ("x", "generate expects a mapping"),
    ],
)
def test_bad_settings(settings: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_source("g", Schema.parse("a int"), {"generate": settings})


def test_no_rate_from_outside_beside_phases() -> None:
    settings = {"generate": {"phases": [["1s", 5]], "fields": {"a": 1}}}
    with pytest.raises(InputError, match="source 'g': generate: phases say how fast tuples come"):
        open_source("g", Schema.parse("a int"), settings, rate=5)


def test_a_sequence_that_leaves_its_range() -> None:
    fields: dict[str, Any] = {"a": {"sequence": [0, 1]}}
    assert make("a tinyint", count=128, fields=fields)[0].num_rows == 128
    with pytest.raises(InputError, match="leaves the range of tinyint"):
        make("a tinyint", count=129, fields=fields)


@pytest.mark.parametrize("rate", [1e-300, 5e-324, 1e-10, 1e19, 1e300, 10**400, math.inf, math.nan, 0, -1])
def test_rates_beyond_sense_are_refused(rate: float) -> None:
    settings = {"generate": {"rate": rate, "count": 3, "fields": {"a": "i"}}}
    with pytest.raises(InputError, match=r"rate is (from 1e-09 to 1e\+18|a number of) tuples per second"):
        open_source("s", Schema.parse("a bigint"), settings)
    with pytest.raises(InputError, match="tuples per second"):
        open_source("s", Schema.parse("a bigint"), [{"a": 1}], rate=rate)


@pytest.mark.parametrize(
    "settings",
    [
        {"rate": 1e-9},
        {"rate": 1e-9, "arrivals": "poisson"},
        {"burst": {"size": 1, "every": 4e9}},
        {"burst": {"size": 3, "every": "7000w"}},
        {"rate": 1e-8, "burst": {"on": "1us", "off": "7000w"}},
        {"rate": 1e18, "burst": {"on": "1us", "off": "1us"}},
    ],
)
def test_moments_too_far_away_never_come(settings: dict[str, Any]) -> None:
    generate = {"generate": {**settings, "count": 2000, "fields": {"a": "i"}}}
    _, due, _ = drain(open_source("s", Schema.parse("a bigint"), generate))
    assert due == sorted(due)
    assert due[0] >= 0
    assert max(due) <= 2**62


def test_a_burst_of_a_size_without_end() -> None:
    generate = {"generate": {"burst": {"size": 10**30, "every": "1s"}, "fields": {"a": "i"}}}
    with pytest.raises(InputError, match="size is a whole number from 1 to 4611686018427387904"):
        open_source("s", Schema.parse("a bigint"), generate)


def test_null_as_yaml_reads_it() -> None:
    network = """
    network: nulls
    sources:
      s: {schema: {v: double}, source: {generate: {count: 200, seed: 1, fields: {v: {normal: [30, 10], null: 0.5}}}}}
    outputs: {o: {from: s}}
    """
    assert 50 < hw.run(network, engine="local").outputs["o"]["v"].null_count < 150
