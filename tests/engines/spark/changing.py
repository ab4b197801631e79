"""Runs on Spark whose network is changed while they run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import headway as hw
from headway.checking import CheckedNetwork
from headway.engines.alteration import Alteration
from headway.engines.control import Alter
from headway.engines.opening import Destination
from headway.engines.spark.driver.queries import warm
from headway.living.changes import compare
from headway.network import thaw
from headway.program import Program, compile_program

PATIENCE = 120.0
Row = dict[str, Any]


def prepare(old: CheckedNetwork, new: CheckedNetwork, before: Program | None = None, **more: Any) -> Alteration:
    """Return a change; new outputs are tables, and no source is new."""
    changes = compare(old, new, **more)
    begin = (*changes.outputs_added, *changes.outputs_restarted)
    outputs = {name: new.network.output(name) for name in begin}
    places = {name: Destination(one, new.output_schema(name), thaw(one.sink)) for name, one in outputs.items()}
    return Alteration(old, new, changes, compile_program(new), {}, {}, places)


class Changing:
    """A run in a thread of its own. One source, `s`; so arrival numbers count its tuples and the seams."""

    def __init__(
        self,
        network: Mapping[str, Any],
        rows: Sequence[Row] | str,
        rate: float = 0,
        state: Path | None = None,
        **more: Any,
    ) -> None:
        """Start it; with a rate, tuples come at so many per second."""
        self.checked = hw.check(hw.load(network))
        self.control = hw.Control()
        self.seams: list[int] = []
        self.statuses: list[Any] = []
        self._answer: Future[Any] = Future()
        self._known = set(warm)
        self._ready = threading.Event()
        options: dict[str, Any] = {"engine": "spark", "control": self.control, "on_status": self._hear, **more}
        if rate:
            options["rates"] = {"s": rate}
        if state is not None:
            options["state"] = state

        def go() -> None:
            try:
                self._answer.set_result(hw.run(network, {"s": rows}, **options))
            except BaseException as error:
                self._answer.set_exception(error)

        self._thread = threading.Thread(target=go, daemon=True)
        self._thread.start()

    def _hear(self, status: Any) -> None:
        self.statuses.append(status)
        if not status.starting:
            self._ready.set()

    def wait_for(self, condition: Callable[[Any], bool]) -> None:
        """Wait until the latest status is so."""
        until = threading.Event()
        for _ in range(int(PATIENCE / 0.02)):
            if self.statuses and condition(self.statuses[-1]) and not self.statuses[-1].starting:
                return
            if self._answer.done():
                self._answer.result()
                raise AssertionError("the run is over")
            until.wait(0.02)
        raise AssertionError("nothing happens")

    def change(self, network: Mapping[str, Any], **more: Any) -> int:
        """Change the network; return how many tuples came before the seam."""
        sealed, done = self.give(network, **more)
        number = self._await(done)
        assert sealed.result() == number
        return self.seams[-1]

    def give(self, network: Mapping[str, Any], **more: Any) -> tuple[Future[int], Future[int]]:
        """Ask for a change."""
        new = hw.check(hw.load(network))
        sealed, done = Future[int](), Future[int]()
        done.add_done_callback(self._count)
        self.control.give(Alter(prepare(self.checked, new, **more), sealed, done))
        self.checked = new
        return sealed, done

    def _count(self, done: Future[int]) -> None:
        """Note how many tuples came before a seam: what else has a number are seams, and the first run's warming up."""
        if done.exception() is None:
            self.seams.append(done.result() - len(self.seams) - len(warm - self._known))

    def _await(self, future: Future[int]) -> int:
        waiting = threading.Event()
        for _ in range(int(PATIENCE / 0.02)):
            if future.done():
                return future.result()
            if self._answer.done():
                self._answer.result()
                raise AssertionError("the run is over")
            waiting.wait(0.02)
        raise AssertionError("nothing happens")

    def result(self) -> Any:
        """Wait for the end."""
        return self._answer.result(PATIENCE)


def offline(network: Mapping[str, Any], rows: Sequence[Row], names: Collection[str] | None = None) -> dict[str, Any]:
    """Return the results of a network over some tuples, by output."""
    found = hw.run(network, {"s": list(rows)}, engine="local").outputs
    return {name: table.to_pylist() for name, table in found.items() if names is None or name in names}
