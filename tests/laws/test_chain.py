"""Chain keeps queues small: Babcock et al., SIGMOD 2003.

The theorem: over streams with a row of boxes each, of which none lets more out than comes in, Chain never needs more
memory than any other policy, one that knows the future included, by more than a tuple for each row. It speaks of
tuples that shrink as boxes let less of them through, and of a scheduler that may change its mind at every moment.

Real tuples stay or go, and a call is not preempted. So here, as in the worked examples, many real tuples stand for
one of the theory's, and a step takes one of them. How far can that be from the theory, in real tuples?

- Of the tuples of the piece of the envelope that a row is in, one may be on its way: 1 for each row. That is all
  of the theorem's allowance that is needed, now that what is on its way is a real tuple.
- What a box lets through is rounded, here and there: 2 for each box that others read.
- While a call is under way, a steeper piece may wait: what the steepest sets free during the longest call, which is
  no more than the ratio of the largest to the smallest cost. This comes once, not with every call, because what is
  steeper is behind by no more than the rest of that call.

With many real tuples for one of the theory's all this is less than one of the theory's for each row, and the law is
tested as it is stated. Where tuples are few and calls differ much it does not hold: while Chain is in a call of
100 ms a hundred tuples may come that somebody who waited for them would have dropped in a millisecond each.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.clock import SECOND
from headway.scheduling.policy import Policy, make_policy
from tests.laws.helpers import Box, Net, Order, Sizes, by_box, totals
from tests.laws.strategies import EVERY, ends, laws, rows

MANY = 12
"""Real tuples for one of the theory's."""
HEAVIEST = 4
"""The ratio of the largest to the smallest cost."""


def scaled(boxes: Mapping[str, Box], seconds: Mapping[str, list[float]]) -> Net:
    """Return rows whose boxes cost seconds for a tuple of the theory's, which arrive at some seconds."""
    return Net(
        {source: [round(at * SECOND) for at in some for _ in range(MANY)] for source, some in seconds.items()},
        {name: Box(box.reads, 1000 * box.cost / MANY, box.selectivity) for name, box in boxes.items()},
        {f"o{at}": name for at, name in enumerate(ends(dict(boxes)))},
    )


def excess(net: Net, policy: str | Policy, other: str | Policy) -> int:
    """Return by how many real tuples a policy is above another one at most, over all moments."""
    runs = [totals(net, net.run(by_box(one, train=1))) for one in (policy, other)]
    moments = sorted({moment for some, _ in runs for moment in some})
    values = [np.array([0, *sizes])[np.searchsorted(some, moments, side="right")] for some, sizes in runs]
    return int((values[0] - values[1]).max(initial=0))


def allowance(boxes: Mapping[str, Box]) -> int:
    """Return what the docstring adds up to."""
    count, inner = len(ends(dict(boxes))), len(boxes) - len(ends(dict(boxes)))
    return count + 2 * inner + HEAVIEST


def test_many_real_tuples_are_enough() -> None:
    longest = {f"r0x{at}": Box((f"r0x{at - 1}" if at else "s0",), 1) for at in range(3)}
    assert allowance(longest) <= MANY


OTHERS = tuple(policy for policy in EVERY if policy != "chain")

bursts = st.lists(st.tuples(st.integers(0, 24), st.integers(1, 3)), min_size=1, max_size=2)
"""When tuples of the theory's arrive, in quarters of a second, and how many."""


@laws(12)
@given(boxes=rows(alike=False, heaviest=HEAVIEST), data=st.data())
def test_no_policy_needs_less_memory_by_more_than_a_tuple_for_each_row(
    boxes: dict[str, Box], data: st.DataObject
) -> None:
    count = len(ends(boxes))
    drawn = {f"s{at}": sorted(data.draw(bursts)) for at in range(count)}
    net = scaled(boxes, {name: [at / 4 for at, many in some for _ in range(many)] for name, some in drawn.items()})
    fixed = Order(tuple(data.draw(st.permutations(list(boxes)))))
    found = excess(net, "chain", data.draw(st.sampled_from((fixed,) * len(OTHERS) + OTHERS)))
    assert found <= allowance(boxes)
    assert found <= MANY * count


def test_a_burst_goes_through_a_piece_tuple_by_tuple() -> None:
    # Nothing is freed before the last box; who lets all tuples into the row first has twice as many as round robin.
    boxes = {"a": Box(("s",), 1), "b": Box(("a",), 1), "c": Box(("b",), 1, 0.0)}
    net = scaled(boxes, {"s": [0, 0, 0]})
    for other in ("round-robin", "fifo", "path-capacity", "rate-based"):
        assert excess(net, "chain", other) == 0


def test_a_box_is_worth_what_it_leads_to() -> None:
    # a and b free a tuple in 2 s, c one in 4 s, but a alone frees nothing: who looks at single boxes begins with c.
    boxes = {"a": Box(("s",), 1), "b": Box(("a",), 1, 0.0), "c": Box(("r",), 4, 0.0)}
    net = scaled(boxes, {"s": [0, 0, 0], "r": [0, 0, 0]})
    greedy = Order(("b", "c", "a"))
    assert excess(net, "chain", greedy) == 0
    assert excess(net, greedy, "chain") == pytest.approx(1.5 * MANY, abs=HEAVIEST)  # 3 against 6/4 after 6 s


def test_others_do_need_more() -> None:
    # A row that frees much at once, and one that frees little: first in, first out lets the first one wait.
    boxes = {"a": Box(("s",), 1, 0.1), "b": Box(("a",), 4), "c": Box(("r",), 4, 0.9), "d": Box(("c",), 4)}
    net = scaled(boxes, {"s": [0.5, 1, 1.5, 2], "r": [0, 0, 0, 0]})
    for other in ("fifo", "round-robin"):
        assert excess(net, other, "chain") > 2 * MANY
        assert excess(net, "chain", other) <= allowance(boxes)


def test_the_example_of_the_theory() -> None:
    # A box leaves a fifth of a tuple in a second, the next one needs another second for the rest. A tuple comes each
    # second. By hand, first in first out: 1, .2 + 1, 0 + 1 + 1, .2 + 1 + 1, 0 + 1 + 1 + 1. Chain: a fifth each time.
    many = 40
    moments = [at * SECOND for at in range(5) for _ in range(many)]
    boxes = {"first": Box(("s",), 1000 / many, 0.2), "second": Box(("first",), 5000 / many, 1.0)}
    net = Net({"s": moments}, boxes, {"out": "second"})
    for name, expected in (("chain", [1, 1.2, 1.4, 1.6, 1.8]), ("fifo", [1, 1.2, 2.0, 2.2, 3.0])):
        theory = Sizes(make_policy(name), {"first": many, "second": many // 5})
        at, sizes = totals(net, net.run(by_box(theory)))
        found = [sizes[int(np.searchsorted(at, second * SECOND, side="right")) - 1] / many for second in range(5)]
        assert found == pytest.approx(expected), name
