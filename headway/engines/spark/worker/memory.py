"""Settings of a process that runs nothing but tasks: numpy's, and those of memory.

Freed blocks are kept for the next train instead of being returned to the system.
Kernels constantly allocate and free arrays of half a megabyte. By default the C library returns such blocks to the
system immediately and takes fresh pages for the next, which the system must clear first: measured on W3, this took a
quarter of the processor time (docs/benchmarks.md). What is kept is bounded by the peak of what was in use.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

import numpy as np

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEEP = 256 << 20
_LARGEST = 32 << 20


def prepare() -> None:
    """Set up this process."""
    keep_freed_memory()
    np.seterr(over="ignore", invalid="ignore", divide="ignore")  # a generator cannot hold the context `quiet`


@cache
def keep_freed_memory() -> bool:
    """Make the C library keep freed blocks; glibc only. HEADWAY_KEEP_MEMORY=0 disables it.

    This is a permanent setting of the whole process. Returns whether it was made.
    """
    if os.environ.get("HEADWAY_KEEP_MEMORY") == "0" or not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_TRIM_THRESHOLD, _KEEP)) and bool(mallopt(_MMAP_THRESHOLD, _LARGEST))
