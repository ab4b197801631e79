"""What is sent to executors: the work of units, users' functions, static tables, and a place for large trains."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from headway.engines.spark.driver.cut import fingerprint
from headway.engines.spark.driver.state import State
from headway.engines.spark.wire.native import NativePlan, plan_native
from headway.engines.spark.wire.packing import clear
from headway.engines.spark.wire.work import CutUnit, Lane, Work
from headway.errors import NetworkError, unknown
from headway.expressions.userfunctions import Functions
from headway.program import Program
from headway.storage.checked import write_table
from headway.storage.filesystems import Place
from headway.structure import owner

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
) -> Work:
    """Lay the lanes of a unit; the arcs in `discarded` are only counted."""
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
        dict(functions.scalars),
        dict(functions.aggregates),
        {name: mark[:16] for name, mark in fingerprint(program, unit, shards, every=True).items()},
        exchange,
        run,
    )


def explain_front(program: Program, work: Work) -> NativePlan | str:
    """Return how Spark itself would run a unit, or why kernels do."""
    if work.unit.stateful:
        return "its boxes feed boxes with state, and packing trains where the log is read is faster"
    if all(lane.counted for lane in work.lanes):
        return "nobody reads its results, so they are only counted"
    return plan_native(program, work.unit, work.lanes)


def choose_front(program: Program, work: Work, front: str) -> NativePlan | None:
    """Return the plan by which Spark itself runs a unit, or None for kernels."""
    if front not in FRONTS:
        raise NetworkError(f"schedule: front: {unknown('front', front, FRONTS)}")
    if front == "kernels":
        return None
    found = explain_front(program, work)
    if isinstance(found, str):
        if front == "native" and not work.unit.stateful:
            raise NetworkError(f"schedule: front: '{work.unit.name}' cannot be native: {found}")
        return None
    return found


def ship_functions(functions: Functions) -> None:
    """Let Spark send the code of users' own modules along, not only their names."""
    from pyspark import cloudpickle

    for module in own_modules(functions):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def own_modules(functions: Functions) -> list[ModuleType]:
    """Return the modules of users' functions that are not installed as packages are."""
    bodies: list[object] = [one.function for one in functions.scalars.values()]
    for aggregate in functions.aggregates.values():
        bodies += [aggregate.init, aggregate.incr, aggregate.final, aggregate.function]
    found: dict[str, ModuleType] = {}
    for body in bodies:
        owner = getattr(body, "__self__", None)
        name = getattr(body, "__module__", None) or (type(owner).__module__ if owner is not None else None)
        module = sys.modules.get(name or "")
        if module is not None and name != "__main__" and _is_own(module):
            found[module.__name__] = module
    return list(found.values())


def _is_own(module: ModuleType) -> bool:
    """Return whether a module's file lies neither in this package nor where Python keeps installed ones."""
    file = getattr(module, "__file__", None)
    if file is None:
        return False
    path = Path(file).resolve()
    installed = "site-packages" in path.parts or "dist-packages" in path.parts
    homes = [Path(sys.base_prefix).resolve() / "lib", Path(__file__).resolve().parents[3]]
    return not installed and not any(path.is_relative_to(home) for home in homes)


def write_tables(program: Program, place: Place, tables: Mapping[str, Any] | None) -> dict[str, str]:
    """Put static tables where executors can read them; return by ref where."""
    place.make(["tables"], False)
    written = {}
    for at, (ref, table) in enumerate(program.load_tables(tables).items()):
        written[ref], _ = write_table(place, f"tables/{at}.arrow", table)
    place.delete(set(place.files("tables")).difference(written.values()))
    return {ref: place.name(relative) for ref, relative in written.items()}


def exchange_of(state: State, unit: CutUnit, master: str) -> str | None:
    """Return an empty folder for a unit's large trains, if all processes share this disk."""
    if not state.place.local or not master.startswith("local"):
        return None
    relative = f"exchange/{state.unit_id(unit)}"
    state.place.make([relative], False)
    folder = state.place.name(relative)
    clear(folder)
    return folder
