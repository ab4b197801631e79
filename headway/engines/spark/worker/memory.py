"""Memory of trains: freed blocks are kept for the next train instead of going back to the system.

Kernels make and free arrays of half a megabyte all the time. By default the C library returns such blocks to
the system at once and takes fresh pages for the next, which the system must clear first: measured on W3, a
quarter of the processor time went into that (docs/benchmarks.md). What is kept is bounded by the largest
amount that was in use at one time.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEEP = 256 << 20
_LARGEST = 32 << 20


@cache
def keep_freed_memory() -> bool:
    """Ask the C library to keep freed blocks; only for glibc. HEADWAY_KEEP_MEMORY=0 leaves the process alone.

    This is a setting of the whole process, and lasts. Returns whether it was made.
    """
    if os.environ.get("HEADWAY_KEEP_MEMORY") == "0" or not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_TRIM_THRESHOLD, _KEEP)) and bool(mallopt(_MMAP_THRESHOLD, _LARGEST))
