"""Changes of a running network: attaching, detaching, another version of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from headway.builder import NetworkBuilder
from headway.checking import CheckedNetwork, check
from headway.clock import WallClock
from headway.connectors.protocol import Reader
from headway.engines.alteration import Alteration, History, prepare_alteration
from headway.engines.carrier import Run
from headway.engines.control import Alter
from headway.engines.opening import Destination, check_files, destination_of, open_reader, permit
from headway.errors import HeadwayError, InputError, NetworkError, RunError, check_known
from headway.files import load
from headway.living.changes import Changes, compare
from headway.living.fragments import Fragment, check_since, graft, prune, read_fragment, start_of
from headway.living.since import ALL
from headway.network import Network, Streamed, arc_name
from headway.runner import AnyNetwork, Prepared
from headway.running.attached import Attached, Change
from headway.running.transfers import Transfers
from headway.scheduling.policy import Planner
from headway.structure import owner, upstream
from headway.tables import Statics


class Changing(Transfers):
    """A running network that changes."""

    def __init__(self, prepared: Prepared) -> None:
        super().__init__(prepared)
        self._attached: dict[str, Attached] = {}

    @property
    def network(self) -> Network:
        """The network as it is now, with what is attached."""
        return self._network

    @property
    def version(self) -> int:
        """The number of the network's version; every change and every attached or detached fragment makes a new one."""
        return self._version

    @property
    def attached(self) -> Mapping[str, Attached]:
        """The fragments that are attached, by name."""
        return dict(self._attached)

    def attach(
        self, fragment: str | Path | Mapping[str, Any] | Fragment, *, at: float | None = None, **options: Any
    ) -> Attached:
        """Attach a fragment: boxes and outputs whose inputs are points, views or arcs of the network.

        `since` and `until` override what the fragment says: how much history it gets, and whether its input ends now.
        If older tuples are asked for than are kept, this is refused; to know that, it waits until everything before the
        seam has passed the points.
        """
        read = self._read_fragment(fragment, **options)
        with self._changing:
            self._tidy()
            wanted = graft(self._network, read)
            found = self._compare(wanted)
            histories = self._histories(read, found[0])
            attached = Attached(self, read, lambda: self._seam_of(alter.sealed))
            for one in list(histories.values())[:1]:
                if one.lost is not None:
                    one.lost.add_done_callback(lambda lost: attached._lose(lost.result()))
            ends = {attached.outputs[name]: end for name, end in attached._done.items()}
            alter, _ = self._alter(wanted, f"attach {read.name}", at, found=found, histories=histories, listeners=ends)
            self._attached[read.name] = attached
        bounded = read.since not in (None, ALL)
        begun = next((one.begun for one in histories.values() if bounded and not self._virtual), None)
        if begun is not None:  # how far back it goes is known once what came before the seam has passed the points
            try:
                self._wait(begun)
            except HeadwayError:
                attached.detach()
                raise
        return attached

    def _histories(self, fragment: Fragment, checked: CheckedNetwork) -> dict[tuple[str, int], History]:
        """Return what the boxes of a fragment read of which point, by box and input; `checked` has the fragment."""
        found: dict[tuple[str, int], History] = {}
        starts = start_of(fragment, self._network)
        if not any(starts.values()):
            return found
        check_since(fragment, checked)
        specs = {box.name: box.spec for box in checked.order}
        begun: Future[int] = Future()
        lost: Future[HeadwayError] = Future()
        for box, points in starts.items():
            for place, name in points.items():
                point = checked.network.point(name)
                ports = frozenset(port for port in specs[box].ports if checked.consumers[arc_name(box, port)])
                schema = checked.arcs[checked.points[name]]
                key = None if point.key is None else specs[box].lookup(point.key, schema, ports)
                found[box, place] = History(name, fragment.since, key, fragment.until_now, begun, lost)
        if not self._virtual:
            histories = self._carrier_now().histories
            for name in {one.point for one in found.values()}:
                histories.of(name)
        return found

    def explain(self, fragment: str | Path | Mapping[str, Any] | Fragment, **options: Any) -> str:
        """Return how the history of a fragment would be read: which box reads which point, in which way."""
        read = self._read_fragment(fragment, **options)
        with self._changing:
            found = self._histories(read, self._compare(graft(self._network, read))[0])
        if not found and any(isinstance(item, Streamed) for box in read.boxes for item in box.inputs):
            return f"fragment '{read.name}' reads stored data from its beginning"
        if not found:
            return f"fragment '{read.name}' reads no history: its input begins now"
        histories = self._carrier_now().histories
        after = "its input ends there" if read.until_now else "then what is live"
        return "\n".join(
            f"{box} reads point '{one.point}': {histories.plan(one.point, one.since, one.key)}; {after}"
            for (box, _), one in found.items()
        )

    def _read_fragment(self, fragment: str | Path | Mapping[str, Any] | Fragment, **options: Any) -> Fragment:
        until = options.pop("until", None)
        check_known("option", options, ("since",), RunError, "attach")
        read = read_fragment(fragment, network=self._network, trust=self._network.trust, **options)
        if until not in (None, "now"):
            raise RunError(f"attach: until is 'now' or left out, not {until!r}")
        read = replace(read, until_now=True) if until else read
        for box in read.boxes if read.until_now else ():
            if any(isinstance(item, Streamed) for item in box.inputs):
                raise RunError(
                    f"fragment '{read.name}': box '{box.name}' streams stored data in, which has no 'now' to end at; "
                    "leave until out, or look its rows up in a join"
                )
        return read

    def _detach(self, attached: Attached, flush: bool, at: float | None = None) -> dict[str, pa.Table] | None:
        """Detach; return what its outputs have delivered, or None in a simulation: that is in the run's result."""
        with self._changing:
            if self._attached.get(attached.name) is not attached or self._over.done():
                return {name: self.read(name) for name in attached.outputs.values()}
            wanted = prune(self._network, attached.name)
            names = list(attached.outputs.values())
            own = [box.name for box in self._network.boxes if box.name.startswith(f"{attached.name}/")]
            stateful = [box.name for box in self._checked.order if box.name in own and box.spec.stateful]
            self._alter(wanted, f"detach {attached.name}", at, flush=stateful if flush else ())
            del self._attached[attached.name]
            return (
                None if self._virtual else self._now(lambda carrier: {name: _retired(carrier, name) for name in names})
            )

    def _tidy(self) -> None:
        """Detach the fragments whose input has ended and whose results are delivered."""
        for one in list(self._attached.values()):
            if one._fragment.until_now and all(end.ended.done() for end in one._done.values()):
                with suppress(NetworkError):  # another one reads from it
                    one.detach()

    def change(
        self,
        network: AnyNetwork,
        *,
        restart: Iterable[str] | str = (),
        keep: Iterable[str] | str = (),
        flush: Iterable[str] | str = (),
        base: int | None = None,
        try_only: bool = False,
        inputs: Mapping[str, object] | None = None,
        at: float | None = None,
    ) -> Change:
        """Go on with another network from the next arrival number on. What is attached stays attached.

        Boxes that are unchanged, with everything before them, go on. Those that keep a state and have changed, or
        behind which something has changed, are named in `restart` (begin anew) or `keep` (the state stays valid), or
        the change is refused with the choices; both take names, or ``"all"``. Boxes in `flush` emit their open windows
        when they end. With `base`, the change is refused if the network's version is another by now. With `try_only`
        nothing is changed. `inputs` are those of new sources.
        """
        wanted = network.build() if isinstance(network, NetworkBuilder) else network
        wanted = wanted if isinstance(wanted, Network) else load(wanted)
        with self._changing:
            if base is not None and base != self._version:
                raise RunError(
                    f"the network has changed since: it is at version {self._version}, the change is based on {base}; "
                    "look at it again (run.network), and repeat the change"
                )
            check_known("source", inputs or (), [one.name for one in wanted.sources], InputError, "inputs")
            self._tidy()
            for one in self._attached.values():
                wanted = graft(wanted, one._fragment)
            names: dict[str, Any] = {"restart": _listed(restart), "keep": _listed(keep), "flush": _listed(flush)}
            alter, changes = self._alter(wanted, "change", at, inputs=inputs, try_only=try_only, **names)
            if try_only:
                return Change(changes, lambda: None, self._version)
            if "policy" in changes.schedule:
                schedule: Mapping[str, Any] = wanted.schedule or {}
                self.policy(schedule.get("policy") or str(self._settings.schedule.policy))
            return Change(changes, lambda: self._seam_of(alter.sealed), self._version)

    def policy(self, policy: str | Planner, *, at: float | None = None) -> None:
        """Use another policy from now on."""
        self._control.policy(policy, at=self._moment(at))

    def refresh(self, *points: str, at: float | None = None) -> Change:
        """Read stored data sets again, all of them by default; boxes that look rows up there do so from the seam on."""
        dangling = [point.name for point in self._network.points if point.data is not None]
        check_known("point with data", points, dangling, NetworkError)
        with self._changing:
            alter, changes = self._alter(
                self._network, f"refresh {', '.join(points or dangling)}", at, refresh=points or dangling
            )
            return Change(changes, lambda: self._seam_of(alter.sealed), self._version)

    def _check_paused(self, changes: Changes, histories: Mapping[tuple[str, int], History]) -> None:
        """Raise a RunError if a change would wait for boxes that are paused."""
        if not self._paused:
            return
        checked, named = self._checked, [box.name for box in self._checked.order]
        waits = set(upstream(checked.inputs, changes.affected)) | set(changes.affected)
        points = [owner(checked.points[one.point]) for one in histories.values() if one.since not in (None, ALL)]
        waits |= set(upstream(checked.inputs, [box for box in points if box in named])) | set(points)
        held = [box for box in named if box in self._paused and box in waits]
        if held or ("all" in self._paused and waits):
            what = f"box '{held[0]}' is" if held else "all boxes are"
            raise RunError(f"{what} paused, and a change has to wait for what came before it: resume first")

    def _compare(self, network: Network, **names: Any) -> tuple[CheckedNetwork, Changes]:
        tables = Statics.of_run(self._settings.tables).again(names.get("refresh", ()))
        checked = check(network, self._checked.functions, tables, contact=True)
        return checked, compare(self._checked, checked, **names)

    def _alter(
        self,
        network: Network,
        what: str,
        at: float | None,
        *,
        found: tuple[CheckedNetwork, Changes] | None = None,
        histories: Mapping[tuple[str, int], History] | None = None,
        listeners: Mapping[str, Any] | None = None,
        inputs: Mapping[str, object] | None = None,
        try_only: bool = False,
        **names: Any,
    ) -> tuple[Alter, Changes]:
        """Prepare a seam, let the loop carry it out, and wait for that; with `try_only` only prepare it.

        `found` is what `_compare` returns, if it is known.
        """
        if self._over.done():
            raise RunError("the run has ended: nothing can be changed")
        moment = 0 if try_only else self._moment(at)
        checked, changes = found or self._compare(network, **names)
        self._check_paused(changes, histories or {})
        with self._prepared(checked, changes, histories or {}, listeners or {}, inputs or {}, what) as alteration:
            alter = Alter(alteration, Future(), Future())
            if not try_only:
                self._control.give(alter, moment)
                if not self._virtual:
                    self._wait(alter.done)
                self._network, self._checked = network, checked
                self._settings = replace(self._settings, tables=alteration.tables)
                self._version += 1
        return alter, changes

    @contextmanager
    def _prepared(
        self,
        checked: CheckedNetwork,
        changes: Changes,
        histories: Mapping[tuple[str, int], History],
        listeners: Mapping[str, Any],
        inputs: Mapping[str, object],
        what: str,
    ) -> Iterator[Alteration]:
        """Give a change with all that it opens; unless the body makes it, that is closed, and all is as before."""
        settings, inboxes, version = self._settings, dict(self._inboxes), self._version
        with ExitStack() as undone:
            undone.callback(self._take_back, settings, inboxes)
            self._settings = replace(settings, inputs={**settings.inputs, **inputs})
            self._take_inboxes(changes)
            self._give_inboxes(checked)
            carrier = None if self._virtual else self._carrier_now()
            alteration = self._prepare(checked, changes, carrier, histories, listeners, what)
            undone.callback(_discard, alteration)
            yield alteration
            if self._version != version:
                undone.pop_all()

    def _prepare(
        self,
        checked: CheckedNetwork,
        changes: Changes,
        carrier: Run | None,
        histories: Mapping[tuple[str, int], History],
        listeners: Mapping[str, Any],
        what: str,
    ) -> Alteration:
        settings = replace(self._settings, inputs={**self._settings.inputs, **self._inboxes})
        if carrier is not None:
            carrier.check_alteration(checked, changes)
            carrier.histories.check(checked, changes.points_restarted)

        permit(checked, settings)
        written = {f"output '{name}'": one for name, one in settings.outputs.items()}
        check_files(checked.network, settings.inputs, written, tables=settings.tables or ())
        if settings.shed is not None:
            settings.shed.limits(
                [one.name for one in checked.network.outputs], [one.qos for one in checked.network.outputs]
            )

        with ExitStack() as opened:  # if anything fails, what was opened is closed again

            def reader(name: str) -> Reader:
                found = open_reader(checked.network, checked.network.source(name), settings)
                opened.callback(found.close)
                return found

            def destination(name: str) -> Destination:
                found = destination_of(checked, settings, checked.network.output(name))
                found = found._replace(listener=listeners.get(name))
                if carrier is None and (found.output.keep or found.output.roll):
                    return found  # they go by the simulation's clock, and it does not run yet
                found = found._replace(writer=found.open(WallClock() if carrier is None else carrier.clock))
                assert found.writer is not None
                opened.callback(found.writer.abort)
                return found

            before = None if carrier is None else carrier.program
            alteration = prepare_alteration(
                self._checked, checked, changes, before, settings.tables, reader, destination, histories, what
            )
            opened.pop_all()
            return alteration


def _listed(names: Iterable[str] | str) -> Collection[str] | str:
    return names if isinstance(names, str) else tuple(names)


def _discard(alteration: Alteration) -> None:
    """Close what a change has opened that is not made."""
    for reader in alteration.readers.values():
        reader.close()
    for destination in alteration.destinations.values():
        if destination.writer is not None:
            destination.writer.abort()


def _retired(carrier: Run, name: str) -> pa.Table:
    """Return what an output that was removed has delivered; it is not part of the run's result."""
    outlet = carrier.outlets.retired.pop(name, None)
    return None if outlet is None else outlet.table
