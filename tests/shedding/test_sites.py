"""Where drop boxes can stand."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from hypothesis import given, settings

from headway.catalog import Topology
from headway.shedding.sites import Entry, Site, find_sites, nested
from tests.shedding.flows import Flow, flows, network


def found(inputs: list[list[int]], roots: list[int]) -> dict[tuple[int, ...], str]:
    """Return where the sites stand, by their outputs."""
    return {site.outputs: site.name for site in find_sites(network(inputs, roots), inputs)}


def test_an_output_with_boxes_of_its_own() -> None:
    # s0 -> b0 -> b1 -> o0: as far upstream as can be.
    inputs = [[-1], [0]]
    assert find_sites(network(inputs, [1]), inputs) == (Site("s0 -> b0", (0,), (Entry(0, 0, -1),)),)


def test_outputs_part_behind_a_shared_box() -> None:
    # s0 -> b0 -> b1 -> b2 -> o0 and b0 -> b3 -> o1.
    assert found([[-1], [0], [1], [0]], [2, 3]) == {(0, 1): "s0 -> b0", (0,): "b0 -> b1", (1,): "b0 -> b3"}


def test_outputs_that_share_all_their_boxes() -> None:
    assert found([[-1], [0]], [1, 1]) == {(0, 1): "s0 -> b0"}


def test_an_output_on_a_shared_box_has_no_site_of_its_own() -> None:
    # s0 -> b0 -> o0 and b0 -> b1 -> o1.
    assert found([[-1], [0]], [0, 1]) == {(0, 1): "s0 -> b0", (1,): "b0 -> b1"}


def test_an_output_on_a_source_has_no_site() -> None:
    assert found([[-1]], [-1, 0]) == {(1,): "s0 -> b0"}
    assert found([], [-1]) == {}


def test_all_ways_into_what_leads_to_an_output() -> None:
    # b2 reads b0, which others read, too, and the source s1.
    assert found([[-1], [0], [0, -2]], [1, 2]) == {(0, 1): "s0 -> b0", (0,): "b0 -> b1", (1,): "b0 -> b2, s1 -> b2"}


def test_a_source_that_two_boxes_read() -> None:
    # The arcs of one source part at the source: each output has its own site there.
    assert found([[-1], [-1]], [0, 1]) == {(0,): "s0 -> b0", (1,): "s0 -> b1"}


def test_two_inputs_from_one_box_are_two_entries() -> None:
    inputs = [[-1], [0], [0, 0]]
    (_, _, last) = find_sites(network(inputs, [1, 2]), inputs)
    assert last == Site("b0 -> b2", (1,), (Entry(2, 0, 0), Entry(2, 1, 0)))


def test_a_box_that_leads_nowhere_gives_no_site() -> None:
    assert found([[-1], [-1]], [0]) == {(0,): "s0 -> b0"}


def test_long_names_are_cut() -> None:
    assert found([[-1, -2, -3, -4, -5]], [0]) == {(0,): "s0 -> b0, s1 -> b0, s2 -> b0 and 2 more"}


def test_nested_sites_are_all_behind_however_far() -> None:
    # s0 -> b0 {0, 1, 2} -> b1 {0, 1} -> b2 {0}, b3 {1}; b0 -> b4 {2}.
    inputs = [[-1], [0], [1], [1], [0]]
    sites = find_sites(network(inputs, [2, 3, 4]), inputs)
    assert [site.outputs for site in sites] == [(0, 1, 2), (0, 1), (0,), (1,), (2,)]
    assert nested(sites, inputs) == ((1, 2, 3, 4), (2, 3), (), (), ())


def test_a_site_that_others_reach_on_other_ways_is_not_nested() -> None:
    # b2 reads b0, behind the site of both outputs, and s1, which is not.
    inputs = [[-1], [0], [0, -2]]
    sites = find_sites(network(inputs, [1, 2]), inputs)
    assert [site.outputs for site in sites] == [(0, 1), (0,), (1,)]
    assert nested(sites, inputs) == ((1,), (), ())


def test_ten_thousand_boxes_in_less_than_a_second() -> None:
    draw = random.Random(3)
    inputs: list[list[int]] = []
    roots: list[int] = []
    while len(inputs) < 10_000:
        top = len(inputs)
        inputs.append([-1 - draw.randrange(20)])
        for _ in range(3):
            inputs += [[top], [len(inputs), -1 - draw.randrange(20)]]
            roots.append(len(inputs) - 1)
    producers = tuple(tuple(one for one in some if one >= 0) for some in inputs)
    names = tuple(map(str, range(len(inputs))))
    outputs = tuple(f"o{at}" for at in range(len(roots)))
    made = Topology(names, tuple(f"s{at}" for at in range(20)), outputs, (), producers, (), (), tuple(roots))
    start = time.process_time()
    sites = find_sites(made, inputs)
    inner = nested(sites, inputs)
    assert time.process_time() - start < 1
    assert len(sites) == len(inner) > 5_000


def leads_to(flow: Flow, box: int) -> set[int]:
    """Return the outputs behind a box, naively."""
    readers = [at for at, some in enumerate(flow.inputs) if box in some]
    own = {output for output, root in enumerate(flow.roots) if root == box}
    return own.union(*(leads_to(flow, at) for at in readers))


def ways(flow: Flow, box: int) -> Iterator[list[tuple[int, int]]]:
    """Return all ways from a source to the results of a box, as inputs of boxes."""
    for place, one in enumerate(flow.inputs[box]):
        for way in ways(flow, one) if one >= 0 else [[]]:
            yield [*way, (box, place)]


@settings(deadline=None)
@given(flows())
def test_sites_are_where_outputs_part(flow: Flow) -> None:
    expected: dict[tuple[int, ...], set[Entry]] = {}
    for box, some in enumerate(flow.inputs):
        behind = leads_to(flow, box)
        for place, one in enumerate(some):
            if behind and (one < 0 or leads_to(flow, one) > behind):
                expected.setdefault(tuple(sorted(behind)), set()).add(Entry(box, place, one))
    assert {site.outputs: set(site.entries) for site in flow.sites} == expected
    assert len({site.name for site in flow.sites}) == len(flow.sites)


@settings(deadline=None)
@given(flows())
def test_on_every_way_sites_follow_with_fewer_outputs(flow: Flow) -> None:
    standing = {(one.consumer, one.place): at for at, site in enumerate(flow.sites) for one in site.entries}
    passed_by_all: list[set[int]] = [set(range(len(flow.sites))) for _ in flow.sites]
    for box in range(len(flow.inputs)):
        for way in ways(flow, box):
            passed = [standing[one] for one in way if one in standing]
            assert passed == sorted(set(passed)), "once each, and those around come first"
            if way[-1] in standing:
                passed_by_all[passed[-1]] &= set(passed[:-1])
            if leads_to(flow, box):
                assert passed, "nothing reaches an output that could not be dropped"
    expected = [{inner for inner, some in enumerate(passed_by_all) if at in some} for at in range(len(flow.sites))]
    assert [set(one) for one in flow.nested] == expected
