"""AMoS: give algorithms turns, score them by the user's objectives, and learn which to use.

Sutherland, Zhu, Ding and Rundensteiner, "An Adaptive Multi-Objective Scheduling Selection Framework for Continuous
Query Processing" (IDEAS 2005), section 3. A turn lasts as long as the delay threshold. It is measured by several
samples, of which a synopsis is kept. When it ends, the algorithm's statistics scores (equation 1) are updated, and a
learning strategy chooses the next algorithm. At first every algorithm gets one turn, in the order listed.

Statistics are kept for all metrics, used or not, so that another specification needs no relearning.

Extensions of the paper; the values in brackets give the paper's behaviour:
- The first samples after a switch do not count (`settle: 0`): they show the effects of the previous algorithm.
- Samples during which nothing waited and nothing was delivered do not count, nor do turns with only such samples.
- Tuples that still wait count as late (`waiting: 0`): see `scoring`.
- The history of equation 1 is limited to the last turns (`memory: forever`).
- Learning strategies other than the wheel (`learning: roulette`) get the last turns (`window`) with rewards, each
  relative to the neighbouring turns (`neighbours`): see `scoring.rewarded`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from headway.adaptive.goals import MEASURES
from headway.adaptive.layer import Action, Interval, Switch, register_adaptive
from headway.adaptive.learning import Learning, Standing, UpperConfidence, make_learning
from headway.adaptive.scoring import (
    ORDER,
    Past,
    Specification,
    Statistics,
    Synopsis,
    Worth,
    algorithm_score,
    idle,
    measure,
    rewarded,
    statistics_scores,
)
from headway.catalog import Topology
from headway.clock import SECOND
from headway.errors import PolicyError, within
from headway.options.settings import number, positive_time, read_settings, whole
from headway.scheduling.schedule import make_scheduler
from headway.totals import Totals

POLICIES = ("round-robin", "fifo", "most-tuples", "chain")
"""The algorithms of the paper's experiments."""
FOREVER = "forever"
ALL = "all"


class SpecificationChange(NamedTuple):
    """A specification that takes effect at a moment, in nanoseconds since the start of the run."""

    after: int
    specification: Specification


@dataclass(frozen=True, slots=True, eq=False)
class AmosMemory:
    """The layer's memory of a run."""

    specification: Specification
    worth: Worth
    began: int
    """The start of the run."""
    current: int
    """The algorithm whose turn it is."""
    turn_began: int
    fresh: bool
    """Whether another algorithm had the previous turn."""
    last: Totals
    """The totals at the end of the last sample."""
    next: int
    samples: tuple[Statistics, ...]
    """The samples of this turn that count."""
    number: int
    """How many turns have ended."""
    turns: tuple[Past, ...]
    """The last turns, the oldest first."""
    history: Synopsis | None
    """The synopsis of all samples, if history is unlimited."""
    scores: tuple[Statistics | None, ...]
    """By algorithm: z of each metric (equation 1), as of its last turn."""
    changes: tuple[SpecificationChange, ...]
    """The pending changes, the next one first."""


