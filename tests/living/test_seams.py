"""Whatever is attached, detached and changed while a network runs: results are those of the reference.

Everything up to a seam's number by the network as it was, everything after it by the network as it is then; what no
change has touched is the same, to the last bit, as in a run without any.
"""

from __future__ import annotations

import importlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.living.driving import Drive
from tests.searching import examples
from tests.streams import RANDOM_POLICY

if RANDOM_POLICY:
    importlib.import_module("tests.policies")

SEAMS = 1_000
"""The seams of the long form, on each engine."""


engines = pytest.mark.parametrize("engine", ["local", "sim"])


@engines
@examples(60)
@given(seed=st.integers(0, 1 << 30), boxes=st.integers(1, 7), steps=st.integers(1, 14))
def test_a_changing_network_does_what_the_reference_does(engine: str, seed: int, boxes: int, steps: int) -> None:
    Drive(seed, boxes, steps, engine).go()


@pytest.mark.slow
@engines
def test_a_thousand_seams(engine: str) -> None:
    seams = untouched = seed = 0
    while seams < SEAMS or seed < 300:
        drive = Drive(seed, 1 + seed % 7, 2 + seed % 17, engine)
        try:
            seams += drive.go()
        except BaseException as error:
            error.add_note(f"Drive({seed}, {drive.boxes}, {drive.steps}, {engine!r})")
            raise
        untouched += drive.untouched
        seed += 1
    assert engine == "sim" or untouched > 50
