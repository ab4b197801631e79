"""Headway: a QoS-aware data stream manager for monitoring applications.

Public names are loaded on first use: Spark's helper processes import modules of this package, start many times per run,
and need none of these names.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headway.builder import NetworkBuilder as Network
    from headway.checking import check
    from headway.engines.control import Control
    from headway.engines.runs import RunResult
    from headway.errors import HeadwayError
    from headway.files import dump, load
    from headway.functions import aggregate, function, load_functions
    from headway.network.trust import Trust
    from headway.runner import run
    from headway.running import Running, start
    from headway.scheduling.schedule import policy_names as policies

__all__ = [
    "Control",
    "HeadwayError",
    "Network",
    "RunResult",
    "Running",
    "Trust",
    "aggregate",
    "check",
    "dump",
    "function",
    "load",
    "load_functions",
    "policies",
    "run",
    "start",
]
__version__ = "0.2.0"

_HOMES = {
    "Control": "engines.control.Control",
    "HeadwayError": "errors.HeadwayError",
    "Network": "builder.NetworkBuilder",
    "RunResult": "engines.runs.RunResult",
    "Running": "running.Running",
    "Trust": "network.trust.Trust",
    "aggregate": "functions.aggregate",
    "check": "checking.check",
    "dump": "files.dump",
    "function": "functions.function",
    "load": "files.load",
    "load_functions": "functions.load_functions",
    "policies": "scheduling.schedule.policy_names",
    "run": "runner.run",
    "start": "running.start",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'headway' has no attribute '{name}'")
    module, _, inner = _HOMES[name].rpartition(".")
    found = globals()[name] = getattr(import_module(f"headway.{module}"), inner)
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
