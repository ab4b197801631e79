"""From specifications to kernels."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headway.boxes import REGISTRY
from headway.errors import RunError
from headway.kernels.compile import compile_kernel
from headway.network.schema import Schema
from headway.trains import Train

SCHEMA = Schema.parse("a bigint, k int, v int")
ORDER: dict[str, Any] = {"on": "a", "by": ["k"]}
SPECS: dict[str, tuple[str, dict[str, Any]]] = {
    "filter": ("filter", {"where": "v > 0"}),
    "routes": ("filter", {"where": ["v > 0", "v < 0"]}),
    "map": ("map", {"select": "a, v + 1 as w"}),
    "union": ("union", {}),
    "universal": ("universal", {"selectivity": 0.5, "mode": "even"}),
    "bsort": ("bsort", {"order": {**ORDER, "slack": 2}}),
    "tumbling": ("aggregate", {"order": ORDER, "select": "count(*) as n, median(v) as m", "size": 5}),
    "sliding": ("aggregate", {"order": ORDER, "select": "sum(v) as n", "size": 5, "advance": 2}),
    "counts": ("aggregate", {"order": {"on": "#"}, "select": "sum(v) as n", "size": 3}),
    "sessions": ("aggregate", {"order": {**ORDER, "slack": 1}, "select": "sum(v) as n", "advance": {"when": "v > 1"}}),
    "join": ("join", {"on": "left.k = right.k", "size": 2, "order": [ORDER, ORDER]}),
    "resample": ("resample", {"select": "avg(v) as m", "size": 2, "order": [{"on": "a"}, ORDER]}),
}
STATELESS = {"filter", "routes", "map", "union"}


def make(name: str) -> tuple[Any, list[Schema], Any]:
    op, settings = SPECS[name]
    spec = REGISTRY[op].parse("box", settings)
    schemas = [SCHEMA, SCHEMA] if op in ("union", "join", "resample") else [SCHEMA]
    return compile_kernel(spec, "box", schemas, [None] * len(schemas), None), schemas, spec


def _trains(start: int, count: int, sides: int) -> list[Train]:
    batch = pa.record_batch(
        {
            "a": pa.array([(start + at) * 7 % 5 + start + at for at in range(count)], pa.int64()),
            "k": pa.array([at % 3 or None for at in range(count)], pa.int32()),
            "v": pa.array([at % 4 - 1 for at in range(count)], pa.int32()),
        }
    )
    whole = Train.from_batch(batch)
    numbers = whole.numbers + start
    made = []
    for side in range(sides):
        rows = whole.take((whole.numbers % sides == side).nonzero()[0])
        made.append(Train(rows.columns, rows.stamps, rows.numbers + start, int(numbers[-1])))
    return made


@pytest.mark.parametrize("name", SPECS)
def test_every_operator_has_a_kernel_with_the_schemas_that_it_infers(name: str) -> None:
    kernel, schemas, spec = make(name)
    inferred = spec.infer("box", schemas, None)
    state, result = kernel.run(kernel.initial(), _trains(0, 40, len(schemas)), 0)
    assert len(result.outputs) == len(inferred)
    for output, schema in zip(result.outputs, inferred, strict=True):
        output.to_batch(schema.to_arrow()).validate(full=True)
        assert output.progress == 39
    assert kernel.deadline(state) is None


@pytest.mark.parametrize("name", sorted(set(SPECS) - STATELESS))
def test_dumps_are_the_same_bytes_every_time(name: str) -> None:
    kernel, schemas, _ = make(name)
    dumps = []
    for _ in range(2):
        state = kernel.initial()
        for start in (0, 40):
            state, _ = kernel.run(state, _trains(start, 40, len(schemas)), 0)
        dumps.append(kernel.dump(state))
        assert kernel.dump(state) == dumps[-1]
        assert kernel.dump(kernel.load(dumps[-1])) == dumps[-1]
    assert dumps[0] == dumps[1]
    assert b"\x80\x04" not in dumps[0][:4]
    assert dumps[0].startswith(b"HWS")


@pytest.mark.parametrize("name", sorted(set(SPECS) - STATELESS))
def test_foreign_states_are_refused(name: str) -> None:
    kernel, _, _ = make(name)
    own = kernel.dump(kernel.initial())
    foreign = [make(other)[0] for other in sorted(set(SPECS) - STATELESS) if SPECS[other][0] != SPECS[name][0]]
    for data in (b"", b"nonsense", own[:20], own[: len(own) // 2], *(one.dump(one.initial()) for one in foreign)):
        with pytest.raises(RunError, match="saved state"):
            kernel.load(data)
