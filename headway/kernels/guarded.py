"""The guard around the kernel of an installed package's operator: what breaks the contract is an error that names it.

Engines believe kernels. A result without a train for a port would lose tuples, a progress that is too high would let
boxes downstream go on without them, and a kernel that writes into its input would change it for others, all in silence.
Headway's own kernels are tested for that and run bare; a foreign one gets views of its input that cannot be written to,
and each of its results is examined, by array operations: a few microseconds per call (docs/operators.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, NoReturn, Self, TypeVar

import numpy as np
import pyarrow as pa

from headway.boxes.operator import Operator
from headway.columns import Column, Int64s, Unread, Values, frozen, numpy_type
from headway.errors import FOREIGN, RunError, blamed, choices
from headway.kernels.kernel import DeadLetter, Kernel, Result
from headway.network.schema import Schema, type_name
from headway.sieves import ShareLookup
from headway.trains import NOTHING, Tick, Train, ascends, common_marks

Made = TypeVar("Made")

_INT64 = np.dtype(np.int64)
_BOOL = np.dtype(np.bool_)
_Field = tuple[str, pa.DataType, np.dtype[Any] | None]


class GuardedKernel(Kernel):
    """A kernel whose input is read-only and whose results are examined; all else is left to the kernel itself.

    Of a call, or of all pieces of one, it demands for each port: columns as the schema says, one value, timestamp and
    arrival number per tuple; ascending arrival numbers, none below the first tuple or tick of the call, none above its
    last tuple or its progress; the inputs' common progress, ticks and end, passed on by the last piece. Arrival numbers
    may be in any order where those of the input are. It holds no data: one call is enough to decide all of this.
    """

    def __init__(
        self, kernel: Kernel, spec: Operator, box: str, inputs: Sequence[Schema], outputs: Sequence[Schema]
    ) -> None:
        """Guard the kernel of a box with these streams and, for each port, this schema."""
        super().__init__(spec, box, inputs, (), None)
        self._kernel = kernel
        self._place = f"box '{box}': op '{spec.op}'"
        self._names = [f"port '{port}': " if port else "" for port in spec.ports]
        self._fields = [_fields_of(schema) for schema in outputs]
        self._as_they_come = len(inputs) > 1 and not spec.ordered
        if spec.partitions and type(kernel).ranks is Kernel.ranks:
            raise RunError(f"{self._place}: declares partitions, so its kernel must define ranks(state, output)")
        self.reads = self._do("reads", lambda: _check_reads(kernel.reads, inputs))

    # Calls

    def run(self, state: Any, trains: Sequence[Train], now: int) -> tuple[Any, Result]:
        """Run the kernel on what cannot be written to, and return what it returned, once it is found to be right."""
        try:
            made = self._kernel.run(state, tuple([_read_only(train) for train in trains]), now)
            if type(made) is not tuple or len(made) != 2 or not isinstance(made[1], Result):
                raise RunError(f"must return (state, Result), not {_brief(made)}")
            after, result = made
            call = _Call(trains, len(self._fields), self._as_they_come)
            result = self._examined(result, call)
            if result.rest is None:
                call.check_passed_on(self._names)
                return after, result
            return after, result._replace(rest=self._following(iter(result.rest), call))
        except FOREIGN as error:
            self._blame("run", error)

    def _following(self, pieces: Iterator[Result], call: _Call) -> Iterator[Result]:
        """Yield the remaining pieces of a call, each examined before it is passed on."""
        while (piece := self._next(pieces, call)) is not None:
            yield piece
            del piece  # before the next one is made: pieces are as large as memory allows

    def _next(self, pieces: Iterator[Result], call: _Call) -> Result | None:
        try:
            piece = next(pieces, None)
            if piece is None:
                call.check_passed_on(self._names)
                return None
            if not isinstance(piece, Result) or piece.rest is not None:
                raise RunError(f"must yield a Result without a rest of its own, not {_brief(piece)}")
            if any(call.ended):
                raise RunError("end must come with the last piece, not before it")
            return self._examined(piece, call)
        except FOREIGN as error:
            self._blame("run: rest", error)

    def _examined(self, result: Result, call: _Call) -> Result:
        outputs = result.outputs
        ignored: Any = result.ignored
        if not isinstance(outputs, tuple | list) or len(outputs) != len(self._fields):
            found = len(outputs) if isinstance(outputs, tuple | list) else _brief(outputs)
            raise RunError(
                f"Result.outputs must be a tuple of a Train for each port, {len(self._fields)} in all, not {found}"
            )
        for port, train in enumerate(outputs):
            try:
                if not isinstance(train, Train):
                    raise RunError(f"must be a Train, not {_brief(train)}")
                _check_columns(train, self._fields[port], call.trains)
                call.check_numbers(port, train)
            except RunError as error:
                raise RunError(f"{self._names[port]}{error}") from None
        if type(ignored) is not int:
            if not isinstance(ignored, np.integer):
                raise RunError(f"Result.ignored must be a whole number, not {_brief(ignored)}")
            result = result._replace(ignored=int(ignored))  # a summary is JSON
        if ignored < 0:
            raise RunError(f"Result.ignored must be zero or more, not {ignored}")
        for letter in result.dead:
            self._check_letter(letter)
        return result

    def _check_letter(self, letter: object) -> None:
        """Look at a dead letter; one with another box's name would be lost where a box's letters are gathered."""
        if not isinstance(letter, DeadLetter) or not isinstance(letter.reason, str):
            raise RunError(f"Result.dead must be DeadLetters with a reason, not {_brief(letter)}")
        if letter.box != self._box:
            raise RunError(f"a dead letter must name its box, '{self._box}', not {letter.box!r}")
        if not isinstance(letter.train, Train) or not isinstance(letter.schema, Schema):
            raise RunError("a dead letter must have a Train and its Schema")
        _check_columns(letter.train, _fields_of(letter.schema), ())

    # All else

    def initial(self) -> Any:
        """Return the kernel's first state."""
        return self._do("initial", self._kernel.initial)

    def deadline(self, state: Any) -> int | None:
        """Return the kernel's deadline."""
        moment = self._do("deadline", lambda: self._kernel.deadline(state))
        if moment is not None and not isinstance(moment, int):
            raise RunError(f"{self._place}: deadline must return nanoseconds as an int, or None, not {_brief(moment)}")
        return moment

    def dump(self, state: Any) -> bytes:
        """Write the kernel's state."""
        data = self._do("dump", lambda: self._kernel.dump(state))
        if not isinstance(data, bytes):
            raise RunError(f"{self._place}: dump must return bytes, not {_brief(data)}")
        return data

    def load(self, data: bytes) -> Any:
        """Read the kernel's state."""
        return self._do("load", lambda: self._kernel.load(data))

    def weigh_by(self, kept: ShareLookup) -> None:
        """Tell the kernel which shares are kept."""
        self._do("weigh_by", lambda: self._kernel.weigh_by(kept))

    def without_burning(self) -> Self:
        """Return a guard of the kernel that costs next to nothing."""
        quiet = self._do("without_burning", self._kernel.without_burning)
        if quiet is self._kernel:
            return self
        if not isinstance(quiet, Kernel):
            raise RunError(f"{self._place}: without_burning must return a Kernel, not {_brief(quiet)}")
        guarded = copy(self)
        guarded._kernel = quiet
        return guarded

    def ranks(self, state: Any, output: Train) -> tuple[Values, Int64s]:
        """Return the kernel's ranks: two arrays with a number for each result."""
        found = self._do("ranks", lambda: self._kernel.ranks(state, _read_only(output)))
        count = len(output.numbers)
        if not isinstance(found, tuple) or len(found) != 2 or not all(_is_numbers(one, count) for one in found):
            raise RunError(
                f"{self._place}: ranks must return a tuple of two arrays of numbers, {count} in each, "
                f"one for each result, not {_brief(found)}"
            )
        return found

    def _do(self, what: str, call: Callable[[], Made]) -> Made:
        try:
            return call()
        except FOREIGN as error:
            self._blame(what, error)

    def _blame(self, what: str, error: BaseException) -> NoReturn:
        raise blamed(f"{self._place}: {what}", error, RunError) from error


