"""The public names."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import headway as hw


def test_exports() -> None:
    assert hw.__all__ == sorted(hw.__all__)
    for name in hw.__all__:
        assert getattr(hw, name).__doc__, name
    contract = {"load", "run", "policies", "Network", "check", "function", "aggregate"}
    assert contract <= set(hw.__all__)


def test_the_contract_of_run() -> None:
    parameters = list(inspect.signature(hw.run).parameters)
    assert parameters[:2] == ["network", "inputs"]
    assert {"engine", "policy", "train", "workers"} <= set(parameters)


def test_policies() -> None:
    assert {"round-robin/box", "round-robin/superbox"} <= set(hw.policies())


def test_the_version_is_the_projects() -> None:
    project = Path(__file__).parents[1] / "pyproject.toml"
    found = re.search(r'^version = "(.*)"$', project.read_text(), re.MULTILINE)
    assert found
    assert hw.__version__ == found[1]
