"""A network as Mermaid text: a diagram that GitHub and many editors draw."""

from __future__ import annotations

from headway.checking import CheckedNetwork
from headway.network import Box, Table
from headway.network.schema import Schema
from headway.structure import owner

_ESCAPES = str.maketrans(
    {"#": "#35;", "&": "#amp;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;", "\\": "#92;", "|": "#124;"}
)
_LONGEST = 48
_FIELDS = 4


def mermaid(checked: CheckedNetwork) -> str:
    """Return a flowchart from left to right: sources, boxes, static tables, outputs; arrows carry their fields.

    A connection point is drawn like a table, with what it keeps; a view is a box with double sides.
    """
    network = checked.network
    lines = ["flowchart LR"]
    refs = dict.fromkeys(item.ref for box in network.boxes for item in box.inputs if isinstance(item, Table))
    ids = {source.name: f"s{number}" for number, source in enumerate(network.sources)}
    ids |= {box.name: f"b{number}" for number, box in enumerate(network.boxes)}
    views = {output.name for output in network.outputs if output.view}
    tables = {ref: f"t{number}" for number, ref in enumerate(refs)}
    lines += [f'    {ids[source.name]}(["{_label(source.name)}"])' for source in network.sources]
    lines += [f'    {ids[box.name]}["{_box_label(box)}"]' for box in network.boxes]
    lines += [f'    {name}[("{_label(ref)}")]' for ref, name in tables.items()]
    points = [point for point in network.points if point.name in checked.points and point.name not in views]
    lines += [
        f'    p{number}[("{_label(point.name)}<br/>{_label(str(point.keep))}")]' for number, point in enumerate(points)
    ]
    for number, output in enumerate(network.outputs):
        start, end = ('[["', '"]]') if output.view else ('((("', '")))')
        lines.append(f"    o{number}{start}{_label(output.name)}{end}")
    for box in network.boxes:
        for item in checked.inputs[box.name]:
            if isinstance(item, Table):
                lines.append(f"    {tables[item.ref]} -.-> {ids[box.name]}")
            else:
                lines.append(_edge(ids[owner(item)], ids[box.name], item, checked.arcs[item]))
    for number, output in enumerate(network.outputs):
        arc = checked.outputs[output.name]
        lines.append(_edge(ids[owner(arc)], f"o{number}", arc, checked.arcs[arc]))
    lines += [f"    {ids[owner(checked.points[one.name])]} -.-> p{number}" for number, one in enumerate(points)]
    return "\n".join(lines) + "\n"


def _edge(start: str, end: str, arc: str, schema: Schema) -> str:
    port = arc.partition(".")[2]
    names = ", ".join(schema.names[:_FIELDS]) + (", …" if len(schema) > _FIELDS else "")
    label = f"{_label(port)}: {_label(names)}" if port else _label(names)
    return f'    {start} -->|"{label}"| {end}'


def _box_label(box: Box) -> str:
    settings = box.spec.to_mapping()
    told = settings.get("where") or settings.get("select") or settings.get("on") or ""
    text = "; ".join(told) if isinstance(told, list) else str(told)
    lines = [_label(box.name), _label(box.spec.op), _label(text)]
    return "<br/>".join(line for line in lines if line)


def _label(text: str) -> str:
    """Escape what Mermaid or HTML would interpret, after cutting long text."""
    text = " ".join(text.split())
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 1] + "…"
    return text.translate(_ESCAPES)
