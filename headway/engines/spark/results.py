"""Results: delivered once, also when the driver dies between writing and committing.

With a state directory every micro-batch's results are written under its number before anything else happens
with them, and count when the journal has them: what a killed process left beside is deleted, and the replay of its
micro-batch writes it again. Files for the user are put together from these.
Functions and terminals get results as they come: after a crash, those of the last micro-batch may come again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from headway.catalog import HALF_LIFE
from headway.clock import Clock
from headway.connectors import DiscardSink, TableSink, open_sink
from headway.connectors.base import Writer, prepare
from headway.connectors.sinks import CallbackSink
from headway.engines.delivery import Delivery
from headway.errors import RunError
from headway.network import Output
from headway.schema import Schema
from headway.storage.files import read_table, write_table
from headway.storage.filesystems import Place
from headway.storage.segments import quote_name
from headway.trains import Train
from headway.trust import OWN, Trust

_OWN = re.compile(r"-\d+[sf]-\d{10}\.[0-9a-f]{8}\.arrow(?:\.tmp)?$")
"""What may be deleted: files that this module names like this."""


class Result:
    """One output."""

    def __init__(
        self,
        output: Output,
        schema: Schema,
        what: object,
        base: Path | None,
        clock: Clock,
        place: Place | None,
        half_life: float = HALF_LIFE,
        delivered: Sequence[str] = (),
        trust: Trust = OWN,
    ) -> None:
        """Deliver to what the user gave (None: a table in memory), and keep results at `place` if there is one.

        `delivered` are the files of results that an earlier process has delivered; others in their folder are what
        it did not come to deliver.
        """
        self.name = output.name
        self._schema = schema
        self._place = place
        self._folder = f"results/{quote_name(output.name)}"
        self._what, self._base, self._trust = what, base, trust
        self.table: TableSink | None = None
        self.writer: Writer
        self._file: Writer | None = None
        self._later = place is not None and is_file(what)
        self._named: dict[str, str] = {name.partition(".")[0]: name for name in delivered}
        if place is not None:
            place.make([self._folder], False)
            counted = {f"{self._folder}/{name}" for name in delivered}
            place.delete([name for name in place.files(self._folder) if name not in counted and _OWN.search(name)])
        if what is None:
            self.writer = self.table = TableSink(schema)
        elif self._later:
            open_sink(output.name, schema, what, base, trust).abort()  # complain now if it cannot be written
            self.writer = DiscardSink()
        else:
            self.writer = open_sink(output.name, schema, what, base, trust)
        self.delivery = Delivery(output, schema, self.writer, clock, half_life)
        # What an earlier process delivered: memory starts empty, so it is filled again; others have it already.
        for batch in self._stored():
            self.delivery.tuples += batch.num_rows
            if not isinstance(self.writer, DiscardSink | CallbackSink) and not self._streams:
                self.writer.write(batch)
        self._closed = False

    @property
    def _streams(self) -> bool:
        return str(self._what) == "-" or hasattr(self.writer, "begin")

    @property
    def counted(self) -> bool:
        """Whether nobody reads the tuples, so that only their number is needed."""
        return self._place is None and isinstance(self.writer, DiscardSink)

    def deliver(self, train: Train, unit: str, batch: int) -> tuple[str, int, int] | None:
        """Take the results of one micro-batch, which may have been delivered before.

        Returns the file in which they are kept now, its bytes and rows, if there is a new one.
        """
        name = f"{unit}-{batch:010d}"
        known = name in self._named
        kept = None
        if self._place is not None and not known and len(train):
            table = pa.Table.from_batches([train.to_batch(self._schema.to_arrow())])
            file, size = write_table(self._place, f"{self._folder}/{name}.arrow", table, sync=True)
            self._named[name] = file.rpartition("/")[2]
            kept = self._named[name], size, len(train)
        begin = getattr(self.writer, "begin", None)
        if begin is not None:
            begin(unit, batch)
        if known and not self._streams and not isinstance(self.writer, CallbackSink):
            return kept
        before = self.delivery.tuples
        self.delivery.deliver(train)
        if known:
            self.delivery.tuples = before
        return kept

    def _stored(self) -> Iterator[pa.RecordBatch]:
        for name in sorted(self._named.values(), key=_order):
            assert self._place is not None
            table, schema = read_table(self._place.name(f"{self._folder}/{name}")), self._schema.to_arrow()
            if table.schema.names != schema.names or table.schema.types != schema.types:
                raise RunError(
                    f"the state cannot go on: output '{self.name}' has the columns {self._schema} now, and the results "
                    f"so far have {Schema.from_arrow(table.schema)}; give the output another name, or another --state"
                )
            for batch in table.to_batches():
                yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    def prepare(self) -> None:
        """Do all that completing the output takes, but for showing it."""
        if self._later:
            self._file = open_sink(self.name, self._schema, self._what, self._base, self._trust)
            for batch in self._stored():
                self._file.write(batch)
            prepare(self._file)
        self.delivery.prepare()

    def close(self) -> None:
        """Complete the output, which is prepared."""
        if self._file is not None:
            self._file.close()
        self.delivery.close()
        self._closed = True

    def abort(self) -> None:
        """Give up, unless it is complete."""
        if not self._closed:
            if self._file is not None:
                self._file.abort()
            self.delivery.abort()


def _order(name: str) -> tuple[int, int]:
    """Return where a file of results stands: units are numbered in the order in which they had the output."""
    *_, unit, batch = name.partition(".")[0].split("-")
    return int(unit.rstrip("sf")), int(batch)


def is_file(what: object) -> bool:
    """Return whether an output goes to a single file, which only appears when it is complete."""
    if isinstance(what, Mapping):
        ((kind, settings),) = what.items() if len(what) == 1 else ((None, None),)
        return kind in ("csv", "jsonl", "parquet", "arrow") and str(settings) != "-" and not str(settings).endswith("/")
    return isinstance(what, str | Path) and str(what) != "-" and not str(what).endswith("/")
