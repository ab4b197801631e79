"""The session with a run: its thread, commands for it, and its answers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future
from concurrent.futures import wait as wait_for
from dataclasses import replace
from typing import Any, Self, TypeVar

from headway.checking import CheckedNetwork
from headway.clock import SECOND
from headway.columns import NEVER
from headway.connectors.pushed import Inbox, Planned
from headway.engines.carrier import Run
from headway.engines.control import Ask, Control
from headway.engines.runs import RunResult, RunSettings, make_engine
from headway.errors import RunError
from headway.living.changes import Changes
from headway.runner import Prepared
from headway.running.subscriptions import Subscription

Answer = TypeVar("Answer")


class Session:
    """A run in a thread of its own, and what is said to it."""

    def __init__(self, prepared: Prepared) -> None:
        """Take a prepared run; `begin` starts it."""
        self._engine = prepared.engine
        self._virtual = prepared.engine == "sim"
        self._network, self._checked = prepared.network, prepared.checked
        control = prepared.settings.control or Control()
        self._control = control
        self._inboxes: dict[str, Inbox | Planned] = {}
        self._settings = replace(prepared.settings, control=control)
        self._give_inboxes(prepared.checked)
        self._settings = replace(self._settings, inputs={**self._settings.inputs, **self._inboxes})
        self._begins = self._checked, self._settings
        self._beginning = threading.Lock()
        self._changing = threading.RLock()
        self._version = 1
        self._latest = 0
        self._paused: set[str] = set()
        self._over: Future[RunResult] = Future()
        self._carrier: Future[Run] = Future()
        self._thread: threading.Thread | None = None
        self._listening: list[Subscription] = []
        self._regular = False
        """Whether nothing was interrupted by a stop: all inputs were pushed, and everything is delivered."""

    def _give_inboxes(self, checked: CheckedNetwork) -> None:
        for source in checked.network.sources:
            if source.push and source.name not in self._settings.inputs and source.name not in self._inboxes:
                made = Planned if self._virtual else Inbox
                self._inboxes[source.name] = made(source.name, source.schema)

    def _take_inboxes(self, changes: Changes) -> None:
        """Forget the inboxes of sources that a change removes or changes: their readers end with the seam."""
        for name in (*changes.sources_removed, *changes.sources_changed):
            if (inbox := self._inboxes.pop(name, None)) is not None:
                inputs = {key: one for key, one in self._settings.inputs.items() if one is not inbox}
                self._settings = replace(self._settings, inputs=inputs)

    def _take_back(self, settings: RunSettings, inboxes: dict[str, Inbox | Planned]) -> None:
        self._settings, self._inboxes = settings, inboxes

    # The run

    def begin(self) -> Self:
        """Start the run in a thread of its own, and wait until it has begun. Raises what keeps it from beginning."""
        with self._beginning:
            if self._thread is not None:
                return self
            self._control.give(Ask(lambda carrier: carrier, self._carrier))
            self._thread = threading.Thread(target=self._work, name="headway-run", daemon=True)
            self._thread.start()
            _first(self._carrier, self._over)
            if not self._carrier.done():  # it has ended before its first round
                self._over.result()
                return self
            found = self._carrier.result()
            if not self._virtual and found.checked.network != self._checked.network:  # one that goes on has changed
                self._network, self._checked = found.checked.network, found.checked
                self._inboxes |= {name: one for name, one in found.settings.inputs.items() if isinstance(one, Inbox)}
        return self

    def here(self) -> RunResult:
        """Run in the calling thread until all inputs have ended, and return the result."""
        return make_engine(self._engine).run(*self._begins)

    def _work(self) -> None:
        try:
            result = self.here()
        except BaseException as error:  # handed to whoever waits
            self._close(error)
            self._over.set_exception(error)
        else:
            if self._regular:
                result = replace(result, summary={**result.summary, "interrupted": False, "stopped_by": None})
            self._close(None)
            self._over.set_result(result)

    def _close(self, error: BaseException | None) -> None:
        """Tell those who wait for something that the run is over."""
        for inbox in list(self._inboxes.values()):
            inbox.close()
        for one in list(self._listening):
            if error is None:
                one.end("")
            else:
                one.fail(error)

    @property
    def ended(self) -> bool:
        """Whether the run is over."""
        return self._over.done()

    def wait(self, timeout: float | None = None) -> RunResult:
        """Wait until all inputs have ended and everything is delivered, and return the result.

        Raises a TimeoutError if that takes longer than `timeout` seconds; the run goes on.
        """
        check_seconds("timeout", timeout)
        self.begin()
        return self._over.result(timeout)

    def _moment(self, at: float | None, latest: int | None = None) -> int:
        """Return the moment for a command in nanoseconds, not before the `latest`; 0 for now."""
        if not self._virtual:
            if at is not None:
                raise RunError(f"at is for the engine 'sim'; on '{self._engine}' commands are for now")
            return 0
        if self._thread is not None:
            raise RunError("the simulation has run: give commands before anybody waits for it")
        before = self._latest if latest is None else latest
        if at is not None and (isinstance(at, bool) or not isinstance(at, int | float) or not 0 <= at < 1e9):
            raise RunError(f"at is a moment in seconds, not {at!r}")
        moment = before if at is None else round(at * SECOND)
        if not before <= moment < NEVER:
            raise RunError(f"moments of a simulation are given in their order: {at} is before {before / SECOND}")
        if latest is None:
            self._latest = moment
        return moment

    def _wait(self, answer: Future[Answer], timeout: float | None = None) -> Answer:
        """Return an answer of the run; raises if the run ends without one."""
        check_seconds("timeout", timeout)
        self.begin()
        done = _first(answer, self._over, timeout=timeout)
        if answer.done():
            return answer.result()
        if not done:
            raise TimeoutError(f"no answer within {timeout} seconds")
        if (error := self._over.exception()) is not None:
            raise RunError(f"the run has failed: {error}") from error
        raise RunError("the run has ended")

    def _carrier_now(self) -> Run:
        return self._wait(self._carrier)

    def _seam_of(self, sealed: Future[int]) -> int | None:
        """Return the number of a seam; None in a simulation that has not begun."""
        return None if self._virtual and self._thread is None else self._wait(sealed)

    def ask(self, question: Callable[[Any], Answer], at: int = 0) -> Future[Answer]:
        """Have a question answered between two rounds of the loop; for engines and debugging."""
        if self._over.done():
            raise RunError("the run has ended")
        answer: Future[Any] = Future()
        self._control.give(Ask(question, answer), at)
        return answer

    def _now(self, question: Callable[[Any], Answer]) -> Answer:
        """Return the answer to a question about the run as it is now."""
        if self._virtual and self._thread is None:
            self.begin()
        return self._wait(self.ask(question))


def check_seconds(what: str, seconds: object) -> None:
    """Raise a RunError for what is neither a number of seconds nor None."""
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds >= 0
    if seconds is not None and not number:
        raise RunError(f"{what} is a number of seconds, not {seconds!r:.100}")


def check_tuples(tuples: object) -> None:
    """Raise a RunError for what is no number of tuples."""
    if not isinstance(tuples, int) or isinstance(tuples, bool) or tuples < 1:
        raise RunError(f"tuples is a number of at least 1, not {tuples!r:.100}")


def _first(*futures: Future[Any], timeout: float | None = None) -> bool:
    """Wait until one of them is done; return whether one is."""
    return bool(wait_for(futures, timeout, FIRST_COMPLETED).done)
