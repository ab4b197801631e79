"""Changes: what a seam does to every part of a running network. A pure function of two checked networks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from headway.checking import CheckedNetwork
from headway.errors import RunError, check_known, choices
from headway.living.fingerprints import fingerprints
from headway.living.names import ALL, Names, listed, ordered, quoted
from headway.living.results import compare_outputs, compare_points
from headway.network import Table
from headway.structure import owner

LIVE_KEYS = ("policy",)
"""Keys of a network's schedule that may change while it runs."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What a change does, by names in the order of the network; what ends is in the order of the old one."""

    kept: tuple[str, ...] = ()
    """Boxes that go on as they are, with their state."""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    """Boxes without state that are others after the seam, or have something else before them."""
    restarted: tuple[str, ...] = ()
    """Boxes with state that begin anew."""
    carried: tuple[str, ...] = ()
    """Boxes whose state stays although something before them changed."""
    flushed: tuple[str, ...] = ()
    """Boxes that end, and whose open windows are emitted."""
    sources_added: tuple[str, ...] = ()
    sources_removed: tuple[str, ...] = ()
    sources_changed: tuple[str, ...] = ()
    """Sources with another schema, connector or way of being fed."""
    outputs_added: tuple[str, ...] = ()
    outputs_removed: tuple[str, ...] = ()
    outputs_changed: tuple[str, ...] = ()
    """Outputs with other QoS, sink, `keep` or `roll`, on another arc, or with another schema."""
    outputs_restarted: tuple[str, ...] = ()
    """Those of them with another schema: what they delivered so far ends."""
    points_added: tuple[str, ...] = ()
    points_removed: tuple[str, ...] = ()
    points_changed: tuple[str, ...] = ()
    points_restarted: tuple[str, ...] = ()
    """Those of them whose history begins anew."""
    refreshed: tuple[str, ...] = ()
    """Dangling points whose data is read again."""
    schedule: tuple[str, ...] = ()
    """Keys of the schedule that changed."""
    affected: tuple[str, ...] = ()
    """Old boxes that end, or whose input changes: those removed, replaced, restarted and carried."""
    begins: tuple[str, ...] = ()
    """New boxes that begin at the seam: those added, replaced and restarted."""

    @property
    def none(self) -> bool:
        """Whether nothing changes."""
        return self == Changes(kept=self.kept)

    def summary(self) -> str:
        """Return it as a sentence for users: what happens to boxes, then to everything else."""
        parts = [f"keeps {len(self.kept)} {'box' if len(self.kept) == 1 else 'boxes'}"] if self.kept else []
        for kind, ways in _TOLD.items():
            for way, verb in ways.items():
                names: tuple[str, ...] = getattr(self, f"{kind}_{way}" if kind else way)
                if way == "changed" and kind != "sources":
                    again = getattr(self, f"{kind}_restarted")
                    names = tuple(name for name in names if name not in again)
                if names:
                    parts.append(" ".join([verb, *_article(kind, len(names)), quoted(names)]))
        parts += [f"reads {quoted(self.refreshed)} again"] if self.refreshed else []
        parts += [f"changes the schedule's {quoted(self.schedule)}"] if self.schedule else []
        return "; ".join(parts) or "changes nothing"


_ENDS = {"added": "adds", "removed": "removes", "changed": "changes"}
_TOLD: Mapping[str, Mapping[str, str]] = {
    "": {
        "added": "adds",
        "removed": "removes",
        "replaced": "replaces",
        "restarted": "restarts",
        "carried": "keeps the state, not the input, of",
        "flushed": "flushes",
    },
    "sources": _ENDS,
    "outputs": {**_ENDS, "restarted": "restarts"},
    "points": {**_ENDS, "restarted": "restarts"},
}
"""The verbs of a summary by kind of part, boxes first, and by field."""


def _article(kind: str, count: int) -> list[str]:
    return ["the", kind if count > 1 else kind.removesuffix("s")] if kind else []


