"""A query attached behind a point gives what it had given if it had always been there."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headway as hw
from headway.history import Layout
from tests.searching import examples

SCHEMA = {"k": "int", "v": "bigint"}
ROWS = st.tuples(st.one_of(st.none(), st.integers(0, 3)), st.integers(0, 30))
BATCHES = st.lists(st.lists(ROWS, min_size=1, max_size=12), min_size=1, max_size=8)


@pytest.fixture(autouse=True)
def _small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let histories write files after a few hundred bytes, so that reading needs them."""
    monkeypatch.setattr("headway.history.store.Layout", partial(Layout, flush=300, largest=2_000, merge=2))


def network(on: str, key: str | None, keep: object) -> dict[str, Any]:
    point: dict[str, Any] = {"on": on, "keep": keep, "time": "v"}
    return {
        "network": "n",
        "sources": {"s": {"schema": SCHEMA, "push": True}},
        "points": {"p": point | ({"key": key} if key else {})},
        "boxes": {"f": {"op": "filter", "in": "s", "where": "v >= 5"}},
        "outputs": {"all": {"from": "f"}},
    }


def boxes(source: str, where: str) -> dict[str, Any]:
    return {
        "g": {"op": "filter", "in": source, "where": where},
        "c": {"op": "aggregate", "in": "g", "select": "count(*) as n, sum(v) as t", "order": {"on": "#"}, "size": 3},
    }


OUTPUTS = {"rows": {"from": "g"}, "sums": {"from": "c"}}


def offline(rows: list[tuple[Any, ...]], where: str) -> dict[str, list[dict[str, Any]]]:
    """Return what the same boxes give over some rows, without a flush of the windows."""
    made = {"network": "o", "sources": {"s": {"schema": SCHEMA}}, "boxes": boxes("s", where), "outputs": OUTPUTS}
    result = hw.run(made, {"s": rows}, engine="local")
    return {name: table.to_pylist() for name, table in result.outputs.items()}


def without_rest(sums: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return windows without the last, incomplete one, which only a flush emits."""
    return [row for row in sums if row["n"] == 3]


def since_of(rows: list[tuple[int, tuple[Any, ...]]], since: object) -> int | None:
    """Return h by its definition, None if nothing is recent enough."""
    if since == "all":
        return rows[0][0] if rows else None
    assert isinstance(since, int)
    latest = max([row[1] for _, row in rows], default=None)
    if latest is None:
        return None
    return min(number for number, row in rows if row[1] >= latest - since)


WHERE = st.sampled_from(["true", "k = 2", "k >= 1 and v < 25", "k between 1 and 2", "k is null"])


@pytest.mark.parametrize("on", ["s", "f"])
@settings(examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=BATCHES,
    after=BATCHES,
    where=WHERE,
    key=st.sampled_from(["k", None]),
    since=st.one_of(st.just("all"), st.integers(1, 20)),
    until=st.booleans(),
    policy=st.sampled_from(["fifo", "round-robin", "qos"]),
    train=st.sampled_from([1, 3, 1000]),
)
def test_ad_hoc_is_as_if_it_had_always_been_there(
    on: str,
    before: list[list[tuple[Any, ...]]],
    after: list[list[tuple[Any, ...]]],
    where: str,
    key: str | None,
    since: object,
    until: bool,
    policy: str,
    train: int,
) -> None:
    fragment = {"attach": "q", "boxes": boxes("p", where), "outputs": OUTPUTS}
    with hw.start(network(on, key, "all"), engine="local", policy=policy, train=train) as run:
        rows: list[tuple[int, tuple[Any, ...]]] = []

        def push(batch: list[tuple[Any, ...]]) -> None:
            last = run.push("s", batch)
            rows.extend(zip(range(last - len(batch) + 1, last + 1), batch, strict=True))

        for batch in before:
            push(batch)
        attached = run.attach(
            fragment, since=f"{since}s" if isinstance(since, int) else since, until="now" if until else None
        )
        passing = [one for one in rows if on == "s" or one[1][1] >= 5]
        begin = since_of(passing, since)
        for batch in after:
            push(batch)
        passing = [one for one in rows if on == "s" or one[1][1] >= 5]
        seam = attached.seam
        taken = [row for number, row in passing if (number >= begin if begin is not None else number > seam)]
        if until:
            taken = [row for number, row in passing if begin is not None and begin <= number <= seam]
        expected = offline(taken, where)
        if until:
            assert attached.result("rows", 10).to_pylist() == expected["rows"]
            assert attached.result("sums", 10).to_pylist() == expected["sums"]
            return
        wait_until(lambda: attached.read("rows").num_rows >= len(expected["rows"]))
        attached.detach()
        assert attached.read("rows").to_pylist() == expected["rows"]
        assert attached.read("sums").to_pylist() == without_rest(expected["sums"])


def wait_until(done: Any, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        time.sleep(0.002)
