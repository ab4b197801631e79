"""Longer streams, on which windows close, pairs are pruned and partitions come and go many times."""

from __future__ import annotations

import pytest

from tests.behaviour.running import check
from tests.reference.kinds import BIGINT, TIMESTAMP, Kind
from tests.reference.order import Order
from tests.reference.twins import Pair, Twin, aggregates, bsorts, filters, joins, resamples, results, sessions
from tests.searching import THOROUGH
from tests.streams import CONDITIONS, POLICIES, RANDOM_POLICY, WHENS, Case, Running, long_stream, schema

KNOWN = results("v")
GROUPED = Order("a", 2, ("k",))
SPLIT = filters("split", "s", ("side = 0", lambda row: row["side"] == 0))
SIDES = ("split", "split.else")
WAYS = (
    Running(POLICIES[0], 1),
    Running(POLICIES[1], 7),
    Running(POLICIES[0], 64, 2),
    Running("random:7" if RANDOM_POLICY else POLICIES[1], 1000),
)


def _boxes(kind: Kind) -> dict[str, tuple[Pair, ...]]:
    some = [KNOWN[name] for name in ("n", "total", "mean", "low", "high", "head", "tail", "listed", "kinds")]
    return {
        "bsort": (bsorts("box", "s", GROUPED),),
        "tumbling": (aggregates("box", "s", some, GROUPED, 4, kind=kind),),
        "sliding": (aggregates("box", "s", some, Order("a", 1), 7, 3, kind),),
        "gaps": (aggregates("box", "s", some, GROUPED, 2, 5, kind),),
        "counts": (aggregates("box", "s", some, Order("#", 0, ("k", "g")), 5, 2),),
        "first": (aggregates("box", "s", some, Order("a", 3, ("g",)), 6, 4, kind, align_first=True),),
        "sessions": (sessions("box", "s", some, GROUPED, *WHENS[0], kind=kind),),
        "sized": (sessions("box", "s", some, GROUPED, *WHENS[1], size=6, kind=kind),),
        "join": (SPLIT, joins("box", SIDES, CONDITIONS[2], 3, (GROUPED, GROUPED), kind)),
        "band": (SPLIT, joins("box", SIDES, CONDITIONS[4], 2, (Order("a", 1), Order("a", 3)), kind)),
        "resample": (SPLIT, resamples("box", SIDES, some, 3, (Order("a", 1), GROUPED), kind)),
    }


@pytest.mark.parametrize("kind", [BIGINT, TIMESTAMP], ids=lambda kind: kind.type)
@pytest.mark.parametrize("name", list(_boxes(BIGINT)))
def test_longer_streams(engine: str, name: str, kind: Kind) -> None:
    rows = long_stream(len(name), 300, kind)
    twin = Twin({"s": schema(kind)}, _boxes(kind)[name], {"out": "box"})
    ways = WAYS[::2] if kind is BIGINT else WAYS[1::2]
    check(engine, Case(twin, {"s": rows}), *(WAYS if THOROUGH else ways if engine == "local" else ways[-1:]))
