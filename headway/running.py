"""Running networks: `start` one, push to it, read from it, attach queries, change it, look into it, stop it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future
from concurrent.futures import wait as wait_for
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar, Unpack, cast

import pyarrow as pa

from headway.builder import NetworkBuilder
from headway.checking import CheckedNetwork, check
from headway.clock import SECOND
from headway.connectors import open_source
from headway.connectors.protocol import Reader
from headway.connectors.pushed import Inbox, Planned
from headway.engines.alteration import Alteration, History, prepare_alteration
from headway.engines.carrier import Run
from headway.engines.control import Alter, Ask, Control, Pause, Resume, StepOnce
from headway.engines.opening import Destination, destination_of, open_reader
from headway.engines.runs import RunResult, Status, make_engine
from headway.errors import InputError, NetworkError, OutputError, RunError, check_known
from headway.files import load
from headway.living.changes import Changes, compare
from headway.living.fragments import Fragment, graft, prune, read_fragment, start_of
from headway.network import Network
from headway.options.table import RunOptions
from headway.runner import AnyNetwork, Prepared, prepare
from headway.scheduling.policy import Planner
from headway.subscriptions import LIMIT, Subscription

Answer = TypeVar("Answer")
_READ = 1 << 20


class Change:
    """A change of a running network that has been made, or with `try_only` could be."""

    def __init__(self, changes: Changes, seam: Callable[[], int | None], version: int) -> None:
        self._changes, self._seam = changes, seam
        self.version = version
        """The version of the network after it."""

    @property
    def seam(self) -> int | None:
        """The arrival number at which it was made; None if it was only tried."""
        return self._seam()

    def __getattr__(self, name: str) -> Any:
        """Return what it does: `kept`, `added`, `removed`, `replaced`, `restarted`, `carried` and so on."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._changes, name)

    def __repr__(self) -> str:
        return f"<Change at {self.seam}: {self._changes.summary()}>"


class Attached:
    """A fragment that is attached to a running network."""

    def __init__(self, running: Running, fragment: Fragment, seam: Callable[[], int]) -> None:
        self._running, self._fragment, self._seam = running, fragment, seam
        self.name = fragment.name
        self.outputs: Mapping[str, str] = {one.name: f"{fragment.name}/{one.name}" for one in fragment.outputs}
        """By output of the fragment: its name in the network."""
        self._tables: dict[str, pa.Table] | None = None
        self._done = {name: _End() for name in self.outputs}

    @property
    def seam(self) -> int:
        """The arrival number at which it was attached."""
        return self._seam()

    def subscribe(self, output: str | None = None, *, limit: int = LIMIT, slow: str = "fail") -> Subscription:
        """Return what an output delivers from now on; by default that of the only output."""
        return self._running.subscribe(self._of(output), limit=limit, slow=slow)

    def read(self, output: str | None = None) -> pa.Table:
        """Return what an output has delivered so far; by default that of the only output."""
        name = self._of(output)
        if self._tables is not None:
            return self._tables[name]
        return self._running.read(name)

    def result(self, output: str | None = None, timeout: float | None = None) -> pa.Table:
        """Return all that an output delivers; if the fragment has `until: now`, wait for that, then detach it."""
        name = self._of(output)
        if self._tables is None and self._fragment.until_now:
            for one in self._done.values():
                self._running._wait(one.ended, timeout)
            self.detach()
        return self.read(name.partition("/")[2] if "/" in name else name)

    def detach(self, *, flush: bool = False) -> None:
        """Take the fragment out; its open windows are dropped, or emitted with `flush`. Idempotent."""
        if self._tables is None:
            self._tables = self._running._detach(self, flush)

    def _of(self, output: str | None) -> str:
        if output is None:
            if len(self.outputs) != 1:
                raise OutputError(f"'{self.name}' has several outputs; name one of {', '.join(self.outputs)}")
            (output,) = self.outputs
        check_known("output", [output], self.outputs, OutputError)
        return self.outputs[output]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()

    def __repr__(self) -> str:
        return f"<Attached '{self.name}': outputs {', '.join(self.outputs)}>"


class _End:
    """Learns that an output has delivered everything."""

    def __init__(self) -> None:
        self.ended: Future[str] = Future()

    def hear(self, batch: pa.RecordBatch) -> None:
        """Do nothing."""

    def end(self, reason: str) -> None:
        """Note it."""
        if not self.ended.done():
            self.ended.set_result(reason)


