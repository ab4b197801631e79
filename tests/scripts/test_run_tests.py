"""Running all tests in parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import run_tests
from scripts.run_tests import ALONE, PROCESSES, SESSION, Part, parts, run


def test_every_file_is_in_exactly_one_part() -> None:
    first, second, *others = parts()
    assert (first, second) == (SESSION, PROCESSES)
    places = [Path(place) for part in others for place in part.arguments if place.startswith(str(run_tests.TESTS))]
    files = [file for place in places for file in ([place] if place.is_file() else place.rglob("test_*.py"))]
    assert sorted(files) == sorted(run_tests.TESTS.rglob("test_*.py"))


def test_parts_exclude_each_other() -> None:
    marks = {part.arguments[3] for part in parts() if "pytest" in part.arguments}
    which = ("session", "spark and not session", "not spark")  # what shares the session is on Spark
    assert marks == {f"{one} and not alone and not slow" for one in which}
    assert ALONE.arguments[3] == "alone and not slow"
    assert str(run_tests.TESTS / "experiments" / "test_quick.py") in ALONE.arguments
    assert str(run_tests.TESTS / "engines" / "spark" / "test_cluster.py") in PROCESSES.arguments


@pytest.mark.parametrize(
    ("text", "well"),
    [("def test_it(): pass", True), ("def test_it(): assert False", False), ("", True)],
    ids=["passes", "fails", "nothing to do"],
)
def test_a_part(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, well: bool) -> None:
    (tmp_path / "test_it.py").write_text(text)
    part = Part("some", ("-m", "pytest", "-c", "/dev/null", "--rootdir", str(tmp_path), str(tmp_path)))
    last = run(part, ["-p", "no:cacheprovider"])
    assert last is None if well else last is not None and "1 failed" in last
    assert capsys.readouterr().out.startswith(f"== some: {'passed' if well else 'FAILED'} after")


def test_the_end(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    begun: list[str] = []

    def pretend(part: Part, more: object) -> str | None:
        begun.append(part.name)
        return "1 failed" if part.name == "kernels" else None

    monkeypatch.setattr(run_tests, "run", pretend)
    assert run_tests.main([]) == 1
    assert begun[-1] == "alone"
    assert capsys.readouterr().out == "== the end of kernels, which FAILED\n1 failed\n\nFAILED: kernels\n"
