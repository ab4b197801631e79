"""Options of the engine ``spark``: what they take, and who refuses them. Nothing here starts Spark."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from headway.cli.arguments import READERS, UsageError, add_options, of_run
from headway.engines.spark.driver.cut import CUTS, SPREADS
from headway.engines.spark.driver.cut import FRONTS as ENGINE_FRONTS
from headway.options.kinds import FRONTS, SPREAD_RULES, UNIT_RULES
from headway.options.table import CUT_KEYS
from tests.cli.helpers import assert_one_error, call


def test_the_rules_are_those_of_the_engine() -> None:
    assert tuple(CUTS) == UNIT_RULES
    assert tuple(SPREADS) == SPREAD_RULES
    assert tuple(ENGINE_FRONTS) == FRONTS


def test_the_help_tells_every_rule() -> None:
    parser = argparse.ArgumentParser()
    add_options(parser, {"": of_run(*CUT_KEYS)})
    told = " ".join(parser.format_help().split())
    for rule in (*UNIT_RULES, *SPREAD_RULES, *FRONTS):
        assert f"'{rule}'" in told


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10 minutes", 600), ("1h30m", 5400), ("250ms", 0.25)])
def test_durations(text: str, seconds: float) -> None:
    assert READERS["duration"](text) == seconds


def test_spread() -> None:
    spread = READERS["spread"]
    assert spread("auto") == "auto"
    assert spread("none") == "none"
    assert spread("a, b") == ["a", "b"]
    with pytest.raises(UsageError, match="auto, none"):
        spread("a,,b")


@pytest.mark.parametrize(
    "option",
    [
        ("--master", "local[2]"),
        ("--state", "dir"),
        ("--keep", "1h"),
        ("--restart", "counts"),
        ("--units", "one"),
        ("--spread", "none"),
        ("--shards", "4"),
        ("--front", "kernels"),
        ("--conf", "spark.driver.memory=1g"),
    ],
)
def test_other_engines_refuse_them(folder: Path, capsys: pytest.CaptureFixture[str], option: tuple[str, str]) -> None:
    outcome = call(capsys, "run", "border.yaml", "--engine", "local", "--input", "positions=day.csv", *option)
    assert_one_error(outcome, option[0], "'spark'", "'local'")
    assert not (folder / "dir").exists()


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (("--keep", "soon"), ("--keep", "'soon'", "10 minutes")),
        (("--keep", "5"), ("--keep", "'5'", "units: w, d, h")),
        (("--keep", "1h"), ("--keep", "--state DIR")),
        (("--restart", "counts"), ("--restart", "--state DIR")),
        (("--restart", "count", "--state", "dir"), ("--restart", "did you mean 'counts'")),
        (("--units", "qso"), ("--units", "'qos'", "'one'", "'output'")),
        (("--spread", ","), ("--spread", "auto, none")),
        (("--shards", "0"), ("--shards", "above 0")),
    ],
)
def test_mistakes(
    folder: Path, capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    outcome = call(capsys, "run", "border.yaml", "--engine", "spark", "--input", "positions=day.csv", *argv)
    assert_one_error(outcome, *expected)
    assert not (folder / "dir").exists()
