"""Pausing boxes on Spark: every query that contains one waits, and nothing is lost."""

from __future__ import annotations

import pytest

import headway as hw
from headway.errors import RunError
from tests.engines.spark.test_changing import NETWORK, listed, make_rows, offline

pytestmark = pytest.mark.usefixtures("spark")


def test_a_paused_box_holds_its_query_and_no_other() -> None:
    rows = make_rows(600)
    with hw.start(NETWORK, engine="spark", train=50) as run:
        run.push("s", rows[:100])
        run.pause("counts")
        with pytest.raises(RunError, match="unknown box 'conts'; did you mean 'counts'"):
            run.pause("conts")
        run.push("s", rows[100:300])
        before = run.read("counts").num_rows
        while run.read("plain").num_rows < 10:
            run.push("s", [])
        assert run.read("counts").num_rows <= before + 20, "what was under way"
        assert run.step("counts", 5) <= 5
        with pytest.raises(RunError, match="cannot be looked at on the engine 'spark'"):
            run.arc("high")
        run.resume("counts")
        run.push("s", rows[300:])
        result = run.stop()
    assert {name: listed(result, name) for name in ("counts", "plain")} == offline(NETWORK, rows)
