"""Seams on Spark: queries end exactly at an arrival number, and others begin there, while the rest run on.

1. *Seal.* The seam takes a number and is committed to the log with the network that follows. Queries for which
   something changes get a micro-batch that ends there, and nothing beyond.
2. *Exchange*, when these have committed it. The plan in the state directory, written at once, says from now on that the
   changed network is the one that runs. Then a thread stops and starts queries one after the other, as Spark takes a
   second or two for each; the loop goes on meanwhile.

A process that is killed before the exchange leaves a seam in the log that the plan does not know. The next one begins
with the old network, whose queries end at the seam, and exchanges it then. Killed later, it leaves the new one.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from headway.checking import CheckedNetwork, check
from headway.columns import NEVER
from headway.connectors.pushed import Inbox
from headway.engines.alteration import Alteration
from headway.engines.opening import destination_of, open_reader
from headway.engines.runs import RunSettings
from headway.engines.spark.driver.journal import read_plan
from headway.engines.spark.driver.points import Past
from headway.engines.spark.driver.queries import RunningUnit
from headway.engines.spark.driver.recut import Change, Recut, Running, recut
from headway.engines.spark.driver.relays import program_of
from headway.engines.spark.driver.state import described, digest, restored
from headway.errors import NetworkError, RunError
from headway.living.changes import Changes
from headway.network import Network
from headway.program import Program, compile_program
from headway.storage.filesystems import FAILURES, locate
from headway.storage.log import Commit, Log

if TYPE_CHECKING:
    from headway.engines.spark.driver.backend import Backend

_PAUSE = 0.05
"""Seconds between looks whether a query that was started has called."""
_PATIENCE = 60.0
"""Seconds that the end of a run waits for a query that is being started."""


@dataclass(frozen=True)
class Seam:
    """One seam."""

    number: int
    alteration: Alteration
    change: Change
    cut: Recut


class Seams:
    """The seams of a run. Used by the scheduler thread; another one stops and starts queries."""

    def __init__(self, backend: Backend) -> None:
        """Change the units of this backend."""
        self._backend = backend
        self._ending = threading.Event()
        self._threads: list[threading.Thread] = []
        self.pending: Seam | None = None
        """The seam that has a number, and whose exchange is due."""

    @property
    def needed(self) -> int:
        """The arrival number up to which the log may forget; it must not forget a seam that is pending."""
        return NEVER if self.pending is None else self.pending.number - 1

    @property
    def drained(self) -> bool:
        """Whether all queries that end at the seam have processed everything up to it."""
        return all(unit.drained for unit in self._backend.units)

    def plan(
        self, program: Program, changes: Changes, histories: Collection[tuple[str, int]] = ()
    ) -> tuple[Change, Recut]:
        """Return what a change does to the queries; raise a HeadwayError if it cannot be made on Spark."""
        backend = self._backend
        state = backend.state
        if changes.sources_changed:
            raise NetworkError(
                f"source '{changes.sources_changed[0]}' is another one now: on Spark its log stays as it is; give the "
                "changed source another name"
            )
        if backend.settings.state is not None:
            _check_written(program.checked.network)
        change = Change(
            state.program, program, frozenset(changes.kept), frozenset(changes.carried), frozenset(histories)
        )
        running = [
            Running(unit.cut, frozenset(lane.arc for lane in unit.work.lanes if lane.out and not lane.counted))
            for unit in backend.units
        ]
        return change, recut(change, running, state.shards, state.units, state.spread)

    def begin(self, number: int, alteration: Alteration, change: Change, cut: Recut) -> None:
        """Bound the queries for which something changes; the seam is in the log."""
        self.pending = Seam(number, alteration, change, cut)
        for at in cut.bounded:
            unit = self._backend.units[at]
            unit.until, unit.flush = number, alteration.changes.flushed

    def exchange(self) -> Seam:
        """Let the changed network be the one that runs, durably; begin to stop and to start queries."""
        backend, seam = self._backend, self.pending
        assert seam is not None
        state, number = backend.state, seam.number
        alteration, change, cut = seam.alteration, seam.change, seam.cut
        backend.read_tables(number, alteration)
        begins = {*alteration.changes.outputs_added, *alteration.changes.outputs_restarted}
        past = backend.points.past_of(alteration, number)
        state.exchange(number, change, cut, begins, backend.tables, past)
        backend.points.follow(alteration.new, alteration.changes.points_restarted, number)
        backend.relays.follow(change.new, state.relays)
        backend.log.exchange({source.name: source.schema for source in alteration.new.network.sources})
        checked = alteration.new
        backend.outlets.exchange(checked, alteration.destinations)
        backend.takings.exchange(checked, backend.outlets, alteration.changes.kept)
        stopping = [backend.units[at] for at in sorted(cut.ended)]
        queries = [backend.queries.retire(unit) for unit in stopping]
        for unit in stopping:
            backend.rekey(unit)
        old, units = backend.units, list[RunningUnit]()
        starting = []
        for at, (one, files) in enumerate(zip(cut.units, state.files, strict=True)):
            before = None if one.old is None else old[one.old]
            if before is None or before.id != files.id:
                unit = backend.make_unit(at, change.new, one.cut, files)
                unit.position = unit.committed = files.begin
            else:
                unit = before
                unit.number, unit.program, unit.cut = at, program_of(one.cut, change.new), one.cut
                if not one.runs_on or unit.inputs.plain:
                    unit.inputs = backend.inputs_of(one.cut, files, unit.program)
                if not one.runs_on:
                    unit.work = backend.make_work(unit.program, one.cut, files)
                    unit.asking, unit.replayed, unit.position = False, True, unit.committed
            unit.until = None
            unit.flush = () if unit.ends is None else unit.flush
            units.append(unit)
            if not one.runs_on:
                unit.starting = True
                starting.append(unit)
        for unit in old:
            if all(unit is not one for one in units):
                backend.forget(unit)
        backend.units = units
        self.pending = None
        self._renew(queries, starting, {unit.id: one.past for unit, one in zip(units, state.files, strict=True)})
        return seam

    def _renew(
        self, stopping: Sequence[Any], starting: Sequence[RunningUnit], pasts: Mapping[str, Past | None]
    ) -> None:
        """Stop and start queries, in the order of seams, while the run goes on."""
        backend, before = self._backend, list(self._threads)

        def go() -> None:
            try:
                for thread in before:
                    thread.join()
                for query in stopping:
                    query.stop()
                for unit in starting:
                    if self._ending.is_set():
                        return
                    past = pasts[unit.id]
                    if past is not None:
                        backend.fill(unit, past)
                    backend.queries.start(unit)
                    while not backend.gate.met(unit.key) and not self._ending.wait(_PAUSE):
                        pass  # as at the start of a run: one process after the other
            except BaseException as error:
                backend.failure = backend.failure or error
                backend.wake.set()

        thread = threading.Thread(target=go, name="headway-seam", daemon=True)
        self._threads = [one for one in self._threads if one.is_alive()] + [thread]
        thread.start()

    def stop(self) -> None:
        """Start no more queries."""
        self._ending.set()
        for thread in self._threads:
            thread.join(_PATIENCE)


# Seams in the log


def written(alteration: Alteration) -> dict[str, Any]:
    """Return what the log keeps of a change, from which `read_back` makes it again."""
    changes = {one.name: list(getattr(alteration.changes, one.name)) for one in fields(Changes)}
    return {
        "network": described(alteration.new.network),
        "changes": {name: some for name, some in changes.items() if some},
        "what": alteration.what,
    }


def _check_written(network: Network) -> None:
    """Raise a NetworkError for a network that cannot be read back."""
    if restored(described(network), network) != network:
        raise NetworkError(
            "the changed network holds what only Python can hold, so that a state could not be continued; "
            "write it as plain data, or run without state"
        )


def read_back(record: Mapping[str, Any], old: CheckedNetwork, settings: RunSettings) -> tuple[Alteration, RunSettings]:
    """Return a change that the log holds, with its readers and destinations opened again, and what it is run with."""
    network = restored(record["network"], old.network)
    settings = with_inboxes(network, settings)
    new = check(network, old.functions, settings.tables, contact=True)
    changes = Changes(**{name: tuple(some) for name, some in record["changes"].items()})
    readers = {name: open_reader(new.network, network.source(name), settings) for name in changes.sources_added}
    begin = (*changes.outputs_added, *changes.outputs_restarted)
    places = {name: destination_of(new, settings, new.network.output(name)) for name in begin}
    return Alteration(old, new, changes, compile_program(new), {}, readers, places, what=record["what"]), settings


def with_inboxes(network: Network, settings: RunSettings) -> RunSettings:
    """Return the settings of a run that goes on, in which sources that were added can be pushed to."""
    missing = [source for source in network.sources if source.push and source.name not in settings.inputs]
    return replace(settings, inputs={**settings.inputs, **{one.name: Inbox(one.name, one.schema) for one in missing}})


def pending_in(log: Log, done: int) -> Commit | None:
    """Return the commit of a seam that is in the log and was not carried out; `done` is the newest that was."""
    found = [commit for commit in log.commits if commit.seam is not None and commit.issued > done]
    return found[-1] if found else None


def resumed(checked: CheckedNetwork, settings: RunSettings) -> tuple[CheckedNetwork, RunSettings]:
    """Return with what a run continues: the network as changed while it ran, if the one given is where it began.

    Raises a RunError if it is neither that nor the one as changed.
    """
    if settings.state is None:
        return checked, settings
    place = locate(settings.state)
    try:
        plan = read_plan(place)
    except FAILURES:
        return checked, settings  # opening the directory says what is wrong
    if plan is None or "altered" not in plan:
        return checked, settings
    given = checked.network
    network = restored(plan["altered"]["network"], given)
    if given == network:
        return checked, settings
    if digest(given) != plan["given"]:
        raise RunError(
            f"the state '{settings.state}' cannot go on: its network was changed while it ran, and the one given is "
            "neither what it is now nor what it began with; give one of these, and change it while it runs"
        )
    return check(network, checked.functions, settings.tables, contact=True), with_inboxes(network, settings)