@dataclass(frozen=True, slots=True)
class Amos:
    """The layer, with its settings."""

    policies: tuple[str, ...] = POLICIES
    specification: Specification | None = None
    """None: utility if any output has a latency graph, else latency."""
    learning: Learning = UpperConfidence()  # noqa: RUF009 (frozen)
    delay: int = SECOND
    """The length of a turn, in nanoseconds."""
    decay: float = 0.25
    window: int = 100
    """The number of turns that a learning strategy gets."""
    memory: int | None = 100
    """The number of turns in the history of equation 1; None: all."""
    samples: int = 4
    """Samples per turn."""
    settle: float = 0.25
    """The share of a turn that does not count after a switch."""
    waiting: float = 0.5
    """The weight of the oldest waiting tuple in a sample's latency and utility."""
    neighbours: int | None = 2
    """The number of turns on each side that a turn is compared with; None: all of the window."""
    seed: int = 0
    changes: tuple[SpecificationChange, ...] = ()

    def start(self, topology: Topology, now: int) -> tuple[tuple[int, ...], AmosMemory]:
        """Start with the first algorithm for all outputs."""
        outputs, worth = len(topology.outputs), Worth.of(topology.qos)
        memory = AmosMemory(
            self.specification or Specification.parse("utility" if worth.graphs else "latency"),
            worth=worth,
            began=now,
            current=0,
            turn_began=now,
            fresh=False,
            last=Totals.at_start(now, outputs),
            next=now + self._until(0),
            samples=(),
            number=0,
            turns=(),
            history=None,
            scores=(None,) * len(self.policies),
            changes=self.changes,
        )
        return (0,) * outputs, memory

    def next(self, memory: AmosMemory) -> int:
        """Return when the next sample ends."""
        return memory.next

    def look(self, totals: Totals, memory: AmosMemory) -> tuple[tuple[Action, ...], AmosMemory]:
        """Take a sample; at the end of a turn, score the algorithm and choose the next one."""
        if totals.now <= memory.last.now:
            return (), memory
        interval, age = Interval(memory.last, totals), totals.now - memory.turn_began
        ended = age >= self.delay
        settling = memory.fresh and memory.last.now - memory.turn_began < self.settle * self.delay
        counts = not idle(interval) and (not settling or (ended and not memory.samples))
        samples = (*memory.samples, measure(interval, self.waiting, memory.worth)) if counts else memory.samples
        if not ended:
            return (), replace(memory, last=totals, samples=samples, next=memory.turn_began + self._until(age))
        began = replace(
            memory, last=totals, samples=(), turn_began=totals.now, next=totals.now + self._until(0), fresh=False
        )
        if not samples:
            return (), self._changed(began)
        return self._choose(self._changed(self._scored(began, Synopsis.of(samples))), memory.specification)

    def change(self, settings: Mapping[str, Any], memory: AmosMemory) -> AmosMemory:
        """Return the memory with other ``objectives``; statistics are kept, and weighted by the new objectives."""
        with within("amos"):
            read = read_settings(settings, {"objectives": Specification.parse}, "setting to change")
        return replace(memory, specification=read["objectives"]) if read else memory

    def ranking(self, memory: AmosMemory) -> tuple[float | None, ...]:
        """Return by algorithm its score (equation 2) under the current specification; None before its first turn."""
        return tuple(None if z is None else algorithm_score(z, memory.specification) for z in memory.scores)

    def _until(self, age: int) -> int:
        """Return the age of a turn at which the next sample after `age` ends."""
        done = age * self.samples // self.delay
        return -(-(done + 1) * self.delay // self.samples)

    def _changed(self, memory: AmosMemory) -> AmosMemory:
        """Return the memory with due changes of the specification applied."""
        due = [change for change in memory.changes if change.after <= memory.last.now - memory.began]
        if not due:
            return memory
        return replace(memory, specification=due[-1].specification, changes=memory.changes[len(due) :])

    def _scored(self, memory: AmosMemory, turn: Synopsis) -> AmosMemory:
        """Return the memory with a turn of the current algorithm added."""
        keep = max(self.window, self.memory or 0)
        turns = (*memory.turns, Past(memory.current, turn))[-keep:]
        if self.memory is None:
            history = forever = turn if memory.history is None else Synopsis.merged((memory.history, turn))
        else:
            history, forever = Synopsis.merged([past.synopsis for past in turns[-self.memory :]]), None
        scores = list(memory.scores)
        scores[memory.current] = statistics_scores(turn, history, scores[memory.current], self.decay)
        return replace(memory, number=memory.number + 1, turns=turns, history=forever, scores=tuple(scores))

    def _choose(self, memory: AmosMemory, before: Specification) -> tuple[tuple[Action, ...], AmosMemory]:
        """Return the switch to the next algorithm, if it is a different one."""
        window = memory.turns[-self.window :]
        scores = [score for score in self.ranking(memory) if score is not None]
        if len(scores) < len(self.policies):
            chosen = memory.scores.index(None)
            reason = f"{self.policies[chosen]} has its first turn"
        else:
            turns = rewarded(window, memory.specification, self.neighbours)
            chosen, why = self.learning.choose(Standing(self.policies, tuple(scores), turns, memory.number, self.seed))
            reason = f"{self.policies[chosen]} {why}{_details(chosen, window, memory.specification)}"
        if chosen == memory.current:
            return (), memory
        if memory.specification != before:
            reason = f"now to {memory.specification}: {reason}"
        return (Switch(None, chosen, reason),), replace(memory, current=chosen, fresh=True)


def _details(chosen: int, window: Sequence[Past], specification: Specification) -> str:
    """Return in brackets how far the algorithm's turns are from the mean of all turns, for each objective."""
    own = [turn for algorithm, turn in window if algorithm == chosen]
    if not own:
        return ""
    means, every = Synopsis.merged(own).means, Synopsis.merged([turn for _, turn in window]).means
    parts = []
    for wish in sorted(specification.objectives, key=lambda wish: -wish.weight):
        apart = means[ORDER.index(wish.metric)] - every[ORDER.index(wish.metric)]
        side = "above" if apart > 0 else "below"
        parts.append(f"{wish.metric} {MEASURES[wish.metric].write(abs(apart))} {side} the mean")
    return f" ({', '.join(parts)})"


def _policies(value: object) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise PolicyError(f"must be a list of policies, such as [fifo, chain], not {value!r}")
    names = tuple(str(name) for name in value)
    for name in names:
        make_scheduler(name)
        if names.count(name) > 1:
            raise PolicyError(f"'{name}' is named more than once")
    return names


def _changes(value: object) -> tuple[SpecificationChange, ...]:
    """Parse a timeline such as ``[{after: 60s, objectives: {latency: 1}}]``."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise PolicyError(f"must be a list, such as [{{after: 60s, objectives: ...}}], not {value!r}")
    changes = []
    for item in value:
        if not isinstance(item, Mapping) or set(item) != {"after", "objectives"}:
            raise PolicyError(f"each has the keys after, objectives, and no others; got {item!r}")
        read = read_settings(item, {"after": positive_time, "objectives": Specification.parse})
        changes.append(SpecificationChange(read["after"].nanoseconds, read["objectives"]))
    return tuple(sorted(changes, key=lambda change: change.after))


def _learning(value: object) -> Learning:
    if not isinstance(value, str):
        raise PolicyError(f"must be the name of a strategy, not {value!r}")
    return make_learning(value)


_below_one = number("from 0 to below 1", lambda share: 0 <= share < 1)

_READERS: Mapping[str, Callable[[Any], Any]] = {
    "policies": _policies,
    "objectives": lambda value: None if value is None else Specification.parse(value),
    "learning": _learning,
    "delay": lambda value: positive_time(value).nanoseconds,
    "decay": number("from 0 to below 0.5", lambda share: 0 <= share < 0.5),
    "window": whole(1),
    "memory": lambda value: None if value == FOREVER else whole(1, f", or '{FOREVER}'")(value),
    "samples": whole(1),
    "settle": _below_one,
    "waiting": _below_one,
    "neighbours": lambda value: None if value == ALL else whole(1, f", or '{ALL}'")(value),
    "seed": whole(0),
    "changes": _changes,
}
"""By key: the reader of its value."""


def make_amos(settings: Mapping[str, Any]) -> Amos:
    """Make the layer from a mapping of settings; all have defaults. Raises a PolicyError that names the key."""
    with within("amos"):
        read = read_settings(settings, _READERS)
        if "objectives" in read:
            read["specification"] = read.pop("objectives")
        made = Amos(**read)
        with within("window"):
            whole(len(made.policies))(made.window)
    return made


register_adaptive(
    "amos",
    make_amos,
    "gives policies turns, scores them by weighted objectives, and learns which to use",
    "Sutherland et al., IDEAS 2005",
)
