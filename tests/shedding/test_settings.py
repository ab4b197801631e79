from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headway.shedding.greedy
import headway.shedding.uniform  # noqa: F401  (strategies register themselves)
from headway.durations import Duration
from headway.errors import PolicyError
from headway.network import freeze
from headway.network.qos import Graph, QoS, ValueGraph
from headway.shedding.settings import KEYS, ShedSettings

GRAPH = Graph(((0.0, 0.0), (100.0, 1.0)))
PLAIN = QoS()
LOSS = QoS(loss=GRAPH)
VALUE = QoS(value=ValueGraph("x", GRAPH))


@pytest.mark.parametrize("value", [None, False, "off"])
def test_off(value: object) -> None:
    assert ShedSettings.parse(value) is None


@pytest.mark.parametrize("value", [True, "on", {}, "loss", {"by": "loss"}])
def test_defaults(value: object) -> None:
    parsed = ShedSettings.parse(value)
    assert parsed == ShedSettings()
    assert parsed is not None
    assert (parsed.headroom, parsed.most, parsed.most_in_all) == (0.9, 0.95, 1.0)
    assert (parsed.interval.nanoseconds, parsed.drain) == (500_000_000, None)
    assert parsed.by_value


def test_another_strategy() -> None:
    assert ShedSettings.parse("uniform") == ShedSettings(strategy="uniform")


