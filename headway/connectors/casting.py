"""Cast Arrow data to a source's schema; a row with a value that the cast would alter is malformed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.connectors.values import is_utf8, kind_of, show, without
from headway.errors import InputError, choices, did_you_mean, first_line
from headway.expressions.timestamps import to_python
from headway.network.schema import Schema, type_name

_INTO: dict[str, tuple[str, ...]] = {
    "integer": ("integer", "float", "decimal"),
    "float": ("float", "integer"),
    "decimal": ("decimal", "integer"),
    "date": ("date", "timestamp"),
}
"""By kind of type, the kinds to which its values can be cast without loss; other kinds only to themselves."""


Misfits = dict[int, tuple[str, str]]
"""Row positions of a batch that do not fit, ascending, each with the value as text and the reason."""

MOST, LONGEST = 20, 40
"""How many column names a message lists, and how many characters of each."""


def _listed(names: list[str]) -> str:
    """Format column names for a message; bounded, because the first line of a file that is not CSV can be anything."""
    shown = ["".join(one if one.isprintable() else "?" for one in name[:LONGEST]) for name in names[:MOST]]
    shown = [name if len(name) >= len(full) else name + "…" for name, full in zip(shown, names, strict=False)]
    return choices(shown) + (f" and {len(names) - MOST} more" if len(names) > MOST else "")


def match_columns(schema: Schema, names: list[str], who: str, place: str) -> list[int]:
    """Return the position of each field's column, or raise InputError that names the missing one.

    An exact match wins over a case-insensitive one; columns that match no field are ignored.
    """
    folded = {name.lower(): at for at, name in reversed(list(enumerate(names)))}
    exact = {name: at for at, name in reversed(list(enumerate(names)))}
    positions = []
    for field in schema:
        at = exact.get(field.name, folded.get(field.name.lower()))
        if at is None:
            hint = did_you_mean(field.name, names) or ";"
            raise InputError(f"{who}: {place} has no column '{field.name}'{hint} columns: {_listed(names)}")
        if names.count(names[at]) > 1:
            raise InputError(f"{who}: {place} has the column '{names[at]}' more than once")
        positions.append(at)
    return positions


class Caster:
    """Casts batches of one Arrow schema to a source's schema; a batch that already fits is not copied.

    An incompatible type is an error at once; an incompatible value only makes its row malformed.
    """

    def __init__(self, schema: Schema, given: pa.Schema, who: str, place: str) -> None:
        """Match columns by name and check types; an InputError names the column and both types."""
        self._arrow = schema.to_arrow()
        self._who, self._place = who, place
        positions = match_columns(schema, given.names, who, place)
        self.names = [given.names[at] for at in positions]
        """The columns to read, in the order of the source's fields."""
        self._same = given.remove_metadata().equals(self._arrow)
        for field, at in zip(schema, positions, strict=True):
            if not _fits(given.field(at).type, field.type):
                raise self._lossy(field.name, given.field(at).type, field.type, "")

    def cast(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Misfits]:
        """Return the rows that fit the source's schema, and the misfits.

        The batch needs only the columns in `names`. Text is validated here, because Arrow does not check it on import
        and would fail wherever it is first used.
        """
        arrays = [_plain(batch.column(name)) for name in self.names]
        bad = self._invalid(arrays)
        if not bad:
            return self._cast_valid(arrays)
        keep = np.ones(len(arrays[0]), np.bool_)
        keep[list(bad)] = False
        batch, misfits = self._cast_valid([array.filter(pa.array(keep)) for array in arrays])
        places = np.flatnonzero(keep).tolist()
        found = {places[at]: why for at, why in misfits.items()}
        found |= {at: ("", reason) for at, reason in bad.items()}
        return batch, dict(sorted(found.items()))

    def _invalid(self, arrays: list[pa.Array]) -> dict[int, str]:
        """Return the rows that hold a value invalid for its type, such as text that is not UTF-8, with reasons."""
        bad: dict[int, str] = {}
        for field, array in zip(self._arrow, arrays, strict=True):
            try:
                found = _invalid(array, field.type)
            except pa.ArrowInvalid as error:
                where = f"{self._who}: {self._place}: column '{field.name}'"
                raise InputError(f"{where} is damaged: {error}") from error
            bad |= {at: f"column '{field.name}': {why}" for at, why in found.items()}
        return bad

    def _cast_valid(self, arrays: list[pa.Array]) -> tuple[pa.RecordBatch, Misfits]:
        if self._same:
            return pa.RecordBatch.from_arrays(arrays, schema=self._arrow), {}
        cast: list[pa.Array] = []
        misfits: Misfits = {}
        for field, array in zip(self._arrow, arrays, strict=True):
            bad: dict[int, str] = {}
            try:
                parts = _cast_values(array, field.type, 0, bad)
            except pa.ArrowNotImplementedError as error:
                raise self._lossy(field.name, array.type, field.type, f": {error}") from None
            cast.append(pa.concat_arrays(parts) if len(parts) != 1 else parts[0])
            for at, why in bad.items():
                reason = f"column '{field.name}': does not fit {type_name(field.type)}: {why}"
                misfits.setdefault(at, (show(to_python(array.slice(at, 1))[0]), reason))
        batch = pa.RecordBatch.from_arrays(cast, schema=self._arrow)
        return without(batch, misfits), dict(sorted(misfits.items()))

    def _lossy(self, name: str, given: pa.DataType, wanted: pa.DataType, why: str) -> InputError:
        return InputError(
            f"{self._who}: {self._place}: column '{name}' is {type_name(given)} and cannot become "
            f"{type_name(wanted)} without loss{why}"
        )


