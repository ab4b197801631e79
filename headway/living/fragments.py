"""Fragments: boxes and outputs that are attached to a running network, and taken out again."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from headway.boxes.filter import Filter
from headway.boxes.keys import Key, check_keys, inside, one_of
from headway.checking import CheckedNetwork
from headway.errors import NetworkError, choices, did_you_mean
from headway.files import parse_box, parse_output, parse_table, plain_mapping, read_document, section
from headway.living.since import ALL, NOW, Since
from headway.network import Box, FrozenMap, Input, Network, Output, Streamed, Table, check_name
from headway.network.trust import OWN, STANDARD, Trust, read_trust
from headway.structure import Structure, check_structure
from headway.tables import permit_data, read_data
from headway.tables.datasets import FILES

FRAGMENT_KEYS = (
    Key("attach", "name", "the fragment's name", required=True),
    Key("since", "text", "how much history: a duration, `all` (default), `now` for none, or a moment"),
    Key("until", one_of("end of a fragment", ("now",)), "`now`: its input ends when all that is there was processed"),
    Key("boxes", "boxes", "the boxes by name; they read each other, points, views and arcs of the running network"),
    Key("outputs", "outputs", "the streams that leave, by name", required=True),
)
_ALL_PASS = Filter(("true",))
_SQLITE = "sqlite:///"
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


@dataclass(frozen=True, slots=True)
class Fragment:
    """What is attached: boxes and outputs whose inputs are points, views or arcs of the running network.

    `since` None: all, or nothing if it reads only arcs without a point. With `until_now`, its input ends at the seam.
    """

    name: str
    since: Since | None
    until_now: bool
    boxes: tuple[Box, ...]
    outputs: tuple[Output, ...]

    def to_mapping(self) -> dict[str, Any]:
        """Return the fragment as it appears in a file; `read_fragment` of it gives an equal fragment."""
        mapping = {
            "attach": self.name,
            "since": None if self.since is None else self.since.to_mapping(),
            "until": "now" if self.until_now else None,
            "boxes": {box.name: box.to_mapping() for box in self.boxes} or None,
            "outputs": {output.name: output.to_mapping() for output in self.outputs},
        }
        return {key: value for key, value in mapping.items() if value is not None}


def read_fragment(
    what: str | Path | Mapping[str, Any] | Fragment,
    *,
    since: object = None,
    network: Network | None = None,
    trust: Trust | Mapping[str, Any] | str = OWN,
) -> Fragment:
    """Read a fragment from a path, YAML or JSON text, or a mapping, as `headway.files.load` reads a network.

    `since` replaces the file's. A join looks up stored data of the running `network` by the name of its point; without
    a network it has to be written as ``{point: NAME}``. Relative paths in a file are relative to its folder. A
    stranger's fragment may name static tables as far as `trust` allows, and no sinks: who attaches it reads its
    results. Inputs and types are checked when it is grafted. Raises NetworkError.
    """
    trust = read_trust(trust)
    if isinstance(what, Fragment):
        return what if since is None else replace(what, since=_since(since))
    stored = [] if network is None else [point.name for point in network.points if point.data is not None]
    data, folder = read_document(what, "fragment")
    mapping = plain_mapping(data, "fragment", "attach, since, until, boxes, outputs")
    check_keys(mapping, FRAGMENT_KEYS)
    name = check_name(mapping["attach"], "fragment")
    with inside(f"fragment '{name}'"):
        until = mapping.get("until")
        if until is not None:
            FRAGMENT_KEYS[2].value(until)
        given = mapping.get("since") if since is None else since
        outputs = [parse_output(key, value) for key, value in section(mapping, "outputs", "output")]
        outputs = [_placed_output(output, folder, trust) for output in outputs]
        if not outputs:
            raise NetworkError("outputs: a fragment needs at least one output")
        boxes = [parse_box(key, value, trust, stored) for key, value in section(mapping, "boxes", "box")]
        boxes = [_placed_box(box, folder, trust, stored) for box in boxes]
        return Fragment(name, None if given is None else _since(given), until is not None, tuple(boxes), tuple(outputs))


def graft(network: Network, fragment: Fragment) -> Network:
    """Return the network, as written, with the fragment's boxes and outputs, named ``busiest/per_sector``.

    Its inputs are its own boxes first, then points, views and arcs of the network, other fragments' included. An output
    that reads history itself gets a box for this, which passes everything on. Raises a NetworkError for a name that is
    taken, unknown inputs, or history that is not there; types are for `headway.checking.check`.
    """
    if fragment.name in fragments_of(network):
        raise NetworkError(
            f"fragment '{fragment.name}': there is one of this name; detach it first, or choose another name"
        )
    with inside(f"fragment '{fragment.name}'"):
        parts = _parts(network, fragment)
    grafted = replace(network, boxes=(*network.boxes, *parts.boxes), outputs=(*network.outputs, *parts.outputs))
    with inside(f"fragment '{fragment.name}'"):
        check_structure(grafted)
    return grafted


def prune(network: Network, name: str) -> Network:
    """Return the network without a fragment's boxes and outputs, which nothing else may read."""
    attached = fragments_of(network)
    if name not in attached:
        raise NetworkError(
            f"no fragment '{name}' is attached{did_you_mean(name, attached) or ';'} choices: {choices(attached)}"
        )
    prefix = f"{name}/"
    boxes = tuple(box for box in network.boxes if not box.name.startswith(prefix))
    outputs = tuple(output for output in network.outputs if not output.name.startswith(prefix))
    reads = [(f"box '{box.name}'", item) for box in boxes for item in box.inputs if isinstance(item, str)]
    reads += [(f"output '{output.name}'", output.input) for output in outputs]
    reads += [(f"view '{view.name}'", view.input) for view in network.views]
    reads += [(f"point '{point.name}'", point.on) for point in network.points if point.on is not None]
    for reader, item in reads:
        if item.startswith(prefix):
            raise NetworkError(f"fragment '{name}': {reader} reads from '{item}'; take that out first")
    sources = tuple(source for source in network.sources if not source.name.startswith(prefix))
    return replace(network, sources=sources, boxes=boxes, outputs=outputs)


