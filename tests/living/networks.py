"""Random living networks that check, and random edits of them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from headway.checking import CheckedNetwork, check
from headway.files import load
from headway.network.schema import Schema

TABLES = {"people": Schema.parse("k int, name string"), "sectors": Schema.parse("k int, area string")}
"""The schemas of the static table and of the stored data set of all networks here."""
FIELDS = "k int, t bigint, v int"

Plain = dict[str, Any]


def checked(mapping: Mapping[str, Any]) -> CheckedNetwork:
    """Return a network with its schemas; what it names outside is not read."""
    return check(load(mapping), tables=TABLES)


@st.composite
def box_mappings(draw: st.DrawFn, names: list[str]) -> Plain:
    """One box whose results have the fields of its inputs, which are among the names."""
    one, number = draw(st.sampled_from(names)), draw(st.integers(1, 3))
    kind = draw(st.sampled_from(["filter", "map", "union", "bsort", "sorted", "table", "stored"]))
    if kind == "filter":
        return {"op": "filter", "in": one, "where": f"v > {number}"}
    if kind == "map":
        return {"op": "map", "in": one, "select": f"k, t, cast(v + {number} as int) as v"}
    if kind == "union":
        return {"op": "union", "in": [one, draw(st.sampled_from(names))]}
    if kind in ("bsort", "sorted"):
        return {"op": "bsort", "in": one, "order": {"on": "t", "slack": number}}
    table: Any = {"table": "people"} if kind == "table" else "sectors"
    select = f"left.k as k, left.t as t, cast(left.v + {number} as int) as v"
    return {"op": "join", "in": [one, table], "on": "left.k = right.k", "select": select}


@st.composite
def living_mappings(draw: st.DrawFn, most: int = 7) -> Plain:
    """Networks with points and views, in which boxes read arcs, points and views."""
    sources: Plain = {name: {"schema": FIELDS} for name in ("a", "b")[: draw(st.integers(1, 2))]}
    if draw(st.booleans()):
        sources["a"]["push"] = True
    boxes: Plain = {}
    points: Plain = {"sectors": {"data": "sectors.parquet"}}
    views: Plain = {}
    arcs, names = list(sources), list(sources)
    for at in range(draw(st.integers(1, most))):
        boxes[f"x{at}"] = draw(box_mappings(names))
        arcs.append(f"x{at}")
        names.append(f"x{at}")
        if draw(st.integers(0, 3)) == 0:
            points[f"p{at}"] = {"on": draw(st.sampled_from(arcs)), **draw(_kept())}
            names.append(f"p{at}")
        if draw(st.integers(0, 3)) == 0:
            views[f"w{at}"] = {"from": draw(st.sampled_from(names)), "keep": draw(st.sampled_from([7, "1h", "all"]))}
            names.append(f"w{at}")
    outputs: Plain = {f"o{at}": {"from": draw(st.sampled_from(names))} for at in range(draw(st.integers(1, 3)))}
    if draw(st.booleans()):
        outputs["o0"] |= {"keep": draw(st.sampled_from([5, "2h"])), "roll": draw(st.sampled_from(["1h", "3 MB"]))}
    return {
        "network": "random",
        "sources": sources,
        "points": points,
        "boxes": boxes,
        "views": views,
        "outputs": outputs,
    }


@st.composite
def _kept(draw: st.DrawFn) -> Plain:
    keep = draw(st.sampled_from(["1h", 100, "all", "10 minutes"]))
    return {"keep": keep, "time": draw(st.sampled_from([None, "t"])), "key": draw(st.sampled_from([None, "k"]))}


@st.composite
def edited(draw: st.DrawFn, mapping: Plain) -> Plain:
    """Another network: the same with some boxes changed, rewired, added or removed, or a source with other fields."""
    new = copy.deepcopy(mapping)
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(list(new["boxes"])))
        edit = draw(st.sampled_from(["box", "rewire", "add", "remove", "source", "point"]))
        before = [*new["sources"], *list(new["boxes"])[: list(new["boxes"]).index(name)]]
        if edit == "box":
            new["boxes"][name] = draw(box_mappings(before))
        elif edit == "rewire":
            given = new["boxes"][name]["in"]
            one = draw(st.sampled_from(before))
            new["boxes"][name]["in"] = [one, *given[1:]] if isinstance(given, list) else one
        elif edit == "add":
            new["boxes"][f"y{len(new['boxes'])}"] = draw(box_mappings([*new["sources"], *new["boxes"]]))
        elif edit == "remove" and len(new["boxes"]) > 1:
            given = new["boxes"].pop(name)["in"]
            _rewire(new, name, given[0] if isinstance(given, list) else given)
        elif edit == "source":
            for source in new["sources"].values():
                source["schema"] = draw(st.sampled_from([FIELDS, FIELDS + ", extra int"]))
        elif edit == "point":
            for point in list(new["points"])[1:]:
                new["points"][point]["keep"] = draw(st.sampled_from(["1h", "2h", 100]))
    return new


def _rewire(mapping: Plain, name: str, instead: str) -> None:
    """Let everything that read a box read something before it."""
    arc = instead
    while arc in mapping["points"] or arc in mapping["views"]:
        arc = mapping["points"][arc]["on"] if arc in mapping["points"] else mapping["views"][arc]["from"]
    for box in mapping["boxes"].values():
        given = box["in"]
        box["in"] = [arc if one == name else one for one in given] if isinstance(given, list) else given
        box["in"] = arc if given == name else box["in"]
    for point in mapping["points"].values():
        if point.get("on") == name:
            point["on"] = arc
    for reader in (*mapping["views"].values(), *mapping["outputs"].values()):
        if reader["from"] == name:
            reader["from"] = arc


@st.composite
def fragment_mappings(draw: st.DrawFn, mapping: Plain, name: str = "ask") -> Plain:
    """A fragment that fits a network, with history where all of its inputs have one."""
    on = {point["on"] for point in mapping["points"].values() if "on" in point}
    kept = [*[one for one, point in mapping["points"].items() if "on" in point], *mapping["views"], *on]
    arcs = [*mapping["sources"], *mapping["boxes"]]
    behind = bool(kept) and draw(st.booleans())
    names = kept if behind else [*kept, *arcs]
    boxes: Plain = {}
    for at in range(draw(st.integers(0, 3))):
        boxes[f"f{at}"] = draw(box_mappings([*names, *boxes]))
    outputs = {f"o{at}": {"from": draw(st.sampled_from([*names, *boxes]))} for at in range(draw(st.integers(1, 2)))}
    since = draw(st.sampled_from(["all", "30 minutes", 12, "now", None])) if behind else "now"
    return {"attach": name, "since": since, "boxes": boxes, "outputs": outputs}
