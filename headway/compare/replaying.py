"""Turns a recorded run into a network that can be run again in virtual time, without its data.

Sources deliver as many tuples in each millisecond as were recorded. Every box becomes a universal box with the recorded
cost and selectivity; one with several outputs becomes one box per output, which share its cost. Behaviour that depends
on data is lost: windows pass tuples one by one, and value graphs have no values to evaluate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from headway.boxes.universal import MOST as MOST_SELECTIVE
from headway.clock import MILLISECOND, SECOND
from headway.compare.predicting import Line
from headway.engines.models import LOCAL, Model, Overheads
from headway.engines.traces import Arrivals, CallRecord, Trace
from headway.errors import InputError, shorten
from headway.files import parse_network
from headway.network import Network, Output, Table, thaw
from headway.structure import Structure, check_structure, owner

FIELD = "a"
PHASES = 20_000
"""The most spans of arrivals per source; a longer recording is read in steps of more than a millisecond."""
KEPT = ("train", "wait", "plan", "remember", "half_life", "shed")
"""The keys of the recorded network's schedule that apply to any policy."""
_AGAIN = "record it again with 'headway run FILE --engine local --trace TRACE.json'"


@dataclass(frozen=True, slots=True)
class Replay:
    """A recording, ready to be run by several policies."""

    network: Network
    model: Model
    seconds: float
    """The seconds over which the recorded tuples arrived."""
    notes: tuple[str, ...]
    """The limitations of the recording, for people."""


def replay(trace: Trace, path: Path | str = "the trace") -> Replay:
    """Return the network and the costs from a trace; raises an InputError if it does not hold what is needed."""
    if trace.description is None or not trace.arrivals or not trace.flows:
        raise InputError(
            f"{path}: does not hold the network and its arrivals (an older version or Spark recorded it): {_AGAIN}"
        )
    if not any(step.calls for step in trace.steps):
        raise InputError(f"{path}: holds no box calls, so nobody knows what boxes cost: {_AGAIN}")
    recorded = parse_network(trace.description, grafted=True)
    shape = check_structure(recorded)
    end = max(step.end for step in trace.steps) - trace.start
    last = end // MILLISECOND if trace.left_out else None
    ports, incoming = _ports(shape), _incoming(shape, trace.flows)
    stray = {trace.boxes[box] for step in trace.steps for call in step.calls for box in call.boxes} - set(incoming)
    if stray:
        raise InputError(f"{path}: its network has no box {shorten(repr(min(stray)), 60)}, which was called: {_AGAIN}")
    lines = _lines(trace, incoming)
    mapping: dict[str, Any] = {"network": recorded.name, "sources": {}, "boxes": {}, "outputs": {}}
    for source in (arc for arc in shape.arcs if owner(arc) not in shape.inputs):
        arrived = trace.arrivals.get(source, ())
        mapping["sources"][source] = _source([pair for pair in arrived if last is None or pair[0] <= last])
    calls = {}
    for box in shape.order:
        own, line = ports[box.name], lines.get(box.name, Line(0.0, 0.0))
        for arc, name in own.items():
            mapping["boxes"][name] = {
                "op": "universal",
                "in": [_renamed(item, ports) for item in shape.inputs[box.name] if not isinstance(item, Table)],
                "cost": line.per_tuple / len(own),
                "selectivity": min(MOST_SELECTIVE, trace.flows.get(arc, 0) / max(1, incoming[box.name])),
                "mode": "even",
            }
            calls[name] = line.each / len(own)
    for output in (*recorded.outputs, *(Output(view.name, view.input, view.qos) for view in recorded.views)):
        qos = replace(output.qos, value=None)
        plain = replace(output, input=_renamed(shape.outputs[output.name], ports), qos=qos, sink=None)
        mapping["outputs"][output.name] = plain.to_mapping()
    workers = len({step.worker for step in trace.steps})
    schedule = {key: thaw(value) for key, value in (recorded.schedule or {}).items() if key in KEPT}
    mapping["schedule"] = {**schedule, "workers": workers}
    model = Model(calls=calls, overheads=Overheads(storage=_storage(trace)), like=LOCAL)
    latest = max([some[-1][0] + 1 for some in trace.arrivals.values() if some], default=0)
    span = (latest if last is None else min(latest, last + 1)) * MILLISECOND / SECOND
    return Replay(parse_network(mapping, grafted=True), model, span, _notes(trace, recorded, shape))


def phases(arrivals: Sequence[tuple[int, int]], most: int = PHASES) -> list[list[float]]:
    """Return pairs of milliseconds and tuples as phases of a generator: spans in seconds, and tuples per second.

    Each span yields exactly its tuples. Consecutive milliseconds with the same number of tuples become one span, also
    those without any; if there are more spans than `most`, milliseconds are grouped.
    """
    step = 1
    while True:
        spans = _spans(arrivals, step)
        if len(spans) <= most:
            return [[count * step / 1000, tuples * 1000 / step] for count, tuples in spans]
        step *= 2


