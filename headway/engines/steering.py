"""Steering: observes a run and adjusts it, apart from the policy, which decides what runs next.

An engine calls `look` when the time `next` is reached. Steering may watch outputs and load (the QoS monitor), insert
and adjust drop boxes (the load shedder), and move queries from one policy to another (an adaptive layer).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from operator import index
from typing import Any

import numpy as np

from headway.adaptive.layer import Adaption, ShedOutput, Switch
from headway.adaptive.master import Master
from headway.catalog import BoxReadings
from headway.clock import MILLISECOND, SECOND
from headway.columns import NEVER, Floats
from headway.engines.monitor import Monitor, Reach, Sheddable
from headway.engines.reading import Reading
from headway.engines.runs import RunSettings
from headway.engines.shedder import Shedder
from headway.engines.traces import ChangeLog, Recorder
from headway.errors import HeadwayError, RunError, blaming
from headway.scheduling.bounded import Bounded
from headway.scheduling.policy import Policy
from headway.totals import SYSTEM, Spent, Totals

_SAMPLES = 16
"""Queue samples between two looks of the layer; mean queue lengths are averages over them."""
_LEAST = MILLISECOND
_LARGE = 2_000
"""Boxes and outputs at which a look costs about a hundredth of the shortest interval."""


class Steering:
    """Coordinates monitor, load shedder and adaptive layer. Used by the scheduler thread."""

    def __init__(
        self,
        settings: RunSettings,
        policy: Policy,
        reading: Reading,
        drops: Sheddable,
        now: int,
        recorder: Recorder | None,
        before: Steering | None = None,
    ) -> None:
        """Start watching; `policy` is the one the engine asks, a Master if a layer may change policies.

        After a seam, what has happened `before` still counts.
        """
        self._settings = settings
        self._policy, self._recorder = policy, recorder
        self._reading = reading
        self._log: ChangeLog = ChangeLog(now, recorder) if before is None else before._log
        old: Shedder | None = None if before is None else before._shedder
        self._shedder: Shedder = Shedder(settings.shed, reading, drops, self._log, settings.tables, old)
        self._interval = self._shedder.settings.interval.nanoseconds
        # A look at a large network takes time; a run that only monitors can do it less often still.
        size = len(reading.topology.boxes) + len(reading.topology.outputs)
        self._interval *= max(1, size // (3 * _LARGE if settings.may_shed else _LARGE))
        self._monitor = Monitor(reading, drops, self._log, now, self._shedder.settings.headroom)
        if before is not None:
            self._monitor.count_on(before._monitor)
        self._observe_at = now + self._interval
        self._adapting: Adapting | None = None
        if settings.adaptive is not None:
            self._adapting = Adapting(settings.adaptive, policy, reading, self._log, now)
        self.next = self._observe_at
        self._plan_next()

    def follow(self, reading: Reading, drops: Sheddable, now: int, tables: Mapping[str, Any] | None = None) -> Steering:
        """Return the steering for the network after a seam, and with other static tables."""
        return Steering(replace(self._settings, tables=tables), self._policy, reading, drops, now, self._recorder, self)

    @property
    def workers(self) -> int:
        """The most steps that may be under way at once."""
        return self._reading.workers

    def begin(self, memory: Any) -> Any:
        """Return the policy's initial memory for this run."""
        return memory if self._adapting is None else self._adapting.begin(memory)

    @property
    def active(self) -> bool:
        """Whether looks must continue even if nothing happens, because tuples are being dropped."""
        return self._shedder.active

    def look(self, now: int, memory: Any) -> Any:
        """Observe the run and make changes where needed; return the policy's memory."""
        forced: frozenset[int] = frozenset()
        if self._adapting is not None:
            if now >= self._adapting.next:
                memory = self._adapting.look(now, memory)
            forced = self._adapting.shedding
        if now >= self._observe_at:
            self._shedder.look(self._monitor.look(now, self._shedder.keep, forced), forced)
            self._observe_at = now + self._interval
        self._plan_next()
        return memory

    def specify(self, wanted: Mapping[str, Any], now: int) -> None:
        """Give the layer, if there is one, another specification; an invalid one is only logged."""
        if self._adapting is None:
            return
        try:
            self._adapting.change(wanted)
        except HeadwayError as error:
            self._log.add(now, "switch", "run", "specification refused", str(error))
        else:
            told = ", ".join(f"{key}: {value}" for key, value in wanted.items())
            self._log.add(now, "switch", "run", f"another specification: {told}", "the user wants it")

    def takes(self, what: str, now: int, refused: str | None = None) -> bool:
        """Log a command; return whether it is obeyed: not if there is a reason to refuse it."""
        self._log.add(now, "command", "run", f"{what} refused" if refused else what, refused or "by command")
        return not refused

    @property
    def adapts(self) -> bool:
        """Whether an adaptive layer chooses the policies."""
        return self._adapting is not None

    def shed(self, active: bool, now: int) -> None:
        """Turn load shedding on or off."""
        refused = None if self._settings.may_shed else "the run was started without it"
        if self.takes(f"load shedding {'on' if active else 'off'}", now, refused):
            self._shedder.switch(active, now)

    def _plan_next(self) -> None:
        self.next = self._observe_at if self._adapting is None else min(self._observe_at, self._adapting.next)

    def totals(self, now: int, spent: Spent) -> Totals:
        """Return the running totals, including tuples shed."""
        return self._reading.totals(now, spent, self._shedder.lost())

    def summary(
        self, engine: str, totals: Totals, seconds: float, stopped_by: str | None, more: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the summary that all engines share, extended by `more`, which is specific to this engine."""
        assert totals.boxes is not None
        reading = self._reading
        topology, letters, before = reading.topology, reading.letters, reading.ingest.before
        tuples_in = int(totals.arrived.sum())
        told: dict[str, Any] = {
            "network": reading.checked.network.name,
            "engine": engine,
            "policy": self._settings.policy_text,
            "workers": reading.workers,
            "seconds": seconds,
            "interrupted": stopped_by is not None,
            "stopped_by": stopped_by,
            "tuples_in": tuples_in,
            "tuples_out": int(totals.delivered[SYSTEM]),
            "tuples_per_second": (tuples_in - before) / seconds if seconds else 0.0,
            "sources": {
                name: {"tuples": tuples, "malformed": letters.counts[name]}
                for name, tuples in zip(topology.sources, totals.arrived.tolist(), strict=True)
            },
            "boxes": summarise_boxes(topology.boxes, totals.boxes, reading.ignored, letters.counts),
            "outputs": self._shedder.outputs({one.name: one.summary() for one in reading.deliveries}),
            "overload": self._monitor.summary(),
            "shedding": self._shedder.summary(),
        }
        if self._adapting is not None:
            told["adaptive"] = self._adapting.summary()
        if self._log.counts["command"]:
            told["commands"] = self._log.summary("command")
        spent = totals.spent
        told |= {
            "dead_letters": letters.summary(),
            "time": dict(spent.time),
            "plans": spent.plans,
            "box_calls": int(totals.boxes.calls.sum()),
            "peak_queued_bytes": spent.peak,
        }
        return told | dict(more)


def summarise_boxes(
    names: tuple[str, ...], readings: BoxReadings, ignored: Mapping[str, int], dead: Mapping[str, int]
) -> dict[str, dict[str, Any]]:
    """Return the summary's entry for each box, by name; counts and selectivity cover the whole run."""
    selectivity = readings.overall
    return {
        name: {
            "calls": int(readings.calls[at]),
            "tuples_in": int(readings.tuples_in[at]),
            "tuples_out": int(readings.tuples_out[at]),
            "selectivity": float(selectivity[at]),
            "seconds": float(readings.busy[at]) / 1e9,
            "cost_per_tuple": float(readings.cost[at]),
            "cost_per_call": float(readings.overhead[at]),
            "ignored": ignored.get(name, 0),
            "dead_letters": dead.get(name, 0),
        }
        for at, name in enumerate(names)
    }


class Adapting:
    """Drives one adaptive layer. Used by the scheduler thread."""

    def __init__(self, adaption: Adaption, policy: Policy, reading: Reading, log: ChangeLog, now: int) -> None:
        """Start the layer, which chooses each output's first policy."""
        topology = reading.topology
        self._name, self._layer = adaption
        self._bounded = policy if isinstance(policy, Bounded) else None
        inner = policy if self._bounded is None else self._bounded.policy
        assert isinstance(inner, Master)
        self._master = inner
        self._reading = reading
        self._log = log
        self._outputs = topology.outputs
        with self._named():
            self._places, self._memory = self._layer.start(topology, now)
        # A unit that leads to several outputs is scheduled with the first of them: it can have only one policy.
        self._output_of = [unit.outputs[0] if unit.outputs else None for unit in reading.units]
        self._reach = Reach(topology)
        # Waiting tuples and bytes, by output and in total: as of the last sample, and integrated over time.
        self._last: Floats = np.zeros((2, len(topology.outputs) + 1))
        self._waited: Floats = np.zeros((2, len(topology.outputs) + 1))
        self._sizes: Floats = np.zeros(len(topology.boxes))
        self._unsized = np.ones(len(topology.boxes), np.bool_)
        self._sampled = now
        self._current = list(self._places)
        self._spent = [0] * len(self._layer.policies)  # nanoseconds by policy, counted once per output that used it
        self._switches = 0
        self.shedding: frozenset[int] = frozenset()
        """Outputs for which the layer allows load shedding."""
        self.next = self._pause = 0
        self._pace(now)

    def begin(self, memory: Any) -> Any:
        """Return the policy's memory with every unit assigned to the layer's first choice."""
        first = self._places[0] if self._places else 0
        by_unit = [first if output is None else self._places[output] for output in self._output_of]
        return self._tell(memory, lambda inner: self._master.assign(inner, by_unit))

    def _tell(self, memory: Any, change: Callable[[Any], Any]) -> Any:
        return change(memory) if self._bounded is None else self._bounded.told(memory, change)

    def change(self, settings: Mapping[str, Any]) -> None:
        """Give the layer another specification. Raises PolicyError."""
        with self._named():
            self._memory = self._layer.change(settings, self._memory)
        self._pace(self._sampled)

    def look(self, now: int, memory: Any) -> Any:
        """Sample the queues, and let the layer look if it is time; return the policy's memory."""
        oldest = self._sample(now)
        if now >= self._next():
            self._measure_sizes(now)
            with self._named():
                actions, self._memory = self._layer.look(self._totals(now, oldest), self._memory)
                for action in actions:
                    if isinstance(action, Switch):
                        memory = self._switch(action, now, memory)
                    else:
                        self._shed(action, now)
            self._pace(now)
        self.next = min(max(self._next(), now + 1), now + self._pause)
        return memory

    def _named(self) -> AbstractContextManager[None]:
        """Report what a layer of one's own does wrong under the layer's name, not as an error of the box that runs."""
        return blaming(f"adaptive layer '{self._name}' failed", RunError)

    def _next(self) -> int:
        """Return the moment of the layer's next look."""
        with self._named():
            return index(self._layer.next(self._memory))

    def _pace(self, now: int) -> None:
        """Divide the time until the layer's next look into samples."""
        self._pause = max(_LEAST, (self._next() - now) // _SAMPLES)
        self.next = now + self._pause

    def _sample(self, now: int) -> Floats:
        """Integrate what has waited since the last sample; return the age of the oldest waiting tuple by output (s)."""
        waiting, stamps = self._reading.backlog()
        if waiting[self._unsized].any():  # reading statistics costs more than a sample
            self._measure_sizes(now)
        counts: Floats = waiting.astype(np.float64)
        now_waiting: Floats = np.array((self._reach.sums(counts), self._reach.sums(counts * self._sizes)))
        least = self._reach.least(stamps)
        oldest: Floats = np.zeros(len(least) + 1)
        np.divide(now - least, SECOND, out=oldest[:-1], where=least < NEVER)
        oldest[-1] = oldest.max()
        seconds = (now - self._sampled) / SECOND
        self._waited += (self._last + now_waiting) / 2 * seconds
        for place in self._current:
            self._spent[place] += now - self._sampled
        self._last, self._sampled = now_waiting, now
        return oldest

    def _measure_sizes(self, now: int) -> None:
        """Read tuple sizes by box; where a box has not run yet, the mean, as tuples waiting there take memory too."""
        sizes = self._reading.statistics.readings(now).tuple_size
        self._unsized = sizes <= 0
        known = sizes[~self._unsized]
        self._sizes = np.where(self._unsized, known.mean() if len(known) else 0.0, sizes)

    def _totals(self, now: int, oldest: Floats) -> Totals:
        queued, memory = self._waited.copy()
        totals = self._reading.totals(now)
        return replace(totals, queued=queued, memory=memory, oldest=oldest, shedding=self.shedding)

    def _switch(self, action: Switch, now: int, memory: Any) -> Any:
        if not 0 <= action.policy < len(self._layer.policies):
            raise ValueError(f"there is no policy {action.policy} to switch to")
        self._check_output(action.output)
        chosen = range(len(self._current)) if action.output is None else [action.output]
        moved = [output for output in chosen if self._current[output] != action.policy]
        if not moved:
            return memory
        names = self._layer.policies
        before = sorted({names[self._current[output]] for output in moved})
        subject = "all" if action.output is None else self._outputs[action.output]
        self._log.add(now, "switch", subject, f"{', '.join(before)} -> {names[action.policy]}", action.reason)
        self._switches += 1
        for output in moved:
            self._current[output] = action.policy
        by_unit = [self._current[output or 0] for output in self._output_of]
        return self._tell(memory, lambda inner: self._master.assign(inner, by_unit))

    def _check_output(self, output: int | None) -> None:
        if output is not None and not 0 <= output < len(self._outputs):
            raise ValueError(f"there is no output {output}")

    def _shed(self, action: ShedOutput, now: int) -> None:
        self._check_output(action.output)
        if action.active == (action.output in self.shedding):
            return
        self.shedding = self.shedding ^ {action.output}
        what = "may be shed" if action.active else "no longer shed"
        self._log.add(now, "allow", self._outputs[action.output], what, action.reason)

    def summary(self) -> dict[str, Any]:
        """Return the layer's part of the summary; `time` is the share of time that each policy was in use."""
        names, whole = self._layer.policies, max(1, sum(self._spent))
        return {
            "layer": self._name,
            "policies": list(names),
            "now": {output: names[place] for output, place in zip(self._outputs, self._current, strict=True)},
            "time": {text: spent / whole for text, spent in zip(names, self._spent, strict=True)},
            "switches": self._switches,
            "changes": self._log.summary("switch", "allow"),
        }
