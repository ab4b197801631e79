"""Steering: what watches over a run and changes it, apart from the policy that decides what runs next.

An engine calls `look` whenever the moment `next` has come. That may watch outputs and load (the QoS monitor), insert
and adjust drop boxes (the load shedder), and move queries from one policy to another (an adaptive layer).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.checking import CheckedNetwork
from headway.engines.adapting import Adapting
from headway.engines.base import OutputStatus, RunSettings
from headway.engines.changes import Change, ChangeLog
from headway.engines.delivery import Delivery
from headway.engines.instruments import Instruments
from headway.engines.observing import Observer
from headway.engines.shedder import Shedder
from headway.engines.traces import Recorder
from headway.errors import HeadwayError
from headway.scheduling.policy import Policy
from headway.scheduling.snapshot import Unit

_LARGE = 2_000
"""Boxes and outputs for which a look costs about a hundredth of the shortest interval."""


class Steering:
    """Brings monitor, load shedder and adaptive layer together. Used by the scheduler thread."""

    def __init__(
        self,
        checked: CheckedNetwork,
        settings: RunSettings,
        policy: Policy,
        units: Sequence[Unit],
        instruments: Instruments,
        deliveries: Sequence[Delivery],
        now: int,
        recorder: Recorder | None,
    ) -> None:
        """Start watching; `policy` is what the engine asks, a Master where a layer is to change it."""
        self._settings = settings
        self._deliveries = deliveries
        self._recorder = recorder
        self._told = 0
        self._log = ChangeLog(now)
        self._shedder = Shedder(settings.shed, checked, instruments, deliveries, self._log, settings.tables)
        self._interval = self._shedder.settings.interval.nanoseconds
        # A look at a large network takes its time; who only watches can do so less often still.
        size = len(instruments.topology.boxes) + len(instruments.topology.outputs)
        self._interval *= max(1, size // (3 * _LARGE if settings.may_shed else _LARGE))
        self._observer = Observer(instruments, self._log, now, self._shedder.settings.headroom)
        self._observe_at = now + self._interval
        self._adapting: Adapting | None = None
        if settings.adaptive is not None:
            self._adapting = Adapting(settings.adaptive.layer, policy, units, instruments, self._log, now)
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
            observation, demand = self._observer.look(now, self._shedder.keep, forced)
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

    def _plan_next(self) -> None:
        self.next = self._observe_at if self._adapting is None else min(self._observe_at, self._adapting.next)

    def _tell(self) -> None:
        """Tell the recorder of what has changed."""
        if self._recorder is not None:
            changes = list(self._log)
            for change in changes[self._told :]:
                self._recorder.change(change)
            self._told = len(changes)

    def outputs(self) -> dict[str, OutputStatus]:
        """Return how the outputs do."""
        lost = self._shedder.lost()
        return {
            one.name: OutputStatus(one.tuples, one.latencies.mean, one.utility, shed)
            for one, shed in zip(self._deliveries, lost, strict=True)
        }

    def summary(self, outputs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return what a summary says of outputs, overload, shedding and the adaptive layer."""
        told: dict[str, Any] = {
            "outputs": self._shedder.outputs(outputs),
            "overload": self._observer.summary(),
            "shedding": self._shedder.summary(),
        }
        if self._adapting is not None and self._settings.adaptive is not None:
            told["adaptive"] = self._adapting.summary(self._settings.adaptive.name)
        return told