class _Call:
    """What a call's input allows in its results, and, if they come in pieces, what the pieces so far leave of it."""

    __slots__ = ("as_they_come", "end", "ended", "floors", "high", "passed", "progress", "reached", "ticks", "trains")

    def __init__(self, trains: Sequence[Train], ports: int, as_they_come: bool) -> None:
        marks = trains[0] if len(trains) == 1 else common_marks(trains)
        self.trains = trains
        self.as_they_come = as_they_come
        self.progress, self.ticks, self.end = marks.progress, marks.ticks, marks.end
        high = marks.progress
        causes = [marks.ticks[0].number] if marks.ticks else []
        for train in trains:
            if len(train.numbers):
                causes.append(int(train.numbers[0]))
                high = max(high, int(train.numbers[-1]))
        self.high = high
        self.floors = [min(causes) if causes else max(0, high)] * ports
        """By port: the least arrival number that may still come."""
        self.passed: list[tuple[Tick, ...]] = [()] * ports
        """By port: the ticks so far; below, the progress and the end of the last piece."""
        self.reached = [NOTHING] * ports
        self.ended = [False] * ports

    def check_numbers(self, port: int, train: Train) -> None:
        """Raise a RunError for arrival numbers or progress that this call must not return; note what they promise."""
        numbers, progress = train.numbers, train.progress
        if not NOTHING <= progress <= self.progress:
            raise RunError(f"progress must be at most the least of the inputs', {self.progress}, not {progress!r}")
        self.reached[port], self.ended[port] = progress, bool(train.end)
        if train.ticks:
            self.passed[port] += tuple(train.ticks)
        floor = self.floors[port]
        if len(numbers):
            first, last = int(numbers[0]), int(numbers[-1])
            if (first < floor or last > self.high or not ascends(numbers)) and not self._disordered(numbers):
                _complain(numbers, floor, self.high)
            floor = max(floor, last)
        self.floors[port] = max(floor, progress + 1)

    def _disordered(self, numbers: Int64s) -> bool:
        """Return whether these numbers are in no order only because those of the input are."""
        inputs = [train.numbers for train in self.trains if len(train.numbers)]
        if not inputs or not (self.as_they_come or not all(ascends(one) for one in inputs)):
            return False
        most = max(self.high, max([int(one.max()) for one in inputs]))
        causes = [tick.number for tick in self.ticks] + ([self.progress] if self.end else [])
        least = min([int(one.min()) for one in inputs] + causes)
        return bool(numbers.min() >= least and numbers.max() <= most)

    def check_passed_on(self, names: Sequence[str]) -> None:
        """Raise a RunError unless the last piece, or the only one, passes on the inputs' progress, ticks and end."""
        for port, name in enumerate(names):
            if self.reached[port] != self.progress:
                raise RunError(f"{name}must pass on the input's progress, {self.progress}, not {self.reached[port]}")
            if self.ended[port] != self.end:
                raise RunError(f"{name}must pass on the input's end: end must be {self.end}, not {self.ended[port]}")
            passed = self.passed[port]
            if passed != self.ticks and sorted(passed) != sorted(self.ticks):
                raise RunError(f"{name}must pass on the input's ticks, {self.ticks}, not {passed}")


