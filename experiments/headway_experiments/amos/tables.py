"""Tables 1 and 2: the queues of the running example, worked through by FIFO and by MTIQ.

The paper counts in fractions of tuples: 40 real tuples stand for one of its. It takes one tuple, and then what has
become of it, at a time: 40 tuples at Op1, 10 at Op2, 5 at Op3. A unit of time is a second here, and the run begins when
the first tuples arrive, which is at 1 in the tables. Tuples in process count as queued.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.clock import SECOND
from headway.engines.traces import Trace
from headway.runner import run
from headway.scheduling.policy import Plan, Policy, Step, make_policy
from headway.scheduling.snapshot import Snapshot
from headway_experiments.checks import Check
from headway_experiments.experiment import Task, register
from headway_experiments.plots import finish, line, panels
from headway_experiments.rows import Row, Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ONE = 40
"""Real tuples for one of the paper's."""
OPERATORS = {"op1": (0.5, 0.25), "op2": (1.0, 0.5), "op3": (2.0, 0.8)}
"""By operator: seconds for a tuple of the paper's, and selectivity."""
PORTIONS = {"op1": ONE, "op2": ONE // 4, "op3": ONE // 8}
"""By operator: how much it takes at a time, one of the paper's tuples or what is left of it."""
BURSTS, SIZE = 3, 2
"""Two tuples arrive at 1, 2 and 3."""
LABELS = {"fifo": "FIFO", "most-tuples": "MTIQ"}
STEP = 0.25
END = 8.0


class Line(NamedTuple):
    """A line of a table: the moment, tuples at the three operators and in all, and results so far."""

    time: float
    q1: float
    q2: float
    q3: float
    total: float
    throughput: float


TABLES = {
    "fifo": (
        Line(0, 0, 0, 0, 0, 0),
        Line(1, 2, 0, 0, 2, 0),
        Line(1.5, 1, 0.25, 0, 1.25, 0),
        Line(1.75, 1, 0, 0.125, 1.125, 0),
        Line(2, 3, 0, 0, 3, 0.1),
        Line(2.5, 2, 0.25, 0, 2.25, 0.1),
        Line(3, 4, 0, 0, 4, 0.2),
        Line(3.5, 3, 0.25, 0, 3.25, 0.2),
        Line(4, 3, 0, 0, 3, 0.3),
    ),
    "most-tuples": (
        Line(0, 0, 0, 0, 0, 0),
        Line(1, 2, 0, 0, 2, 0),
        Line(1.5, 1, 0.25, 0, 1.25, 0),
        Line(2, 2, 0.5, 0, 2.5, 0),
        Line(2.5, 1, 0.75, 0, 1.75, 0),
        Line(3, 2, 1, 0, 3, 0),
        Line(3.5, 1, 1.25, 0, 2.25, 0),
        Line(4, 1, 1, 0.125, 2.125, 0),
    ),
}
"""By policy: the lines that the paper prints."""
COLUMNS = {
    "q1": "the queue of the first operator",
    "q2": "the queue of the second operator",
    "q3": "the queue of the third operator",
    "total": "the tuples in all queues",
    "throughput": "the results so far",
}


@dataclass(frozen=True)
class Portions(Policy):
    """Any policy, with steps of a size that each box has of its own."""

    policy: Policy

    def start(self) -> Any:
        """Return the inner policy's memory."""
        return self.policy.start()

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        """Return the inner policy's plan with other sizes."""
        plan, memory = self.policy.plan(snapshot, memory)
        steps = [Step(unit, PORTIONS[snapshot.units[unit].name]) for unit, _ in plan.steps]
        return Plan(tuple(steps), plan.until), memory


def network() -> dict[str, Any]:
    """Return the example's network."""
    made = {"burst": {"size": SIZE * ONE, "every": "1s"}, "count": BURSTS * SIZE * ONE, "fields": {"a": 1}}
    boxes = {
        name: {"op": "universal", "in": before, "cost": cost / ONE, "selectivity": passing, "mode": "even"}
        for before, (name, (cost, passing)) in zip(("stream", *OPERATORS), OPERATORS.items(), strict=False)
    }
    return {
        "network": "tables",
        "sources": {"stream": {"schema": {"a": "int"}, "source": {"generate": made}}},
        "boxes": boxes,
        "outputs": {"results": {"from": "op3"}},
    }


def lines_of(trace: Trace, moments: Sequence[float]) -> list[Line]:
    """Return what the queues hold and what was delivered at each moment (of the tables), with all that happens then."""
    changes = [(1.0 + at, 0, SIZE * ONE) for at in range(BURSTS)]
    last = len(OPERATORS)
    for step in trace.steps:
        for call in step.calls:
            place, end = list(OPERATORS).index(trace.boxes[call.boxes[0]]), 1 + call.end / SECOND
            changes += [(end, place, -call.tuples_in), (end, place + 1, call.tuples_out)]
    found = []
    for moment in moments:
        held = [0] * (last + 1)
        for when, place, amount in changes:
            held[place] += amount if when <= moment + 1e-9 else 0
        q1, q2, q3, done = (one / ONE for one in held)
        found.append(Line(moment, q1, q2, q3, q1 + q2 + q3, done))
    return found


def measure(task: Task) -> list[Row]:
    """Run the example by one policy, and read off its queues every quarter of a unit."""
    policy = task["policy"]
    schedule = {"policy": Portions(make_policy(policy)), "unit": "box", "wait": "off"}
    result = run(network(), engine="sim", policy=schedule, outputs={"results": None}, trace=True)
    assert result.trace is not None
    moments = [at * STEP for at in range(int(END / STEP) + 1)]
    return [{"policy": policy, "seed": 1, **one._asdict()} for one in lines_of(result.trace, moments)]


def as_printed(rows: Rows, policy: str) -> list[Check]:
    """Check each column of a table, cell by cell."""
    found = {float(row["time"]): row for row in rows.where(policy=policy)}
    checks = []
    for column, what in COLUMNS.items():
        wrong = [
            f"at {one.time:g}: {found[one.time][column]:g} instead of {getattr(one, column):g}"
            for one in TABLES[policy]
            if abs(float(found[one.time][column]) - getattr(one, column)) > 1e-9
        ]
        many = len(TABLES[policy])
        evidence = f"{many - len(wrong)} of {many} cells are equal{': ' * bool(wrong)}{'; '.join(wrong)}"
        checks.append(Check(column, f"{LABELS[policy]}: {what} as printed, in each line.", not wrong, evidence))
    return checks


def first_result(rows: Rows) -> float:
    """Return the first moment of the grid at which something was delivered."""
    return min(float(row["time"]) for row in rows if float(row["throughput"]) > 0)


def most_at_once(rows: Rows) -> float:
    """Return the most results within one unit of time."""
    done = rows.values("throughput")
    wide = round(1 / STEP)
    return max(later - earlier for earlier, later in zip(done, done[wide:], strict=False))


def mean_total(rows: Rows, until: float) -> float:
    """Return the mean number of tuples in queues, up to a moment of the grid."""
    totals = [float(row["total"]) for row in rows if float(row["time"]) <= until]
    return sum(earlier for earlier, _ in pairwise(totals)) / (len(totals) - 1)


def check_fifo(rows: Rows) -> list[Check]:
    """Check table 1."""
    return as_printed(rows, "fifo")


def check_mtiq(rows: Rows) -> list[Check]:
    """Check table 2, and what the paper says of the difference."""
    fifo, mtiq = rows.where(policy="fifo"), rows.where(policy="most-tuples")
    queues = {name: mean_total(one, 4.0) for name, one in (("FIFO", fifo), ("MTIQ", mtiq))}
    firsts = {name: first_result(one) for name, one in (("FIFO", fifo), ("MTIQ", mtiq))}
    most = {name: most_at_once(one) for name, one in (("FIFO", fifo), ("MTIQ", mtiq))}

    def told(values: Mapping[str, float]) -> str:
        return ", ".join(f"{name} {value:.4g}" for name, value in values.items())

    return [
        *as_printed(rows, "most-tuples"),
        Check(
            "smaller",
            "MTIQ keeps fewer tuples in queues than FIFO.",
            queues["MTIQ"] < queues["FIFO"],
            f"mean until 4: {told(queues)}",
        ),
        Check(
            "later",
            "FIFO has its first result at 2; MTIQ has none for all of the table.",
            firsts["FIFO"] == 2 and firsts["MTIQ"] > TABLES["most-tuples"][-1].time,
            f"first result seen at: {told(firsts)}",
        ),
        Check(
            "bursty",
            "MTIQ's results come in larger bursts than FIFO's: more of them within one unit of time.",
            most["MTIQ"] > most["FIFO"],
            f"most results within a unit: {told(most)}",
        ),
    ]


def draw(rows: Rows, figure: Figure) -> None:
    """Plot queues and results over time; what the tables print as large marks."""
    left, right = panels(figure, 2)
    for at, policy in enumerate(rows.levels("policy")):
        own = rows.where(policy=policy)
        times = own.values("time")
        for axes, column in ((left, "total"), (right, "throughput")):
            line(axes, at, LABELS[policy], times, own.values(column), marker="", drawstyle="steps-post")
            printed = TABLES[policy]
            line(
                axes,
                at,
                f"{LABELS[policy]}, as printed",
                [one.time for one in printed],
                [float(getattr(one, column)) for one in printed],
                linestyle="",
            )
    finish(left, "time (units)", "tuples in queues")
    finish(right, "time (units)", "results so far (tuples)")


def tasks_fifo(quick: bool) -> list[Task]:
    """Return the one run."""
    return [{"policy": "fifo"}]


def tasks_both(quick: bool) -> list[Task]:
    """Return both runs."""
    return [{"policy": policy} for policy in TABLES]


register("amos-table1", engine="sim", tasks=tasks_fifo, measure=measure, check=check_fifo, draw=draw, size=(9, 3.6))
register("amos-table2", engine="sim", tasks=tasks_both, measure=measure, check=check_mtiq, draw=draw, size=(9, 3.6))