def test_a_mapping_with_everything() -> None:
    written = {
        "by": "uniform",
        "by_value": False,
        "headroom": 0.8,
        "most": 0.5,
        "in_all": 0.4,
        "outputs": {"alarms": 0.1},
        "allowed": ["reports"],
        "interval": "1s",
        "drain": 3,
        "hold": 4,
        "band": 0.1,
    }
    assert set(written) == set(KEYS)
    expected = ShedSettings(
        strategy="uniform",
        by_value=False,
        headroom=0.8,
        most=0.5,
        most_in_all=0.4,
        outputs={"alarms": 0.1},
        allowed=("reports",),
        interval=Duration(1_000_000),
        drain=Duration(3_000_000),
        hold=4,
        band=0.1,
    )
    assert ShedSettings.parse(written) == expected
    assert ShedSettings.parse(freeze(written)) == expected  # as a network holds it


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, r"shed: must be off, on, a strategy, or a mapping, not 3; strategies: .*loss.*uniform; keys: by, by_value"),
        (["loss"], r"shed: must be off, on"),
        ("los", r"shed: no strategy is called 'los'; did you mean 'loss'\?"),
        ("nonsense", r"shed: no strategy is called 'nonsense'; .*loss, .*off, on"),
        ({"by": "los"}, r"shed: by: unknown strategy 'los'; did you mean 'loss'\? choices: .*loss, .*uniform"),
        ({"by": 1}, r"shed: by: must be the name of a strategy \(.*loss.*\), not 1"),
        ({"heedroom": 1}, r"shed: unknown key 'heedroom'; did you mean 'headroom'\? choices: allowed, band"),
        ({1: 1}, r"shed: unknown key '1'"),
        ({"by_value": "yes"}, r"shed: by_value: must be true or false, not 'yes'"),
        ({"headroom": 0}, r"shed: headroom: must be a number above 0, up to 1, not 0"),
        ({"headroom": 1.1}, r"shed: headroom: must be a number"),
        ({"most": -0.1}, r"shed: most: must be a number from 0 to 1, not -0\.1"),
        ({"most": True}, r"shed: most: must be a number from 0 to 1, not True"),
        ({"most": "a lot"}, r"shed: most: must be a number"),
        ({"most": float("nan")}, r"shed: most: must be a number"),
        ({"in_all": 2}, r"shed: in_all: must be a number from 0 to 1, not 2"),
        ({"outputs": 0.5}, r"shed: outputs: must be shares by output, such as \{alarms: 0\.1\}, not 0\.5"),
        ({"outputs": {"alarms": 10}}, r"shed: outputs: alarms: must be a number from 0 to 1, not 10"),
        ({"allowed": "alarms"}, r"shed: allowed: must be a list of outputs"),
        ({"allowed": []}, r"shed: allowed: must be a list of outputs"),
        ({"allowed": [1]}, r"shed: allowed: must be a list of outputs"),
        ({"allowed": {"alarms": 1}}, r"shed: allowed: must be a list of outputs"),
        ({"interval": "soon"}, r"shed: interval: 'soon' is not a duration"),
        ({"interval": 0}, r"shed: interval: must be more than 0, not 0"),
        ({"interval": float("inf")}, r"shed: interval: inf is not a duration"),
        ({"drain": True}, r"shed: drain: True is not a duration"),
        ({"drain": -1}, r"shed: drain: must be more than 0, not -1"),
        ({"hold": 0}, r"shed: hold: must be a whole number of at least 1, not 0"),
        ({"hold": 1.5}, r"shed: hold: must be a whole number"),
        ({"band": 0}, r"shed: band: must be a number above 0, below 1, not 0"),
    ],
)
def test_what_is_wrong_is_named_with_the_choices(value: object, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        ShedSettings.parse(value)


def test_outputs_with_a_loss_or_value_graph_give_way() -> None:
    assert ShedSettings().limits(("a", "b", "c"), (PLAIN, LOSS, VALUE)) == (0.0, 0.95, 0.95)


def test_all_give_way_where_none_has_a_graph() -> None:
    assert ShedSettings(most=0.5).limits(("a", "b"), (PLAIN, PLAIN)) == (0.5, 0.5)


def test_limits_of_outputs() -> None:
    limits = ShedSettings(outputs={"a": 0.1, "b": 0.0}).limits(("a", "b", "c"), (PLAIN, LOSS, LOSS))
    assert limits == (0.1, 0.0, 0.95)


def test_only_those_allowed_give_way() -> None:
    limits = ShedSettings(allowed=("a",), outputs={"b": 0.2}).limits(("a", "b", "c"), (PLAIN, LOSS, LOSS))
    assert limits == (0.95, 0.2, 0.0)


@pytest.mark.parametrize("named", [{"outputs": {"alarm": 0.1}}, {"allowed": ["alarm"]}])
def test_outputs_that_do_not_exist(named: dict[str, Any]) -> None:
    parsed = ShedSettings.parse(named)
    assert parsed is not None
    with pytest.raises(PolicyError, match=r"shed: unknown output 'alarm'; did you mean 'alarms'\? choices: alarms, b"):
        parsed.limits(("alarms", "b"), (LOSS, LOSS))


SHARES = st.floats(0, 1)


def written(made: ShedSettings) -> dict[str, object]:
    """Return settings as a file has them."""
    mapping = {
        "by": made.strategy,
        "by_value": made.by_value,
        "headroom": made.headroom,
        "most": made.most,
        "in_all": made.most_in_all,
        "interval": str(made.interval),
        "drain": None if made.drain is None else str(made.drain),
        "hold": made.hold,
        "band": made.band,
        "outputs": made.outputs,
        "allowed": None if made.allowed is None else list(made.allowed),
    }
    return {key: value for key, value in mapping.items() if value is not None}


@settings(deadline=None)
@given(
    st.builds(
        ShedSettings,
        strategy=st.sampled_from(["loss", "uniform"]),
        by_value=st.booleans(),
        headroom=st.floats(0.01, 1),
        most=SHARES,
        most_in_all=SHARES,
        outputs=st.dictionaries(st.text(min_size=1), SHARES, max_size=3),
        allowed=st.none() | st.lists(st.text(min_size=1), min_size=1, max_size=3).map(tuple),
        interval=st.integers(1, 10**9).map(Duration),
        drain=st.integers(1, 10**9).map(Duration),
        hold=st.integers(1, 9),
        band=st.floats(0.01, 0.99),
    )
)
def test_settings_can_be_written_and_read_back(made: ShedSettings) -> None:
    assert ShedSettings.parse(written(made)) == made
