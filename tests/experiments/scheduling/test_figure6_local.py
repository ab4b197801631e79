"""Figure 6 with real overheads."""

from __future__ import annotations

from headway_experiments.rows import Row, Rows
from headway_experiments.scheduling.figure6_local import EXPERIMENT


def _wrong(mc: tuple[float, ...], ml: tuple[float, ...]) -> set[str]:
    made: list[Row] = [
        {"cost": cost, "traversal": name, "seed": seed, "latency": latency}
        for name, latencies in (("mc", mc), ("ml", ml))
        for cost, latency in zip((0.003, 0.03, 0.3), latencies, strict=True)
        for seed in (1, 2)
    ]
    return {check.key for check in EXPERIMENT.check(Rows(made)) if not check.holds}


def test_claims_hold_where_they_should() -> None:
    assert _wrong((1, 2, 8), (2, 2.5, 6)) == set()


def test_claims_can_fail() -> None:
    assert _wrong((2, 2.5, 6), (1, 2, 8)) == {"mc-small", "ml-large"}
    assert _wrong((1, 3, 5), (2, 2, 4)) == set()
    assert _wrong((1, 2, 8), (2, 2.5, 9)) == {"ml-large", "one-crossing"}
    assert _wrong((8, 2, 4), (9, 1, 3)) == {"mc-rises", "ml-rises"}
