"""Expansion: a network as written, with points and views, becomes the plain network that engines run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headway.network import Box, Network, Output, Point, Source, Streamed, Table
from headway.network.trust import Trust
from headway.structure import check_structure, streams_of
from headway.tables import static_schema


def expand(network: Network, tables: Mapping[str, Any] | None = None, trust: Trust | None = None) -> Network:
    """Return the plain network, in which inputs are arcs and static tables; raise a NetworkError as `check_structure`.

    An input that names a point or a view becomes its arc. A view becomes an output without a sink, marked `view`, and a
    point on its arc. Stored data that is looked up becomes a static table whose ref is the point's name; where it is
    streamed in, a source of the point's name, described by the point's data, whose schema is that of the data: this is
    read, or that of one of `tables` by name, as far as `trust` (default: the network's) allows. `points` remain, `on`
    being canonical. A network without points and views is returned as it is, and so is an expanded one.
    """
    if not network.points and not network.views:
        return network
    structure = check_structure(network)
    named = {point.name for point in network.points} | {view.name for view in network.views}
    given = {source.name for source in network.sources}
    trust = network.trust if trust is None else trust
    streamed = [
        Source(name, static_schema(network, Table(point.name), tables, trust), point.data)
        for name, point in streams_of(network)
        if name not in given
    ]

    def resolved(box: Box) -> Box:
        inputs = tuple(
            arc if isinstance(item, Streamed) or item in named else item
            for item, arc in zip(box.inputs, structure.inputs[box.name], strict=True)
        )
        return box if inputs == box.inputs else replace(box, inputs=inputs)

    outputs = [
        replace(one, input=structure.outputs[one.name]) if one.input in named - given else one
        for one in network.outputs
    ]
    outputs += [Output(one.name, structure.outputs[one.name], one.qos, view=True) for one in network.views]
    points = [replace(one, on=structure.points[one.name]) if one.data is None else one for one in network.points]
    points += [Point(one.name, structure.points[one.name], one.keep) for one in network.views]
    found = replace(
        network,
        sources=(*network.sources, *streamed),
        boxes=tuple(map(resolved, network.boxes)),
        outputs=tuple(outputs),
        points=tuple(points),
        views=(),
    )
    return network if found == network else found
