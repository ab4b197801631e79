"""The state directory: everything that a run needs to go on after a crash.

- ``plan.json``: how the network was cut, and what every saved box state depends on;
- ``log/``: the arrivals; ``checkpoints/``: Spark's offsets, commits and box states, by unit;
- ``journal/``: what every micro-batch covered and delivered, with checksums of it;
- ``results/`` and ``letters/``: what was delivered; ``tables/``: static tables as they were;
- ``lock``: who uses it now.

`verifying` looks whether all of it is whole before a run goes on.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from headway.checking import CheckedNetwork
from headway.connectors.input_files import check_input
from headway.connectors.protocol import Reader
from headway.engines.base import RunSettings
from headway.engines.letters import LetterRow
from headway.engines.spark.driver.cut import Cut, cut, fingerprint
from headway.engines.spark.driver.journal import Journal, Record
from headway.engines.spark.driver.units import RunningUnit
from headway.engines.spark.driver.verifying import FORMAT, PLAN, Found, read_letters, verify
from headway.engines.spark.wire.work import CutUnit
from headway.errors import RunError, choices, unknown
from headway.network import Network, Source, thaw
from headway.options.table import CUT_KEYS
from headway.program import compile_program
from headway.storage.checked import checksum, seal
from headway.storage.filesystems import FAILURES, locate, reason
from headway.storage.log import Log
from headway.storage.temporary import clean_temporary, make_temporary, remove_temporary
from headway.trains import NOTHING


class Directory:
    """A state directory that is locked for this run. `found` is what an earlier run has left, verified."""

    def __init__(self, folder: str, kept: bool) -> None:
        """Make the directory if need be, lock it and verify it; a RunError if it is in use or not whole.

        `kept` says that it outlives the run.
        """
        self.folder = folder
        self.kept = kept
        self.place = locate(folder)
        self._lock: Any = None
        try:
            try:
                self.place.make(["checkpoints", "letters"], kept)
                self._acquire()
                self._close_to_others()
            except FAILURES as error:
                raise RunError(
                    f"cannot use the state '{folder}': {reason(error)}; give a directory to write to"
                ) from error
            self.found: Found | None = verify(self.place)
        except BaseException:
            self.release()
            raise

    def _acquire(self) -> None:
        if not self.place.local:
            return
        handle = os.open(Path(self.place.base, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
        self._lock = os.fdopen(handle, "a")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.release()
            raise RunError(
                f"the state '{self.folder}' is in use by another run; wait for it, or give another"
            ) from None

    def _close_to_others(self) -> None:
        """Let nobody else into a new state, also one in a directory that was there; an old one stays as it is."""
        if self.place.local and not Path(self.place.base, PLAN).exists():
            path = Path(self.place.base)
            found = path.stat()
            if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) & 0o077:
                with contextlib.suppress(OSError):  # a file system without permissions
                    path.chmod(0o700)

    def release(self) -> None:
        """Let others use the directory."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def open_directory(
    sources: Sequence[Source], readers: Sequence[Reader], settings: RunSettings, stack: contextlib.ExitStack
) -> Directory:
    """Open the state directory of a run, or a temporary one; `stack` closes it.

    Raises an InputError for an input that is not the one which a saved run has read.
    """
    clean_temporary()
    folder = settings.state
    if folder is None:
        folder = make_temporary()
        stack.callback(remove_temporary, folder)
    directory = Directory(folder, settings.state is not None)
    stack.callback(directory.release)
    found = directory.found
    if found is not None and found.commit is not None:
        for source, reader in zip(sources, readers, strict=True):
            check_input(source.name, reader, found.commit.inputs.get(source.name), found.ended)
    return directory


