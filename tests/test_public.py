"""The public names: loaded when they are used, and all of them there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import headway


@pytest.mark.parametrize("name", headway.__all__)
def test_every_name_is_there(name: str) -> None:
    assert name in dir(headway)
    assert callable(getattr(headway, name))


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="module 'headway' has no attribute 'nothing'"):
        _ = headway.nothing


def test_importing_the_package_loads_nothing_else() -> None:
    program = "import sys, headway; print([name for name in sys.modules if name.startswith('headway.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
