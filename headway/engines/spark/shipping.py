"""What executors need beside their work: users' functions, static tables, and a place for large trains."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from headway.checking import CheckedNetwork
from headway.engines.spark.cut import CutUnit
from headway.engines.spark.exchange import clear
from headway.engines.spark.state import State
from headway.expressions.registry import Functions
from headway.network import Table
from headway.storage.files import write_table
from headway.storage.filesystems import Place
from headway.tables import load_table


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
    homes = [Path(sys.base_prefix).resolve() / "lib", Path(__file__).resolve().parents[2]]
    return not installed and not any(path.is_relative_to(home) for home in homes)


def write_tables(checked: CheckedNetwork, place: Place, tables: Mapping[str, Any] | None) -> dict[str, str]:
    """Put static tables where executors can read them; return by ref where."""
    network = checked.network
    refs = {item.ref for box in network.boxes for item in box.inputs if isinstance(item, Table)}
    place.make(["tables"], False)
    written = {}
    for at, ref in enumerate(sorted(refs)):
        written[ref], _ = write_table(
            place, f"tables/{at}.arrow", load_table(ref, tables, network.folder, network.trust)
        )
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