def fragments_of(network: Network) -> tuple[str, ...]:
    """Return the names of the fragments that are attached, in the order in which they were."""
    # Outputs first: every fragment has one, and not every fragment has boxes.
    named = [output.name for output in network.outputs] + [box.name for box in network.boxes]
    names = [name.partition("/") for name in named]
    return tuple(dict.fromkeys(first for first, slash, _ in names if slash))


def start_of(fragment: Fragment, network: Network) -> dict[str, dict[int, str]]:
    """Return by box of the grafted fragment, and by its input's place, the point whose history it reads first.

    `network` is the one that it was or will be grafted onto. Inputs that begin at the seam are not in it.
    """
    with inside(f"fragment '{fragment.name}'"):
        return _parts(
            prune(network, fragment.name) if fragment.name in fragments_of(network) else network, fragment
        ).starts


def since_of(fragment: Fragment, network: Network) -> Since:
    """Return how much history a fragment gets: if it does not say, all that points keep, and of plain arcs nothing."""
    if fragment.since is not None:
        return fragment.since
    return ALL if any(starts for starts in start_of(fragment, network).values()) else NOW


def check_since(fragment: Fragment, checked: CheckedNetwork) -> None:
    """Raise a NetworkError if the moment from which a fragment reads cannot be compared with a point's `time`.

    `checked` is the network with the fragment.
    """
    since = since_of(fragment, checked.network)
    for name in dict.fromkeys(
        name for places in start_of(fragment, checked.network).values() for name in places.values()
    ):
        point = checked.network.point(name)
        schema = checked.arcs[checked.points[name]]
        with inside(f"fragment '{fragment.name}'"), inside(f"point '{name}'"):
            since.bound(0, pa.timestamp("us", "UTC") if point.time is None else schema.field(point.time).type)


class _Parts(NamedTuple):
    boxes: list[Box]
    outputs: list[Output]
    starts: dict[str, dict[int, str]]


class _Names:
    """What the inputs of a fragment stand for in the running network."""

    def __init__(self, network: Network, structure: Structure, fragment: Fragment) -> None:
        self._own = {box.name for box in fragment.boxes}
        self._prefix = f"{fragment.name}/"
        self._stored = [point.name for point in network.points if point.data is not None]
        self._aliases = structure.points
        self._arcs = structure.arcs
        self._bases = {arc.partition(".")[0] for arc in structure.arcs}
        self._on: dict[str, str] = {}
        """By arc: the first point on it."""
        for point, arc in structure.points.items():
            self._on.setdefault(arc, point)

    def resolve(self, item: Input, where: str) -> Input:
        """Return an input as it is in the grafted network."""
        if isinstance(item, Table):
            return item
        name = item.point if isinstance(item, Streamed) else item
        base = name.partition(".")[0]
        if isinstance(item, str) and base in self._own:
            return self._prefix + item
        if name not in self._aliases and name not in self._stored and base not in self._bases:
            known = list(dict.fromkeys([*self._aliases, *self._stored, *self._own, *self._arcs]))
            raise NetworkError(
                f"{where}: unknown input '{name}'{did_you_mean(name, known) or ';'} choices: {choices(known)}"
            )
        return item

    def point(self, item: Input) -> str | None:
        """Return the point that has the history of an input."""
        if not isinstance(item, str) or item.partition(".")[0] in self._own:
            return None
        return item if item in self._aliases else self._on.get(item.removesuffix(".1"), self._on.get(item))

    def live(self, item: Input) -> bool:
        """Whether an input is an arc or a point of the running network."""
        if not isinstance(item, str) or item.partition(".")[0] in self._own:
            return False
        return item not in self._stored

    def begins(self, item: Input) -> bool:
        """Whether an input begins at the seam, as an arc of the running network without a point does."""
        if not isinstance(item, str) or item.partition(".")[0] in self._own or item in self._stored:
            return False
        return self.point(item) is None


