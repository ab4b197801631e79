"""Data in and out of a running network: pushes, subscriptions, reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from headway.connectors import open_source
from headway.connectors.protocol import Reader
from headway.connectors.pushed import Inbox, Planned
from headway.engines.carrier import Run
from headway.engines.opening import Outlet
from headway.errors import InputError, OutputError, RunError, check_known
from headway.running.session import Session, check_seconds
from headway.running.subscriptions import LIMIT, Subscription

_AT_ONCE = 0.25
"""Seconds within which a run takes a push in, unless it is held up."""
_READ = 1 << 20
"""Rows that are converted at a time."""


class Transfers(Session):
    """What goes into a running network, and what comes out."""

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
        check_seconds("timeout", timeout)
        if (client is None) != (sequence is None):
            raise InputError(f"source '{source}': give both client and sequence, or neither")
        if client is not None and (not isinstance(client, str) or type(sequence) is not int):
            raise InputError(
                f"source '{source}': client is a text and sequence a whole number, not {client!r} and {sequence!r}"
            )
        batches = _batches(source, inbox, rows)
        if isinstance(inbox, Planned):
            moment = self._moment(at, inbox.latest)
            for batch in batches:
                inbox.plan(moment, batch)
            return -1
        self._moment(at)
        if not batches:
            return self._now(lambda carrier: int(carrier.sources.issued))
        if client is not None or len(batches) == 1:  # what has a number counts as a whole
            batch = batches[0] if len(batches) == 1 else _joined(batches)
            arrived = inbox.offer(batch, wait, timeout, client, sequence)
        else:
            for batch in batches:
                arrived = inbox.offer(batch, wait, timeout)
        try:
            return self._wait(arrived, timeout if wait else _AT_ONCE)
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
        made.leave = lambda: self._leave(output, made)
        return made

    def _leave(self, output: str, listener: Subscription) -> None:
        with suppress(ValueError):  # it has left before
            self._listening.remove(listener)
            if not self.ended:
                with suppress(RunError):  # the run may end meanwhile
                    self._forget(output, listener)

    def _listen(self, output: str, listener: Any) -> None:
        def listen(carrier: Run) -> None:
            check_known("output", [output], carrier.outlets.deliveries, OutputError)
            carrier.outlets.deliveries[output].listen(listener)
            carrier.keep_behind()

        if self._virtual and self._thread is None:
            self.ask(listen, self._moment(None))
        else:
            self._wait(self.ask(listen))

    def _forget(self, output: str, listener: Any) -> None:
        def forget(carrier: Run) -> None:
            if output in carrier.outlets.deliveries:
                carrier.outlets.deliveries[output].forget(listener)
                carrier.keep_behind()

        self._wait(self.ask(forget))

    def read(self, output: str) -> pa.Table:
        """Return what an output has delivered so far, or a view or point has kept; not of outputs with a sink."""
        kept = [point.name for point in self._checked.network.points if point.data is None]
        if output in kept and not self._over.done():
            if self._virtual:
                self.begin()
            return self._carrier_now().histories.table(output)
        if self._over.done():
            tables = self._over.result().outputs
            points = [point.name for point in self._checked.network.points]
            if output in points and output not in tables:
                raise OutputError(f"point '{output}' can be read while the run goes on; option history keeps its files")
            check_known("output", [output], tables, OutputError)
            return tables[output]
        table = self._now(lambda carrier: _outlet(carrier, output)).table  # made here, not by the scheduler thread
        if table is None:
            raise OutputError(f"output '{output}' is not kept: what it delivers goes to its sink")
        return table


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


def _outlet(carrier: Run, output: str) -> Outlet:
    outlets: Mapping[str, Outlet] = carrier.outlets.outlets
    points = [point.name for point in carrier.checked.network.points if point.data is None]
    check_known("output", [output], [*outlets, *points], OutputError)
    return outlets[output]
