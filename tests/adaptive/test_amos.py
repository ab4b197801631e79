"""AMoS: turns, samples, scores, switches and their reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.adaptive.amos import POLICIES, Amos, AmosMemory, make_amos
from headway.adaptive.layer import Switch, make_adaptive
from headway.adaptive.scoring import ORDER, Specification
from headway.clock import SECOND
from headway.errors import PolicyError
from headway.network.qos import Graph, QoS
from tests.adaptive.runs import PLAIN, Run, topology
from tests.searching import examples

LATENCY, QUEUE = ORDER.index("latency"), ORDER.index("queue")
TWO: dict[str, Any] = {"policies": ["fifo", "chain"], "objectives": "latency", "waiting": 0, "samples": 2}


def begin(settings: dict[str, Any], *qos: QoS) -> tuple[Amos, AmosMemory]:
    made = make_amos(settings)
    _, memory = made.start(topology(*(qos or (PLAIN,))), 0)
    return made, memory


def drive(
    settings: dict[str, Any], world: Callable[[int, float], dict[str, Any]], seconds: int
) -> tuple[list[int], list[Switch], AmosMemory]:
    """Let the layer run in a world: what happens by algorithm and time. Return who ran by second, and switches."""
    made, memory = begin(settings)
    run, current, ran, switches = Run(), 0, list[int](), list[Switch]()
    while run.now < seconds * SECOND:
        if run.now % SECOND == 0:
            ran.append(current)
        totals = run.go((made.next(memory) - run.now) / SECOND, **world(current, run.now / SECOND))
        actions, memory = made.look(totals, memory)
        for action in actions:
            assert isinstance(action, Switch)
            switches.append(action)
            current = action.policy
    return ran, switches, memory


def by_latency(*latencies: float) -> Callable[[int, float], dict[str, Any]]:
    """A world in which each algorithm has its own latency, with a little change over time."""
    return lambda algorithm, now: {"latency": latencies[algorithm] * (1 + 0.1 * (now % 3))}


def test_the_defaults() -> None:
    made = make_adaptive("amos", {})
    assert made.policies == POLICIES == ("round-robin", "fifo", "most-tuples", "chain")
    assert isinstance(made, Amos)
    assert (made.delay, made.decay) == (SECOND, 0.25)
    places, memory = made.start(topology(PLAIN, PLAIN), 5)
    assert places == (0, 0)
    assert made.next(memory) == 5 + SECOND // 4


def test_the_objective_by_default() -> None:
    good = QoS(latency=Graph(((0.0, 1.0), (1.0, 0.0))))
    assert begin({}, PLAIN)[1].specification == Specification.parse("latency")
    assert begin({}, PLAIN, good)[1].specification == Specification.parse("utility")
    assert begin({"objectives": "queue"}, good)[1].specification == Specification.parse("queue")


def test_at_first_each_has_a_turn_in_order() -> None:
    ran, switches, _ = drive({"learning": "roulette"}, by_latency(1, 1, 1, 1), 4)
    assert ran == [0, 1, 2, 3]
    assert [switch.policy for switch in switches[:3]] == [1, 2, 3]
    assert switches[0] == (None, 1, "fifo has its first turn")


def test_scores_of_two_turns_by_hand() -> None:
    made, memory = begin({**TWO, "settle": 0, "delay": "2s"})
    run = Run()
    for latency in (4, 8):
        assert made.next(memory) == run.now + SECOND
        actions, memory = made.look(run.go(1, latency=latency), memory)
    assert actions == (Switch(None, 1, "chain has its first turn"),)
    assert made.ranking(memory) == (1.0, None)
    for latency in (1, 3):
        actions, memory = made.look(run.go(1, latency=latency), memory)
    # History 4, 8, 1, 3: mean 4, range 7. Chain: 2, so z = -2/7. Fifo has its z of before.
    assert memory.scores[1] is not None
    assert memory.scores[1][LATENCY] == pytest.approx(-2 / 7)
    assert made.ranking(memory) == pytest.approx((1.0, 9 / 7))
    assert actions == ()  # chain stays
    for latency in (3, 3):
        actions, memory = made.look(run.go(1, latency=latency), memory)
    # Mean 22/6, range 7: (3 - 22/6) / 7 * 0.75 + -2/7 * 0.25.
    assert made.ranking(memory)[1] == pytest.approx(1 + 0.75 * 2 / 21 + 0.25 * 2 / 7)


@pytest.mark.parametrize(
    ("memory", "z"),
    [
        (3, (1 - 4 / 3) / 1),  # 1, 2, 1
        ("forever", (1 - 106 / 5) / 99),  # 100, 2, 1, 2, 1
    ],
)
def test_the_history_fades_or_not(memory: object, z: float) -> None:
    made, at = begin({**TWO, "policies": ["fifo"], "memory": memory, "window": 2, "samples": 1, "decay": 0})
    run = Run()
    for latency in (100, 2, 1, 2, 1):
        _, at = made.look(run.go(1, latency=latency), at)
    assert at.scores[0] is not None
    assert at.scores[0][LATENCY] == pytest.approx(z)


def test_the_first_samples_after_a_switch_do_not_count() -> None:
    made, memory = begin({**TWO, "settle": 0.5})
    run = Run()
    for latency in (1, 1, 90):
        _, memory = made.look(run.go(0.5, latency=latency), memory)
    assert memory.samples == ()
    _, memory = made.look(run.go(0.5, latency=2), memory)
    assert [past.synopsis.means[LATENCY] for past in memory.turns] == [1, 2]


def test_a_turn_seen_in_one_look_counts_as_a_whole() -> None:
    made, memory = begin({**TWO, "settle": 0.5})
    run = Run()
    _, memory = made.look(run.go(1, latency=1), memory)
    _, memory = made.look(run.go(7, latency=3), memory)
    assert [past.synopsis.means[LATENCY] for past in memory.turns] == [1, 3]
    assert made.next(memory) == 8 * SECOND + SECOND // 2


def test_looks_that_come_late_keep_the_turn_as_it_is() -> None:
    made, memory = begin({**TWO, "samples": 4})
    run = Run()
    _, memory = made.look(run.go(0.6), memory)
    assert made.next(memory) == 750_000_000
    assert made.look(run.go(0), memory) == ((), memory)


def test_idle_times_teach_nothing() -> None:
    made, memory = begin({**TWO, "policies": ["fifo", "chain"]})
    run = Run()
    for _ in range(6):
        actions, memory = made.look(run.go(0.5, delivered=0), memory)
        assert actions == ()
    assert (memory.number, memory.turns, memory.current) == (0, (), 0)
    for _ in range(2):
        actions, memory = made.look(run.go(0.5), memory)
    assert (memory.number, len(actions)) == (1, 1)


@pytest.mark.parametrize("learning", ["upper-confidence", "thompson"])
def test_the_best_has_nearly_all_turns(learning: str) -> None:
    ran, _, _ = drive({"learning": learning, "objectives": "latency"}, by_latency(2, 0.5, 1.5, 3), 120)
    assert Counter(ran)[1] > 100


def test_the_wheel_turns() -> None:
    ran, _, _ = drive({"learning": "roulette", "objectives": "latency"}, by_latency(2, 0.5, 1.5, 3), 120)
    assert all(Counter(ran)[at] > 10 for at in range(4))


def tension(algorithm: int, now: float) -> dict[str, Any]:
    """Fifo is quick, chain keeps queues short."""
    wave = 1 + 0.1 * (now % 3)
    return {"latency": (1, 5)[algorithm] * wave, "queue": (500, 100)[algorithm] * wave}


def test_a_timeline_changes_what_is_wanted() -> None:
    settings = {**TWO, "changes": [{"after": "40s", "objectives": "queue"}]}
    ran, switches, memory = drive(settings, tension, 80)
    assert Counter(ran[5:40])[0] > 28
    assert Counter(ran[45:])[1] > 28
    assert ran[41] == 1  # at once: what was learned is weighed anew
    told = [switch.reason for switch in switches if "now to" in switch.reason]
    assert len(told) == 1
    assert told[0].startswith("now to minimise queue (100 %): chain scores 1.")
    assert told[0].endswith(" tuples below the mean)")
    assert memory.changes == ()


def test_a_change_while_running_weighs_what_is_known_anew() -> None:
    _, _, memory = drive(TWO, tension, 30)
    made = make_amos(TWO)
    fifo, chain = made.ranking(memory)
    other = made.change({"objectives": {"queue": 1}}, memory)
    assert other.specification == Specification.parse("queue")
    assert other.scores == memory.scores
    assert memory.scores[1] is not None
    assert made.ranking(other)[1] == 1 - memory.scores[1][QUEUE]
    assert fifo is not None
    assert chain is not None
    assert fifo > chain
    assert made.change({}, memory) is memory


def test_a_change_that_is_wrong() -> None:
    made, memory = begin(TWO)
    with pytest.raises(PolicyError, match="amos: unknown setting to change 'delay'; choices: objectives"):
        made.change({"delay": "1s"}, memory)
    with pytest.raises(PolicyError, match="amos: objectives: unknown metric 'speed'"):
        made.change({"objectives": "speed"}, memory)


def test_a_reason_for_people() -> None:
    made, memory = begin({**TWO, "settle": 0, "neighbours": "all"})
    run = Run()
    for latency in (1, 1, 3, 3):
        actions, memory = made.look(run.go(0.5, latency=latency), memory)
    assert [action.reason for action in actions] == ["fifo scores 1.50, chain 0.50 (latency 1 s below the mean)"]


@examples(30)
@given(
    st.sampled_from(["roulette", "thompson", "upper-confidence"]),
    st.lists(st.tuples(st.floats(0.01, 3), st.integers(0, 50), st.floats(0, 100), st.floats(0, 1000)), max_size=60),
    st.integers(0, 5),
)
def test_whatever_happens_it_is_repeatable_and_in_bounds(
    learning: str, events: list[tuple[float, int, float, float]], seed: int
) -> None:
    def told() -> list[Any]:
        made, memory = begin({"learning": learning, "objectives": ["latency", "queue"], "seed": seed})
        run, seen = Run(), list[Any]()
        for seconds, delivered, latency, queue in events:
            actions, memory = made.look(run.go(seconds, delivered, latency, queue=queue, oldest=latency), memory)
            assert made.next(memory) > run.now
            assert len(actions) <= 1
            for action in actions:
                assert isinstance(action, Switch)
                assert action.policy == memory.current
            assert all(score is None or 0 < score < 2 for score in made.ranking(memory))
            seen.append((actions, memory.current, memory.scores))
        return seen

    assert told() == told()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy": []}, "amos: unknown setting 'policy'; did you mean 'policies'\\? choices: changes, decay, delay"),
        ({"policies": "fifo"}, "policies: must be a list of policies"),
        ({"policies": []}, "policies: must be a list of policies"),
        ({"policies": ["fifo", "fifa"]}, "amos: policies: unknown policy 'fifa'; did you mean 'fifo'"),
        ({"policies": ["fifo", "fifo"]}, "policies: 'fifo' is named more than once"),
        ({"objectives": {"latency": 0}}, "amos: objectives: latency: a weight"),
        (
            {"learning": "luck"},
            "amos: learning: unknown strategy 'luck'; choices: roulette, thompson, upper-confidence",
        ),
        ({"learning": 3}, "learning: must be the name of a strategy, not 3"),
        ({"delay": "soon"}, "amos: delay: 'soon' is not a duration"),
        ({"delay": 0}, "delay: must be more than 0, not 0"),
        ({"delay": None}, "delay: None is not a duration"),
        ({"decay": 0.5}, "decay: must be a number from 0 to below 0.5, not 0.5"),
        ({"settle": 1}, "settle: must be a number from 0 to below 1"),
        ({"waiting": -0.1}, "waiting: must be a number from 0 to below 1"),
        ({"window": 3}, "window: must be a whole number of at least 4, not 3"),
        ({"memory": "ever"}, "memory: must be a whole number of at least 1, or 'forever', not 'ever'"),
        ({"neighbours": 0}, "neighbours: must be a whole number of at least 1, or 'all', not 0"),
        ({"samples": True}, "samples: must be a whole number of at least 1, not True"),
        ({"seed": -1}, "seed: must be a whole number of at least 0"),
        ({"changes": {"after": 1}}, "changes: must be a list"),
        ({"changes": [{"after": "1s"}]}, "changes: each has the keys after, objectives"),
        ({"changes": [{"after": "1s", "objectives": []}]}, "amos: changes: objectives: there must be at least one"),
        ({"changes": [{"after": "x", "objectives": "queue"}]}, "changes: after: 'x' is not a duration"),
    ],
)
def test_errors_name_the_key_and_list_the_choices(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        make_amos(settings)


def test_seconds_may_be_plain_numbers() -> None:
    made = make_amos(
        {"delay": 0.25, "changes": [{"after": 9, "objectives": "queue"}, {"after": 3, "objectives": "memory"}]}
    )
    assert made.delay == SECOND // 4
    assert [change.after for change in made.changes] == [3 * SECOND, 9 * SECOND]
