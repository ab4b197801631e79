"""Filters, maps and unions as one Spark projection: a stateless unit, run by Spark itself instead of kernels.

Only where no expression can fail, and Spark's results equal Headway's to the last bit; otherwise a text gives the
reason. An output lane is a list of branches, each a way from a source to the lane: the conditions on it, and the
columns that arrive. All branches of all lanes become one wide row per scanned row, so that the log is read once.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from sqlglot import exp

from headway.boxes.operator import Projection, operators
from headway.columns import UNREAD, from_arrow, to_arrow
from headway.connectors.spark_columns import to_column
from headway.engines.spark.wire.messages import CutUnit, Lane, Packed, merge
from headway.errors import RunError
from headway.expressions import Expression
from headway.expressions.parsing import fragment, parse_one, to_sql
from headway.expressions.safety import risk
from headway.expressions.types import is_float, is_nested
from headway.network.schema import Schema, type_name
from headway.trains import Train, ascends

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from headway.program import Program, ProgramBox

_HIDDEN = ("source", "number", "stamp")
_MOST_BRANCHES = 64
"""With more branches to a lane, kernels run the unit: each union of a stream with itself doubles them."""
_SAFE_SET = 10
"""Most entries of a list of floats in IN: for longer ones Spark uses a hash set, where NaN and -0.0 differ."""
_LOOSE = (exp.Predicate, exp.Not, exp.And, exp.Or)
"""Not allowed as an operand of a comparison without brackets in one of the two grammars."""
_OTHERS = frozenset(("upper", "ucase", "lower", "lcase"))
"""Functions that never fail, but for which Java's results differ from Arrow's, such as for 'ß' in upper case."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """A column that is read from a source."""

    name: str
    source: int
    at: int
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Computed:
    """A computed column: a condition, where NULL counts as false, or a field made by a map."""

    name: str
    sql: str
    inputs: tuple[str, ...]
    type: pa.DataType
    condition: bool
    level: int


@dataclass(frozen=True, slots=True)
class Branch:
    """A way from a source to a lane: its conditions, each with the required answer, and the columns that arrive."""

    source: int
    conditions: tuple[tuple[str, bool], ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LanePlan:
    """The branches that lead to a lane."""

    number: int
    schema: Schema
    counted: bool
    branches: tuple[Branch, ...]

    def flag(self, branch: int) -> str:
        """Return the name of the column that says whether a row takes a branch."""
        return f"f{self.number}_{branch}"


@dataclass(frozen=True)
class NativePlan:
    """A unit as a projection. Plain data, which Spark sends to where the log is read."""

    sources: tuple[str, ...]
    scanned: tuple[Scanned, ...]
    computed: tuple[Computed, ...]
    lanes: tuple[LanePlan, ...]

    @property
    def scan_schema(self) -> str:
        """The schema of the reader's rows, in Spark's notation."""
        fields = [f"{one.name} {type_name(one.type)}" for one in self.scanned]
        return ", ".join(["source int", "number bigint", "stamp bigint", *fields])

    def scan_batch(self, source: str, train: Train) -> pa.RecordBatch:
        """Return a source's train as rows of `scan_schema`; columns of other sources are NULL."""
        at, count = self.sources.index(source), len(train)
        arrays = [
            pa.array(np.full(count, at, np.int32)),
            pa.array(np.ascontiguousarray(train.numbers)),
            pa.array(np.ascontiguousarray(train.stamps)),
        ]
        for one in self.scanned:
            arrays.append(to_arrow(train.columns[one.at], one.type) if one.source == at else pa.nulls(count, one.type))
        return pa.RecordBatch.from_arrays(arrays, names=[*_HIDDEN, *(one.name for one in self.scanned)])

    @property
    def delivered(self) -> tuple[str, ...]:
        """The columns that are delivered; lanes with the same values share them."""
        ways = [branch for lane in self.lanes if not lane.counted for branch in lane.branches]
        return tuple(dict.fromkeys(name for branch in ways for name in branch.columns))

    def frame(self, rows: DataFrame) -> DataFrame:
        """Return the wide rows for a DataFrame of `scan_schema`, without rows that reach no lane."""
        from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

        names = [*_HIDDEN, *(one.name for one in self.scanned)]
        for level in sorted({one.level for one in self.computed}):
            mine = [one for one in self.computed if one.level == level]
            made = [
                (F.coalesce(value, F.lit(False)) if one.condition else value).alias(one.name)
                for one, value in ((one, to_column(parse_one(one.sql))) for one in mine)
            ]
            rows = rows.select(*[F.col(name) for name in names], *made)
            names += [one.name for one in mine]
        self._check_types(rows)
        flags = {lane.flag(at): self._taken(one) for lane in self.lanes for at, one in enumerate(lane.branches)}
        taken = [flag for flag in flags.values() if flag is not None]
        if taken and len(taken) == len(flags):  # otherwise a lane takes every row
            # With a chain of ORs, the optimiser takes two to four times as long, in every micro-batch.
            rows = rows.where(F.greatest(*taken) if len(taken) > 1 else taken[0])
        return rows.select(
            "number",
            "stamp",
            *[F.col(name) for name in self.delivered],
            *[(F.lit(True) if flag is None else flag).alias(name) for name, flag in flags.items()],
        )

    def _taken(self, branch: Branch) -> SparkColumn | None:
        """Return the condition under which a row takes a branch; None if every row does."""
        from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

        parts = [F.col(name) if wanted else ~F.col(name) for name, wanted in branch.conditions]
        if len(self.sources) > 1:
            parts.insert(0, F.col("source") == F.lit(branch.source))
        return functools.reduce(operator.and_, parts) if parts else None

    def _check_types(self, rows: DataFrame) -> None:
        """Raise a RunError if Spark infers another type than Headway: then values would differ, too."""
        for one in self.computed:
            found, wanted = rows.schema[one.name].dataType.simpleString(), type_name(one.type)
            if found != wanted and not (one.condition and found == "void"):
                raise RunError(f"'{one.sql}' is {found} in Spark and {wanted} in Headway; please report this")

    def split(self, table: pa.Table) -> dict[int, Train]:
        """Return one train per lane from collected wide rows, in whatever order tasks returned them.

        Tuples are in ascending arrival number, equal numbers in the order of the branches. The columns of a lane that
        is only counted are unread.
        """
        numbers, stamps = (from_arrow(table.column(name)).values for name in ("number", "stamp"))
        order = None if ascends(numbers) else np.argsort(numbers, kind="stable")
        types = {one.name: one.type for one in self.scanned} | {one.name: one.type for one in self.computed}
        columns = {name: from_arrow(table.column(name).cast(types[name])) for name in self.delivered}
        trains: dict[int, Train] = {}
        for lane in self.lanes:
            parts: list[Train] = []
            for way, branch in enumerate(lane.branches):
                flags = from_arrow(table.column(lane.flag(way))).values
                at = np.flatnonzero(flags) if order is None else order[flags[order]]
                if len(at):
                    mine = [UNREAD if lane.counted else columns[name].take(at) for name in branch.columns]
                    parts.append(Train(tuple(mine), stamps[at], numbers[at]))
            trains[lane.number] = merge([Packed(one, None) for one in parts]) if parts else Train.empty(lane.schema)
        return trains


