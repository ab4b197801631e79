"""A source of synthetic tuples, reproducible from a seed regardless of how it is read.

Tuples are made in blocks of 65,536. Each field of each block has its own counter-based random stream (Philox), keyed by
seed and field, so a block does not depend on what was read before. Field values come from a distribution, a sequence,
an expression or a constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headway.columns import Column, Int64s, numpy_type, quiet, to_arrow
from headway.connectors.arrivals import nanoseconds, parse_arrivals
from headway.connectors.protocol import Chunk, SourceRequest
from headway.connectors.readers import BatchReader
from headway.connectors.registry import check_keys, check_rate, is_whole, permit_anyone, register_source
from headway.connectors.values import convert, to_array
from headway.errors import HeadwayError, InputError, check_known, choices, did_you_mean, finite, within
from headway.network.schema import Field, Schema, type_name

BLOCK = 1 << 16
KEYS = ("rate", "arrivals", "seed", "count", "burst", "phases", "fields")
MOST_RANKS = 10_000_000

FieldMaker = Callable[[Sequence[Column | None], int, np.random.Generator], pa.Array]
"""(columns `i`, the tuple number, and `t`, the arrival time in seconds; tuple count; random stream) -> values."""

_Numbers = npt.NDArray[Any]


class _GenerateReader(BatchReader):
    """Generates tuples from a description of each field: `count` of them, until its phases end, or forever."""

    def __init__(self, request: SourceRequest) -> None:
        """Check the settings; an InputError names the key or the field."""
        super().__init__(request)
        who = f"{request.who}: generate"
        settings = check_keys(request.settings, KEYS, who)
        rate = request.rate if request.rate is not None else check_rate(settings.get("rate"), who)
        seed, count = settings.get("seed", 1), settings.get("count")
        with within(who, InputError):
            if not is_whole(seed, 0):
                raise InputError(f"seed is a whole number from 0, not {seed!r}")
            if count is not None and not is_whole(count, 0):
                raise InputError(f"count is a whole number from 0, not {count!r}; leave it out for no end")
            self._arrivals = parse_arrivals(settings, rate)
            self._makers = _makers(request.schema, settings.get("fields"), self._arrivals is not None)
        self.timed = self._arrivals is not None
        self.finite = count is not None or settings.get("phases") is not None
        self._seed = seed
        self._count: int | None = count
        self._schema = request.schema.to_arrow()
        self._number = 0
        self._due: Int64s | None = None

    def read(self, limit: int) -> Chunk | None:
        """Return the next tuples; a chunk never spans two blocks."""
        if self._number == self._count:
            return None
        at = self._number % BLOCK
        if at == 0 or self._batch is None:
            self._make(self._number // BLOCK)
            if self._number == self._count:  # the phases ended with the previous block
                return None
        assert self._batch is not None
        size = min(limit, self._batch.num_rows - at)
        self._number += size
        due = None if self._due is None else self._due[at : at + size]
        return Chunk(self._batch.slice(at, size), due)

    def close(self) -> None:
        self._batch = self._due = None

    def _make(self, block: int) -> None:
        start = block * BLOCK
        size = BLOCK if self._count is None else min(BLOCK, self._count - start)
        numbers: Int64s = np.arange(start, start + size, dtype=np.int64)
        seconds = None
        if self._arrivals is not None:
            self._due = self._arrivals.due(numbers, self._stream(block, len(self._makers)))
            if len(self._due) < size:  # the phases end in this block
                size = len(self._due)
                numbers, self._count = numbers[:size], start + size
                if size == 0:
                    return
            seconds = Column(self._due / 1e9)
        columns = [Column(numbers), seconds]
        arrays = []
        for at, make in enumerate(self._makers):
            with within(f"{self._who}: generate: field '{self._schema.names[at]}'", InputError):
                arrays.append(make(columns, size, self._stream(block, at)))
        self._batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _stream(self, block: int, field: int) -> np.random.Generator:
        key = np.array([self._seed % 2**64, field], np.uint64)
        return np.random.Generator(np.random.Philox(key=key, counter=np.array([0, 0, block, 0], np.uint64)))


def _makers(schema: Schema, fields: object, timed: bool) -> list[FieldMaker]:
    names = schema.names
    if not isinstance(fields, Mapping):
        raise InputError(f"fields maps each field ({choices(names)}) to how its values are made, not {fields!r}")
    for name in fields:
        if name not in names:
            raise InputError(f"unknown field '{name}'{did_you_mean(str(name), names) or ';'} fields: {choices(names)}")
    makers = []
    for field in schema:
        if field.name not in fields:
            raise InputError(f"field '{field.name}' is not defined; define all of {choices(names)}")
        with within(f"field '{field.name}'", InputError):
            makers.append(_parse_field(fields[field.name], field.type, timed))
    return makers


def _parse_field(spec: object, type_: pa.DataType, timed: bool) -> FieldMaker:
    """Parse how a field is generated."""
    if isinstance(spec, str):
        return _expression(spec, type_, timed)
    if not isinstance(spec, Mapping):
        return _constant(spec, type_)
    kinds = [str(key) for key in spec if key not in ("weights", "null")]
    check_known("distribution", kinds, KINDS, InputError)
    if len(kinds) != 1:
        raise InputError(f"name one distribution, not {choices(kinds)}; choices: {choices(sorted(KINDS))}")
    if "weights" in spec and kinds[0] != "choice":
        raise InputError(f"weights go with choice, not with {kinds[0]}")
    if kinds[0] == "choice":
        maker = _choice(spec["choice"], type_, spec.get("weights"))
    else:
        with within(kinds[0], InputError):
            maker = KINDS[kinds[0]](spec[kinds[0]], type_)
    return maker if spec.get("null") is None else _with_nulls(maker, spec["null"], type_)


def _expression(text: str, type_: pa.DataType, timed: bool) -> FieldMaker:
    from headway.expressions import EvaluationError, Scope, compile_expression

    fields = (Field("i", pa.int64()), Field("t", pa.float64()))
    scope = Scope.of(Schema(fields if timed else fields[:1]))
    try:
        expression = compile_expression(text, scope)
        if expression.type != type_:
            expression = compile_expression(f"CAST(({text}) AS {type_name(type_)})", scope)
    except HeadwayError as error:
        hint = "i is the tuple's number and t its arrival in seconds" + ("" if timed else " (t needs a rate)")
        raise InputError(f"{error}; {hint}") from None

    def make(columns: Sequence[Column | None], count: int, random: np.random.Generator) -> pa.Array:
        try:
            with quiet():
                return to_arrow(expression.evaluate(columns, count), type_)
        except EvaluationError as error:
            raise InputError(f"'{text}' fails: {error}") from None

    return make


def _constant(value: object, type_: pa.DataType) -> FieldMaker:
    try:
        scalar = pa.scalar(convert(value, type_), type_)
    except ValueError as error:
        raise InputError(str(error)) from None
    return lambda columns, count, random: pa.repeat(scalar, count)


def _with_nulls(maker: FieldMaker, share: object, type_: pa.DataType) -> FieldMaker:
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise InputError(f"null is a share from 0 to 1, not {share!r}")
    nothing = pa.scalar(None, type_)

    def make(columns: Sequence[Column | None], count: int, random: np.random.Generator) -> pa.Array:
        values = maker(columns, count, random)
        return pc.if_else(pa.array(random.random(count) < share), nothing, values)

    return make


def _choice(pool: object, type_: pa.DataType, weights: object = None) -> FieldMaker:
    if not isinstance(pool, list | tuple) or not pool:
        raise InputError(f"choice expects a list of values, not {pool!r}")
    values, bad = to_array(pool, type_)
    if bad:
        raise InputError(f"choice: {next(iter(bad.values()))}")
    if weights is None:
        return lambda columns, count, random: values.take(pa.array(random.integers(0, len(pool), count)))
    if not isinstance(weights, list | tuple) or len(weights) != len(pool):
        raise InputError(f"weights is a list of {len(pool)} numbers, not {weights!r}")
    with within("weights", InputError):
        numbers = _numbers(weights, len(pool), "a list of weights")
    if min(numbers) < 0 or sum(numbers) <= 0:
        raise InputError(f"weights are numbers from 0 that are not all 0, not {weights!r}")
    bounds = np.cumsum(numbers) / sum(numbers)
    last = max(at for at, weight in enumerate(numbers) if weight > 0)

    def make(columns: Sequence[Column | None], count: int, random: np.random.Generator) -> pa.Array:
        picked = np.minimum(np.searchsorted(bounds, random.random(count), "right"), last)
        return values.take(pa.array(picked))

    return make


def _uniform(spec: object, type_: pa.DataType) -> FieldMaker:
    form, dtype = "[lowest, highest]", _dtype(type_)
    if not isinstance(spec, list | tuple) or len(spec) != 2:
        raise InputError(f"expected {form}, not {spec!r}")
    floats = dtype.kind == "f"
    bounds: list[Any] = [*map(float, _numbers(spec, 2, form))] if floats else [_native(one, type_) for one in spec]
    low, high = bounds
    if low > high:
        raise InputError(f"the lower bound {low} is above the upper bound {high}")
    if floats:
        return lambda columns, count, random: _store(low + (high - low) * random.random(count), type_)
    return lambda columns, count, random: _store(random.integers(low, high, count, dtype, endpoint=True), type_)


def _normal(spec: object, type_: pa.DataType) -> FieldMaker:
    mean, deviation = _numbers(spec, 2, "[mean, standard deviation]")
    _number_type(type_)
    if deviation < 0:
        raise InputError(f"the standard deviation is a number from 0, not {deviation}")
    return lambda columns, count, random: _store(mean + deviation * random.standard_normal(count), type_)


def _exponential(spec: object, type_: pa.DataType) -> FieldMaker:
    (mean,) = _numbers(spec if isinstance(spec, list | tuple) else [spec], 1, "[mean]")
    _number_type(type_)
    if mean < 0:
        raise InputError(f"the mean is a number from 0, not {mean}")
    return lambda columns, count, random: _store(mean * random.standard_exponential(count), type_)


def _zipf(spec: object, type_: pa.DataType) -> FieldMaker:
    exponent, ranks = _numbers(spec, 2, "[exponent, number of ranks]")
    _number_type(type_)
    if ranks != int(ranks) or not 1 <= ranks <= MOST_RANKS:
        raise InputError(f"the number of ranks is a whole number from 1 to {MOST_RANKS}, not {ranks}")
    weights = np.arange(1, int(ranks) + 1, dtype=np.float64) ** -exponent
    bounds = np.cumsum(weights) / weights.sum()

    def make(columns: Sequence[Column | None], count: int, random: np.random.Generator) -> pa.Array:
        picked = np.searchsorted(bounds, random.random(count), "right")
        return _store(np.minimum(picked, len(bounds) - 1) + 1, type_)

    return make


def _sequence(spec: object, type_: pa.DataType) -> FieldMaker:
    if not isinstance(spec, list | tuple) or len(spec) != 2:
        raise InputError(f"expected [start, step], not {spec!r}")
    dtype = _dtype(type_)
    if pa.types.is_temporal(type_):
        start = _native(spec[0], type_)
        span = nanoseconds(spec[1])
        unit = 86_400_000_000_000 if pa.types.is_date(type_) else 1_000
        if span % unit:
            raise InputError(f"the step {spec[1]!r} is finer than a {type_name(type_)}")
        step: int | float = span // unit
    else:
        start, step = _numbers(spec, 2, "[start, step]")
        if dtype.kind == "i" and (start != int(start) or step != int(step)):
            raise InputError(f"start and step of an {type_name(type_)} field are whole numbers, not {spec!r}")
    limits = np.iinfo(dtype) if dtype.kind == "i" else None

    def make(columns: Sequence[Column | None], count: int, random: np.random.Generator) -> pa.Array:
        assert columns[0] is not None
        numbers = columns[0].values
        ends = [start + step * int(numbers[at]) for at in (0, -1)]
        if limits is not None and not (limits.min <= min(ends) and max(ends) <= limits.max):
            raise InputError(f"sequence: leaves the range of {type_name(type_)} before tuple {int(numbers[-1]) + 1}")
        return _store(start + step * numbers, type_)

    return make


KINDS: dict[str, Callable[[object, pa.DataType], FieldMaker]] = {
    "uniform": _uniform,
    "normal": _normal,
    "exponential": _exponential,
    "zipf": _zipf,
    "sequence": _sequence,
    "choice": _choice,
}


def _store(values: _Numbers, type_: pa.DataType) -> pa.Array:
    """Convert numbers to the field's type: whole-number types are rounded and clipped to their range."""
    dtype = numpy_type(type_)
    assert dtype is not None
    if dtype.kind == "i" and values.dtype.kind == "f":
        limits = np.iinfo(dtype)
        high = float(limits.max)
        high = math.nextafter(high, 0) if high > limits.max else high  # 2^63 - 1 is not representable as a double
        values = np.clip(np.rint(values), float(limits.min), high)
    return to_arrow(Column(values.astype(dtype, copy=False)), type_)


