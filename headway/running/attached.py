"""Handles of what was attached to a running network, and of changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from headway.errors import HeadwayError, OutputError, RunError, check_known
from headway.living.changes import Changes
from headway.living.fragments import Fragment
from headway.running.subscriptions import LIMIT, Subscription

if TYPE_CHECKING:
    from headway.running.changing import Changing


class Change:
    """A change of a running network that has been made, or with `try_only` could be."""

    def __init__(self, changes: Changes, seam: Callable[[], int | None], version: int) -> None:
        self._changes, self._seam = changes, seam
        self.version = version
        """The version of the network after it."""

    @property
    def seam(self) -> int | None:
        """The arrival number at which it was made; None if it was only tried, or in a simulation that has not begun."""
        return self._seam()

    def __getattr__(self, name: str) -> Any:
        """Return what it does: `kept`, `added`, `removed`, `replaced`, `restarted`, `carried` and so on."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._changes, name)

    def __repr__(self) -> str:
        made = "tried" if self.seam is None else f"at {self.seam}"
        return f"<Change {made}: {self._changes.summary()}>"


class Attached:
    """A fragment that is attached to a running network."""

    def __init__(self, running: Changing, fragment: Fragment, seam: Callable[[], int | None]) -> None:
        self._running, self._fragment, self._seam = running, fragment, seam
        self.name = fragment.name
        self.outputs: Mapping[str, str] = {one.name: f"{fragment.name}/{one.name}" for one in fragment.outputs}
        """By output of the fragment: its name in the network."""
        self._tables: dict[str, pa.Table] | None = None
        self._done = {name: End() for name in self.outputs}
        self._error: HeadwayError | None = None

    @property
    def seam(self) -> int:
        """The arrival number at which it was attached; a RunError in a simulation that has not begun."""
        found = self._seam()
        if found is None:
            raise RunError("the simulation has not begun: wait for it first")
        return found

    def subscribe(self, output: str | None = None, *, limit: int = LIMIT, slow: str = "fail") -> Subscription:
        """Return what an output delivers from now on; by default that of the only output."""
        return self._running.subscribe(self._of(output), limit=limit, slow=slow)

    def read(self, output: str | None = None) -> pa.Table:
        """Return what an output has delivered so far; by default that of the only output."""
        name = self._of(output)
        if self._error is not None:
            raise self._error
        if self._tables is None:
            try:
                return self._running.read(name)
            except OutputError:
                if self._tables is None:  # else somebody has just detached it
                    raise
        assert self._tables is not None
        return self._tables[name]

    def result(self, output: str | None = None, timeout: float | None = None) -> pa.Table:
        """Return all that an output delivers; if the fragment has `until: now`, wait for that, then detach it."""
        name = self._of(output)
        if self._tables is None and self._fragment.until_now:
            for one in self._done.values():
                self._running._wait(one.ended, timeout)
            self.detach()
        return self.read(name.partition("/")[2] if "/" in name else name)

    def detach(self, *, flush: bool = False, at: float | None = None) -> None:
        """Take the fragment out; its open windows are dropped, or emitted with `flush`. Idempotent."""
        with self._running._changing:  # several may do so at once
            if self._tables is None:
                self._tables = self._running._detach(self, flush, at)

    def _lose(self, error: HeadwayError) -> None:
        """Take note that its history cannot be read."""
        self._error = error
        for one in self._done.values():
            one.fail(error)

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


class End:
    """Learns that an output has delivered everything."""

    def __init__(self) -> None:
        self.ended: Future[str] = Future()

    def hear(self, batch: pa.RecordBatch) -> None:
        """Do nothing."""

    def fail(self, error: HeadwayError) -> None:
        """Note that it never will."""
        if not self.ended.done():
            self.ended.set_exception(error)

    def end(self, reason: str) -> None:
        """Note it."""
        if not self.ended.done():
            self.ended.set_result(reason)
