"""The state directory: everything that a run needs to continue after a crash.

- ``plan.json``: how the network was cut, and what every saved box state depends on;
- ``log/``: the arrivals; ``checkpoints/``: Spark's offsets, commits and box states, by unit;
- ``journal/``: the arrivals, results and checksums of each micro-batch;
- ``results/`` and ``letters/``: delivered results and dead letters; ``tables/``: copies of static tables;
- ``lock``: held by the run that uses the directory.

`journal.verify` checks that all of it is complete before a run continues.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple
from uuid import uuid4

from headway.checking import CheckedNetwork
from headway.connectors.input_files import check_input
from headway.connectors.protocol import Reader
from headway.engines.dead_letters import LetterRow
from headway.engines.runs import RunSettings
from headway.engines.spark.driver.cut import Cut, cut, fingerprint
from headway.engines.spark.driver.journal import FORMAT, PLAN, Found, Journal, damaged, read_letters, verify
from headway.engines.spark.driver.points import Past
from headway.engines.spark.driver.queries import RunningUnit
from headway.engines.spark.driver.recut import Change, Recut
from headway.engines.spark.driver.relays import alias, program_of
from headway.engines.spark.wire.messages import CutUnit, clear
from headway.errors import RunError, choices, unknown
from headway.files import parse_network
from headway.network import Network, Source, Table, thaw
from headway.network.schema import Schema, type_name
from headway.options.table import CUT_KEYS
from headway.program import Program, compile_program
from headway.storage.checked import RESTORE, checksum, seal, write_table
from headway.storage.filesystems import FAILURES, Place, locate, reason
from headway.storage.log import Log
from headway.storage.segments import quote_name
from headway.storage.temporary import clean_temporary, make_temporary, remove_temporary
from headway.trains import NOTHING


def digest(network: Network) -> str:
    """Return a checksum that tells networks apart."""
    return f"{checksum(json.dumps(described(network), sort_keys=True).encode()):08x}"


def described(network: Network) -> dict[str, Any]:
    """Return a plain network as JSON, from which `restored` makes it again."""
    views = [output.name for output in network.outputs if output.view]
    found: dict[str, Any] = json.loads(json.dumps({"plain": network.to_mapping(), "views": views}, default=str))
    return found


def restored(mapping: Mapping[str, Any], like: Network) -> Network:
    """Return the network that `described` returned, with the folder and the trust of another."""
    network = parse_network(mapping["plain"], like.folder, like.trust, grafted=True)
    outputs = [replace(one, view=True) if one.name in mapping["views"] else one for one in network.outputs]
    return replace(network, outputs=tuple(outputs))


def _ref(item: object) -> str:
    return item.ref if isinstance(item, Table) else ""


_UNFINISHED = re.compile(r"\..+\.tmp(\.crc)?")
"""The names under which Spark writes files of a checkpoint until they are complete, and those of their checksums."""


class Directory(NamedTuple):
    """A state directory locked for this run."""

    folder: str
    kept: bool
    """Whether it outlives the run."""
    place: Place
    found: Found | None
    """What an earlier run left, verified."""


def lock_directory(folder: str, kept: bool, stack: contextlib.ExitStack) -> Directory:
    """Create a directory if necessary, lock it until `stack` is closed, and verify it.

    Raises a RunError if it is in use or incomplete.
    """
    place = locate(folder)
    try:
        place.make(["checkpoints", "letters"], kept)
        if place.local:
            handle = os.open(Path(place.base, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
            _lock(stack.enter_context(os.fdopen(handle, "a")), folder)
            _close_to_others(Path(place.base))
        # A killed process leaves files that Spark was writing, and Spark refuses to begin a stateful query beside them.
        place.delete([name for name in place.files("checkpoints") if _UNFINISHED.fullmatch(Path(name).name)])
    except FAILURES as error:
        raise RunError(f"cannot use the state '{folder}': {reason(error)}; give a directory to write to") from error
    return Directory(folder, kept, place, verify(place))


def _lock(file: IO[str], folder: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise RunError(f"the state '{folder}' is in use by another run; wait for it, or give another") from None


def _close_to_others(base: Path) -> None:
    """Restrict a new state to this user, even if its directory already existed; leave an old state unchanged."""
    found = base.stat()
    if not (base / PLAN).exists() and found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) & 0o077:
        with contextlib.suppress(OSError):  # a file system without permissions
            base.chmod(0o700)


def open_directory(
    sources: Sequence[Source], readers: Sequence[Reader], settings: RunSettings, stack: contextlib.ExitStack
) -> Directory:
    """Open the run's state directory, or a temporary one; `stack` closes it.

    Raises an InputError for an input other than the one that the saved run has read.
    """
    clean_temporary()
    folder = settings.state
    if folder is None:
        folder = make_temporary()
        stack.callback(remove_temporary, folder)
    directory = lock_directory(folder, settings.state is not None, stack)
    found = directory.found
    if found is not None and found.commit is not None:
        for source, reader in zip(sources, readers, strict=True):
            check_input(source.name, reader, found.commit.inputs.get(source.name), found.ended)
    return directory


class UnitFiles(NamedTuple):
    """What a unit has in the state directory."""

    id: str
    """The name of its files; it stays the same when outputs are added or removed."""
    begin: int
    """The arrival number after which its query starts if it has no checkpoint."""
    keys: Mapping[str, str]
    """By box in shards: the key of its state, which changes when the box begins anew."""
    past: Past | None = None
    """The history with which it began."""


class State:
    """The state of a run, new or continued."""

    def __init__(self, directory: Directory, checked: CheckedNetwork, settings: RunSettings, shards: int) -> None:
        """Cut the network as before, and refuse changes that make the saved state unusable."""
        self.place = directory.place
        self._kept = directory.kept
        self._folder = directory.folder
        found = directory.found
        saved = None if found is None else found.plan
        self._journals: dict[str, Journal] = {} if found is None else dict(found.journals)
        self._letters = {Path(name).stem for name in self.place.files("letters") if name.endswith(".json")}
        network: Mapping[str, Any] = checked.network.schedule or {}
        asked = {**{key: thaw(network[key]) for key in CUT_KEYS if key in network}, **settings.cut}
        self._old: list[dict[str, Any]] = saved["units"] if saved else []
        self.token: str = saved.get("token", "") if saved else uuid4().hex[:8]
        self.front = str(asked.get("front", "auto"))
        self.shards = int(saved["shards"] if saved else asked.get("shards") or shards)
        self.units = asked.get("units", "qos" if settings.shed is None else "loss")
        """The rule by which outputs are grouped, as asked for."""
        self.spread = asked.get("spread", "auto")
        self.program = compile_program(checked)
        self._given = saved["given"] if saved and "altered" in saved else digest(checked.network)
        self._altered: dict[str, Any] | None = saved.get("altered") if saved else None
        """The network since the newest seam that was carried out; None if there was none."""
        self._since: dict[str, int] = dict(self._altered["since"]) if self._altered else {}
        """By output that was added while the network ran: the seam."""
        self._gone: dict[str, dict[str, str]] = dict(self._altered["gone"]) if self._altered else {}
        """By source that the network has no more: its fields, as the log may still hold tuples of it."""
        self._following = int(saved["next"]) if saved else 0
        self.relays: dict[str, str] = dict(saved.get("relays", {})) if saved else {}
        """By arc that is exported: the folder of its relay."""
        now = {source.name: str(source.schema) for source in checked.network.sources}
        self.cut: Cut
        self.files: list[UnitFiles]
        """By unit."""
        if self._altered is not None:  # its boxes are where seams left them
            self._check_restart(checked, settings.restart)
            self.cut = Cut(tuple(CutUnit.of(one["cut"]) for one in self._old), self.shards)
            self.files = [
                UnitFiles(one["id"], int(one["begin"]), one["keys"], Past.of(one["past"])) for one in self._old
            ]
        else:
            self._check_sources(now, saved["sources"] if saved else {})
            units, spread = self.units, self.spread
            if saved and "units" not in settings.cut:
                # The old units, as far as their outputs still exist; `cut` adds the new ones.
                groups = [[name for name in one["outputs"] if name in checked.outputs] for one in self._old]
                units = [group for group in groups if group]
            if saved and "spread" not in settings.cut:
                known = {box.name for box in checked.order}
                spread = [name for name in saved["spread"] if name in known]
            self.cut = cut(self.program, self.shards, units, spread)
            self._prints = {unit.name: fingerprint(self.program, unit, self.shards) for unit in self.cut.units}
            self.files = self._match(checked, settings.restart)
        self._name_relays()
        self._write()

    def _name_relays(self) -> None:
        """Name the folders of relays: those of arcs that are exported, and new ones where an arc was not before."""
        exported = [arc for unit in self.cut.units for arc in unit.exports]
        names = {arc: self.relays.get(arc, "") for arc in exported}
        for arc in exported:
            if not names[arc]:
                names[arc] = f"{self._following}-{quote_name(alias(arc))}"
                self._following += 1
        self.relays = names

    def _write(self) -> None:
        """Write the plan, which says how to go on."""
        spread = {name for unit in self.cut.units for name, place in unit.placements.items() if place.spread}
        altered = self._altered is not None
        network = self.program.checked.network
        plan = {
            "format": FORMAT,
            "token": self.token,
            "network": network.name,
            "shards": self.shards,
            "spread": [name for name in self.program.spreadable if name in spread],
            "sources": {source.name: str(source.schema) for source in network.sources},
            "next": self._following,
            "units": [
                {
                    "id": files.id,
                    "outputs": list(unit.outputs),
                    "begin": files.begin,
                    "stateful": unit.stateful,
                    "boxes": fingerprint(program_of(unit, self.program), unit, self.shards),
                    **({"keys": dict(files.keys), "cut": unit.to_mapping()} if altered else {}),
                    **({"past": files.past and files.past.to_mapping()} if altered else {}),
                }
                for unit, files in zip(self.cut.units, self.files, strict=True)
            ],
            "given": self._given,
            "relays": self.relays,
            **({"altered": self._altered} if altered else {}),
        }
        self.place.write(PLAN, seal(plan, indent=2), sync=True)

    @property
    def seam(self) -> int:
        """The newest seam that was carried out; NOTHING if there was none."""
        return NOTHING if self._altered is None else int(self._altered["seam"])

    def exchange(
        self,
        seam: int,
        change: Change,
        recut: Recut,
        begins: Collection[str],
        tables: Mapping[str, str],
        past: Past | None = None,
    ) -> None:
        """Let the changed network be the one that goes on, durably.

        Of outputs that begin, earlier results do not count. `tables` are the files of static tables; what begins with
        history has it from the `past`.
        """
        network = change.new.checked.network
        self._since = {name: at for name, at in self._since.items() if name in change.new.checked.outputs}
        self._since |= dict.fromkeys(begins, seam)
        self._gone |= {
            source.name: {field.name: type_name(field.type) for field in source.schema}
            for source in change.old.checked.network.sources
        }
        for source in network.sources:
            self._gone.pop(source.name, None)
        told = {"since": self._since, "gone": self._gone, "tables": dict(tables)}
        self._altered = {"seam": seam, "network": described(network), **told}
        before, old = self.cut, self.files
        self.cut = Cut(tuple(one.cut for one in recut.units), self.shards)
        self.program = change.new
        self.files = []
        self._name_relays()
        for one in recut.units:
            mine = None if one.old is None else old[one.old]
            if mine is not None and one.runs_on:
                self.files.append(mine)
                continue
            marks = fingerprint(program_of(one.cut, self.program), one.cut, self.shards, every=True)
            keys = {name: f"{mark[:16]}-{seam}" for name, mark in marks.items()}
            if mine is not None and one.old is not None and before.units[one.old].stateful == one.cut.stateful:
                keys |= {name: key for name, key in mine.keys.items() if name in change.anchored & keys.keys()}
                self.files.append(mine._replace(keys=keys, past=None))
                continue
            name = self._next_id(one.cut)
            if past is not None and one.cut.pasts and one.old is None:
                points = {arc: past.points[arc] for arc in one.cut.pasts}
                own = replace(past, folder=f"{past.folder}-{name}", points=points)
                self.files.append(UnitFiles(name, own.begin, keys, own))
            else:
                self.files.append(UnitFiles(name, seam, keys))
        self._write()

    def _next_id(self, unit: CutUnit) -> str:
        """Return the name of another unit's files. Numbers ascend, so an output's results are in the units' order."""
        self._following += 1
        return f"{self._following - 1}{'s' if unit.stateful else 'f'}"

    def _check_sources(self, now: Mapping[str, str], before: Mapping[str, str]) -> None:
        """Refuse sources that differ from those in the log; new ones are allowed."""
        for name, schema in before.items():
            if now.get(name) != schema:
                what = f"has the schema {now[name]} now" if name in now else "is not in the network any more"
                raise RunError(
                    f"the state '{self._folder}' cannot go on: source '{name}', whose arrivals it holds with the "
                    f"schema {schema}, {what}; run the network as it was, or give another --state"
                )

    def _check_restart(self, checked: CheckedNetwork, restart: frozenset[str]) -> None:
        boxes = [box.name for box in checked.order]
        for name in restart.difference(boxes):
            raise RunError(f"--restart {name}: {unknown('box', name, boxes)}")
        if restart and self._altered is not None:
            raise RunError(
                f"the state '{self._folder}': its network was changed while it ran, so boxes are begun anew in the "
                "same way: let it go on without --restart, and change it then"
            )

    def _match(self, checked: CheckedNetwork, restart: frozenset[str]) -> list[UnitFiles]:
        """Find what an earlier run left for each unit; raise a RunError if a state cannot be continued."""
        self._check_restart(checked, restart)
        # A unit continues the old unit with some of its outputs; a unit without outputs continues the one without.
        found = [
            [old for old in self._old if {*old["outputs"]} & {*unit.outputs} or not (old["outputs"] or unit.outputs)]
            for unit in self.cut.units
        ]
        continued = [one["id"] for every in found for one in every]
        if any(len(every) > 1 for every in found) or len(set(continued)) < len(continued):
            groups = choices("+".join(one["outputs"]) for one in self._old)
            raise RunError(
                f"the state '{self._folder}' cannot go on: its outputs are in other units now; cut the network as it "
                f"was, into {groups}, or give another --state"
            )
        files = []
        for unit, every in zip(self.cut.units, found, strict=True):
            for old in every:
                self._check(unit, old, restart)
            marks = fingerprint(self.program, unit, self.shards, every=True)
            keys = {name: mark[:16] for name, mark in marks.items()}
            if every and every[0]["stateful"] == unit.stateful:
                files.append(UnitFiles(every[0]["id"], int(every[0]["begin"]), keys))
                continue
            if every:
                begin = self._leave(every[0])
            else:  # a new unit in an old run starts where the others are
                begin = max((self._committed(one)[1] for one in self._old), default=NOTHING)
            files.append(UnitFiles(self._next_id(unit), begin, keys))
        return files

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

    def _committed(self, old: Mapping[str, Any]) -> tuple[int, int]:
        """Return the last micro-batch of a saved unit that Spark has committed, and its last arrival number."""
        commits = [name.rpartition("/")[2] for name in self.place.files(f"checkpoints/{old['id']}/commits")]
        last = max((int(name) for name in commits if name.isdecimal()), default=-1)
        return last, int(old["begin"]) if last < 0 else self._journals[old["id"]].found[last].upto

    def _leave(self, old: Mapping[str, Any]) -> int:
        """Return where another unit continues; delete what the old one delivered but did not commit."""
        last, upto = self._committed(old)
        journal = self._journals[old["id"]]
        for record in journal.found[last + 1 :]:
            journal.cut(last)
            if record.letters is not None:
                self.place.delete([f"letters/{record.letters}.json"])
                self._letters.discard(record.letters)
        del journal.found[last + 1 :]
        return upto

    def checkpoint(self, unit: str) -> str:
        """Return the directory of a unit's checkpoint."""
        return self.place.name(f"checkpoints/{unit}")

    def exchange_folder(self, unit: str, master: str) -> str | None:
        """Return an empty folder for a unit's large trains, if all processes share this disk; otherwise None."""
        if not self.place.local or not master.startswith("local"):
            return None
        self.place.make([f"exchange/{unit}"], False)
        folder = self.place.name(f"exchange/{unit}")
        clear(folder)
        return folder

    def write_tables(
        self,
        tables: Mapping[str, Any] | None,
        program: Program | None = None,
        known: Mapping[str, str] | None = None,
        named: str = "",
    ) -> dict[str, str]:
        """Write static tables where executors can read them; return their files by ref.

        At a seam, tables that are `known` stay as they were read, and new files have names that begin with `named`.
        """
        self.place.make(["tables"], False)
        kept = known if known is not None else self._altered["tables"] if self._altered else {}
        program = program or self.program
        refs = [item.ref for box in program.boxes for item in box.items if isinstance(item, Table)]
        written = {ref: kept[ref] for ref in refs if ref in kept}
        missing = set(refs) - written.keys()
        fresh = [box.name for box in program.boxes if any(_ref(item) in missing for item in box.items)]
        for at, (ref, table) in enumerate(program.load_tables(tables, fresh).items()):
            if ref not in written:
                written[ref], _ = write_table(self.place, f"tables/{named}{at}.arrow", table)
        if known is None:
            self.place.delete(set(self.place.files("tables")).difference(written.values()))
        return written

    def keep_letters(self, name: str, letters: list[LetterRow]) -> bool:
        """Keep dead letters under a name; return False if there are none, or they were kept before a crash."""
        if name in self._letters or not letters:
            return False
        self._letters.add(name)
        self.place.write(f"letters/{name}.json", seal({"name": name, "letters": letters}), sync=self._kept)
        return True

    def letters(self, refused: Mapping[str, int]) -> list[LetterRow]:
        """Return the dead letters of earlier processes of this run; `refused` are the log's own counts by source."""
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
                    f"rows of source '{source}', and {counts[source]} are there; {RESTORE}"
                )
        return found

    def open_log(self, network: Network, keep: float) -> Log:
        """Open the log of arrivals, which keeps tuples that all units have read for `keep` seconds."""
        schemas = {name: Schema.parse(fields) for name, fields in self._gone.items()}
        schemas |= {source.name: source.schema for source in network.sources}
        return Log(self.place.name("log"), schemas, keep_seconds=keep, sync=self._kept)

    def journal(self, unit: str) -> Journal:
        """Return a unit's journal of micro-batches."""
        if unit not in self._journals:
            self._journals[unit] = Journal(self.place if self._kept else None, unit)
        return self._journals[unit]

    def before(self, unit: RunningUnit, after: int, upto: int, issued: int) -> list[tuple[int, int]]:
        """Return by shard the checksum of its state before a micro-batch, which covers what is above `after`.

        Raises a RunError if Spark asks for what was never granted: then its checkpoint is not the one that it wrote.
        """
        last = self.journal(unit.id).at(after)
        if (last is None and after != unit.begin) or upto > issued:
            what = f"it asks for arrival numbers above {after} up to {upto}, and these were not granted"
            raise damaged(self.checkpoint(unit.id), what)
        return [] if last is None else list(last.states.items())

    def offset_sum(self, unit: str, batch: int) -> int | None:
        """Return the checksum of a micro-batch's Spark offset file; None unless the state is kept on a local disk."""
        if not self._kept or not self.place.local:
            return None
        return checksum(self.place.read(f"checkpoints/{unit}/offsets/{batch}"))

    def results(self, output: str, ever: bool = False) -> list[str]:
        """Return the result files of an output that count, from all units that had it since it was added, or `ever`."""
        records = [record for journal in self._journals.values() for record in journal.found]
        since = NOTHING if ever else self._since.get(output, NOTHING)
        mine = [record for record in records if output in record.results and record.upto > since]
        return [record.results[output][0] for record in sorted(mine, key=lambda record: record.upto)]
