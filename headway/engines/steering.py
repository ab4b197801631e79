"""Steering: what watches over a run and changes it, apart from the policy that decides what runs next.

An engine calls `look` whenever the moment `next` has come. That may watch outputs and load (the QoS monitor), insert
and adjust drop boxes (the load shedder), and move queries from one policy to another (an adaptive layer).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from headway.adaptive.layer import Adaptive, Shed, Switch
from headway.adaptive.master import Master
from headway.catalog import Floats
from headway.clock import MILLISECOND, SECOND
from headway.engines.base import RunSettings
from headway.engines.changes import Change, ChangeLog
from headway.engines.monitor import Monitor, Reach, Sheddable, reach_of
from headway.engines.reading import Reading
from headway.engines.shedder import Shedder
from headway.engines.traces import Recorder
from headway.errors import HeadwayError
from headway.scheduling.bounded import Bounded
from headway.scheduling.policy import Policy
from headway.scheduling.schedule import Schedule
from headway.storage.queues import FAR
from headway.totals import Spent, Totals

_SAMPLES = 16
"""How often queues are looked at from one look of the layer to the next: their mean length is a mean over time."""
_LEAST = MILLISECOND
_LARGE = 2_000
"""Boxes and outputs for which a look costs about a hundredth of the shortest interval."""


class Steering:
    """Brings monitor, load shedder and adaptive layer together. Used by the scheduler thread."""

    def __init__(
        self,
        settings: RunSettings,
        policy: Policy,
        reading: Reading,
        drops: Sheddable,
        now: int,
        recorder: Recorder | None,
    ) -> None:
        """Start watching; `policy` is what the engine asks, a Master where a layer is to change it."""
        self._settings = settings
        self._reading = reading
        self._recorder = recorder
        self._told = 0
        self._log = ChangeLog(now)
        self._shedder = Shedder(settings.shed, reading, drops, self._log, settings.tables)
        self._interval = self._shedder.settings.interval.nanoseconds
        # A look at a large network takes its time; who only watches can do so less often still.
        size = len(reading.topology.boxes) + len(reading.topology.outputs)
        self._interval *= max(1, size // (3 * _LARGE if settings.may_shed else _LARGE))
        self._monitor = Monitor(reading, drops, self._log, now, self._shedder.settings.headroom)
        self._observe_at = now + self._interval
        self._adapting: Adapting | None = None
        if settings.adaptive is not None:
            self._adapting = Adapting(settings.adaptive.layer, policy, reading, self._log, now)
        self.next = self._observe_at
        self._plan_next()

    def begin(self, memory: Any) -> Any:
        """Return the policy's memory as the run begins with it."""
        return memory if self._adapting is None else self._adapting.begin(memory)

    @property
    def active(self) -> bool:
        """Whether somebody wants to look again soon even if nothing happens: tuples are being dropped."""
        return self._shedder.active

    def look(self, now: int, memory: Any) -> Any:
        """Look at the run and change what has to be changed; return the policy's memory."""
        forced: frozenset[int] = frozenset()
        if self._adapting is not None:
            if now >= self._adapting.next:
                memory = self._adapting.look(now, memory)
            forced = self._adapting.shedding
        if now >= self._observe_at:
            observation, demand = self._monitor.look(now, self._shedder.keep, forced)
            self._shedder.look(observation, demand, forced)
            self._observe_at = now + self._interval
        self._tell()
        self._plan_next()
        return memory

    def specify(self, wanted: Mapping[str, Any], now: int) -> None:
        """Give the layer, if there is one, another specification; a run does not end because of a mistyped one."""
        if self._adapting is None:
            return
        try:
            self._adapting.change(wanted)
        except HeadwayError as error:
            self._log.add(Change(now, "switch", "run", "specification refused", str(error)))
        else:
            told = ", ".join(f"{key}: {value}" for key, value in wanted.items())
            self._log.add(Change(now, "switch", "run", f"another specification: {told}", "the user wants it"))

    def takes(self, schedule: Schedule, now: int) -> bool:
        """Hear of another policy; return whether it may be asked, which an adaptive layer does not allow."""
        may = self._adapting is None
        what = f"policy {schedule.policy}" if may else f"policy {schedule.policy} refused"
        why = "by command" if may else "the adaptive layer chooses policies"
        self._log.add(Change(now, "command", "run", what, why))
        return may

    def shed(self, active: bool, now: int) -> None:
        """Shed load from now on, or no longer."""
        what = f"load shedding {'on' if active else 'off'}"
        if not self._settings.may_shed:
            self._log.add(Change(now, "command", "run", f"{what} refused", "the run was started without it"))
            return
        self._log.add(Change(now, "command", "run", what, "by command"))
        self._shedder.switch(active, now)

    def _plan_next(self) -> None:
        self.next = self._observe_at if self._adapting is None else min(self._observe_at, self._adapting.next)

    def _tell(self) -> None:
        """Tell the recorder of what has changed."""
        if self._recorder is not None:
            changes = list(self._log)
            for change in changes[self._told :]:
                self._recorder.change(change)
            self._told = len(changes)

    def totals(self, now: int, spent: Spent) -> Totals:
        """Return the running totals, with what was shed."""
        return self._reading.totals(now, spent, self._shedder.lost())

    def summary(self, outputs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return what a summary says of outputs, overload, shedding and the adaptive layer."""
        told: dict[str, Any] = {
            "outputs": self._shedder.outputs(outputs),
            "overload": self._monitor.summary(),
            "shedding": self._shedder.summary(),
        }
        if self._adapting is not None and self._settings.adaptive is not None:
            told["adaptive"] = self._adapting.summary(self._settings.adaptive.name)
        if self._log.counts["command"]:
            told["commands"] = self._log.summary("command")
        return told


class Adapting:
    """Drives one layer. Used by the scheduler thread."""

    def __init__(
        self,
        layer: Adaptive,
        policy: Policy,
        reading: Reading,
        log: ChangeLog,
        now: int,
    ) -> None:
        """Start the layer: it says which policy each output begins with."""
        topology = reading.topology
        self._layer = layer
        self._bounded = policy if isinstance(policy, Bounded) else None
        inner = policy if self._bounded is None else self._bounded.policy
        assert isinstance(inner, Master)
        self._master = inner
        self._reading = reading
        self._log = log
        self._outputs = topology.outputs
        self._places, self._memory = layer.start(topology, now)
        # A unit that leads to several outputs is scheduled with the first of them: it can have one policy only.
        self._output_of = [unit.outputs[0] if unit.outputs else None for unit in reading.units]
        self._reach = Reach(reach_of(topology))
        count = len(topology.outputs)
        self._queued: Floats = np.zeros(count + 1)
        self._memory_used: Floats = np.zeros(count + 1)
        self._last: tuple[Floats, Floats] = np.zeros(count + 1), np.zeros(count + 1)
        self._sizes: Floats = np.zeros(len(topology.boxes))
        self._unsized = np.ones(len(topology.boxes), np.bool_)
        self._sampled = now
        self._current = list(self._places)
        self._spent = [0] * len(layer.policies)  # nanoseconds, by policy, as many outputs as it had at the time
        self._switches = 0
        self.shedding: frozenset[int] = frozenset()
        """Outputs for which the layer wants tuples dropped."""
        self.next = self._pause = 0
        self._pace(now)

    def begin(self, memory: Any) -> Any:
        """Return the policy's memory with every unit where the layer wants it first."""
        first = self._places[0] if self._places else 0
        by_unit = [first if output is None else self._places[output] for output in self._output_of]
        return self._tell(memory, lambda inner: self._master.assign(inner, by_unit))

    def _tell(self, memory: Any, change: Callable[[Any], Any]) -> Any:
        return change(memory) if self._bounded is None else self._bounded.told(memory, change)

    def change(self, settings: Mapping[str, Any]) -> None:
        """Give the layer another specification. Raises a PolicyError."""
        self._memory = self._layer.change(settings, self._memory)
        self._pace(self._sampled)

    def look(self, now: int, memory: Any) -> Any:
        """Read the queues, and let the layer look if it is time; return the policy's memory."""
        oldest = self._sample(now)
        if now >= self._layer.next(self._memory):
            self._measure_sizes(now)
            actions, self._memory = self._layer.look(self._totals(now, oldest), self._memory)
            for action in actions:
                if isinstance(action, Switch):
                    memory = self._switch(action, now, memory)
                else:
                    self._shed(action, now)
            self._pace(now)
        self.next = min(self._layer.next(self._memory), now + self._pause)
        return memory

    def _pace(self, now: int) -> None:
        """Divide the time until the layer looks next into samples."""
        self._pause = max(_LEAST, (self._layer.next(self._memory) - now) // _SAMPLES)
        self.next = now + self._pause

    def _sample(self, now: int) -> Floats:
        """Add up what has waited since the last sample; return by output how long the oldest has."""
        waiting, stamps = self._reading.backlog()
        if waiting[self._unsized].any():  # statistics cost more than a sample
            self._measure_sizes(now)
        counts: Floats = waiting.astype(np.float64)
        tuples, memory = self._reach.sums(counts), self._reach.sums(counts * self._sizes)
        least = self._reach.least(stamps)
        oldest: Floats = np.zeros(len(least) + 1)
        np.divide(now - least, SECOND, out=oldest[:-1], where=least < FAR)
        oldest[-1] = oldest.max()
        seconds = (now - self._sampled) / SECOND
        self._queued += (self._last[0] + tuples) / 2 * seconds
        self._memory_used += (self._last[1] + memory) / 2 * seconds
        for place in self._current:
            self._spent[place] += now - self._sampled
        self._last, self._sampled = (tuples, memory), now
        return oldest

    def _measure_sizes(self, now: int) -> None:
        """Note what a tuple takes at each box: what waits at a box that has not run yet takes memory all the same."""
        sizes = self._reading.statistics.readings(now).tuple_size
        self._unsized = sizes <= 0
        known = sizes[~self._unsized]
        self._sizes = np.where(self._unsized, known.mean() if len(known) else 0.0, sizes)

    def _totals(self, now: int, oldest: Floats) -> Totals:
        return replace(
            self._reading.totals(now),
            queued=self._queued.copy(),
            memory=self._memory_used.copy(),
            oldest=oldest,
            shedding=self.shedding,
        )

    def _switch(self, action: Switch, now: int, memory: Any) -> Any:
        chosen = range(len(self._current)) if action.output is None else [action.output]
        moved = [output for output in chosen if self._current[output] != action.policy]
        if not moved:
            return memory
        names = self._layer.policies
        before = sorted({names[self._current[output]] for output in moved})
        subject = "all" if action.output is None else self._outputs[action.output]
        self._log.add(Change(now, "switch", subject, f"{', '.join(before)} -> {names[action.policy]}", action.reason))
        self._switches += 1
        for output in moved:
            self._current[output] = action.policy
        by_unit = [self._current[output or 0] for output in self._output_of]
        return self._tell(memory, lambda inner: self._master.assign(inner, by_unit))

    def _shed(self, action: Shed, now: int) -> None:
        if action.active == (action.output in self.shedding):
            return
        self.shedding = self.shedding ^ {action.output}
        what = "may be shed" if action.active else "no longer shed"
        self._log.add(Change(now, "allow", self._outputs[action.output], what, action.reason))

    def summary(self, name: str) -> dict[str, Any]:
        """Return what a summary says of the layer; `time` is by policy the share of the time it was used."""
        names, whole = self._layer.policies, max(1, sum(self._spent))
        return {
            "layer": name,
            "policies": list(names),
            "now": {output: names[place] for output, place in zip(self._outputs, self._current, strict=True)},
            "time": {text: spent / whole for text, spent in zip(names, self._spent, strict=True)},
            "switches": self._switches,
            "changes": self._log.summary("switch", "allow"),
        }
