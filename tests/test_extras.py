"""Without an extra, what needs it says which one; everything else works."""

from __future__ import annotations

import json
import site
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from headway import extras
from headway.errors import RunError
from tests.cli.helpers import environment

ROOT = Path(__file__).parent.parent

WITHOUT = """
import importlib.util, sys

found = importlib.util.find_spec
hidden = sys.argv.pop(1).split(",")

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hide())
importlib.util.find_spec = lambda name, package=None: None if name in hidden else found(name, package)
from headway.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
"""A process that has nothing but the base: the libraries of the extras cannot be imported."""


def base(*words: object, hidden: str = "pyspark,matplotlib,pandas") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT, hidden, *map(str, words)]
    return subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=120)


def project() -> dict[str, dict[str, list[str]]]:
    made: dict[str, dict[str, list[str]]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return made


@pytest.mark.parametrize("engine", ["local", "sim"])
def test_the_base_runs(engine: str) -> None:
    done = base("run", "examples/query1/network.yaml", "--engine", engine)
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0)
    assert "alarms" in done.stdout


def test_spark_names_its_extra() -> None:
    done = base("run", "examples/query1/network.yaml")
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1] == (
        "headway: error: the engine 'spark' needs pyspark, which is not installed: pip install 'headway[spark]', "
        "in a clone '.[spark]'; "
        "the engines 'local' and 'sim' (--engine local) work without it"
    )


def test_experiments_name_their_extra_before_they_run() -> None:
    done = base("experiment", "prb-fig3", "--quick")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "headway: error: headway experiment needs matplotlib, which is not installed: pip install 'headway[plots]', "
        "in a clone '.[plots]'"
    ]


def test_experiments_are_a_package_of_their_own() -> None:
    done = base("experiment", "list", hidden="headway_experiments")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "headway: error: headway experiment needs the package headway_experiments, which is not installed: "
        "in a clone of Headway 'make setup' or 'pip install ./experiments'"
    ]


def test_compare_goes_without_a_plot(tmp_path: Path) -> None:
    done = base("compare", "examples/query1/network.yaml", "--policies", "qos,fifo", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["compare.csv", "compare.json"]
    assert "no plot: pip install 'headway[plots]'" in done.stdout


def test_every_extra_is_in_the_project() -> None:
    optional = project()["optional-dependencies"]
    for extra, library in extras.EXTRAS.items():
        assert any(line.startswith(library) for line in optional[extra])
        assert not any(line.startswith(library) for line in project()["dependencies"])


def test_type_checkers_find_an_editable_install() -> None:
    """They read path files, but do not run the import hooks that some build back ends install instead."""
    found = metadata.distribution("headway").read_text("direct_url.json")
    if found is None or not json.loads(found).get("dir_info", {}).get("editable"):
        pytest.skip("headway is not installed as editable here")
    paths = [path for folder in site.getsitepackages() for path in Path(folder).glob("*headway*.pth")]
    assert any(Path(line, "headway/py.typed").exists() for path in paths for line in path.read_text().splitlines())


def test_what_is_there_is_no_error() -> None:
    extras.need_extra("spark", "this test")


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(extras.EXTRAS, "plots", "no_such_library")
    assert not extras.has_extra("plots")
    with pytest.raises(RunError, match=r"x needs no_such_library.*headway\[plots\]', in a clone '\.\[plots\]'$"):
        extras.need_extra("plots", "x")
