"""States as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headway.columns import from_pylist, to_arrow
from headway.errors import RunError
from headway.kernels.codec import pack, pack_columns, unpack, unpack_columns


def test_there_and_back() -> None:
    arrays = {
        "n": np.arange(6).reshape(2, 3),
        "f": np.array([0.5, -0.0]),
        "none": np.zeros((0, 4), np.uint8),
        "b": np.array([True, False]),
        "text": pa.array(["a", None]),
        "empty": pa.array([], pa.decimal128(5, 2)),
    }
    meta = {"op": "x", "count": 3, "far": 2**62}
    read_meta, read = unpack(pack(meta, arrays))
    assert read_meta == meta
    assert list(read) == list(arrays)
    for name, array in arrays.items():
        if isinstance(array, np.ndarray):
            assert read[name].dtype == array.dtype
            assert read[name].shape == array.shape
            assert read[name].tobytes() == array.tobytes()
            read[name][...] = 0  # what is read back may be changed
        else:
            assert read[name].equals(array)


def test_columns_there_and_back() -> None:
    types = (pa.int32(), pa.string(), pa.bool_())
    values: tuple[list[Any], ...] = ([1, None], ["x", None], [None, True])
    columns = tuple(from_pylist(one, type_) for one, type_ in zip(values, types, strict=True))
    _, arrays = unpack(pack({}, pack_columns("c", columns, types)))
    back = unpack_columns("c", arrays, 3)
    assert [to_arrow(one, type_).to_pylist() for one, type_ in zip(back, types, strict=True)] == list(values)


def test_the_bytes_are_the_same_every_time_and_no_pickle() -> None:
    arrays = {"a": np.arange(3), "t": pa.array(["x"])}
    assert pack({"k": 1}, arrays) == pack({"k": 1}, arrays)
    with pytest.raises(TypeError):
        pack({"k": object()}, {})


GOOD = pack({"op": "x"}, {"a": np.arange(10), "t": pa.array(["x", "y"])})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HWS1",
        b"HWS1\x05",
        b"HWS0" + GOOD[4:],
        b"\x80\x04]\x94.",
        b"HWS1\x02\x00\x00\x00{}",
        b"HWS1\x02\x00\x00\x00[]",
        b"HWS1\x05\x00\x00\x00\xff\xff\xff\xff\xff",
        GOOD[:40],
        GOOD[:-30],
        GOOD[:-300],
        GOOD.replace(b'"<i8"', b'"|O8"'),
        GOOD.replace(b'"<i8"', b'"abc"'),
        GOOD.replace(b"numpy", b"arrow"),
    ],
)
def test_foreign_bytes(data: bytes) -> None:
    with pytest.raises(RunError, match="saved state"):
        unpack(data)


def test_a_state_of_another_box() -> None:
    meta, arrays = unpack(GOOD)
    with pytest.raises(RunError, match=r"saved state.*'largest'"):
        arrays["largest"]
    with pytest.raises(RunError, match=r"saved state.*'place'"):
        meta["place"]
