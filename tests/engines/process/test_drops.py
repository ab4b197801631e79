"""Load shedding in this process: what flows and waits in a network, and drop boxes on the ways into boxes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headway.clock import SECOND
from headway.engines.local.steps import StepRunner
from headway.kernels.windows import WindowKernel
from headway.scheduling.superboxes import box_units, superbox_units
from headway.shedding.sites import Entry
from headway.sieves import DropBox, Sieve
from tests.engines.overloads import Bench, box, network, output

FORK = network({"m": box("s"), "x": box("m"), "y": box("m")}, {"ox": output("x"), "oy": output("y")}, [["10s", 100]])
"""s -> m -> x -> ox and m -> y -> oy."""
ROUTES = network(
    {"r": {"op": "filter", "in": "s", "where": "a % 4 = 0"}, "x": box("r", "0s"), "y": box("r.else", "0s")},
    {"ox": output("x"), "oy": output("y")},
    [["10s", 100]],
)
"""A quarter of the tuples goes to x, the rest to y."""
ONE = np.ones(3)


def estimated(reads: str) -> dict[str, Any]:
    """Return a box that estimates counts."""
    order = {"order": {"on": "a"}, "size": 10}
    return {"op": "aggregate", "in": reads, "select": "count(*) as n", "approximate": True, **order}


def named(bench: Bench) -> dict[str, int]:
    return {site.name: at for at, site in enumerate(bench.drops.sites)}


def measured(made: dict[str, Any], **costs: float) -> Bench:
    """Return a bench whose boxes have cost this much for each of 100 tuples, all of which they let through."""
    bench = Bench(made)
    for name, cost in costs.items():
        bench.report(name, 100, 100, 100 * cost)
    return bench


def test_where_drop_boxes_can_stand() -> None:
    drops = Bench(FORK).drops
    assert [(site.name, site.outputs) for site in drops.sites] == [
        ("s -> m", (0, 1)),
        ("m -> x", (0,)),
        ("m -> y", (1,)),
    ]
    assert drops.sites[0].entries == (Entry(0, 0, -1),)
    assert drops.nested == ((1, 2), (), ())
    assert drops.way(Entry(1, 0, 0)) == Entry(1, 0, 0)


def _arrived(bench: Bench) -> list[int]:
    totals = bench.reading.totals(bench.clock.now())
    return [int(one) for one in totals.arrived + totals.overdue]


def test_what_arrives_and_waits() -> None:
    bench = Bench(FORK)
    assert bench.ingest.pressing
    assert _arrived(bench) == [0]
    bench.arrive(0.095)
    assert _arrived(bench) == [10]
    waiting, oldest = bench.reading.backlog()
    assert waiting.tolist() == [10, 0, 0]
    assert oldest[0] == 0
    StepRunner(bench.runtime, box_units(bench.runtime.topology)).run(0, 4)
    waiting, oldest = bench.reading.backlog()
    assert waiting.tolist() == [6, 4, 4]
    assert oldest.tolist() == [SECOND // 25, 0, 0]


def test_sources_that_come_in_turn_do_not_press() -> None:
    made = network({"b": box("s")}, {"o": output("b")})
    made["sources"]["s"]["source"]["generate"] = {
        "count": 5,
        "fields": {"a": {"sequence": [0, 1]}, "v": {"sequence": [0, 1]}},
    }
    assert not Bench(made).ingest.pressing


def test_what_flows_if_nothing_is_dropped() -> None:
    bench = measured(FORK, m=0.001, x=0.004, y=0.002)
    flow = bench.drops.look(0, np.array([100.0]), ONE)
    assert flow.box_load.tolist() == pytest.approx([0.1, 0.4, 0.2])
    assert [flow.load, flow.kept] == pytest.approx([0.7, 0.7])
    assert flow.rates.tolist() == [100, 100, 100]
    assert flow.costs.tolist() == pytest.approx([0.007, 0.004, 0.002])


def test_what_is_kept_of_it() -> None:
    bench = measured(FORK, m=0.001, x=0.004, y=0.002)
    for keep, kept in (([1, 0.5, 1], 0.5), ([0.5, 1, 1], 0.35), ([0.5, 0.5, 1], 0.25), ([0, 0.3, 0.2], 0.0)):
        flow = bench.drops.look(0, np.array([100.0]), np.array(keep, float))
        assert [flow.load, flow.kept] == pytest.approx([0.7, kept])


def test_boxes_that_let_some_through() -> None:
    bench = Bench(FORK)
    bench.report("m", 100, 25, 0.1)
    bench.report("x", 100, 100, 1.0)
    flow = bench.drops.look(0, np.array([200.0]), ONE)
    assert flow.box_load[:2].tolist() == pytest.approx([0.2, 0.5])
    assert flow.rates.tolist() == [200, 50, 50]
    assert flow.costs[0] == pytest.approx(0.001 + 0.25 * 0.01)


def test_a_backlog_is_work_until_everything_is_delivered() -> None:
    bench = measured(FORK, m=0.001, x=0.004, y=0.002)
    bench.arrive(0.095)
    flow = bench.drops.look(0, np.array([100.0]), ONE)
    assert flow.backlog == pytest.approx(10 * 0.007)
    assert flow.waiting.tolist() == [10, 0, 0]
    site = named(bench)["s -> m"]
    bench.drops.put(site, bench.drops.sites[site].entries[0], Sieve(0.5, 0))
    flow = bench.drops.look(0, np.array([100.0]), np.array([0.5, 1, 1]))
    assert flow.backlog == pytest.approx(5 * 0.007), "of what waits, half will be dropped"
    assert flow.waiting.tolist() == [10, 0, 0]
    bench.drops.put(site, bench.drops.sites[site].entries[0], None)
    assert bench.drops.look(0, np.array([100.0]), ONE).backlog == pytest.approx(10 * 0.007)


def test_costs_follow_what_boxes_cost_lately() -> None:
    bench = measured(FORK, m=0.001)
    assert bench.drops.look(0, np.array([100.0]), ONE).box_load[0] == pytest.approx(0.1)
    loads = []
    for at in range(1, 12):
        bench.report("m", 100, 100, 0.5)  # five times as much
        loads.append(float(bench.drops.look(at, np.array([100.0]), ONE).box_load[0]))
    assert loads == sorted(loads)
    assert loads[0] < 0.35
    assert loads[-1] > 0.45


def test_routes_divide_what_a_filter_makes() -> None:
    bench = Bench(ROUTES)
    bench.arrive(0.995)
    steps = StepRunner(bench.runtime, box_units(bench.runtime.topology))
    steps.run(0, 1000)
    bench.report("x", 100, 100, 1.0)
    bench.report("y", 100, 100, 1.0)
    bench.reading.learn_shares()
    flow = bench.drops.look(0, np.array([100.0]), ONE)
    assert flow.box_load[1:].tolist() == pytest.approx([0.25, 0.75])
    sites = named(bench)
    assert flow.rates[[sites["r -> x"], sites["r -> y"]]].tolist() == pytest.approx([25, 75])


def test_routes_divide_it_also_where_trains_are_handed_on() -> None:
    bench = Bench(ROUTES)
    steps = StepRunner(bench.runtime, superbox_units(bench.runtime.topology))
    bench.arrive(0.995)
    for unit, _ in enumerate(bench.checked.network.outputs):
        steps.run(unit, 1000)
    bench.reading.learn_shares()
    flow, sites = bench.drops.look(0, np.array([100.0]), ONE), named(bench)
    assert flow.rates[[sites["r -> x"], sites["r -> y"]]].tolist() == pytest.approx([25, 75])


def test_a_drop_box_comes_and_goes() -> None:
    bench = Bench(FORK)
    drops, entry, site = bench.drops, Entry(1, 0, 0), named(bench)["m -> x"]

    def standing() -> DropBox | None:
        found = bench.runtime.boxes[1].cursors[0].drop
        assert found is None or isinstance(found, DropBox)
        return found

    assert standing() is None
    drops.put(site, entry, Sieve(0.5, 1))
    made = drops.drop(entry)
    assert standing() is made
    assert made.sieve == Sieve(0.5, 1)
    drops.put(site, entry, Sieve(0.2, 1))
    assert standing() is made
    assert made.sieve == Sieve(0.2, 1)
    drops.put(site, entry, None)
    assert standing() is None
    assert drops.drop(entry) is made, "its counts stay"


@pytest.mark.parametrize("unit", ["box", "superbox"])
def test_how_many_tuples_have_come_to_an_entry(unit: str) -> None:
    """Superbox: trains that are handed on directly count, too."""
    made = network({"m": box("s", "0s"), "x": box("m", "0s")}, {"om": output("m"), "ox": output("x")}, [["1s", 100]])
    bench = Bench(made)
    topology = bench.runtime.topology
    units = box_units(topology) if unit == "box" else [one for one in superbox_units(topology) if len(one.boxes) == 2]
    steps = StepRunner(bench.runtime, units)
    bench.drops.put(named(bench)["m -> x"], Entry(1, 0, 0), Sieve(0.5, 1))
    bench.arrive(1)
    for at in range(len(units)):
        steps.run(at, 1000)
    drop = bench.drops.drop(Entry(1, 0, 0))
    assert drop.passed + drop.dropped.total() == 100
    assert (bench.sinks["om"].table.num_rows, bench.sinks["ox"].table.num_rows) == (100, drop.passed)
    assert bench.drops.seen(Entry(1, 0, 0)) == 100


def test_a_sample_of_what_came_lately() -> None:
    bench = Bench(network({"b": box("s")}, {"o": output("b")}, [["100s", 100]]))
    entry = Entry(0, 0, -1)
    assert bench.drops.sample(entry) is None
    bench.arrive(0.995)
    sample = bench.drops.sample(entry)
    assert sample is not None
    assert sample.numbers.tolist() == list(range(100))
    bench.runtime.boxes[0].cursors[0].take(1000)
    sample = bench.drops.sample(entry)
    assert sample is not None
    assert len(sample) == 100, "nothing waits now, but it is known what did"
    bench.arrive(60)
    sample = bench.drops.sample(entry)
    assert sample is not None
    came = sample.numbers.tolist()
    assert 4000 < len(came) <= 4096
    assert came == sorted(set(came)), "each once, in order"
    assert sample.columns[0].values.tolist() == came


def test_boxes_that_estimate_know_what_was_kept() -> None:
    counting = estimated("m")
    made = network(
        {"m": box("s"), "w": counting, "y": box("m")}, {"ow": output("w"), "oy": output("y")}, [["10s", 100]]
    )
    bench = Bench(made)
    kernel = bench.runtime.boxes[bench.runtime.index["w"]].kernel
    assert isinstance(kernel, WindowKernel)
    assert kernel.kept is not None
    first, second, third = (bench.drops.sites[named(bench)[name]].entries[0] for name in ("s -> m", "m -> w", "m -> y"))
    bench.arrive(0.995)  # 0 to 99 wait at m
    bench.drops.put(named(bench)["s -> m"], first, Sieve(0.5, 0))
    assert kernel.kept.shares(np.array([0, 99, 100])).tolist() == [0.5, 0.5, 0.5]
    StepRunner(bench.runtime, box_units(bench.runtime.topology)).run(0, 20)
    reached = bench.runtime.boxes[0].cursors[0].next_number()
    bench.drops.put(named(bench)["s -> m"], first, Sieve(0.25, 0))
    assert kernel.kept.shares(np.array([reached - 1, reached, 200])).tolist() == [0.5, 0.25, 0.25]
    bench.drops.put(named(bench)["m -> y"], third, Sieve(0.1, 2))
    assert kernel.kept.shares(np.array([200])).tolist() == [0.25], "that is on another way"
    waiting = bench.runtime.boxes[bench.runtime.index["w"]].cursors[0]
    waiting.take(5)
    waits = waiting.next_number()
    bench.drops.put(named(bench)["m -> w"], second, Sieve(0.5, 1))
    assert kernel.kept.shares(np.array([waits - 1, waits, reached])).tolist() == [0.5, 0.25, 0.125]
    bench.drops.put(named(bench)["s -> m"], first, None)
    bench.drops.put(named(bench)["m -> w"], second, None)
    assert kernel.kept.shares(np.array([500])).tolist() == [1.0]


def test_with_nothing_at_hand_a_share_counts_from_the_next_number_on() -> None:
    counting = estimated("s")
    bench = Bench(network({"w": counting}, {"o": output("w")}, [["10s", 100]]))
    kernel = bench.runtime.boxes[0].kernel
    assert isinstance(kernel, WindowKernel)
    assert kernel.kept is not None
    bench.arrive(0.095)
    bench.runtime.boxes[0].cursors[0].take(1000)
    bench.drops.put(0, Entry(0, 0, -1), Sieve(0.5, 0))
    assert kernel.kept.shares(np.array([9, 10])).tolist() == [1.0, 0.5]


def test_behind_other_boxes_a_share_counts_from_what_waits_before_them() -> None:
    counting = estimated("m")
    bench = Bench(network({"m": box("s"), "w": counting}, {"ow": output("w"), "om": output("m")}, [["10s", 100]]))
    kernel = bench.runtime.boxes[bench.runtime.index["w"]].kernel
    assert isinstance(kernel, WindowKernel)
    assert kernel.kept is not None
    bench.arrive(0.995)  # 0 to 99 wait at m, nothing at w
    bench.drops.put(named(bench)["m -> w"], Entry(1, 0, 0), Sieve(0.5, 1))
    assert kernel.kept.shares(np.array([0, 50, 100])).tolist() == [0.5, 0.5, 0.5]


def test_a_box_may_read_the_same_arc_twice() -> None:
    made = network({"m": box("s"), "u": {"op": "union", "in": ["m", "m"]}}, {"o": output("u"), "om": output("m")})
    bench = measured(made, m=0.001, u=0.002)
    flow = bench.drops.look(0, np.array([100.0]), np.ones(len(bench.drops.sites)))
    assert flow.box_load.tolist() == pytest.approx([0.1, 0.4])
    at = named(bench)["m -> u"]
    assert len(bench.drops.sites[at].entries) == 2
    assert flow.rates[at] == pytest.approx(200)
    assert flow.costs[at] == pytest.approx(0.002)


def test_the_effort_is_what_the_engine_says() -> None:
    bench = measured(FORK, m=0.001, x=0.004, y=0.002)
    bench.drops.look(0, np.array([100.0]), ONE)
    bench.busy, bench.reading.workers = 9 * SECOND // 10, 3
    # Of 3 workers 1.75 are of use at once, and there was nothing to wait for them: what was done was enough.
    found = bench.drops.look(SECOND, np.array([100.0]), ONE)
    assert (found.capacity, found.busy) == pytest.approx((1.75, 0))
    assert not found.pressed
    assert bench.reading.totals(0).delivered.tolist() == [0, 0, 0]
