"""Users' functions on their way to executors, which may not have the modules that they come from."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

from headway.expressions.registry import Functions


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
