"""Alterations: a change of the running network, prepared as far as it can be before the seam.

Whoever asks for a change prepares it in a thread of their own. Everything that can be wrong is found out there, so that
the loop only exchanges what is ready.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from headway.checking import CheckedNetwork
from headway.connectors.protocol import Reader
from headway.engines.opening import Destination
from headway.errors import HeadwayError
from headway.kernels.kernel import Kernel
from headway.living.changes import Changes
from headway.living.since import Since
from headway.program import Program, compile_program
from headway.tables import Statics


@dataclass(frozen=True, slots=True)
class History:
    """What a box that begins at the seam reads of a connection point."""

    point: str
    since: Since | None = None
    """How far back; None: from the oldest tuple kept."""
    key: Any = None
    """The storage keys that it needs: a value, or a pair of bounds; None: all."""
    ends: bool = False
    """Whether its input ends at the seam."""
    begun: Future[int] | None = None
    """Gets the arrival number from which on it reads, or why it cannot."""
    lost: Future[HeadwayError] | None = None
    """Gets the error if the history cannot be read to its end."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The old network as it runs between seal and swap, if arcs of it are read then that nobody has read before."""

    program: Program
    kernels: Mapping[str, Kernel]
    """Of the boxes that write these arcs."""


@dataclass(frozen=True, slots=True)
class Alteration:
    """A change of the running network. Both networks are plain ones, as `headway.expansion.expand` returns them."""

    old: CheckedNetwork
    new: CheckedNetwork
    changes: Changes
    program: Program
    kernels: Mapping[str, Kernel]
    """By box that begins, or of which other ports are read: its kernel."""
    readers: Mapping[str, Reader] = field(default_factory=dict)
    """By source that is new: its reader."""
    destinations: Mapping[str, Destination] = field(default_factory=dict)
    """By output that is new, or goes elsewhere, or has another schema: where it goes."""
    histories: Mapping[tuple[str, int], History] = field(default_factory=dict)
    """By box that begins and input: the history that it reads first."""
    tables: Statics = field(default_factory=Statics)
    """The static tables of the run from the seam on."""
    what: str = ""
    """The command in a few words, for the log."""
    opening: Opening | None = None
    """What has to be exchanged at the seal; None: nothing."""

    @property
    def beginning(self) -> frozenset[str]:
        """The boxes of the new network that do not simply go on."""
        return frozenset([*self.changes.begins, *self.changes.carried])


def prepare_alteration(
    old: CheckedNetwork,
    new: CheckedNetwork,
    changes: Changes,
    before: Program | None,
    tables: Mapping[str, Any] | None,
    readers: Callable[[str], Reader],
    destinations: Callable[[str], Destination],
    histories: Mapping[tuple[str, int], History],
    what: str,
) -> Alteration:
    """Compile and open what a change needs; raise a HeadwayError for what cannot be.

    Static tables stay as they were read, as long as a box or a point has them, unless the change refreshes them.
    """
    before = compile_program(old) if before is None else before
    program = compile_program(new, before=before, same=frozenset(changes.kept))
    opening = _opening(old, changes, before, program)
    now = before if opening is None else opening.program
    begin = {*changes.begins, *changes.carried, *_reshaped(program, now, changes.kept)}
    statics = Statics.of_run(tables).of(old.network).again(changes.refreshed)
    contents = program.load_tables(statics, begin)
    kernels = {box.name: program.kernel(box, contents) for box in program.boxes if box.name in begin}
    return Alteration(
        old,
        new,
        changes,
        program,
        kernels,
        {name: readers(name) for name in (*changes.sources_added, *changes.sources_changed)},
        {name: destinations(name) for name in (*changes.outputs_added, *_reopened(old, new, changes))},
        histories,
        statics.having(new.network, contents),
        what,
        opening,
    )


def _reopened(old: CheckedNetwork, new: CheckedNetwork, changes: Changes) -> list[str]:
    """Return the outputs that begin anew under the same name."""
    return [
        name
        for name in changes.outputs_changed
        if name in changes.outputs_restarted or _goes(old, name) != _goes(new, name)
    ]


def _goes(checked: CheckedNetwork, name: str) -> tuple[object, ...]:
    """Return where an output goes, and how; what is kept in memory can change while it goes on."""
    output = checked.network.output(name)
    return output.sink, output.roll, None if output.roll is None else output.keep


def _reshaped(program: Program, before: Program, kept: Collection[str]) -> list[str]:
    """Return the boxes that go on, keep no state, and need another kernel, as other ports of theirs are read."""
    return [
        box.name
        for box in program.boxes
        if box.name in kept and box.spec.fusable and before.boxes[before.index[box.name]].fusible != box.fusible
    ]


def _opening(old: CheckedNetwork, changes: Changes, before: Program, program: Program) -> Opening | None:
    """Return what lets arcs of boxes that go on be written which nobody has read; only where the swap may have to wait.

    Their tuples after the seam must not be lost until then.
    """
    if not (changes.affected or changes.outputs_removed or changes.outputs_changed):
        return None
    kept = {*changes.kept}
    read = {arc for box in program.boxes if box.name in kept for arc in box.ports if arc is not None}
    unread = read - {arc for box in before.boxes for arc in box.ports if arc is not None}
    if not unread:
        return None
    names = [box.name for box in before.boxes]
    opened = compile_program(old, delivered=before.delivered | unread, before=before, same=names)
    kernels = {name: opened.kernel(opened.boxes[opened.index[name]], {}) for name in _reshaped(opened, before, names)}
    return Opening(opened, kernels)