def _parts(network: Network, fragment: Fragment) -> _Parts:
    names = _Names(network, check_structure(network), fragment)
    reads: list[tuple[str, Input]] = [(f"box '{box.name}': in", item) for box in fragment.boxes for item in box.inputs]
    reads += [(f"output '{output.name}': from", output.input) for output in fragment.outputs]
    resolved = {item: names.resolve(item, where) for where, item in reads}
    since = fragment.since
    if since is None:
        since = ALL if any(names.point(item) is not None for item in resolved) else NOW
    if not since.now:
        for where, item in reads:
            if names.begins(item):
                raise NetworkError(
                    f"{where}: '{item}' is an arc without a point, which offers only 'now', and since is '{since}'; "
                    "put a point on it, or attach with since: now"
                )
    if since.now and fragment.until_now:
        for where, item in reads:
            if names.live(item):
                raise NetworkError(
                    f"{where}: since is 'now' and until is 'now', so nothing of '{item}' would ever be read; ask for "
                    "history of a point (since: all), or leave until out"
                )
    prefix = f"{fragment.name}/"
    boxes: list[Box] = []
    starts: dict[str, dict[int, str]] = {}

    def add(name: str, box: Box) -> None:
        inputs = tuple(resolved[item] for item in box.inputs)
        boxes.append(Box(prefix + name, inputs, box.spec))
        found = {} if since.now else dict(_history(names, box.inputs))
        if found:
            starts[prefix + name] = found

    for box in fragment.boxes:
        add(box.name, box)
    taken = {box.name for box in fragment.boxes}
    outputs: list[Output] = []
    for output in fragment.outputs:
        arc = resolved[output.input]
        if not since.now and names.point(output.input) is not None:
            name = output.name
            while name in taken:
                name += "_"
            taken.add(name)
            add(name, Box(name, (output.input,), _ALL_PASS))
            arc = prefix + name
        assert isinstance(arc, str)
        outputs.append(replace(output, name=prefix + output.name, input=arc))
    return _Parts(boxes, outputs, starts)


def _history(names: _Names, inputs: Iterable[Input]) -> Iterable[tuple[int, str]]:
    for at, item in enumerate(inputs):
        point = names.point(item)
        if point is not None:
            yield at, point


def _since(value: object) -> Since:
    with inside("since"):
        return Since.parse(value)


# What a fragment's file names


def _placed_box(box: Box, folder: Path | None, trust: Trust, stored: Collection[str]) -> Box:
    """Return a box whose static tables are found from anywhere, if the file may name them."""

    def placed(item: Input) -> Input:
        if not isinstance(item, Table) or item.ref in stored:
            return item
        data = read_data(item.ref if item.data is None else item.data, f"table '{item.ref}'", folder, trust)
        permit_data(data)
        if folder is None:
            return item
        if item.data is None:
            return Table(_from(folder, item.ref)) if data.kind in FILES else item
        if data.kind == "sql" and data.place.startswith(_SQLITE):
            return parse_table({**item.data, "sql": _SQLITE + _from(folder, data.place.removeprefix(_SQLITE))})
        return parse_table({data.kind: _from(folder, data.place)}) if data.kind in FILES else item

    with inside(f"box '{box.name}': in"):
        return replace(box, inputs=tuple(map(placed, box.inputs)))


def _placed_output(output: Output, folder: Path | None, trust: Trust) -> Output:
    """Return an output whose sink is found from anywhere, if the file may have one."""
    sink = output.sink
    if sink is None:
        return output
    if not trust.own:
        raise NetworkError(
            f"output '{output.name}': sink: a fragment from a stranger may not write; who attaches it reads its results"
        )
    if folder is None:
        return output
    if isinstance(sink, str):
        return replace(output, sink=_from(folder, sink))
    ((kind, settings),) = sink.items()
    if isinstance(settings, str) and kind in ("csv", "jsonl", "parquet", "arrow", "directory"):
        return replace(output, sink=FrozenMap({kind: _from(folder, settings)}))
    return output


def _from(folder: Path, path: str) -> str:
    return path if path == STANDARD or _URI.match(path) else str((folder / path).absolute())