def _complain(numbers: Int64s, low: int, high: int) -> NoReturn:
    falling = np.flatnonzero(numbers[1:] < numbers[:-1])
    if len(falling):
        at = int(falling[0])
        raise RunError(f"arrival numbers must ascend; {numbers[at + 1]} comes after {numbers[at]}")
    wrong = int(numbers[0]) if numbers[0] < low else int(numbers[-1])
    raise RunError(
        f"a result's arrival number must be that of the tuple or tick that causes it, here {low} to {high}, not {wrong}"
    )


def _fields_of(schema: Schema) -> list[_Field]:
    return [(field.name, field.type, numpy_type(field.type)) for field in schema.fields]


def _check_columns(train: Train, fields: Sequence[_Field], inputs: Sequence[Train]) -> None:
    """Raise a RunError unless a train has the columns of these fields, each with as many values as it has tuples."""
    numbers, stamps = train.numbers, train.stamps
    for name, array in (("numbers", numbers), ("stamps", stamps)):
        if not isinstance(array, np.ndarray) or array.dtype != _INT64 or array.ndim != 1:
            raise RunError(f"{name} must be an array of int64, not {_brief(array)}")
    shape, columns = numbers.shape, train.columns
    if stamps.shape != shape:
        raise RunError(f"stamps and numbers must be one per tuple; there are {len(stamps)} and {len(numbers)}")
    if not isinstance(columns, tuple) or len(columns) != len(fields):
        found = len(columns) if isinstance(columns, tuple) else _brief(columns)
        names = choices([name for name, _, _ in fields])
        raise RunError(
            f"columns must be a tuple of a Column for each field, {names}: {len(fields)} in all, not {found}"
        )
    for column, (name, type_, dtype) in zip(columns, fields, strict=True):
        if isinstance(column, Unread) or not isinstance(column, Column):
            why = "a Column; reads does not ask for it" if isinstance(column, Unread) else "a Column"
            raise RunError(f"field '{name}' must be {why}, not {_brief(column)}")
        values, valid = column.values, column.valid
        if dtype is None:
            fits = isinstance(values, pa.Array) and (values.type == type_ or _arrived(values.type, type_, inputs))
            shaped = fits and len(values) == shape[0] and valid is None
        else:
            fits = isinstance(values, np.ndarray) and values.dtype == dtype
            shaped = fits and values.shape == shape
            if shaped and valid is not None:
                shaped = isinstance(valid, np.ndarray) and valid.dtype == _BOOL and valid.shape == shape
        if not fits:
            wanted = f"an Arrow array of {type_}" if dtype is None else f"a numpy array of {dtype}"
            raise RunError(f"field '{name}' is a {type_name(type_)}: its values must be {wanted}, not {_brief(values)}")
        if not shaped:
            sizes = f"values {_size(values)}" + ("" if valid is None else f", valid {_size(valid)}")
            raise RunError(
                f"field '{name}' must have {shape[0]} values, one per tuple, and valid to match, not {sizes}"
            )


