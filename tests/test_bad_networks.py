"""Every bad network file ends in one clear message."""

from __future__ import annotations

import pytest

from headway.checking import CheckedNetwork, check
from headway.errors import NetworkError
from headway.files import load
from tests.bad_networks.cases import CASES, Bad


def load_and_check(bad: Bad) -> CheckedNetwork:
    network = load(bad.text)
    assert bad.stage == "check", "load should have refused it"
    return check(network)


@pytest.mark.parametrize("bad", CASES, ids=[case.id for case in CASES])
def test_message(bad: Bad) -> None:
    with pytest.raises(NetworkError) as caught:
        load_and_check(bad)
    message = str(caught.value)
    for part in bad.expected:
        assert part in message
    assert "\n" not in message
    assert "\x1b" not in message
    if bad.stage == "check":
        assert message.startswith(("box '", "output '"))


def test_there_are_many() -> None:
    assert len(CASES) >= 80
    assert len({case.text for case in CASES}) == len(CASES)