def _dtype(type_: pa.DataType) -> np.dtype[Any]:
    dtype = numpy_type(type_)
    if dtype is None or dtype.kind == "b":
        raise InputError(f"makes numbers, dates and timestamps, not {type_name(type_)}; use choice")
    return dtype


def _number_type(type_: pa.DataType) -> None:
    if not (pa.types.is_integer(type_) or pa.types.is_floating(type_)):
        raise InputError(f"makes numbers, not {type_name(type_)}; use choice, uniform or sequence")


def _numbers(spec: object, count: int, form: str) -> list[Any]:
    if isinstance(spec, list | tuple) and len(spec) == count and None not in map(finite, spec):
        return list(spec)
    raise InputError(f"expected {form}, not {spec!r}")


def _native(value: object, type_: pa.DataType) -> int:
    """Return a value as the integer that represents it in a column."""
    try:
        array = pa.array([convert(value, type_)], type_)
    except ValueError as error:
        raise InputError(str(error)) from None
    if array.null_count:
        raise InputError(f"expected {type_name(type_)}, not NULL")
    width = pa.int32() if pa.types.is_date(type_) else pa.int64()
    return int((array.view(width) if pa.types.is_temporal(type_) else array)[0].as_py())


register_source("generate", _GenerateReader, permit=permit_anyone)
