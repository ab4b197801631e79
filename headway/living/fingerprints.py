"""Fingerprints: a hash of a box's specification and of everything before it.

They say whether state belongs to a computation: across a restart (on Spark, states are stored under them) and across a
change of a running network.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from headway.checking import CheckedNetwork
from headway.network import Source, Table
from headway.structure import owner

if TYPE_CHECKING:
    from headway.boxes.operator import Operator

_NOTHING: Mapping[str, str] = MappingProxyType({})


def fingerprints(checked: CheckedNetwork, digests: Mapping[str, str] = _NOTHING) -> dict[str, str]:
    """Return the fingerprint of every box, in an order in which each follows those it reads.

    It covers the specification, the names of the arcs that it reads, names and schemas of sources, refs and schemas of
    static tables, and what a dangling point names. `digests` are those of static tables' contents, by ref.
    """
    network = checked.network
    tables = {ref: str(schema) for ref, schema in checked.tables.items()}
    stored = {point.name: f" {point.data!r}" for point in network.points if point.data is not None}
    streams = {one.name: stored.get(one.name.rpartition("/")[2], "") for one in network.sources}
    told = {ref: tables[ref] + stored.get(ref, "") + digests.get(ref, "") for ref in tables}
    return hashes(
        network.sources,
        [(box.name, box.spec, checked.inputs[box.name]) for box in checked.order],
        tables=told,
        streams=streams,
    )


def hashes(
    sources: Iterable[Source],
    boxes: Iterable[tuple[str, Operator, Iterable[str | Table]]],
    places: Mapping[str, str] = _NOTHING,
    tables: Mapping[str, str] = _NOTHING,
    streams: Mapping[str, str] = _NOTHING,
) -> dict[str, str]:
    """Return the fingerprints of boxes, each given after those it reads, with its canonical inputs.

    The rest is added to the text of boxes by name (`places`), of static tables by ref and of sources by name. Saved
    states are found by these hashes, so what they are made of never changes.
    """
    texts = {source.name: f"{source.name} {source.schema}{streams.get(source.name, '')}" for source in sources}
    found: dict[str, str] = {}
    for name, spec, items in boxes:
        inputs = [
            str(item) + tables.get(item.ref, "") if isinstance(item, Table) else texts[owner(item)] + item
            for item in items
        ]
        text = f"{spec.op} {spec.to_mapping()} {inputs}{places.get(name, '')}"
        found[name] = texts[name] = hashlib.sha256(text.encode()).hexdigest()
    return found