class State:
    """A run's directory, new or found."""

    def __init__(self, directory: Directory, checked: CheckedNetwork, settings: RunSettings, shards: int) -> None:
        """Cut the network as it was cut before, and refuse what cannot go on."""
        self.place = directory.place
        self._kept = directory.kept
        self._folder = directory.folder
        found = directory.found
        saved = None if found is None else found.plan
        self._journals: dict[str, Journal] = {} if found is None else dict(found.journals)
        self._records: dict[str, list[Record]] = {} if found is None else dict(found.records)
        self._letters = {Path(name).stem for name in self.place.files("letters") if name.endswith(".json")}
        network: Mapping[str, Any] = checked.network.schedule or {}
        asked = {**{key: thaw(network[key]) for key in CUT_KEYS if key in network}, **settings.cut}
        self._saved = saved
        self.token: str = saved.get("token", "") if saved else uuid4().hex[:8]
        self.front = str(asked.get("front", "auto"))
        number = int(saved["shards"] if saved else asked.get("shards") or shards)
        units = asked.get("units", "qos" if settings.shed is None else "loss")
        spread = asked.get("spread", "auto")
        if saved and "units" not in settings.cut:
            units = _old_groups(saved, checked)
        if saved and "spread" not in settings.cut:
            known = {box.name for box in checked.order}
            spread = [name for name in saved["spread"] if name in known]
        self.program = compile_program(checked)
        self.cut: Cut = cut(self.program, number, units, spread)
        self._prints = {unit.name: fingerprint(self.program, unit, number) for unit in self.cut.units}
        self._begins: dict[str, int] = {}
        self._ids: dict[str, str] = {}
        self._check_sources(checked)
        self._match(checked, settings.restart)
        self._write_plan(checked, number)

    def _check_sources(self, checked: CheckedNetwork) -> None:
        """Refuse sources that are not what the log holds; new ones may come."""
        now = _sources(checked)
        for name, schema in (self._saved or {"sources": {}})["sources"].items():
            if now.get(name) != schema:
                what = f"has the schema {now[name]} now" if name in now else "is not in the network any more"
                raise RunError(
                    f"the state '{self._folder}' cannot go on: source '{name}', whose arrivals it holds with the "
                    f"schema {schema}, {what}; run the network as it was, or give another --state"
                )

    def _match(self, checked: CheckedNetwork, restart: frozenset[str]) -> None:
        """Find for every unit what an earlier run left of it; raise for states that cannot go on."""
        saved = self._saved
        boxes = [box.name for box in checked.order]
        for name in restart.difference(boxes):
            raise RunError(f"--restart {name}: {unknown('box', name, boxes)}")
        self._next = int(saved["next"]) if saved else 0
        found = [_find(saved, unit) for unit in self.cut.units]
        continued = [one["id"] for every in found for one in every]
        if any(len(every) > 1 for every in found) or len(set(continued)) < len(continued):
            groups = choices("+".join(one["outputs"]) for one in (saved or {"units": []})["units"])
            raise RunError(
                f"the state '{self._folder}' cannot go on: its outputs are in other units now; cut the network as it "
                f"was, into {groups}, or give another --state"
            )
        for unit, every in zip(self.cut.units, found, strict=True):
            old = every[0] if every else None
            if old is not None:
                self._check(unit, old, restart)
            if old is not None and old["stateful"] == unit.stateful:
                self._ids[unit.name], self._begins[unit.name] = old["id"], old["begin"]
                continue
            # Numbers go up and none is used twice: results of an output are in the order of its units.
            self._ids[unit.name] = f"{self._next}{'s' if unit.stateful else 'f'}"
            self._next += 1
            self._begins[unit.name] = NOTHING if saved is None else self._newest()
            if old is not None:
                self._begins[unit.name] = self._committed(old)
                self._discard(old)

    def _check(self, unit: CutUnit, old: Mapping[str, Any], restart: frozenset[str]) -> None:
        now = self._prints[unit.name]
        changed = [name for name, mark in old["boxes"].items() if name in now and now[name] != mark]
        refused = [name for name in changed if name not in restart]
        if refused:
            names = choices(refused)
            raise RunError(
                f"the state '{self._folder}' cannot go on: box {names} keeps state, and it, or a box before it, has "
                f"changed since; run the network as it was, or begin these boxes anew with --restart "
                f"{' --restart '.join(refused)}, or give another --state"
            )

    def _newest(self) -> int:
        """Return where a new query starts in an old run: where the old ones are."""
        return max((self._committed(one) for one in (self._saved or {"units": []})["units"]), default=NOTHING)

    def _committed(self, old: Mapping[str, Any]) -> int:
        """Return up to which arrival number Spark has committed a unit's query."""
        last = self._last_commit(old)
        return int(old["begin"]) if last < 0 else self._records[old["id"]][last].upto

    def _last_commit(self, old: Mapping[str, Any]) -> int:
        commits = [name.rpartition("/")[2] for name in self.place.files(f"checkpoints/{old['id']}/commits")]
        return max((int(name) for name in commits if name.isdecimal()), default=-1)

    def _discard(self, old: Mapping[str, Any]) -> None:
        """Forget what a unit delivered but did not commit, when another goes on from its last commit."""
        last = self._last_commit(old)
        for record in self._records[old["id"]][last + 1 :]:
            self._journals[old["id"]].cut(last)
            if record.letters is not None:
                self.place.delete([f"letters/{record.letters}.json"])
                self._letters.discard(record.letters)
        del self._records[old["id"]][last + 1 :]

    def _write_plan(self, checked: CheckedNetwork, shards: int) -> None:
        units = [
            {
                "id": self._ids[unit.name],
                "outputs": list(unit.outputs),
                "begin": self._begins[unit.name],
                "stateful": unit.stateful,
                "boxes": self._prints[unit.name],
            }
            for unit in self.cut.units
        ]
        spread = {name for unit in self.cut.units for name, place in unit.placements.items() if place.spread}
        plan = {
            "format": FORMAT,
            "token": self.token,
            "network": checked.network.name,
            "shards": shards,
            "spread": [name for name in self.program.spreadable if name in spread],
            "sources": _sources(checked),
            "next": self._next,
            "units": units,
        }
        self.place.write(PLAN, seal(plan, indent=2), sync=True)

    def begin(self, unit: CutUnit) -> int:
        """Return the arrival number after which a unit's query starts if it has no checkpoint."""
        return self._begins[unit.name]

    def unit_id(self, unit: CutUnit) -> str:
        """Return the name under which a unit's files lie; it stays the same when outputs come and go."""
        return self._ids[unit.name]

    def checkpoint(self, unit: CutUnit) -> str:
        """Return the directory of a unit's checkpoint."""
        return self.place.name(f"checkpoints/{self._ids[unit.name]}")

    def keep_letters(self, name: str, letters: list[LetterRow]) -> bool:
        """Keep dead letters under a name; returns False if they are known already, from before a crash."""
        if name in self._letters or not letters:
            return False
        self._letters.add(name)
        self.place.write(f"letters/{name}.json", seal({"name": name, "letters": letters}), sync=self._kept)
        return True

    def letters(self, refused: Mapping[str, int]) -> list[LetterRow]:
        """Return the dead letters that earlier processes of this run met; the log has counted its part by source."""
        found: list[LetterRow] = []
        counts: Counter[str] = Counter()
        for name in sorted(self._letters):
            rows = read_letters(self.place, f"letters/{name}.json")
            if name.startswith("log-"):
                counts.update(row[0] for row in rows)
            found += rows
        for source, count in refused.items():
            if counts[source] != count:
                raise RunError(
                    f"a file 'log-*.json' in '{self.place.name('letters')}' is missing: the log has refused {count} "
                    f"rows of source '{source}', and {counts[source]} are there; restore it, or give another --state"
                )
        return found

    def open_log(self, network: Network, keep: float) -> Log:
        """Open the log of arrivals, which keeps what all have read for so many seconds."""
        schemas = {source.name: source.schema for source in network.sources}
        return Log(self.place.name("log"), schemas, keep_seconds=keep, sync=self._kept)

    def journal(self, unit: CutUnit) -> Journal:
        """Return where a unit's micro-batches are written down."""
        name = self._ids[unit.name]
        if name not in self._journals:
            self._journals[name] = Journal.open(self.place, name)[0] if self._kept else Journal(None, name)
        return self._journals[name]

    def before(self, unit: RunningUnit, after: int, upto: int, issued: int) -> list[tuple[int, int]]:
        """Return by shard the checksum of its state before a micro-batch, which covers what is above `after`.

        Raises a RunError if Spark asks for what it was never granted: its checkpoint is not the one that it wrote.
        """
        last = self.journal(unit.cut).at(after)
        if (last is None and after != unit.begin) or upto > issued:
            raise RunError(
                f"'{self.checkpoint(unit.cut)}' is damaged: it asks for arrival numbers above {after} up to {upto}, "
                "and these were not granted; restore it, or give another --state"
            )
        return [] if last is None else list(last.states.items())

    def offset_sum(self, unit: CutUnit, batch: int) -> int | None:
        """Return the checksum of Spark's offset file of a micro-batch; elsewhere than on a local disk it would cost."""
        if not self._kept or not self.place.local:
            return None
        return checksum(self.place.read(f"checkpoints/{self._ids[unit.name]}/offsets/{batch}"))

    def results(self, output: str) -> list[str]:
        """Return the files of an output's results that count, of all units that ever had it."""
        found = [record.results.get(output) for records in self._records.values() for record in records]
        return [one[0] for one in found if one is not None]


def _sources(checked: CheckedNetwork) -> dict[str, str]:
    return {source.name: str(source.schema) for source in checked.network.sources}


def _old_groups(saved: Mapping[str, Any], checked: CheckedNetwork) -> list[list[str]] | str:
    """Return the outputs of the old units as far as they still exist; new ones follow by themselves."""
    names = {output.name for output in checked.network.outputs}
    groups = [[name for name in unit["outputs"] if name in names] for unit in saved["units"]]
    return [group for group in groups if group]


def _find(saved: Mapping[str, Any] | None, unit: CutUnit) -> list[Mapping[str, Any]]:
    """Return the saved units that had outputs of a unit: the one that it continues, or too many."""
    return [
        old
        for old in (saved["units"] if saved else ())
        if set(old["outputs"]) & set(unit.outputs) or (not old["outputs"] and not unit.outputs)
    ]
