"""Network files: YAML or JSON text, a path or a mapping, read into a frozen Network and written back."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from headway.boxes.keys import IN, OP, Key, KeyKind, check_count, check_keys, inside, one_of, parse_flag, parse_text
from headway.boxes.operator import operator_of
from headway.errors import NetworkError, check_known
from headway.network import (
    Box,
    FrozenMap,
    Input,
    Network,
    Output,
    Point,
    Source,
    Streamed,
    Table,
    View,
    check_name,
    freeze,
    is_object,
)
from headway.network.keep import DEFAULT_KEEP, KEEP_ALL, Keep, Roll
from headway.network.qos import Graph, QoS, ValueGraph
from headway.network.schema import Schema
from headway.network.trust import OWN, Trust, read_trust
from headway.network.yamls import check_size, read_text, write_text
from headway.options.kinds import KINDS, check_value
from headway.options.table import OPTIONS, SCHEDULE
from headway.structure import check_structure
from headway.tables import read_data

NETWORK_KEYS = (
    Key("network", "name", "the network's name", required=True),
    Key("sources", "sources", "the streams that enter, by name; their order is the order of arrival", required=True),
    Key("points", "points", "connection points by name: arcs whose history is kept, and stored data sets"),
    Key("boxes", "boxes", "the boxes by name"),
    Key("views", "views", "paths that no application reads yet, by name; their results are kept"),
    Key(
        "outputs",
        "outputs",
        "the streams that leave, by name; may be missing if there are points or views",
        required=True,
    ),
    Key("schedule", "schedule", "how to run it, unless the run says otherwise"),
)
SOURCE_KEYS = (
    Key("schema", "schema", "the fields and their Spark SQL types", required=True),
    Key("source", "connector", "where the tuples come from: a path, or a connector such as {csv: path}"),
    Key("push", "flag", "true: callers give it its tuples while the network runs; it has no `source`"),
)
_KEPT = f"a duration such as `1 hour`, a number of tuples, or `all`; default: {DEFAULT_KEEP}"
POINT_KEYS = (
    Key("on", "arc", "the source, box or `box.port` whose tuples are kept as history"),
    Key(
        "data",
        "data",
        "instead of `on`: a stored data set: a path, `{csv: path}`, `{jsonl: path}`, `{parquet: path}`, "
        "`{sql: URL, table: NAME}` or `{spark: TABLE}`",
    ),
    Key("keep", "keep", f"how much history is kept: {_KEPT}"),
    Key(
        "time",
        "field",
        "the field that `keep` and `since` mean: a number, timestamp or date; default: the moment of arrival",
    ),
    Key("key", "field", "the field by which history is stored and found; default: the order of arrival"),
)
VIEW_KEYS = (
    Key("from", "arc", "the source, box, `box.port`, point or view whose tuples are kept", required=True),
    Key("keep", "keep", f"how much of them is kept: {_KEPT}"),
    Key("qos", "qos", "what it is worth to have them up to date, as of an output"),
)
OUTPUT_KEYS = (
    Key("from", "arc", "the source, box, `box.port`, point or view whose tuples leave here", required=True),
    Key("qos", "qos", "what results are worth, by latency, loss and value"),
    Key("sink", "connector", "where the tuples go: a path, or a connector such as {csv: path}"),
    Key(
        "keep",
        "keep",
        "how much of the results stays, in memory or, with `roll`, in files: as of a point; default: all",
    ),
    Key("roll", "roll", "when a file is complete and the next one begins: `1 hour`, `100 MB`, or a list of both"),
)
QOS_KEYS = (
    Key("latency", "graph", "utility over seconds: [[0, 1], [2, 1], [10, 0]]"),
    Key("loss", "graph", "utility over the percentage delivered: [[100, 1], [50, 0.2], [0, 0]]"),
    Key("value", "value", "utility over a field's value: {field: n, graph: [[0, 0.1], [3, 1]]}"),
)
VALUE_KEYS = (
    Key("field", "field", "a numeric field of the output", required=True),
    Key("graph", "graph", "utility over the field's value", required=True),
)
SCHEDULE_KEYS = tuple(Key(one.name, KeyKind(KINDS[one.kind].schema), one.key_text) for one in SCHEDULE)
TABLE_KEYS = (
    Key("table", "data", "a path, a name that the run gives a table for, or {sql: URL, table: NAME}", required=True),
)
POINTED_KEYS = (
    Key("point", "text", "the name of a point", required=True),
    Key(
        "as",
        one_of("way to read a point", ("stream", "table")),
        "`stream`: stored data is streamed in once; `table`: it is looked up, as without `as`",
    ),
)


def load(source: str | Path | Mapping[str, Any], *, trust: Trust | Mapping[str, Any] | str = OWN) -> Network:
    """Read a network from a path, YAML or JSON text, or a mapping.

    Form, names, inputs and loops are checked here; fields and types by `headway.checking.check`, which may need tables
    and functions that only the run knows. `trust` says what the file may name: anything (``own``), nothing
    (``stranger``), or what a `Trust` allows; it is checked when something is opened. Raises NetworkError.
    """
    trust = read_trust(trust)
    data, folder = read_document(source)
    return parse_network(data, folder, trust)


def read_document(source: str | Path | Mapping[str, Any], what: str = "network") -> tuple[Any, Path | None]:
    """Return plain data from a path, YAML or JSON text, or a mapping, and the folder of a path.

    `what` says for messages what it is. Raises a NetworkError.
    """
    if isinstance(source, Mapping):
        return source, None
    if isinstance(source, Path):
        return _read_path(source, what)
    if not isinstance(source, str):
        raise NetworkError(f"a {what} is a path, YAML text or a mapping, not {type(source).__name__}")
    if not source.strip():
        raise NetworkError(f"the {what} file is empty")
    if "\n" in source.strip() or source.lstrip().startswith("{") or ": " in source or source.rstrip().endswith(":"):
        return read_text(source), None
    return _read_path(Path(source), what)


def dump(network: Network) -> str:
    """Return a network as YAML text; `load` of it is equal to it. Raises a NetworkError for what a file cannot hold."""
    for key, value in (network.schedule or {}).items():
        freeze(value, f"schedule: {key}")
    return write_text(network.to_mapping())


def parse_network(data: object, folder: Path | None = None, trust: Trust = OWN, *, grafted: bool = False) -> Network:
    """Read a network from plain data. Relative paths in it are relative to `folder`; `trust` says what it may name.

    With `grafted` it may hold fragments, as the networks of recorded runs do.
    """
    mapping = plain_mapping(data, "network", "network, sources, boxes, outputs")
    # What is kept can be asked for later, so such a network is of use without outputs.
    check_keys(mapping, NETWORK_KEYS, ["outputs"] if mapping.get("points") or mapping.get("views") else [])
    name = check_name(mapping["network"], "network")
    schedule = mapping.get("schedule")
    points = tuple(parse_point(key, value) for key, value in section(mapping, "points", "point"))
    stored = [point.name for point in points if point.data is not None]
    network = Network(
        name,
        tuple(parse_source(key, value) for key, value in section(mapping, "sources", "source")),
        tuple(parse_box(key, value, trust, stored, grafted) for key, value in section(mapping, "boxes", "box")),
        tuple(parse_output(key, value, grafted) for key, value in section(mapping, "outputs", "output")),
        None if schedule is None else parse_schedule(schedule),
        folder,
        trust,
        points,
        tuple(parse_view(key, value) for key, value in section(mapping, "views", "view")),
    )
    check_structure(network)
    check_schedule(network)
    return network


def plain_mapping(data: object, what: str, keys: str) -> dict[Any, Any]:
    """Return a copy of a file's data, or raise a NetworkError if it is too large or no mapping."""
    if data is None:
        raise NetworkError(f"the {what} file is empty")
    check_size(data)
    mapping = _plain(data)
    if not isinstance(mapping, dict):
        raise NetworkError(f"a {what} is a mapping with the keys {keys}, not {_kind(data)}")
    return mapping