class _NotNativeError(Exception):
    """The reason why a unit must be run by kernels."""


def plan_native(program: Program, unit: CutUnit, lanes: Sequence[Lane]) -> NativePlan | str:
    """Return a unit as a projection, or a short text that says which box prevents it, and why."""
    try:
        return _Planner(program, unit).plan(lanes)
    except _NotNativeError as reason:
        return str(reason)


class _Planner:
    """Follows the boxes in topological order; each arc is a tuple of the branches that lead to it."""

    def __init__(self, program: Program, unit: CutUnit) -> None:
        self.program = program
        self.checked = program.checked
        self.unit = unit
        self.scanned: dict[str, Scanned] = {}
        self.computed: dict[str, Computed] = {}
        self.known: dict[tuple[str, bool], str] = {}
        self.arcs: dict[str, tuple[Branch, ...]] = {}

    def plan(self, lanes: Sequence[Lane]) -> NativePlan:
        """Trace the branches through all boxes."""
        for at, source in enumerate(self.unit.sources):
            types = self.checked.arcs[source].types
            names = tuple(f"s{at}_{position}" for position in range(len(types)))
            for position, (name, type_) in enumerate(zip(names, types, strict=True)):
                self.scanned[name] = Scanned(name, at, position, type_)
            self.arcs[source] = (Branch(at, (), names),)
        for name in self.unit.boxes:
            try:
                self.add(self.program.boxes[self.program.index[name]])
            except _NotNativeError as reason:
                raise _NotNativeError(f"box '{name}': {reason}") from None
        planned = tuple(
            LanePlan(lane.number, self.checked.arcs[lane.arc], lane.counted, self.arcs[lane.arc]) for lane in lanes
        )
        return self.prune(planned)

    def add(self, box: ProgramBox) -> None:
        """Trace the branches through a box."""
        spec, functions = box.spec, self.checked.functions
        if not self.unit.placements[box.name].front:
            raise _NotNativeError(f"{spec.op} in shards is not native")
        if not spec.projects:
            native = sorted(op for op, kind in operators().items() if kind.projects)
            raise _NotNativeError(f"{spec.op} is not native; {', '.join(native[:-1])} and {native[-1]} are")
        schema = box.schemas[0]
        projection = spec.projection(schema, functions)
        self.check(projection.expressions, schema)
        ways = [branch for arc in box.inputs for branch in self.arcs[arc]]
        if len(ways) > _MOST_BRANCHES:
            raise _NotNativeError(f"more than {_MOST_BRANCHES} ways lead to it")
        for at, arc in enumerate(self.program.arcs_of(box)):
            self.arcs[arc] = tuple(self.through(branch, projection, at, schema) for branch in ways)

    def through(self, branch: Branch, projection: Projection, at: int, schema: Schema) -> Branch:
        """Return a branch extended through a box to one of its ports, with the columns of its results."""
        # A route requires all predicates before it not to be true, and its own to be true if it has one.
        answers = [
            (self.define(one, branch, schema, True), position == at)
            for position, one in enumerate(projection.predicates[: at + 1])
        ]
        branch = replace(branch, conditions=(*branch.conditions, *answers))
        if projection.results is None:
            return branch
        return replace(branch, columns=tuple(self.define(one, branch, schema) for _, one in projection.results))

    def check(self, expressions: Sequence[Expression], schema: Schema) -> None:
        """Refuse expressions that may fail, or that Spark may interpret differently."""
        users = self.checked.functions.scalars
        for expression in expressions:
            tree = parse_one(expression.sql)
            called = next((one for one in tree.find_all(exp.Anonymous) if one.name.lower() in users), None)
            if called is not None:
                raise _NotNativeError(f"'{called.name}' is a user's function")
            reason = risk(expression, schema) or difference(tree, schema)
            if reason is not None:
                raise _NotNativeError(reason)

    def define(self, expression: Expression, branch: Branch, schema: Schema, condition: bool = False) -> str:
        """Return the column of an expression over a branch; an existing one is reused."""
        if expression.field is not None and not condition:
            return branch.columns[expression.field]
        tree = parse_one(expression.sql)
        inputs = []
        for column in list(tree.find_all(exp.Column)):
            inputs.append(branch.columns[schema.index(column.name)])
            column.this.replace(exp.to_identifier(inputs[-1], quoted=True))
        sql = to_sql(tree)
        name = self.known.get((sql, condition))
        if name is None:
            name = self.known[sql, condition] = f"c{len(self.known)}"
            level = 1 + max((self.computed[one].level for one in inputs if one in self.computed), default=0)
            self.computed[name] = Computed(name, sql, tuple(inputs), expression.type, condition, level)
        return name

    def prune(self, lanes: tuple[LanePlan, ...]) -> NativePlan:
        """Return the plan with only the columns that lanes need."""
        pending = [name for lane in lanes for branch in lane.branches for name, _ in branch.conditions]
        for lane in lanes:
            for branch in () if lane.counted else lane.branches:
                pending += branch.columns
        needed: set[str] = set()
        while pending:
            name = pending.pop()
            if name not in needed:
                needed.add(name)
                pending += self.computed[name].inputs if name in self.computed else ()
        scanned = tuple(one for name, one in self.scanned.items() if name in needed)
        for one in scanned:
            if is_nested(one.type):
                source = self.unit.sources[one.source]
                field = self.checked.arcs[source].fields[one.at].name
                raise _NotNativeError(f"source '{source}': field '{field}' is nested: {type_name(one.type)}")
        computed = tuple(one for name, one in self.computed.items() if name in needed)
        return NativePlan(self.unit.sources, scanned, computed, lanes)


def difference(tree: exp.Expression, schema: Schema) -> str | None:
    """Return which part of an expression that never fails may differ in Spark; None if none does."""
    for part in tree.walk():
        if isinstance(part, exp.Anonymous) and part.name.lower() in _OTHERS:
            return f"'{fragment(part)}': {part.name} of some letters differs between Java and Arrow"
        if isinstance(part, exp.ILike):
            return f"'{fragment(part)}': letters without case differ between Java and Arrow"
        if isinstance(part, exp.Literal) and part.is_string and not part.this.replace("\\", "\n").isprintable():
            return f"'{fragment(part)}' has backslashes or control characters"
        if isinstance(part, exp.In) and len(part.expressions) > _SAFE_SET:
            fields = {schema.field(column.name).type for column in part.find_all(exp.Column)}
            if any(map(is_float, fields)):
                return f"'{fragment(part)}' looks up floats in a long list"
        if isinstance(part, exp.Predicate) and any(isinstance(side, _LOOSE) for side in part.iter_expressions()):
            return f"'{to_sql(tree)}' needs brackets: Spark binds comparisons otherwise"
    return None
