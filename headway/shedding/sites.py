"""Sites: where drop boxes can be placed.

A drop box for certain outputs is placed as far upstream as possible without affecting others (Aurora paper, section
4.5): from an output towards the sources, up to the point where the flow splits. So the site of a set of outputs
consists of all arcs into a box that leads to exactly these outputs, from a source or from a box that leads to more::

    s -> a -> b -> outputs 1            {1, 2}: s -> a
           -> c -> outputs 2            {1}: a -> b        {2}: a -> c

Sets of several outputs have sites, too: work that outputs share can be saved only if all of them give way, and outputs
that share all their boxes have no other site. An output of a box that leads elsewhere, too, or of a source, has no site
of its own: dropping only its results would save nothing.

A tuple passes a site at most once, and the sets of outputs of the sites that it passes get smaller on its way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headway.catalog import Topology, members
from headway.errors import choices

Inputs = Sequence[Sequence[int]]
"""By box, for each of its stream inputs: the producing box; a source is -1 minus its number."""

_NAMED = 3
"""The most arcs listed in a site's name; the others are counted."""


class Entry(NamedTuple):
    """Where an arc enters a consumer, so that a drop box can be placed: a box's input, on Spark a query's source."""

    consumer: int
    """The box, on Spark the unit."""
    place: int
    """The number of the input, on Spark of the source."""
    producer: int
    """The box that the tuples come from; a source is -1 minus its number."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where to drop tuples of certain outputs without affecting others: all entries to the boxes that only they use."""

    name: str
    outputs: tuple[int, ...]
    """The outputs that lose tuples here, all of them."""
    entries: tuple[Entry, ...]


def find_sites(topology: Topology, inputs: Inputs) -> tuple[Site, ...]:
    """Return all sites, those with the most outputs first, ties by the boxes that they are in front of.

    A site comes after all sites that its tuples may have passed before. `inputs` gives the inputs that producers are
    connected to, which `topology` lacks; a box that leads to no output has no site.
    """
    reach = topology.reach()
    entries: dict[int, list[Entry]] = {}
    for box, producers in enumerate(inputs):
        for place, producer in enumerate(producers):
            if reach[box] and (producer < 0 or reach[producer] != reach[box]):
                entries.setdefault(reach[box], []).append(Entry(box, place, producer))
    order = sorted(entries, key=lambda outputs: (-outputs.bit_count(), entries[outputs][0]))
    return tuple(Site(_name(topology, entries[one]), members(one), tuple(entries[one])) for one in order)


def nested(sites: Sequence[Site], inputs: Inputs) -> tuple[tuple[int, ...], ...]:
    """Return by site the other sites whose tuples have all passed it, at any distance downstream."""
    standing = {(entry.consumer, entry.place): 1 << at for at, site in enumerate(sites) for entry in site.entries}
    passed: list[int] = []  # by box: the sites that all its tuples have passed, as bits
    for box, producers in enumerate(inputs):
        ways = [
            (passed[producer] if producer >= 0 else 0) | standing.get((box, place), 0)
            for place, producer in enumerate(producers)
        ]
        passed.append(_common(ways))
    inner: list[list[int]] = [[] for _ in sites]
    for at, site in enumerate(sites):
        for outer in members(_common([passed[one.producer] if one.producer >= 0 else 0 for one in site.entries])):
            inner[outer].append(at)
    return tuple(tuple(one) for one in inner)


def _common(sets: Sequence[int]) -> int:
    """Return the bits common to all sets; none if there are no sets."""
    if not sets:
        return 0
    common = sets[0]
    for one in sets[1:]:
        common &= one
    return common


def _name(topology: Topology, entries: Sequence[Entry]) -> str:
    """Return a site's name for people, by its arcs: ``positions -> across``."""
    arcs = dict.fromkeys(
        f"{topology.boxes[one.producer] if one.producer >= 0 else topology.sources[-1 - one.producer]} -> "
        f"{topology.boxes[one.consumer]}"
        for one in entries
    )
    return choices(arcs, _NAMED)