def compare(
    old: CheckedNetwork,
    new: CheckedNetwork,
    restart: Names = (),
    keep: Names = (),
    flush: Names = (),
    *,
    refresh: Collection[str] = (),
) -> Changes:
    """Return what a change does, or raise a RunError that names the culprit, says why, and lists the choices.

    A box with state that has changed, or has a change before it, must be in `restart` or `keep`; so must an output or a
    point whose tuples would no longer fit, in `restart`. Both may be ``all``, but not at once. `flush` names boxes that
    end, or ``all`` of them. `refresh` names dangling points whose data is read again; boxes that look them up are
    replaced.
    """
    _check_refresh(new, refresh)
    sides = _Sides(old, new, frozenset(refresh))
    _check_unknown(sides, restart, keep)
    boxes = _boxes(sides, restart, keep)
    outputs, points = compare_outputs(old, new, restart), compare_points(old, new, restart)
    _check_named(boxes, {*outputs.restarted, *points.restarted}, restart, keep)
    ends = set(boxes.removed) | set(boxes.restarted)
    affected = ends | set(boxes.replaced) | set(boxes.carried)
    begins = {*boxes.added, *boxes.replaced, *boxes.restarted}
    before, after = _sources(old), _sources(new)
    return replace(
        boxes,
        flushed=_flushed(sides, ends, flush),
        sources_added=ordered(after, after.keys() - before.keys()),
        sources_removed=ordered(before, before.keys() - after.keys()),
        sources_changed=ordered(after, {name for name in after.keys() & before.keys() if after[name] != before[name]}),
        outputs_added=outputs.added,
        outputs_removed=outputs.removed,
        outputs_changed=outputs.changed,
        outputs_restarted=outputs.restarted,
        points_added=points.added,
        points_removed=points.removed,
        points_changed=points.changed,
        points_restarted=points.restarted,
        refreshed=tuple(point.name for point in new.network.points if point.name in refresh),
        schedule=_schedule(old, new),
        affected=ordered(sides.before, affected),
        begins=ordered(sides.after, begins),
    )


class _Sides:
    """The boxes of both networks, and which of them differ."""

    def __init__(self, old: CheckedNetwork, new: CheckedNetwork, refresh: frozenset[str]) -> None:
        self.old, self.new, self.refresh = old, new, refresh
        self.before = {box.name: box.spec for box in old.network.boxes}
        self.after = {box.name: box.spec for box in new.network.boxes}
        marks = fingerprints(old), fingerprints(new)
        self.same = {name for name in self.before if name in self.after and marks[0][name] == marks[1][name]}

    def refreshed(self, name: str) -> bool:
        """Whether a box of the new network looks up data that is read again."""
        return any(isinstance(item, Table) and item.ref in self.refresh for item in self.new.inputs[name])

    def own_change(self, name: str) -> str | None:
        """Return what of a box itself has changed, if anything has."""
        if self.before[name] != self.after[name]:
            if self.before[name].op != self.after[name].op:
                return f"it was a {self.before[name].op} and is a {self.after[name].op}"
            one, other = self.before[name].to_mapping(), self.after[name].to_mapping()
            keys = [key for key in dict.fromkeys([*one, *other]) if one.get(key) != other.get(key)]
            return f"its {quoted(keys)} changed"
        was, now = self.old.inputs[name], self.new.inputs[name]
        if was != now:
            return f"it read {_items(was)} and reads {_items(now)}"
        return None

    def causes(self, name: str) -> list[str]:
        """Return the boxes, sources and tables before a box that have changed themselves, the nearest first."""
        found: dict[str, None] = {}
        waiting, seen = [name], {name}
        while waiting:
            for item in self.new.inputs[waiting.pop(0)]:
                other = item.ref if isinstance(item, Table) else owner(item)
                if other in seen:
                    continue
                seen.add(other)
                if isinstance(item, Table) or other not in self.after:
                    if self._input_changed(item):
                        found[other] = None
                elif other not in self.before or self.own_change(other):
                    found[other] = None
                elif other not in self.same:
                    waiting.append(other)
        return list(found)

    def _input_changed(self, item: str | Table) -> bool:
        if isinstance(item, Table):
            points = [side.network.stored(item.ref) for side in (self.old, self.new)]
            return self.old.tables.get(item.ref) != self.new.tables.get(item.ref) or points[0] != points[1]
        points = [side.network.streamed(item) for side in (self.old, self.new)]
        return self.old.arcs.get(item) != self.new.arcs.get(item) or points[0] != points[1]


class _Undecided(NamedTuple):
    name: str
    why: str
    unkeepable: str | None
    """Why its state cannot stay."""


def _boxes(sides: _Sides, restart: Names, keep: Names) -> Changes:
    """Return what happens to each box."""
    if restart == ALL and keep == ALL:
        raise RunError("restart and keep are both 'all': name boxes in one of them")
    if both := listed(restart) & listed(keep):
        raise RunError(f"restart and keep both name {quoted(sorted(both))}: a box begins anew or keeps its state")
    found: dict[str, list[str]] = {part: [] for part in ("kept", "added", "replaced", "restarted", "carried")}
    open_: list[_Undecided] = []
    for name in sides.after:
        if name not in sides.before:
            found["added"].append(name)
        elif name in sides.same and not sides.refreshed(name):
            found["kept"].append(name)
        elif not sides.before[name].stateful:
            found["replaced"].append(name)
        elif name in listed(restart) or (restart == ALL and name not in listed(keep)):
            found["restarted"].append(name)
        else:
            case = _undecided(sides, name)
            if name not in listed(keep) and keep != ALL:
                open_.append(case)
            elif case.unkeepable is None:
                found["carried"].append(name)
            else:
                raise RunError(
                    f"box '{name}': keep: its state cannot stay: {case.unkeepable}; choices: restart it, or leave "
                    "it as it was"
                )
    if open_:
        raise RunError(_refusal(open_))
    gone = tuple(name for name in sides.before if name not in sides.after)
    return Changes(removed=gone, **{part: tuple(names) for part, names in found.items()})