def parse_source(name: object, value: object) -> Source:
    """Read one source from its mapping."""
    name = check_name(name, "source")
    with inside(f"source '{name}'"):
        mapping = _mapping(value, SOURCE_KEYS, "such as {schema: {time: bigint, pos: int}}")
        with inside("schema"):
            given = mapping["schema"]
            schema = given if isinstance(given, Schema) else Schema.parse(given)
        connector = _connector(mapping, "source")
        with inside("push"):
            push = parse_flag(mapping.get("push") or False)
        if push and connector is not None:
            raise NetworkError("push: callers give this source its tuples; leave out either 'push' or 'source'")
        return Source(name, schema, connector, push)


def parse_point(name: object, value: object) -> Point:
    """Read one connection point from its mapping."""
    name = check_name(name, "point")
    with inside(f"point '{name}'"):
        mapping = _mapping(value, POINT_KEYS, "such as {on: across, keep: 1 hour}")
        arc, data = mapping.get("on"), mapping.get("data")
        if (arc is None) == (data is None):
            raise NetworkError(
                f"a point is either on an arc, with 'on', or a stored data set, with 'data'; it has "
                f"{'neither' if arc is None else 'both'}"
            )
        if arc is not None and not (isinstance(arc, str) and arc):
            raise NetworkError(f"on: must be the name of one source, box or `box.port`, not {arc!r}")
        if data is not None and mapping.get("keep") is not None:
            raise NetworkError("keep: a stored data set is kept by whoever stores it; 'keep' is for a point on an arc")
        keep = _keep(mapping) or (DEFAULT_KEEP if data is None else KEEP_ALL)
        return Point(name, arc, keep, _field(mapping, "time"), _field(mapping, "key"), _data(data))


