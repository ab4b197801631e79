"""Sources in virtual time: there is no outside world to wait for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headway.connectors.base import Chunk
from headway.connectors.wrapping import Awaited


class Portions(Awaited):
    """A live source that is waited for until a whole portion is there, or its end.

    How many of its tuples come at a time is the outside world's doing; here a run must not depend on it.
    """

    def read(self, limit: int) -> Chunk | None:
        """Return the next `limit` tuples, fewer only at the end; blocks until they are there."""
        chunks: list[Chunk] = []
        while limit > 0 and (chunk := super().read(limit)) is not None:
            chunks.append(chunk)
            limit -= len(chunk)
        if len(chunks) < 2:
            return chunks[0] if chunks else None
        due = [chunk.due for chunk in chunks if chunk.due is not None]
        return Chunk(pa.concat_batches([chunk.batch for chunk in chunks]), np.concatenate(due) if due else None)