def _undecided(sides: _Sides, name: str) -> _Undecided:
    own, causes = sides.own_change(name), sides.causes(name)
    fits = _shapes(sides.old, name) == _shapes(sides.new, name)
    if own is None:
        why = f"{quoted(causes)} before it changed" if causes else "data that it looks up is read again"
        return _Undecided(name, why, None if fits else f"the schema of its input changed, because {quoted(causes)} did")
    return _Undecided(name, own, None if fits and sides.before[name] == sides.after[name] else own)


def _shapes(checked: CheckedNetwork, name: str) -> list[tuple[bool, Any]]:
    """Return of each input of a box whether it is a stream, and its schema."""
    items = checked.inputs[name]
    return [(isinstance(item, str), schema) for item, schema in zip(items, checked.input_schemas(name), strict=True)]


def _refusal(cases: list[_Undecided]) -> str:
    first, *others = cases
    choice = "restart it, so that it begins anew"
    if first.unkeepable is None:
        choice += ", or keep its state, which stays valid if what it means has not changed"
    else:
        choice += " (its state cannot stay)"
    told = f"box '{first.name}' keeps state, and {first.why}; choices: {choice}"
    if others:
        listed = [f"'{one.name}' ({one.why})" for one in others]
        told += f"; the same has to be said for {choices(listed, 5)}"
    return told


def _check_refresh(new: CheckedNetwork, refresh: Collection[str]) -> None:
    if isinstance(refresh, str):
        raise RunError(f"refresh is a list of dangling points, not {refresh!r}")
    stored = [point.name for point in new.network.points if point.data is not None]
    check_known("stored data set", refresh, stored, RunError, "refresh")
    for name in refresh:
        streamed = [one.name for one in new.network.sources if one.name.rpartition("/")[2] == name]
        looked_up = any(Table(name) in items for items in new.inputs.values())
        if streamed and not looked_up:
            raise RunError(f"refresh: '{name}' is streamed in, once; only data that is looked up is read again")


def _check_unknown(sides: _Sides, restart: Names, keep: Names) -> None:
    """Refuse names in `restart` and `keep` that are nowhere."""
    network = sides.new.network
    parts = [one.name for one in network.outputs] + [one.name for one in network.points]
    for option, names, also in (("restart", listed(restart), parts), ("keep", listed(keep), [])):
        for name in sorted(names):
            if name in sides.before and name not in sides.after:
                raise RunError(f"{option}: box '{name}' is not in the new network any more")
        check_known("name", sorted(names), list(dict.fromkeys([*sides.after, *also])), RunError, option)


def _check_named(boxes: Changes, others: Collection[str], restart: Names, keep: Names) -> None:
    """Refuse names in `restart` and `keep` for which there is nothing to decide."""
    decided = {*boxes.restarted, *boxes.carried}
    for option, names, useful in (
        ("restart", listed(restart), {*boxes.restarted, *others}),
        ("keep", listed(keep), {*boxes.carried}),
    ):
        for name in sorted(names - useful):
            raise RunError(
                f"{option}: '{name}' {_pointless(name, boxes)}: there is nothing to decide for it; "
                f"choices: {choices(sorted(useful | decided))}"
            )


def _pointless(name: str, boxes: Changes) -> str:
    if name in boxes.kept:
        return "goes on unchanged"
    if name in boxes.replaced:
        return "keeps no state"
    return "is new" if name in boxes.added else "goes on"


def _flushed(sides: _Sides, ends: set[str], flush: Names) -> tuple[str, ...]:
    if flush == ALL:
        return ordered(sides.before, {name for name in ends if sides.before[name].stateful})
    names = listed(flush)
    check_known("box", sorted(names), sides.before, RunError, "flush")
    for name in sorted(names - ends):
        raise RunError(
            f"flush: box '{name}' goes on, and only what ends is flushed; choices: "
            f"{choices(ordered(sides.before, ends))}"
        )
    return ordered(sides.before, names)


def _schedule(old: CheckedNetwork, new: CheckedNetwork) -> tuple[str, ...]:
    """Return the keys that changed, or refuse those that cannot change while a network runs."""
    was: Mapping[str, Any] = old.network.schedule or {}
    now: Mapping[str, Any] = new.network.schedule or {}
    changed = [key for key in dict.fromkeys([*was, *now]) if was.get(key) != now.get(key)]
    for key in changed:
        if key not in LIVE_KEYS:
            raise RunError(
                f"schedule: '{key}' cannot change while the network runs; what can: {choices(LIVE_KEYS)}; "
                "stop it and start it again for the rest"
            )
    return tuple(changed)


def _sources(checked: CheckedNetwork) -> dict[str, Any]:
    return {source.name: source for source in checked.network.sources}


def _items(items: Iterable[str | Table]) -> str:
    return quoted(item.ref if isinstance(item, Table) else item for item in items)
