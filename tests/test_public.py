"""The public names: all of them there, and loaded when they are used."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    assert {"round-robin", "qos", "chain", "preemptive-rate-based"} <= set(hw.policies())


def test_the_version_is_the_projects() -> None:
    project = Path(__file__).parents[1] / "pyproject.toml"
    found = re.search(r'^version = "(.*)"$', project.read_text(), re.MULTILINE)
    assert found
    assert hw.__version__ == found[1]


@pytest.mark.parametrize("name", hw.__all__)
def test_every_name_is_loaded_when_it_is_used(name: str) -> None:
    assert name in dir(hw)
    assert callable(getattr(hw, name))


def test_dir_lists_public_names_only() -> None:
    import headway.cli.main  # noqa: F401 - modules that are loaded do not show either

    assert dir(hw) == sorted([*hw.__all__, "__version__"])


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="module 'headway' has no attribute 'nothing'"):
        _ = hw.nothing


def test_importing_the_package_loads_nothing_else() -> None:
    program = "import sys, headway; print([name for name in sys.modules if name.startswith('headway.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
