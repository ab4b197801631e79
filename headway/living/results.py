"""What a change does to outputs and points: what they hold goes on only if new tuples fit to it."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from headway.checking import CheckedNetwork
from headway.errors import RunError
from headway.living.names import ALL, Names, listed, ordered
from headway.network import Output, Point, thaw


class Parts(NamedTuple):
    """What happens to the parts of one kind, by name."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    restarted: tuple[str, ...]
    """Those that changed so that they begin anew."""


def compare_outputs(old: CheckedNetwork, new: CheckedNetwork, restart: Names) -> Parts:
    """Return what happens to outputs, views included; a RunError if rows would not fit."""
    before = {output.name: output for output in old.network.outputs}
    after = {output.name: output for output in new.network.outputs}
    changed, restarted = [], []
    for name in after:
        if name not in before:
            continue
        same_rows = old.output_schema(name) == new.output_schema(name)
        if not same_rows:
            _check_rows(before[name], after[name], restart)
            restarted.append(name)
        canonical = [replace(one, input="") for one in (before[name], after[name])]
        if not same_rows or canonical[0] != canonical[1] or old.outputs[name] != new.outputs[name]:
            changed.append(name)
    return Parts(
        added=ordered(after, after.keys() - before.keys()),
        removed=ordered(before, before.keys() - after.keys()),
        changed=tuple(changed),
        restarted=tuple(restarted),
    )


def _check_rows(was: Output, now: Output, restart: Names) -> None:
    """Refuse another schema in the same file or table, and one that the change does not speak of."""
    place = f"{'view' if now.view else 'output'} '{now.name}'"
    if now.sink is not None and now.sink == was.sink and now.sink != "-":
        raise RunError(
            f"{place}: its schema changes, and rows with different fields do not fit into one place, "
            f"{thaw(now.sink)!r}: give it another sink, or another name"
        )
    if restart != ALL and now.name not in listed(restart):
        raise RunError(
            f"{place}: its schema changes, so what was delivered ends; choices: restart it, or give what is new "
            "another name"
        )


def compare_points(old: CheckedNetwork, new: CheckedNetwork, restart: Names) -> Parts:
    """Return what happens to points, those of views included; a RunError if history would end unasked."""
    before = {point.name: point for point in old.network.points}
    after = {point.name: point for point in new.network.points}
    changed, restarted = [], []
    for name, point in after.items():
        if name not in before or (why := _point_change(before[name], point, old, new)) is None:
            continue
        changed.append(name)
        if why:
            if restart != ALL and name not in listed(restart):
                raise RunError(
                    f"point '{name}': {why}, so its history would begin anew; choices: restart it, or give the new "
                    "point another name"
                )
            restarted.append(name)
    return Parts(
        added=ordered(after, after.keys() - before.keys()),
        removed=ordered(before, before.keys() - after.keys()),
        changed=tuple(changed),
        restarted=tuple(restarted),
    )


def _point_change(was: Point, now: Point, old: CheckedNetwork, new: CheckedNetwork) -> str | None:
    """Return None if a point is as it was, otherwise why its history begins anew, empty if it goes on."""
    if (was.data is None) != (now.data is None):
        return "it was stored data and is on an arc" if now.data is None else "it was on an arc and is stored data"
    if now.data is None:
        if old.points[was.name] != new.points[now.name]:
            return f"it was on '{old.points[was.name]}' and is on '{new.points[now.name]}'"
        if old.arcs[old.points[was.name]] != new.arcs[new.points[now.name]]:
            return "its schema changes"
        for key in ("time", "key"):
            if getattr(was, key) != getattr(now, key):
                return f"its '{key}' changes"
    return None if was == now else ""