class Running:
    """A network that runs. All methods may be called from any thread.

    On the engine `sim`, time is virtual: commands are given for moments (`at`, in seconds), in their order, and the run
    begins when somebody waits for it.
    """

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
        self._changing = threading.RLock()
        self._version = 1
        self._latest = 0.0
        self._attached: dict[str, Attached] = {}
        self._paused: set[str] = set()
        self._over: Future[RunResult] = Future()
        self._carrier: Future[Run] = Future()
        self._thread: threading.Thread | None = None
        self._listening: list[Subscription] = []

    def _give_inboxes(self, checked: CheckedNetwork) -> None:
        for source in checked.network.sources:
            if source.push and source.name not in self._settings.inputs and source.name not in self._inboxes:
                made = Planned if self._virtual else Inbox
                self._inboxes[source.name] = made(source.name, source.schema)

    # The run

    def begin(self) -> Self:
        """Start the run in a thread of its own, and wait until it has begun. Raises what keeps it from beginning."""
        if self._thread is None:
            self._control.give(Ask(lambda carrier: carrier, self._carrier))
            self._thread = threading.Thread(target=self._work, name="headway-run", daemon=True)
            self._thread.start()
            _first(self._carrier, self._over)
            if self._over.done() and not self._carrier.done():
                self._over.result()
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
        self.begin()
        return self._over.result(timeout)

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
        if not self._over.done():
            with contextlib.suppress(RunError):  # it may end meanwhile
                for box in sorted(self._paused):
                    self.resume(box)
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

    # Talking to it

    def _moment(self, at: float | None) -> int:
        """Return the moment for a command in nanoseconds; 0 for now."""
        if not self._virtual:
            if at is not None:
                raise RunError(f"at is for the engine 'sim'; on '{self._engine}' commands are for now")
            return 0
        if self._thread is not None:
            raise RunError("the simulation has run: give commands before anybody waits for it")
        if at is not None and (not at >= self._latest or at > 1e9):
            raise RunError(f"commands are given in the order of their moments: {at} is before {self._latest}")
        self._latest = self._latest if at is None else float(at)
        return int(self._latest * SECOND)

    def _wait(self, answer: Future[Answer], timeout: float | None = None) -> Answer:
        """Return an answer of the run; raises if the run ends without one."""
        self.begin()
        done = _first(answer, self._over, timeout=timeout)
        if answer.done():
            return answer.result()
        if not done:
            raise TimeoutError(f"no answer within {timeout} seconds")
        if (error := self._over.exception()) is not None:
            raise RunError(f"the run has failed: {error}") from error
        raise RunError("the run has ended")

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

    # Data in

    def push(
        self,
        source: str,
        rows: object,
        *,
        wait: bool = True,
        timeout: float | None = None,
        client: str | None = None,
        sequence: int | None = None,
        at: float | None = None,
    ) -> int:
        """Push rows, Arrow data or a data frame to a source; return the arrival number of the last tuple.

        If there is no room, it waits, up to `timeout` seconds; with ``wait=False`` it raises an InputError instead. A
        push with a `client` and a rising `sequence` counts once, however often it is repeated. Rows that do not fit
        are refused: none of them enters.
        """
        inbox = self._inbox(source)
        if (client is None) != (sequence is None):
            raise InputError(f"source '{source}': give both client and sequence, or neither")
        batches = _batches(source, inbox, rows)
        moment = self._moment(at)
        if isinstance(inbox, Planned):
            for batch in batches:
                inbox.plan(moment, batch)
            return -1
        if not batches:
            return self._now(lambda carrier: int(carrier.sources.issued))
        if client is not None or len(batches) == 1:  # what has a number counts as a whole
            batch = batches[0] if len(batches) == 1 else _joined(batches)
            arrived = inbox.offer(batch, wait, timeout, client, sequence)
        else:
            for batch in batches:
                arrived = inbox.offer(batch, wait, timeout)
        try:
            return self._wait(arrived, timeout)
        except TimeoutError:
            inbox.withdraw(arrived)
            return self._wait(arrived)  # it has just been let in, or was taken back

    def end(self, source: str) -> None:
        """Let a source end that is pushed to. Idempotent."""
        inbox = self._inbox(source)
        if isinstance(inbox, Inbox):
            inbox.end()

    def _inbox(self, source: str) -> Inbox | Planned:
        check_known("source", [source], [one.name for one in self._checked.network.sources], InputError)
        if source not in self._inboxes:
            raise InputError(
                f"source '{source}' is not pushed to; declare it with `push: true` and give it no input of its own"
            )
        return self._inboxes[source]

    # Data out

    def subscribe(self, output: str, *, limit: int = LIMIT, slow: str = "fail") -> Subscription:
        """Return an iterator over what an output delivers from now on, as Arrow record batches.

        At most `limit` bytes wait for a slow reader. Then the subscription fails, or the oldest batches are dropped
        (``slow="drop"``), or the run waits (``slow="wait"``).
        """
        made = Subscription(output, limit, slow)
        self._listening.append(made)  # first: the run may end as soon as it is heard
        try:
            self._listen(output, made)
        except BaseException:
            self._listening.remove(made)
            raise
        made.leave = lambda: None if self.ended else self._forget(output, made)
        return made

    def _listen(self, output: str, listener: Any) -> None:
        def listen(carrier: Run) -> None:
            check_known("output", [output], carrier.outlets.deliveries, OutputError)
            carrier.outlets.deliveries[output].listen(listener)

        if self._virtual and self._thread is None:
            self.ask(listen, self._moment(None))
        else:
            self._wait(self.ask(listen))

    def _forget(self, output: str, listener: Any) -> None:
        def forget(carrier: Run) -> None:
            if output in carrier.outlets.deliveries:
                carrier.outlets.deliveries[output].forget(listener)

        self._wait(self.ask(forget))

    def read(self, output: str) -> pa.Table:
        """Return what an output has delivered so far, if it is kept: outputs without a sink, and views."""
        if self._over.done():
            tables = self._over.result().outputs
            check_known("output", [output], tables, OutputError)
            return tables[output]
        return self._now(lambda carrier: _table(carrier, output))

    # Changing it

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
        """
        read = read_fragment(fragment, trust=self._network.trust, **options)
        with self._changing:
            self._tidy()
            wanted = graft(self._network, read)
            begins = start_of(read, self._network)
            histories = {
                (box, place): History(point, read.since, read.until_now)
                for box, points in begins.items()
                for place, point in points.items()
            }
            attached = Attached(self, read, lambda: self._wait(alter.sealed))
            ends = {attached.outputs[name]: end for name, end in attached._done.items()}
            alter, _ = self._alter(wanted, f"attach {read.name}", at, histories=histories, listeners=ends)
            self._attached[read.name] = attached
        return attached

    def _detach(self, attached: Attached, flush: bool) -> dict[str, pa.Table]:
        with self._changing:
            if self._attached.get(attached.name) is not attached or self._over.done():
                return {name: self.read(name) for name in attached.outputs.values()}
            wanted = prune(self._network, attached.name)
            names = list(attached.outputs.values())
            own = [box.name for box in self._network.boxes if box.name.startswith(f"{attached.name}/")]
            stateful = [box.name for box in self._checked.order if box.name in own and box.spec.stateful]
            self._alter(wanted, f"detach {attached.name}", None, flush=stateful if flush else ())
            del self._attached[attached.name]
            return self._now(lambda carrier: {name: _retired(carrier, name) for name in names})

    def _tidy(self) -> None:
        """Detach the fragments whose input has ended and whose results are delivered."""
        for one in list(self._attached.values()):
            if one._fragment.until_now and all(end.ended.done() for end in one._done.values()):
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
            self._tidy()
            for one in self._attached.values():
                wanted = graft(wanted, one._fragment)
            names: dict[str, Any] = {"restart": _listed(restart), "keep": _listed(keep), "flush": _listed(flush)}
            if try_only:
                _, changes = self._compare(wanted, **names)
                return Change(changes, lambda: None, self._version)
            alter, changes = self._alter(wanted, "change", at, inputs=inputs or {}, **names)
            return Change(changes, lambda: self._wait(alter.sealed), self._version)

    def refresh(self, *points: str, at: float | None = None) -> Change:
        """Read stored data sets again, all of them by default; boxes that look rows up there do so from the seam on."""
        dangling = [point.name for point in self._network.points if point.data is not None]
        check_known("point with data", points, dangling, NetworkError)
        with self._changing:
            alter, changes = self._alter(
                self._network, f"refresh {', '.join(points or dangling)}", at, refresh=points or dangling
            )
            return Change(changes, lambda: self._wait(alter.sealed), self._version)

    def _compare(self, network: Network, **names: Any) -> tuple[CheckedNetwork, Changes]:
        settings = self._settings
        checked = check(network, self._checked.functions, settings.tables, contact=True)
        return checked, compare(self._checked, checked, **names)

    def _alter(
        self,
        network: Network,
        what: str,
        at: float | None,
        *,
        histories: Mapping[tuple[str, int], History] | None = None,
        listeners: Mapping[str, Any] | None = None,
        inputs: Mapping[str, object] | None = None,
        **names: Any,
    ) -> tuple[Alter, Changes]:
        """Prepare a seam, let the loop carry it out, and wait for that."""
        if self._over.done():
            raise RunError("the run has ended: nothing can be changed")
        moment = self._moment(at)
        checked, changes = self._compare(network, **names)
        held = [box for box in changes.affected if box in self._paused or "all" in self._paused]
        if held:
            raise RunError(f"box '{held[0]}' is paused, and has to process what came before a change: resume it first")
        before = self._settings
        if inputs:
            self._settings = replace(before, inputs={**before.inputs, **inputs})
        try:
            self._give_inboxes(checked)
            carrier = None if self._virtual else self._carrier_now()
            alteration = self._prepare(checked, changes, carrier, histories or {}, listeners or {}, what)
        except BaseException:
            self._settings = before
            raise
        alter = Alter(alteration, Future(), Future())
        self._control.give(alter, moment)
        if not self._virtual:
            self._wait(alter.done)
        self._network, self._checked = network, checked
        self._version += 1
        return alter, changes

    def _carrier_now(self) -> Run:
        self.begin()
        return self._carrier.result()

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

        def reader(name: str) -> Reader:
            return open_reader(checked.network, checked.network.source(name), settings)

        def destination(name: str) -> Destination:
            found = destination_of(checked, settings, checked.network.output(name))
            return found._replace(listener=listeners.get(name))

        before = None if carrier is None else carrier.program
        return prepare_alteration(
            self._checked, checked, changes, before, settings.tables, reader, destination, histories, what
        )

    # Steering and debugging

    def policy(self, policy: str | Planner, *, at: float | None = None) -> None:
        """Use another policy from now on."""
        self._control.policy(policy, at=self._moment(at))

    def shed(self, active: bool, *, at: float | None = None) -> None:
        """Allow load shedding under overload, or turn it off."""
        self._control.shed(active, at=self._moment(at))

    def specify(self, settings: Mapping[str, Any], *, at: float | None = None) -> None:
        """Give the adaptive layer another specification."""
        self._control.specify(settings, at=self._moment(at))

    def pause(self, box: str = "all", *, at: float | None = None) -> None:
        """Pause a box, or all: nothing is lost, tuples wait. Boxes that need its progress wait with it."""
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
        if not isinstance(tuples, int) or tuples < 1:
            raise RunError(f"a step is of at least 1 tuple, not {tuples!r}")
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
        watch = self._now(lambda carrier: carrier.watch(arc))
        return cast(pa.Table, watch.latest(tuples, wait))

    def queue(self, box: str, tuples: int = 20) -> Mapping[str, pa.Table]:
        """Return by input of a box the next tuples that wait there."""
        return self._now(lambda carrier: cast(Mapping[str, pa.Table], carrier.queue_of(box, tuples)))

    def windows(self, box: str) -> pa.Table:
        """Return the open windows of a box."""
        return self._now(lambda carrier: cast(pa.Table, carrier.windows_of(box)))

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


def _first(*futures: Future[Any], timeout: float | None = None) -> bool:
    """Wait until one of them is done; return whether one is."""
    return bool(wait_for(futures, timeout, FIRST_COMPLETED).done)


def _listed(names: Iterable[str] | str) -> Collection[str] | str:
    return names if isinstance(names, str) else tuple(names)


def _batches(source: str, inbox: Inbox | Planned, rows: object) -> list[pa.RecordBatch]:
    """Return rows as batches of the source's schema; raise an InputError for the first that does not fit."""
    if isinstance(rows, str | Path | Mapping | Reader):
        raise InputError(f"source '{source}': push rows, Arrow data or a data frame, not {type(rows).__name__}")
    if isinstance(rows, Iterable) and not hasattr(rows, "__len__") and not hasattr(rows, "__arrow_c_stream__"):
        rows = list(rows)
    reader = open_source(source, inbox.schema, rows, strict=True)
    batches = []
    try:
        while (chunk := reader.read(_READ)) is not None:
            batches.append(chunk.batch)
    finally:
        reader.close()
    return [batch for batch in batches if batch.num_rows]


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.concat_batches(batches)


def _table(carrier: Run, output: str) -> pa.Table:
    outlets = carrier.outlets.outlets
    check_known("output", [output], outlets, OutputError)
    table = outlets[output].table
    if table is None:
        raise OutputError(f"output '{output}' is not kept: what it delivers goes to its sink")
    return table


def _retired(carrier: Run, name: str) -> pa.Table:
    """Return what an output that was removed has delivered; it is not part of the run's result."""
    outlet = carrier.outlets.retired.pop(name, None)
    return None if outlet is None else outlet.table