def parse_view(name: object, value: object) -> View:
    """Read one view from its mapping."""
    name = check_name(name, "view")
    with inside(f"view '{name}'"):
        mapping = _mapping(value, VIEW_KEYS, "such as {from: counts, keep: 1 day}")
        arc = mapping["from"]
        if not isinstance(arc, str):
            raise NetworkError(f"from: must be the name of one source, box or point, not {arc!r}")
        with inside("qos"):
            qos = parse_qos(mapping.get("qos"))
        return View(name, arc, _keep(mapping) or DEFAULT_KEEP, qos)


def parse_box(
    name: object, value: object, trust: Trust = OWN, stored: Collection[str] = (), grafted: bool = False
) -> Box:
    """Read one box from its mapping: its operator, its inputs and the operator's keys.

    An operator that takes static tables looks up what the points in `stored` name.
    """
    name = check_name(name, "box", grafted)
    with inside(f"box '{name}'"):
        mapping = _mapping(value, (), 'such as {op: filter, in: positions, where: "pos >= 30"}')
        for key in (OP, IN):
            if mapping.get(key.name) is None:
                raise NetworkError(f"{key.name}: is missing ({key.doc})")
        op = mapping["op"]
        kind = operator_of(str(op))
        if not trust.own and not kind.for_strangers:
            raise NetworkError(f"op: a file from a stranger may not use '{op}': its package does not declare it safe")
        if kind.takes_tables:
            mapping["in"] = _looked_up(mapping["in"], stored)
    spec = kind.parse(name, mapping)
    with inside(f"box '{name}'"), inside("in"):
        inputs = _inputs(mapping["in"])
        if not kind.takes_tables and any(isinstance(item, Table) for item in inputs):
            raise NetworkError(f"a {op} takes streams only; only a join takes a static table")
    with inside(f"box '{name}'"):
        check_count(op, len(inputs), kind.inputs)
    return Box(name, inputs, spec)


