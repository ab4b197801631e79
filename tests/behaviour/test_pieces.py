"""Calls whose results come in pieces give the same results: with pieces of a few rows, and queues that are full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headway as hw
from headway.kernels import aggregate, chain, join, resample, results
from tests.behaviour.running import check, fewer, rows_of
from tests.reference.compare import assert_same
from tests.streams import Case, Running, grids, join_boxes, networks, one_box, resample_boxes, runnings, two_streams


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    """Make pieces of a few rows."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (aggregate, resample, results):
            patch.setattr(module, "ROWS", 3)
        patch.setattr(results, "PAIRS", 24)
        patch.setattr(join, "BYTES", 200)
        patch.setattr(results, "BYTES", 200)
        patch.setattr(chain, "BYTES", 200)
        patch.setattr(chain, "_FIRST", 2)
        patch.setattr(join, "_LEAST", 2)
        yield


@given(case=one_box(grids), how=runnings())
def test_windows(engine: str, case: Case, how: Running) -> None:
    check(engine, case, how)


@given(case=two_streams(join_boxes), how=runnings())
def test_joins(engine: str, case: Case, how: Running) -> None:
    check(engine, case, how)


@given(case=two_streams(resample_boxes), how=runnings())
def test_resamples(engine: str, case: Case, how: Running) -> None:
    check(engine, case, how)


policies = st.sampled_from(["round-robin/box", "qos/superbox", "threads"])


@given(case=networks(), policy=policies, train=st.integers(1, 50))
def test_networks_with_full_queues(case: Case, policy: str, train: int) -> None:
    network = hw.load(case.twin.mapping())
    train_of: dict[str, Any] = {"train": train}
    result = hw.run(network, case.inputs, engine="local", policy=policy, memory=1000, **train_of)
    for name, rows in case.twin.expected(case.inputs).items():
        assert_same(rows_of(result, name), rows, f"output '{name}'")


@given(count=st.integers(0, 40), train=st.sampled_from([1, 7, 1000]), policy=policies)
def test_texts(count: int, train: int, policy: str) -> None:
    network = {
        "network": "texts",
        "sources": {"a": {"schema": {"t": "int", "s": "string"}}},
        "boxes": {
            "long": {"op": "map", "in": "a", "select": "t, repeat(s, t) as s"},
            "some": {"op": "filter", "in": "long", "where": "t % 3 > 0"},
            "longer": {"op": "map", "in": "some", "select": "t, s || s as s, 1 / (t % 5) as x"},
            "other": {"op": "map", "in": "long", "select": "upper(s) as s"},
        },
        "outputs": {"out": {"from": "longer"}, "other": {"from": "other"}},
    }
    inputs = {"a": [(at, "ab") for at in range(count)]}
    result = hw.run(network, inputs, engine="local", policy=policy, train=train, memory=1000)
    kept = [at for at in range(count) if at % 3]
    assert result.outputs["out"].column("s").to_pylist() == ["ab" * 2 * at for at in kept if at % 5]
    assert result.outputs["other"].column("s").to_pylist() == ["AB" * at for at in range(count)]
    assert result.dead_letters.num_rows == sum(1 for at in kept if at % 5 == 0)


@fewer
@given(train=st.sampled_from([1, 7, 1000]), policy=st.sampled_from(["round-robin/box", "round-robin/superbox"]))
def test_boxes_behind_a_join_work_its_pieces_off(train: int, policy: str) -> None:
    """Two joins and a union behind each other, in units of their own or in one: the order stays what it was."""
    order = [{"on": "t"}, {"on": "t"}]
    network = {
        "network": "pieces",
        "sources": {"a": {"schema": {"t": "int"}}, "b": {"schema": {"t": "int"}}},
        "boxes": {
            "one": {"op": "join", "in": ["a", "b"], "on": "true", "size": 99, "order": order, "select": "left.t as t"},
            "some": {"op": "filter", "in": "one", "where": "t % 2 = 0"},
            "both": {"op": "union", "in": ["some", "one", "a"]},
            "again": {"op": "join", "in": ["both", "a"], "on": "true", "size": 1, "order": order, "select": "left.t"},
        },
        "outputs": {"out": {"from": "again"}, "both": {"from": "both"}},
    }
    inputs = {"a": [(at,) for at in range(12)], "b": [(at,) for at in range(12)]}
    one = hw.run(network, inputs, engine="local", policy=policy, train=train, memory=1000)
    other = hw.run(network, inputs, engine="sim", train=1)
    for name in ("out", "both"):
        assert one.outputs[name].to_pylist() == other.outputs[name].to_pylist()
    assert one.outputs["both"].num_rows > 200
