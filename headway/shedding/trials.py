"""Forward interval propagation: send tuples of an entry through the boxes behind it and see what they are worth.

Where a box has no inverse, trial shows which values lead to useful results: a sample of the tuples that lately came to
the entry runs through the boxes up to there, and each result tells by its arrival number which tuple it came from. The
field whose intervals tell useful tuples from others best is the one to drop by. This takes boxes that turn each tuple
into results by itself; one that mixes tuples leaves nothing to be told. (Aurora, section 4.5.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headway.columns import Unread, as_floats
from headway.errors import HeadwayError
from headway.expressions.types import is_numeric
from headway.kernels.compile import compile_kernel
from headway.kernels.kernel import Kernel
from headway.kernels.pieces import whole
from headway.kernels.union import UnionKernel
from headway.network import Box, Table, arc_name
from headway.qos import Graph
from headway.schema import Schema
from headway.shedding.histograms import Bins, Floats, bin_values
from headway.shedding.inverses import Inverse, Route
from headway.structure import owner
from headway.tables import load_table
from headway.trains import Train

_WORTH_IT = 0.05
"""The share of the utilities' variance that a field must explain to be better than chance."""
LEAST = 64
"""Tuples below which a sample shows nothing."""


def trial_fields(schema: Schema) -> tuple[int, ...]:
    """Return the fields that a trial can tell tuples apart by: numbers and truth values."""
    return tuple(at for at, type_ in enumerate(schema.types) if is_numeric(type_) or pa.types.is_boolean(type_))


class Trial:
    """The boxes from an entry up to certain arcs, ready to be tried."""

    def __init__(
        self,
        route: Route,
        ends: Mapping[str, tuple[Inverse, ...]],
        entry: tuple[Inverse, ...] = (),
        tables: Mapping[str, Any] | None = None,
    ) -> None:
        """Compile the boxes; `ends` are the arcs from which on values can be followed to the output.

        `entry` are ways that can be followed from the entry itself, `tables` the static tables by name.
        """
        self._route = route
        self._ends = dict(ends)
        self._entry = entry
        needed = {owner(arc) for arc in ends}
        for box in reversed(route.boxes):
            if box.name in needed:
                items = enumerate(route.checked.inputs[box.name])
                needed |= {owner(item) for at, item in items if isinstance(item, str) and route.leads(box.name, at)}
        self.boxes = tuple(box for box in route.boxes if box.name in needed)
        self._kernels: dict[str, Kernel] = {}
        self.impossible = ""
        """Why there can be no trial; empty if there can."""
        for box in self.boxes:
            try:
                kernel = self._compile(box, tables)
            except HeadwayError as error:
                self.impossible = f"'{box.name}' cannot be tried: {error}"
                return
            if kernel is None:
                self.impossible = f"'{box.name}' mixes tuples"
                return
            self._kernels[box.name] = kernel

    def _compile(self, box: Box, tables: Mapping[str, Any] | None) -> Kernel | None:
        spec, checked = box.spec, self._route.checked
        if spec.passes and not spec.tuplewise:
            # A universal box takes from all values alike, and a sort only changes the order: all pass, for less noise.
            return UnionKernel()
        if not spec.tuplewise:
            return None
        network = checked.network
        statics = [
            load_table(item.ref, tables, network.folder, network.trust) if isinstance(item, Table) else None
            for item in checked.inputs[box.name]
        ]
        return compile_kernel(spec, box.name, checked.input_schemas(box.name), statics, checked.functions)

    def worth(self, sample: Train, graph: Graph) -> tuple[Floats, int]:
        """Return what each tuple of the entry leads to, and how many results there were.

        That is the sum of its results' utilities, 0 without any. The tuples stand in the order in which they came.
        """
        checked, route, count = self._route.checked, self._route, len(sample)
        # Numbered anew: at the entry several tuples may have one number, as after a join.
        first = Train(sample.columns, sample.stamps, np.arange(count, dtype=np.int64), count)
        trains: dict[str, Train] = {}
        for box in self.boxes:
            given = [
                first if (box.name, at) in route.starts else trains.get(item) or Train.empty(checked.arcs[item], count)
                for at, item in enumerate(checked.inputs[box.name])
                if isinstance(item, str)
            ]
            kernel = self._kernels[box.name]
            _, result = kernel.run(kernel.initial(), given, 0)
            result = whole(result)
            trains.update(zip([arc_name(box.name, port) for port in box.spec.ports], result.outputs, strict=True))
        total, results = np.zeros(count), 0
        ends = [(trains[arc], one) for arc, inverses in self._ends.items() for one in inverses]
        for train, inverse in [*ends, *((first, one) for one in self._entry)]:
            values = as_floats(train.columns[inverse.slot])
            results += int(inverse.domain.has(values).sum())
            if len(train):
                total += np.bincount(train.numbers, weights=inverse.worth(values, graph), minlength=count)
        return total, results


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """A field of the entry, its values in intervals, and what the tuples of each are worth."""

    field: int
    bins: Bins
    utilities: Floats
    """By interval; NaN where there was no tuple."""


def split(field: int, values: Floats, worth: Floats, points: Floats | None = None) -> Split:
    """Return how a field's values tell tuples apart; `points` are edges beside the quantiles."""
    bins = bin_values(values, points)
    return Split(field, bins, bins.average(values, worth))


def best_split(sample: Train, worth: Floats, fields: tuple[int, ...]) -> Split | None:
    """Return the field that tells tuples apart best: the one that explains most of the variance of what they are worth.

    The earlier half of the sample is learnt from and the later half explained, so that neither chance nor a field
    that only ever rises, as a time does, looks like a cause. None: no field explains anything worth mentioning.
    """
    count = len(sample)
    half = count // 2
    later = worth[half:]
    variance = float(((later - later.mean()) ** 2).sum()) if count >= LEAST else 0.0
    if variance <= 1e-12 * count:
        return None
    best, chosen = _WORTH_IT, None
    for field in fields:
        column = sample.columns[field]
        if isinstance(column, Unread):
            continue
        values = as_floats(column)
        learnt = split(field, values[:half], worth[:half])
        guess = learnt.utilities[learnt.bins.places(values[half:])]
        guess = np.where(np.isnan(values[half:]) | np.isnan(guess), worth[:half].mean(), guess)
        explained = 1.0 - float(((later - guess) ** 2).sum()) / variance
        if explained > best:
            best, chosen = explained, (field, values)
    return None if chosen is None else split(*chosen, worth)
