"""The handle of a running network: everything that one can do with it."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import wait as wait_for
from contextlib import suppress
from typing import Any, Self, Unpack, cast

import pyarrow as pa

from headway.clock import SECOND, WallClock, stopwatch
from headway.connectors.pushed import Inbox
from headway.engines.control import Pause, Resume, StepOnce
from headway.engines.runs import RunResult, Status
from headway.errors import RunError
from headway.options.table import RunOptions
from headway.runner import AnyNetwork, prepare
from headway.running.changing import Changing
from headway.running.session import check_seconds, check_tuples

_SHORTEST, _LONGEST = 0.001, 0.05
"""Seconds between two looks whether everything is processed."""


class Running(Changing):
    """A network that runs. All methods may be called from any thread.

    On the engine `sim`, time is virtual: commands are given for moments (`at`, in seconds), in their order, and the run
    begins when somebody waits for it.
    """

    def stop(self, drain: bool | None = None, *, at: float | None = None) -> RunResult:
        """End the run and return its result.

        With `drain`, the inputs end, windows are flushed and everything is delivered. Without, a run with a state stops
        as it is, to be continued. The default is to keep with a state, and to drain without.
        """
        state = self._settings.state is not None
        if drain is False and not state:
            raise RunError("a run without a state cannot be continued: drain it, or start it with state=...")
        for inbox in list(self._inboxes.values()):  # a change that is under way may add to them
            if isinstance(inbox, Inbox):
                inbox.end()
        if self._virtual and at is None and self._thread is None:
            return self.wait()  # its inputs end by themselves
        if not self._over.done():
            with suppress(RunError):  # it may end meanwhile
                for box in sorted(self._paused):
                    self.resume(box)
            pushed = all(source.name in self._inboxes for source in self._checked.network.sources)
            self._regular = pushed and bool(drain or not state)
            self._control.stop(drain=bool(drain), at=self._moment(at) if self._virtual else 0)
        return self.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.stop()
        elif self._thread is not None:
            self._control.stop()
            wait_for([self._over])

    def __repr__(self) -> str:
        state = "ended" if self.ended else "running"
        return f"<Running '{self._network.name}' on {self._engine}: {state}, version {self._version}>"

    # Steering and debugging

    def shed(self, active: bool, *, at: float | None = None) -> None:
        """Allow load shedding under overload, or turn it off. Raises a RunError if the run was started without it."""
        if not self._settings.may_shed:
            raise RunError("the run was started without load shedding: start it with shed=...")
        self._control.shed(active, at=self._moment(at))

    def specify(self, settings: Mapping[str, Any], *, at: float | None = None) -> None:
        """Give the adaptive layer another specification. Raises a RunError if the run has no layer."""
        if self._settings.adaptive is None:
            raise RunError("the run has no adaptive layer: start it with adaptive=...")
        self._control.specify(settings, at=self._moment(at))

    def pause(self, box: str = "all", *, at: float | None = None) -> None:
        """Pause a box, or all: nothing is lost, tuples wait. Boxes that need its progress wait with it."""
        if not isinstance(box, str):
            raise RunError(f"a box is given by its name, or 'all', not {box!r:.100}")
        self._paused.add(box)
        self._hold(box, True, at)

    def resume(self, box: str = "all", *, at: float | None = None) -> None:
        """Let a box go on, or all."""
        for one in sorted(self._paused) if box == "all" else [box]:
            if one != "all":
                self._hold(one, False, at)
        if box == "all":
            self._control.give(Resume(), self._moment(at))
            self._paused.clear()
        else:
            self._paused.discard(box)

    def _hold(self, box: str, hold: bool, at: float | None) -> None:
        moment = self._moment(at)
        if box == "all":
            self._control.give(Pause(), moment)
            return
        try:
            answer = self.ask(lambda carrier: carrier.hold(box, hold), moment)
            if not self._virtual:
                self._wait(answer)
        except BaseException:
            self._paused.discard(box)
            raise

    def step(self, box: str = "all", tuples: int = 1, *, at: float | None = None) -> int:
        """Let a paused box take some tuples, or a paused run start one step; return how many tuples a box took."""
        check_tuples(tuples)
        moment = self._moment(at)
        if box == "all":
            if "all" not in self._paused:
                raise RunError("only a paused run takes single steps: pause it first")
            self._control.give(StepOnce(tuples), moment)
            return 0
        if self._virtual:
            self.ask(lambda carrier: carrier.step(box, tuples), moment)
            return 0
        return self._wait(self.ask(lambda carrier: int(carrier.step(box, tuples))))

    def arc(self, arc: str, tuples: int = 20, *, wait: float = 1.0) -> pa.Table:
        """Return the latest tuples that passed an arc; the first look waits up to `wait` seconds for some."""
        check_seconds("wait", wait)
        check_tuples(tuples)
        watch = self._now(lambda carrier: carrier.watch(arc))
        return cast(pa.Table, watch.latest(tuples, wait))

    def queue(self, box: str, tuples: int = 20) -> Mapping[str, pa.Table]:
        """Return by input of a box the next tuples that wait there."""
        check_tuples(tuples)
        return self._now(lambda carrier: cast(Mapping[str, pa.Table], carrier.queue_of(box, tuples)))

    def windows(self, box: str) -> pa.Table:
        """Return the open windows of a box."""
        return self._now(lambda carrier: cast(pa.Table, carrier.windows_of(box)))

    def settle(self, timeout: float | None = None) -> int:
        """Wait until everything that has arrived so far is processed and delivered; return its last arrival number.

        Raises a TimeoutError if that takes longer than `timeout` seconds, as it does while boxes are paused.
        """
        check_seconds("timeout", timeout)
        if self._virtual:
            return int(self.wait(timeout).summary["tuples_in"]) - 1
        number = self._now(lambda carrier: int(carrier.sources.issued))
        begun, pause = stopwatch(), _SHORTEST
        while not self._now(lambda carrier: bool(carrier.processed(number))):
            if timeout is not None and stopwatch() - begun > timeout * SECOND:
                held = ", ".join(f"'{box}'" for box in sorted(self._paused))
                raise TimeoutError(
                    f"what has arrived is not processed within {timeout:g} s" + (f"; paused: {held}" if held else "")
                )
            WallClock().sleep(round(pause * SECOND))
            pause = min(2 * pause, _LONGEST)
        return number

    def status(self) -> Status:
        """Return the run's progress."""
        return self._now(lambda carrier: cast(Status, carrier.status()))


def start(network: AnyNetwork, inputs: Mapping[str, object] | None = None, **options: Unpack[RunOptions]) -> Running:
    """Start a network and return it running: push to it, read from it, attach queries, change it, stop it.

    The same arguments as of `headway.run`. It runs in a thread of its own, until all inputs have ended or it is
    stopped. On `sim` it begins when somebody waits for it; until then commands are given for moments.
    """
    running = Running(prepare(network, inputs, options))
    return running if running._virtual else running.begin()
