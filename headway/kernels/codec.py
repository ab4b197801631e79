"""States as bytes: a JSON header and raw buffers. Nothing in them can run code.

Layout: 4 bytes magic, 4 bytes length of the header, the header, the buffers one after the other.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from headway.columns import Column, from_arrow, to_arrow
from headway.errors import RunError
from headway.trains import Train

_MAGIC = b"HWS1"


def pack(meta: Mapping[str, Any], arrays: Mapping[str, Any]) -> bytes:
    """Write JSON-like values, numpy arrays and Arrow arrays to bytes."""
    entries, buffers = [], []
    for name, array in arrays.items():
        if isinstance(array, np.ndarray):
            data = np.ascontiguousarray(array).tobytes()
            entries.append([name, "numpy", array.dtype.str, list(array.shape), len(data)])
        else:
            batch = pa.RecordBatch.from_arrays([array], names=["x"])
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            data = sink.getvalue().to_pybytes()
            entries.append([name, "arrow", "", [], len(data)])
        buffers.append(data)
    header = json.dumps({"meta": dict(meta), "arrays": entries}).encode()
    return b"".join([_MAGIC, struct.pack("<I", len(header)), header, *buffers])


class _Named(dict[str, Any]):
    """The values of a saved state by name; a missing name means that it is another box's state."""

    def __missing__(self, name: str) -> Any:
        raise RunError(f"a box's saved state has no '{name}': it is the state of another box")


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what `pack` wrote; raises a RunError for anything else."""
    try:
        return _unpack(data)
    except (struct.error, ValueError, TypeError, KeyError, OSError, pa.ArrowException) as error:
        raise RunError("a box's saved state is damaged, or not in this version's format") from error


def _unpack(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    if data[:4] != _MAGIC:
        raise ValueError("no magic")
    (length,) = struct.unpack_from("<I", data, 4)
    header = json.loads(data[8 : 8 + length])
    arrays = _Named()
    at = 8 + length
    for name, kind, dtype, shape, size in header["arrays"]:
        if kind == "numpy":
            arrays[name] = np.frombuffer(data, np.dtype(dtype), count=size // np.dtype(dtype).itemsize, offset=at)
            arrays[name] = arrays[name].reshape(shape).copy()
        else:
            table = pa.ipc.open_stream(pa.py_buffer(data[at : at + size])).read_all()
            column = table.column(0)
            arrays[name] = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        at += size
    return _Named(header["meta"]), arrays


def under(prefix: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays whose names begin with a prefix, by the rest of their names."""
    return _Named({name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)})


def pack_columns(prefix: str, columns: tuple[Column, ...], types: tuple[pa.DataType, ...]) -> dict[str, Any]:
    """Return named Arrow arrays of columns, for `pack`."""
    return {f"{prefix}{at}": to_arrow(c, t) for at, (c, t) in enumerate(zip(columns, types, strict=True))}


def unpack_columns(prefix: str, arrays: Mapping[str, Any], count: int) -> tuple[Column, ...]:
    """Return the columns that `pack_columns` named."""
    return tuple(from_arrow(arrays[f"{prefix}{at}"]) for at in range(count))


def pack_train(prefix: str, train: Train, types: tuple[pa.DataType, ...]) -> dict[str, Any]:
    """Return a train's columns, stamps and arrival numbers as named arrays, for `pack`."""
    return {"stamps": train.stamps, "numbers": train.numbers, **pack_columns(prefix, train.columns, types)}


def unpack_train(prefix: str, arrays: Mapping[str, Any], count: int) -> Train:
    """Return the train that `pack_train` named."""
    return Train(unpack_columns(prefix, arrays, count), arrays["stamps"], arrays["numbers"])
