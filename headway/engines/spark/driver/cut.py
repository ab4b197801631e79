"""The cut: which outputs share a streaming query, where a query's boxes run, and the work sent to executors.

A query costs a quarter of a second per micro-batch before any work, and each stateful operator in it as much again. So
a network becomes few queries, with at most one stateful operator each:

- Outputs with the same latency graph that read a common source become one unit, one streaming query.
- Boxes without state (filters, maps, unions, joins with static tables) that read sources, directly or through each
  other, run in *front*: where the log is read, in parallel over ranges of arrival numbers.
- Everything else runs in *shards*, the keys of the one stateful operator. Boxes that depend on each other's
  order, directly or through common readers, share a shard; unrelated ones go to different shards. A box with
  independent partitions, such as an aggregate with `by` fields, whose results only reach boxes that look at each tuple
  by itself is *spread*: every shard runs it for its share of the partitions.

A box that several units need runs in each of them; the first one owns it and reports for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from headway.engines.spark.wire.messages import CutUnit, Lane, Placement, Work
from headway.engines.spark.wire.native import NativePlan, plan_native
from headway.errors import NetworkError, choices, unknown
from headway.expressions.userfunctions import Functions
from headway.living.fingerprints import hashes
from headway.network.qos import Graph, QoS
from headway.program import Program, ProgramBox
from headway.structure import owner, upstream

CUTS = {
    "qos": "outputs that share inputs and have the same latency graph",
    "loss": "as qos, and the same loss and value graphs: where load is shed, a query gives way as a whole",
    "one": "all outputs that share inputs",
    "output": "every output by itself",
}
SPREADS = {
    "auto": "boxes with independent partitions whose results meet only boxes that look at each tuple by itself",
    "none": "no box",
}


@dataclass(frozen=True, slots=True)
class Cut:
    """A network as streaming queries."""

    units: tuple[CutUnit, ...]
    shards: int


def cut(
    program: Program,
    shards: int,
    units: str | Sequence[Sequence[str]] = "qos",
    spread: str | Sequence[str] = "auto",
) -> Cut:
    """Cut a network; `units` and `spread` select a rule by name, or list outputs and boxes."""
    groups = group_outputs(program, units)
    reached = [upstream_of(program, [program.checked.outputs[name] for name in outputs]) for outputs, _ in groups]
    covered = set().union(*(boxes for boxes, _ in reached)) if reached else set()
    # Boxes that no output needs still run, for their dead letters and counts, in the first unit that reads one of their
    # sources.
    rest = [box.name for box in program.boxes if box.name not in covered]
    for name in rest:
        boxes, sources = upstream_of(program, [name])
        home = next((one for one in reached if one[1] & sources), None)
        if home is None:
            groups.append(((), "boxes that lead to no output"))
            reached.append((boxes, sources))
        else:
            home[0].update(boxes)
            home[1].update(sources)
    chosen = chosen_spread(program, spread)
    made: list[CutUnit] = []
    taken: set[str] = set()
    for (outputs, why), (boxes, sources) in zip(groups, reached, strict=True):
        members = [box for box in program.boxes if box.name in boxes]
        placements = place_boxes(program, members, shards, chosen)
        made.append(
            CutUnit(
                "+".join(outputs) or members[-1].name,
                outputs,
                tuple(source.name for source in program.checked.network.sources if source.name in sources),
                tuple(box.name for box in members),
                placements,
                frozenset(boxes - taken),
                why,
            )
        )
        taken |= boxes
    for arc in exported_arcs(program):
        at = next(at for at, one in enumerate(made) if owner(arc) in one.boxes)
        made[at] = replace(made[at], exports=(*made[at].exports, arc))
    return Cut(tuple(made), shards)


def exported_arcs(program: Program) -> list[str]:
    """Return the arcs of boxes that have connection points: the driver keeps what passes them."""
    points = [point.name for point in program.checked.network.points if point.data is None]
    arcs = dict.fromkeys(program.checked.points[name] for name in points)
    return [arc for arc in arcs if owner(arc) in program.index]


def group_outputs(
    program: Program, units: str | Sequence[Sequence[str]], some: Collection[str] | None = None
) -> list[tuple[tuple[str, ...], str]]:
    """Return the outputs of each unit, and why they are grouped; with `some`, only these outputs."""
    network, arcs = program.checked.network, program.checked.outputs
    names = [output.name for output in network.outputs if some is None or output.name in some]
    if not isinstance(units, str):
        if some is not None:
            units = [group for group in ([name for name in one if name in names] for one in units) if group]
        return _named_groups(names, units)
    if units not in CUTS:
        raise NetworkError(f"schedule: units: {unknown('cut', units, CUTS)}; or lists of outputs")
    if units == "output":
        return [((name,), "every output by itself, as asked") for name in names]
    groups: list[tuple[list[str], set[str], QoS]] = []
    for output in network.outputs:
        if output.name not in names:
            continue
        sources = upstream_of(program, [arcs[output.name]])[1]
        qos = {"one": QoS(), "qos": QoS(output.qos.latency), "loss": output.qos}[units]
        # Groups with equal graphs that share a source with this output are merged.
        same = [group for group in groups if group[2] == qos and group[1] & sources]
        joined = ([name for group in same for name in group[0]], set().union(*(group[1] for group in same)), qos)
        at = groups.index(same[0]) if same else len(groups)
        groups = [group for group in groups if group not in same]
        joined[0].append(output.name)
        groups.insert(at, (joined[0], joined[1] | sources, qos))
    return [(tuple(outputs), _why(qos.latency, sources, units)) for outputs, sources, qos in groups]


def _why(graph: Graph | None, sources: set[str], units: str) -> str:
    inputs = ", ".join(sorted(sources))
    if units == "one":
        return f"one query for all that read {inputs}, as asked"
    same = " with the same loss and value graphs" if units == "loss" else ""
    if graph is None:
        return f"no latency graph, reading {inputs}{same}"
    return f"good until {graph.good_until:g} s, reading {inputs}{same}"


def _named_groups(names: Sequence[str], units: Sequence[Sequence[str]]) -> list[tuple[tuple[str, ...], str]]:
    seen: set[str] = set()
    groups: list[tuple[tuple[str, ...], str]] = []
    for group in units:
        if isinstance(group, str) or not group:
            raise NetworkError(f"schedule: units: a list of lists of outputs is expected, not {group!r} in it")
        for name in group:
            if name not in names:
                raise NetworkError(f"schedule: units: {unknown('output', str(name), names)}")
            if name in seen:
                raise NetworkError(f"schedule: units: output '{name}' is named twice")
            seen.add(name)
        groups.append((tuple(group), "as asked"))
    return groups + [((name,), "not named in units") for name in names if name not in seen]


def upstream_of(program: Program, arcs: Sequence[str]) -> tuple[set[str], set[str]]:
    """Return the boxes and the sources that some arcs depend on."""
    found = upstream(program.checked.inputs, map(owner, arcs)).keys()
    boxes = found & program.index.keys()
    return boxes, found - boxes


def chosen_spread(program: Program, spread: str | Sequence[str]) -> frozenset[str]:
    """Return the boxes to spread where possible."""
    possible = program.spreadable
    if isinstance(spread, str):
        if spread not in SPREADS:
            raise NetworkError(f"schedule: spread: {unknown('rule', spread, SPREADS)}; or a list of boxes")
        return frozenset(possible if spread == "auto" else ())
    for name in spread:
        if name not in program.index:
            raise NetworkError(f"schedule: spread: {unknown('box', str(name), program.index)}")
        if name not in possible:
            spec = program.boxes[program.index[name]].spec
            why = f"this {spec.op} has no independent partitions, as an aggregate with 'by' fields and a size has"
            if spec.partitions:
                why = "boxes after it need its results in order (filters, maps and static tables do not)"
            raise NetworkError(
                f"schedule: spread: box '{name}' cannot be spread: {why}; choices in this network: {choices(possible)}"
            )
    return frozenset(spread)


def place_boxes(
    program: Program,
    members: Sequence[ProgramBox],
    shards: int,
    spreading: frozenset[str],
    pins: Mapping[str, Placement] = MappingProxyType({}),
) -> dict[str, Placement]:
    """Place the boxes of a unit; those in `pins` have their state where it says.

    Raises a NetworkError if a box would have to read what is pinned in different places.
    """
    front: set[str] = set()
    spread: dict[str, tuple[str, ...]] = {}
    home: dict[str, str] = {}  # by box in shards: another box of its component, or itself

    def root(name: str) -> str:
        while home[name] != name:
            name = home[name]
        return name

    for box in members:
        feeding = [owner(arc) for arc in box.inputs]
        inner = [name for name in feeding if name in home or name in spread]
        if not box.spec.stateful and not inner:
            front.add(box.name)
        elif len(feeding) == 1 and feeding[0] in spread and box.spec.tuplewise:
            spread[box.name] = spread[feeding[0]]
        elif any(name in spread for name in feeding):
            raise _torn(box.name, next(name for name in feeding if name in spread))
        elif not inner and (pins[box.name].spread if box.name in pins else shards > 1 and box.name in spreading):
            spread[box.name] = box.spec.partitions
        else:
            home[box.name] = box.name
            for name in inner:
                home[root(name)] = box.name
    components: dict[str, list[str]] = {}
    for name in home:
        components.setdefault(root(name), []).append(name)
    load = [0] * shards
    shard_of: dict[str, int] = {}
    pinned = {name: place.shard for name, place in pins.items() if place.shard is not None}
    for names in sorted(components.values(), key=lambda some: (not pinned.keys() & some, -len(some))):
        fixed = {pinned[name]: name for name in names if name in pinned}
        if len(fixed) > 1:
            raise _torn(names[-1], next(iter(fixed.values())))
        shard = next(iter(fixed), load.index(min(load)))
        load[shard] += len(names)
        shard_of.update(dict.fromkeys(names, shard))
    placements = {box.name: _placement(box, front, spread, shard_of) for box in members}
    _pull(program, members, placements)
    return placements


def _torn(box: str, pinned: str) -> NetworkError:
    return NetworkError(
        f"box '{box}' cannot read what '{pinned}' makes while the network runs: its state is divided on Spark; "
        f"let an output deliver '{pinned}', or start the network with the box"
    )


def _pull(program: Program, members: Sequence[ProgramBox], placements: dict[str, Placement]) -> None:
    """Move filters from the front into shards if several would send parts of one stream to the same place.

    The stream then travels once, whole, and the boxes behind the filters share what they compute about it.
    """
    delivered = {owner(arc) for arc in program.delivered}
    while True:
        pulled: dict[tuple[str, int | None, tuple[str, ...]], list[str]] = {}
        fed: set[tuple[str, int | None, tuple[str, ...]]] = set()
        for box in members:
            place = placements[box.name]
            if not place.front:
                fed.update((arc, place.shard, place.by) for arc in box.inputs)
        for box in members:
            if not (box.spec.passes and box.spec.tuplewise and placements[box.name].front):
                continue
            readers = [program.boxes[at].name for arc in program.arcs_of(box) for at in program.readers[arc]]
            places = [placements[name] for name in readers if name in placements]
            if not places:
                continue
            targets = {(place.front, place.shard, place.by) for place in places}
            if len(targets) == 1 and not places[0].front and box.name not in delivered:
                pulled.setdefault((box.inputs[0], places[0].shard, places[0].by), []).append(box.name)
        moving = {target: names for target, names in pulled.items() if len(names) > 1 or target in fed}
        if not moving:
            return
        for (item, shard, by), names in moving.items():
            for name in names:
                placements[name] = Placement(False, shard, by, f"with other readers of {item} in this place")


def _placement(
    box: ProgramBox,
    front: set[str],
    spread: Mapping[str, tuple[str, ...]],
    shard_of: Mapping[str, int],
) -> Placement:
    if box.name in front:
        return Placement(True, why="needs neither state nor order")
    by, stateful = spread.get(box.name), box.spec.stateful
    if by is not None:
        why = f"partitions told apart by {', '.join(by)}" if stateful else "follows a box that is spread"
        return Placement(False, None, by, why)
    if not stateful:
        why = "follows boxes of this shard"
    elif box.spec.partitions:
        why = "not spread: boxes after it need its results in order"
    else:
        why = "keeps state over all its tuples in their order"
    return Placement(False, shard_of[box.name], why=why)


def fingerprint(program: Program, unit: CutUnit, shards: int, every: bool = False) -> dict[str, str]:
    """Return a fingerprint of each stateful box: a hash of its specification and everything upstream.

    Filters, maps, unions and joins with tables keep no state wherever they run: they may change freely unless they are
    upstream of a stateful box. With `every`, all boxes in shards are included, as keys under which their state is
    stored.
    """
    boxes = [program.boxes[program.index[name]] for name in unit.boxes]
    places = {name: f" by {place.by} over {shards}" for name, place in unit.placements.items() if place.spread}
    marks = hashes(program.checked.network.sources, [(box.name, box.spec, box.items) for box in boxes], places)
    found: dict[str, str] = {}
    for box in boxes:
        place = unit.placements[box.name]
        inside = not place.front and (not place.spread or box.spec.stateful)
        if inside and (every or box.spec.stateful):
            found[box.name] = marks[box.name]
    return found


FRONTS = {
    "auto": "native where Spark gives the same results and somebody reads them, otherwise kernels",
    "native": "Spark's own DataFrame operations, or an error that says why not",
    "kernels": "Headway's kernels",
}


def make_work(
    program: Program,
    unit: CutUnit,
    shards: int,
    discarded: frozenset[str] = frozenset(),
    tables: Mapping[str, str] = MappingProxyType({}),
    run: str = "",
    exchange: str | None = None,
    keys: Mapping[str, str] | None = None,
) -> Work:
    """Create the work of a unit, with its lanes; arcs in `discarded` are only counted.

    `keys` are by box in shards the keys of their states: by default fingerprints, so that a box that has changed does
    not find its old state.
    """
    lanes: list[Lane] = []
    known: set[tuple[str, int | None, tuple[str, ...]]] = set()

    def lay(arc: str, shard: int | None = None, by: tuple[str, ...] = (), counted: bool = False) -> None:
        if (arc, shard, by) not in known:
            known.add((arc, shard, by))
            lanes.append(Lane(len(lanes), arc, shard, by, counted))

    checked = program.checked
    for name in unit.boxes:
        place = unit.placements[name]
        if place.front:
            continue
        for arc in program.boxes[program.index[name]].inputs:
            feeder = owner(arc)
            if feeder not in program.index or unit.placements[feeder].front:
                lay(arc, place.shard, place.by if place.spread else ())
    for arc in unit.exports:
        lay(arc)
    for output in unit.outputs:
        arc = checked.outputs[output]
        lay(arc, counted=arc in discarded)
    functions = checked.functions
    return Work(
        checked.network,
        unit,
        shards,
        tuple(lanes),
        dict(tables),
        Functions(dict(functions.scalars), dict(functions.aggregates)),  # plain data, as Spark pickles it
        keys or {name: mark[:16] for name, mark in fingerprint(program, unit, shards, every=True).items()},
        exchange,
        run,
    )


def choose_front(program: Program, work: Work, front: str) -> NativePlan | str:
    """Return the plan by which Spark itself runs a unit, or the reason why kernels do."""
    if front not in FRONTS:
        raise NetworkError(f"schedule: front: {unknown('front', front, FRONTS)}")
    if work.unit.stateful:
        return "it has boxes with state, and packing trains for them where the log is read is faster"
    if all(lane.counted for lane in work.lanes):
        found: NativePlan | str = "nobody reads its results, so they are only counted"
    else:
        found = plan_native(program, work.unit, work.lanes)
    if isinstance(found, str):
        if front == "native":
            raise NetworkError(f"schedule: front: '{work.unit.name}' cannot be native: {found}")
        return found
    return "as asked" if front == "kernels" else found
