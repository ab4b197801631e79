"""Fingerprints: what changes one, and what does not."""

from __future__ import annotations

import pytest

from headway.checking import CheckedNetwork, check
from headway.files import load
from headway.living.fingerprints import fingerprints, hashes
from headway.network.schema import Schema
from headway.structure import owner
from tests.networks import BORDER
from tests.test_points import LIVING, SECTORS


def checked(text: str) -> CheckedNetwork:
    return check(load(text), tables=SECTORS)


def differ(one: CheckedNetwork, other: CheckedNetwork) -> set[str]:
    before, after = fingerprints(one), fingerprints(other)
    return {name for name in before if before[name] != after[name]}


def test_saved_states_are_found_by_these() -> None:
    """They are the keys of stored states: a run of an older version continues only if they never change."""
    found = check(load(BORDER))
    boxes = [(box.name, box.spec, found.inputs[box.name]) for box in found.order]
    marks = hashes(found.network.sources, boxes)
    assert marks["across"].startswith("d000903a8ee3a0d3")
    assert marks["counts"].startswith("6b8354f9a41c9ef1")
    assert marks == fingerprints(found)
    assert hashes(found.network.sources, boxes, {"counts": " by ('sid',) over 4"})["names"].startswith(
        "71cd4c5d26a840d4"
    )


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ("pos >= 30", "pos >= 31", {"across", "counts", "named"}),
        ("size: 60", "size: 61", {"counts"}),
        ("sid: int", "sid: bigint", {"across", "counts", "named"}),
        ("positions: {s", "moves: {s", {"across", "counts", "named"}),
        ("in: crossings, select", "in: across, select", set()),
        ("keep: 100000", "keep: 1h", set()),
        ("keep: 1 day", "keep: 2 days", set()),
        ("sectors.txt", "other.txt", {"named", "once"}),
        ("once: {op", "twice: {op", {"once"}),
    ],
)
def test_what_changes_them(before: str, after: str, changed: set[str]) -> None:
    text = LIVING.replace("in: positions", "in: moves") if "moves" in after else LIVING
    text = text.replace("{from: once}", "{from: twice}") if "twice" in after else text
    new = checked(text.replace(before, after))
    was = fingerprints(checked(LIVING))
    now = fingerprints(new)
    assert {name for name in was if was[name] != now.get(name)} == changed


def test_schemas_and_digests_of_static_tables_count() -> None:
    one = checked(LIVING)
    other = check(load(LIVING), tables={"sectors": Schema.parse("sid int, area string")})
    assert differ(one, other) == {"named", "once"}
    plain, told = fingerprints(one), fingerprints(one, {"sectors": "abc"})
    assert {name for name in plain if plain[name] != told[name]} == {"named"}


def test_each_comes_after_those_that_it_reads() -> None:
    found = checked(LIVING)
    seen = {source.name for source in found.network.sources}
    for name in fingerprints(found):
        assert all(owner(item) in seen for item in found.inputs[name] if isinstance(item, str))
        seen.add(name)
