"""Headway: a QoS-aware data stream manager for monitoring applications."""

from headway.builder import NetworkBuilder as Network
from headway.check import check
from headway.engines.base import RunResult
from headway.errors import HeadwayError
from headway.files import dump, load
from headway.functions import aggregate, function, load_functions
from headway.runner import run
from headway.scheduling.schedule import policy_names as policies

__all__ = [
    "HeadwayError",
    "Network",
    "RunResult",
    "aggregate",
    "check",
    "dump",
    "function",
    "load",
    "load_functions",
    "policies",
    "run",
]
__version__ = "0.1.0"
