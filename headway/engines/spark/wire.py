"""What rows on the wire look like. It stands alone, so that processes which only pass rows on import nothing else."""

from __future__ import annotations

LETTERS = -1
"""The lane of dead letters, as JSON."""
READINGS = -2
"""The lane of what boxes report: calls, tuples, time, deadlines, as JSON."""
MARKS = -3
"""The lane by which shards hear of progress, ticks and the end, as JSON."""

ROWS = "shard int, lane int, first long, train binary"
"""The schema of what travels: the shard it is for, the lane, the first arrival number, and the packed train."""