def _spans(arrivals: Sequence[tuple[int, int]], step: int) -> list[tuple[int, int]]:
    """Return pairs: a number of consecutive steps of `step` milliseconds, and the tuples in each of them."""
    totals: dict[int, int] = {}
    for moment, count in arrivals:
        totals[moment // step] = totals.get(moment // step, 0) + count
    spans: list[tuple[int, int]] = []
    following = 0
    for moment, count in sorted(totals.items()):
        if moment > following:
            spans.append((moment - following, 0))
        if spans and spans[-1][1] == count:
            spans[-1] = (spans[-1][0] + 1, count)
        else:
            spans.append((1, count))
        following = moment + 1
    return spans


def _source(arrivals: Arrivals | Sequence[tuple[int, int]]) -> dict[str, Any]:
    made: dict[str, Any] = {"fields": {FIELD: 1}}
    made |= {"phases": phases(arrivals)} if arrivals else {"rate": 1, "count": 0}
    return {"schema": {FIELD: "int"}, "source": {"generate": made}}


def _ports(shape: Structure) -> dict[str, dict[str, str]]:
    """Return by box its outputs that have consumers, and the name of the universal box for each."""
    taken = {box.name for box in shape.order} | {arc for arc in shape.arcs if "." not in arc}
    found: dict[str, dict[str, str]] = {}
    for box in shape.order:
        used = [arc for arc in shape.arcs if owner(arc) == box.name and shape.consumers[arc]]
        if len(used) < 2:
            found[box.name] = dict.fromkeys(used, box.name)
            continue
        found[box.name] = {}
        for number, arc in enumerate(used, 1):
            name = f"{box.name}-{arc.partition('.')[2] or number}"
            while name in taken:
                name += "-"
            taken.add(name)
            found[box.name][arc] = name
    return found


def _renamed(arc: str, ports: Mapping[str, Mapping[str, str]]) -> str:
    return ports[owner(arc)][arc] if owner(arc) in ports else arc


def _incoming(shape: Structure, flows: Mapping[str, int]) -> dict[str, int]:
    """Return by box the number of tuples that it received."""
    return {
        box.name: sum(flows.get(item, 0) for item in shape.inputs[box.name] if isinstance(item, str))
        for box in shape.order
    }


def _lines(trace: Trace, incoming: Mapping[str, int]) -> dict[str, Line]:
    """Return by box the linear cost that fits its calls best."""
    seen: dict[str, list[tuple[float, float]]] = {}
    for step in trace.steps:
        for call in step.calls:
            for name, tuples, seconds in _shares(call, [trace.boxes[box] for box in call.boxes], incoming):
                seen.setdefault(name, []).append((tuples, seconds))
    return {name: line_through(points) for name, points in seen.items()}


def _shares(call: CallRecord, names: Sequence[str], incoming: Mapping[str, int]) -> list[tuple[str, float, float]]:
    """Return by box of a call its tuples and seconds; fused boxes share the time in proportion to their tuples."""
    seconds = (call.end - call.begin) / SECOND
    first = max(1, incoming[names[0]])
    tuples = [call.tuples_in * incoming[name] / first for name in names]
    whole = sum(tuples)
    shares = [one / whole if whole else 1 / len(names) for one in tuples]
    return [(name, many, share * seconds) for name, many, share in zip(names, tuples, shares, strict=True)]


def line_through(points: Sequence[tuple[float, float]]) -> Line:
    """Return the costs per call and per tuple that fit pairs of tuples and seconds best; neither is below 0."""
    tuples, seconds = np.array(points, np.float64).T
    if not tuples.any():
        return Line(float(seconds.mean()), 0.0)
    spread = float(((tuples - tuples.mean()) ** 2).sum())
    slope = float(((tuples - tuples.mean()) * seconds).sum()) / spread if spread > 0 else float("inf")
    mean = float(seconds.sum() / tuples.sum())
    slope = min(max(slope, 0.0), mean)
    return Line(max(0.0, float(seconds.mean() - slope * tuples.mean())), slope)


def _storage(trace: Trace) -> float:
    """Return the seconds per call outside the boxes: the time of steps that is not in their calls."""
    calls = sum(len(step.calls) for step in trace.steps)
    within = sum(call.end - call.begin for step in trace.steps for call in step.calls)
    whole = sum(step.end - step.begin for step in trace.steps if step.calls)
    return max(0, whole - within) / calls / SECOND


def _notes(trace: Trace, recorded: Network, shape: Structure) -> tuple[str, ...]:
    notes = []
    if trace.left_out:
        notes.append("the recording was full before the run ended: only its beginning is compared")
    windows = [box.name for box in shape.order if box.spec.orderings]
    if windows:
        named = ", ".join(f"'{name}'" for name in windows)
        notes.append(
            f"{named}: a recording holds no data, so the time that tuples wait there for others is not in the latencies"
        )
    if any(output.qos.value is not None for output in recorded.outputs):
        notes.append("value graphs are left out: a recording holds no values")
    return tuple(notes)
