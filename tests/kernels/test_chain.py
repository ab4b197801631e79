"""Fused filters and maps against the same boxes one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headway.boxes.filter import Filter
from headway.boxes.map import Map
from headway.columns import from_pylist
from headway.kernels.chain import ChainKernel, Link
from headway.kernels.compile import compile_link
from headway.kernels.kernel import DeadLetter
from headway.network.schema import Schema
from headway.trains import Tick, Train
from tests.kernels.helpers import few

SCHEMA = Schema.parse("id int, v int, s string")
FILTERS = ["v > 0", "v < 3", "10 / v > 4", "s = 'x'", "s is null", "true", "v is not null", "1 / (v - 1) > 0"]
MAPS = ["id, v, s", "id, v + 1 as v, s", "id, 6 div v as v, upper(s) as s", "id, v, 'x' as s", "v as id, id as v, s"]
specs = st.lists(
    st.sampled_from(FILTERS).map(lambda text: Filter((text,))) | st.sampled_from(MAPS).map(Map), min_size=1, max_size=5
)
rows_ = st.lists(st.tuples(st.integers(-3, 4) | st.none(), st.sampled_from(["x", "y", None])), max_size=20)


def _links(boxes: list[Any]) -> list[Link]:
    return [compile_link(spec, f"b{at}", SCHEMA, None) for at, spec in enumerate(boxes)]


def _train(rows: list[tuple[int | None, str | None]]) -> Train:
    columns = (
        from_pylist(list(range(len(rows))), SCHEMA.types[0]),
        from_pylist([v for v, _ in rows], SCHEMA.types[1]),
        from_pylist([s for _, s in rows], SCHEMA.types[2]),
    )
    numbers = np.arange(len(rows)) * 2
    return Train(columns, numbers + 100, numbers, 77, (Tick(3, 9),), True)


def _shown(dead: tuple[DeadLetter, ...]) -> list[tuple[str, str, list[Any]]]:
    found = [
        (one.box, one.reason, row) for one in dead for row in one.train.to_batch(one.schema.to_arrow()).to_pylist()
    ]
    return sorted(found, key=repr)


@few
@given(boxes=specs, rows=rows_)
def test_fused_is_the_same_as_apart(boxes: list[Any], rows: list[tuple[int | None, str | None]]) -> None:
    links, train = _links(boxes), _train(rows)
    _, fused = ChainKernel(tuple(links)).run(None, (train,), 0)
    dead: tuple[DeadLetter, ...] = ()
    counts = []
    for link in links:
        counts.append(len(train))
        _, result = ChainKernel((link,)).run(None, (train,), 0)
        (train,) = result.outputs
        dead += result.dead
    (output,) = fused.outputs
    schema = SCHEMA.to_arrow()
    assert output.to_batch(schema).to_pylist() == train.to_batch(schema).to_pylist()
    assert output.numbers.tolist() == train.numbers.tolist()
    assert output.stamps.tolist() == train.stamps.tolist()
    assert (output.progress, output.ticks, output.end) == (77, (Tick(3, 9),), True)
    assert _shown(fused.dead) == _shown(dead)
    if len(links) > 1:
        assert list(fused.counts) == counts


def test_a_predicate_that_holds_everywhere_hands_the_train_on() -> None:
    train = _train([(1, "x"), (2, "y")])
    _, result = ChainKernel((_links([Filter(("v > 0",))])[0],)).run(None, (train,), 0)
    assert result.outputs[0] is train


def test_it_has_no_state() -> None:
    kernel = ChainKernel(tuple(_links([Map("id, v, s")])))
    assert kernel.dump(kernel.initial()) == b""
    assert kernel.deadline(None) is None