def _arrived(found: pa.DataType, wanted: pa.DataType, inputs: Sequence[Train]) -> bool:
    """Return whether an Arrow array's type, which its reader will cast, is one in which the input itself came."""
    arrays = [
        column.values for train in inputs for column in train.columns if type(column) is Column and column.is_arrow
    ]
    return any(one.type == found for one in arrays) and _alike(found) == _alike(wanted)


def _alike(type_: pa.DataType) -> object:
    return str(type_).removeprefix("large_").partition("(")[0]


def _read_only(train: Train) -> Train:
    """Return a train whose arrays are those of another one, and cannot be written to."""
    columns = []
    for column in train.columns:
        if type(column) is Column:
            values, valid = column.values, column.valid
            if isinstance(values, np.ndarray):
                values = frozen(values.view())
                if valid is not None:
                    valid = frozen(valid.view())
            column = Column(values, valid)
        columns.append(column)  # others are not there, or are taken for this reader alone
    stamps, numbers = frozen(train.stamps.view()), frozen(train.numbers.view())
    return Train(tuple(columns), stamps, numbers, train.progress, train.ticks, train.end)


def _check_reads(reads: object, inputs: Sequence[Schema]) -> frozenset[int] | None:
    if reads is None:
        return None
    width = len(inputs[0]) if len(inputs) == 1 else 0
    if not isinstance(reads, frozenset) or not all(isinstance(at, int) and 0 <= at < width for at in reads):
        raise RunError(f"must be None or a frozenset of numbers of its one input's columns, below {width}: {reads!r}")
    return reads


def _is_numbers(one: object, count: int) -> bool:
    return isinstance(one, np.ndarray) and one.shape == (count,) and one.dtype.kind in "iufb"


def _size(array: Any) -> str:
    return f"{len(array)}" if hasattr(array, "__len__") else _brief(array)


def _brief(found: object) -> str:
    """Return what something is, for a message: values of a run are long."""
    if isinstance(found, np.ndarray):
        return f"an array of {found.dtype} with shape {found.shape}"
    if isinstance(found, pa.Array | pa.ChunkedArray):
        return f"a {type(found).__name__} of {found.type}"
    if found is None or isinstance(found, int | float | str):
        return repr(found)[:80]
    return f"a {type(found).__name__}"