def parse_output(name: object, value: object, grafted: bool = False) -> Output:
    """Read one output from its mapping."""
    name = check_name(name, "output", grafted)
    with inside(f"output '{name}'"):
        mapping = _mapping(value, OUTPUT_KEYS, "such as {from: alarms}")
        arc = mapping["from"]
        if not isinstance(arc, str):
            raise NetworkError(
                f"from: must be the name of one source or box, not {arc!r}; a union brings several together"
            )
        with inside("qos"):
            qos = parse_qos(mapping.get("qos"))
        with inside("roll"):
            roll = None if mapping.get("roll") is None else Roll.parse(mapping["roll"])
        return Output(name, arc, qos, _connector(mapping, "sink"), _keep(mapping), roll)


def parse_qos(value: object) -> QoS:
    """Read the QoS graphs of an output; None means that it has none."""
    if value is None:
        return QoS()
    mapping = _mapping(value, QOS_KEYS, "such as {latency: [[0, 1], [10, 0]]}")
    latency = loss = graph = None
    if mapping.get("latency") is not None:
        latency = Graph.parse(mapping["latency"], "latency")
        _check_bounds(latency, "latency: x is in seconds, zero or more", math.inf)
    if mapping.get("loss") is not None:
        loss = Graph.parse(mapping["loss"], "loss", descending=True)
        _check_bounds(loss, "loss: x is in per cent delivered, from 0 to 100", 100)
    if mapping.get("value") is not None:
        with inside("value"):
            inner = _mapping(mapping["value"], VALUE_KEYS, "such as {field: n, graph: [[0, 0.1], [3, 1]]}")
            with inside("field"):
                field = parse_text(inner["field"])
            graph = ValueGraph(field, Graph.parse(inner["graph"], "graph"))
    return QoS(latency, loss, graph)


def parse_schedule(value: object) -> FrozenMap:
    """Read a network's schedule. From Python it may also hold objects, such as policies, which are kept unchanged."""
    with inside("schedule"):
        mapping = _mapping(value, SCHEDULE_KEYS, "such as {policy: NAME, train: 1000}")
        given = {key: mapping[key] for key in mapping if mapping[key] is not None}
        for key, said in given.items():
            check_value(OPTIONS[key], said, NetworkError, key=True)
        return FrozenMap({key: said if is_object(said) else freeze(said, key) for key, said in given.items()})


def check_schedule(network: Network) -> None:
    """Raise a NetworkError if the schedule names outputs or boxes that do not exist."""
    schedule: Mapping[str, Any] = network.schedule or {}
    units, spread = schedule.get("units", ()), schedule.get("spread", ())
    groups = [] if isinstance(units, str) else units
    outputs = [one.name for one in network.outputs] + [one.name for one in network.views]
    for key, kind, known, names in (
        ("units", "output", outputs, [name for group in groups for name in group]),
        ("spread", "box", [box.name for box in network.boxes], [] if isinstance(spread, str) else spread),
    ):
        check_known(kind, names, known, NetworkError, f"schedule: {key}")
        for at, name in enumerate(names):
            if name in names[:at]:
                raise NetworkError(f"schedule: {key}: {kind} '{name}' is named twice")


_DATA = (".csv", ".jsonl", ".parquet", ".arrow")
"""Suffixes of data files, which are never networks."""


def _read_path(path: Path, what: str) -> tuple[Any, Path]:
    if path.suffix.lower() in _DATA:
        raise NetworkError(
            f"'{path}' is a data file by its name, and a {what} is a YAML or JSON file; a source reads it with "
            f"--input SOURCE={path.name}"
        )
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError as error:
        raise NetworkError(f"no such file: {path}") from error
    except IsADirectoryError as error:
        raise NetworkError(f"{path} is a folder; a {what} is a YAML or JSON file") from error
    except UnicodeDecodeError as error:
        raise NetworkError(f"{path}: not a text file in UTF-8") from error
    except (OSError, ValueError) as error:
        raise NetworkError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    with inside(str(path)):
        return read_text(text), path.parent