def _invalid(array: pa.Array, wanted: pa.DataType) -> dict[int, str]:
    """Return the positions of invalid values, with reasons; raises ArrowInvalid if the array itself is damaged.

    Struct fields that are not read are ignored, as is whatever is stored under a NULL.
    """
    try:
        array.validate(full=True)
        return {}
    except pa.ArrowInvalid as error:
        why, kind = str(error), kind_of(array.type)
        if kind == "struct" and pa.types.is_struct(wanted):
            children = {field.name: child for field, child in zip(array.type, array.flatten(), strict=True)}
            found: dict[int, str] = {}
            for field in wanted:
                found |= _invalid(children[field.name], field.type)
            return found
        if kind not in ("list", "string"):
            return _invalid_ones(array, 0)
        if "UTF8" not in why:
            raise
    if kind == "list" and hasattr(wanted, "value_type"):
        parents = pc.list_parent_indices(array).to_pylist()
        return {parents[at]: why for at, why in _invalid(array.flatten(), wanted.value_type).items()}
    texts = array.cast(pa.large_binary()).to_pylist()
    return {at: "not valid UTF-8" for at, text in enumerate(texts) if not (text is None or is_utf8(text))}


def _invalid_ones(array: pa.Array, offset: int) -> dict[int, str]:
    """Find invalid numbers and times by bisection, since Arrow reports only the first."""
    try:
        array.validate(full=True)
        return {}
    except pa.ArrowInvalid as error:
        if len(array) == 1:
            return {} if array.null_count else {offset: first_line(error)}
    half = len(array) // 2
    return _invalid_ones(array.slice(0, half), offset) | _invalid_ones(array.slice(half), offset + half)


def _cast_values(
    array: pa.Array, wanted: pa.DataType, offset: int, bad: dict[int, str], own: bool = False
) -> list[pa.Array]:
    """Cast the values that fit, as a list of chunks; the others become NULL and are recorded in `bad` by position.

    With `own=False` the array may be a slice, and the cast may fail because of items outside it.
    """
    try:
        return [_cast_exactly(array, wanted)]
    except pa.ArrowInvalid as error:
        if array.null_count == len(array):  # only what is stored under a NULL failed
            return [pa.nulls(len(array), wanted)]
        if len(array) == 1 and not own:
            return _cast_values(_own(array), wanted, offset, bad, own=True)
        if len(array) == 1:
            bad[offset] = first_line(error)
            return [pa.nulls(1, wanted)]
    half = len(array) // 2
    left = _cast_values(_own(array.slice(0, half)), wanted, offset, bad, own=True)
    return left + _cast_values(_own(array.slice(half)), wanted, offset + half, bad, own=True)


def _plain(array: pa.Array) -> pa.Array:
    """Return an array without dictionary encoding: an invalid text must only affect the rows that refer to it."""
    if pa.types.is_dictionary(array.type):
        return _plain(array.dictionary_decode())
    if pa.types.is_string_view(array.type):  # Arrow cannot filter this type
        binary = array.cast(pa.large_binary())
        return pa.Array.from_buffers(pa.large_string(), len(binary), binary.buffers(), offset=binary.offset)
    return array


def _own(array: pa.Array) -> pa.Array:
    """Return a copy without the items outside a slice, which Arrow would cast too."""
    return array.take(pa.array(np.arange(len(array)))) if pa.types.is_nested(array.type) else array


def _cast_exactly(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Cast an array, or raise ArrowInvalid if a value would change; times are truncated to microseconds."""
    if array.type == wanted:
        return array
    if pa.types.is_dictionary(array.type):
        return _cast_exactly(array.dictionary_decode(), wanted)
    if pa.types.is_date(array.type) and pa.types.is_timestamp(wanted):
        array = array.cast(pa.timestamp("us"))
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        micros = np.floor_divide(array.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), 1000)
        missing = array.is_null().to_numpy(zero_copy_only=False)
        array = pa.array(micros, pa.int64(), mask=missing).view(pa.timestamp("us", array.type.tz))
    if pa.types.is_decimal(array.type) and pa.types.is_integer(wanted):
        array = array.cast(pa.decimal128(38, 0))
    if pa.types.is_integer(array.type) and pa.types.is_decimal(wanted):
        array = array.cast(pa.decimal128(38, 0) if pa.types.is_uint64(array.type) else pa.decimal128(19, 0))
    result = array.cast(wanted)
    if pa.types.is_floating(array.type) and pa.types.is_floating(wanted) and wanted.bit_width < array.type.bit_width:
        # Arrow does not check that a narrower float keeps the value; NaN counts as equal to NaN here.
        given, kept = (part.drop_null().to_numpy(zero_copy_only=False) for part in (array, result))
        changed = np.flatnonzero(~((given == kept) | ((given != given) & (kept != kept))))
        if len(changed):
            raise pa.ArrowInvalid(f"{given[changed[0]]} would become {kept[changed[0]]}")
    return result


def _fits(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of one type can become values of the other; each value is still checked."""
    if pa.types.is_dictionary(given):
        return _fits(given.value_type, wanted)
    if given == wanted or pa.types.is_null(given):
        return True
    kind, target = kind_of(given), kind_of(wanted)
    if target not in _INTO.get(kind, (kind,)):
        return False
    if kind == "list":
        return _fits(given.value_type, wanted.value_type)
    if kind == "struct":
        names = {field.name: field.type for field in given}
        return all(field.name in names and _fits(names[field.name], field.type) for field in wanted)
    return True