def section(mapping: dict[Any, Any], key: str, kind: str) -> list[tuple[Any, Any]]:
    """Return the names and values of a section of a file; a NetworkError if it is no mapping."""
    found = mapping.get(key)
    if found is None:
        return []
    if not isinstance(found, dict):
        raise NetworkError(f"{key}: must be a mapping from the {kind}'s name to its keys, not {_kind(found)}")
    return list(found.items())


def _mapping(value: object, keys: Sequence[Key], example: str) -> dict[Any, Any]:
    """Return a mapping as a dictionary, or raise a NetworkError if it has not these keys (any, if none are given)."""
    if not isinstance(value, Mapping):
        raise NetworkError(f"must be a mapping {example}, not {_kind(value)}")
    if keys:
        check_keys(value, keys)
    return dict(value)


def _looked_up(value: Any, stored: Collection[str]) -> Any:
    """Return the inputs of a box with stored data as static tables."""
    if isinstance(value, list | tuple):
        return [_looked_up(item, stored) for item in value]
    if isinstance(value, Mapping) and value.keys() <= {"point", "as"} and value.get("as") in (None, "table"):
        return {"table": value.get("point")}
    return {"table": value} if isinstance(value, str) and value in stored else value


def _inputs(value: object) -> tuple[Input, ...]:
    listed = value if isinstance(value, list | tuple) else [value]
    if not listed:
        raise NetworkError("needs at least one input")
    inputs: list[Input] = []
    for item in listed:
        if isinstance(item, Mapping) and "point" in item:
            check_keys(item, POINTED_KEYS)
            with inside("point"):
                point = parse_text(item["point"])
            way = None if item.get("as") is None else POINTED_KEYS[1].value(item["as"])
            inputs.append(Streamed(point) if way == "stream" else point)
        elif isinstance(item, Mapping):
            check_keys(item, TABLE_KEYS)
            with inside("table"):
                inputs.append(parse_table(item["table"]))
        elif isinstance(item, str) and item:
            inputs.append(item)
        else:
            raise NetworkError(f"an input is the name of a source or box, `box.port`, or {{table: path}}, not {item!r}")
    return tuple(inputs)


def parse_table(what: object) -> Table:
    """Return a static table: a path, a name, or stored data such as ``{sql: URL, table: NAME}``."""
    if not isinstance(what, Mapping):
        return Table(parse_text(what))
    data = freeze(what)
    described = read_data(data, "data")
    return Table(str(described) if described.kind == "sql" else f"{described.kind} {described}", data)


def _connector(mapping: Mapping[str, Any], key: str) -> FrozenMap | str | None:
    value = mapping.get(key)
    if value is None:
        return None
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str) and value:
        return value
    if isinstance(value, Mapping) and len(value) == 1:
        frozen: FrozenMap = freeze(value, key)
        return frozen
    raise NetworkError(f"{key}: must be a path, or a mapping with one connector such as {{csv: path}}, not {value!r}")


def _keep(mapping: Mapping[str, Any]) -> Keep | None:
    with inside("keep"):
        return None if mapping.get("keep") is None else Keep.parse(mapping["keep"])


def _field(mapping: Mapping[str, Any], key: str) -> str | None:
    with inside(key):
        return None if mapping.get(key) is None else parse_text(mapping[key])


def _data(value: object) -> FrozenMap | str | None:
    """Return a description of stored data, frozen; `headway.tables.read_data` says what that is."""
    if value is None:
        return None
    described = read_data(value, "data")
    frozen: FrozenMap = freeze(value, "data")
    return frozen if isinstance(value, Mapping) else described.place


def _check_bounds(graph: Graph, expected: str, most: float) -> None:
    for x, _ in graph.points:
        if not 0 <= x <= most:
            raise NetworkError(f"{expected}, not {x:g}")


def _plain(value: object) -> Any:
    """Copy mappings and lists; a key True, which other YAML readers make of ``on``, becomes ``on`` again."""
    if isinstance(value, Mapping):
        return {("on" if key is True else key): _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, list | tuple):
        return "a list"
    return f"a mapping with the keys {', '.join(map(str, value))}" if isinstance(value, Mapping) else repr(value)
