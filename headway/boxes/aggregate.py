"""Aggregate: windows over an ordered stream, one result per window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headway.boxes.approximate import estimating, widened
from headway.boxes.keys import SIZE, Key, Keyed, KeyKind, check_keys, inside, one_of, schema_of
from headway.boxes.operator import Operator, register, result_schema
from headway.boxes.order import ORDER, Order
from headway.boxes.sizes import Size, native_size, parse_size, write_size
from headway.durations import Duration
from headway.errors import NetworkError
from headway.expressions import AggregateSelect, Expression, Functions
from headway.expressions.compiling import compile_aggregates, compile_predicate
from headway.expressions.model import Scope
from headway.network.schema import Schema

ALIGNMENTS = ("grid", "first")
MOST_WINDOWS = 100_000
"""How many windows a tuple may be in: a day every second is 86,400."""


@dataclass(frozen=True, slots=True)
class When(Keyed):
    """Data-driven windows: a new window starts with each tuple for which the predicate holds.

    It sees the tuple's fields, and the open window's ``first.x`` and ``last.x``.
    """

    predicate: str

    keys = (
        Key("when", "text", "the predicate that starts a new window; it may use first.x and last.x", True, "predicate"),
    )

    @classmethod
    def parse(cls, value: object) -> When:
        """Read ``{when: PREDICATE}``."""
        if isinstance(value, When):
            return value
        if not isinstance(value, Mapping):
            raise NetworkError(f"must be a size or {{when: PREDICATE}}, not {value!r}")
        check_keys(value, cls.keys)
        return cls.read(value)


def _parse_advance(value: object) -> Size | When:
    return When.parse(value) if isinstance(value, Mapping | When) else parse_size(value)


def _write_advance(advance: Size | When) -> Any:
    return advance.to_mapping() if isinstance(advance, When) else write_size(advance)


_ADVANCE = KeyKind({"oneOf": [*SIZE["oneOf"], schema_of(When.keys)]}, _parse_advance, _write_advance)


@register
@dataclass(frozen=True, slots=True)
class Aggregate(Operator):
    """Windows of `size` every `advance` (None: `size`), per partition; `timeout` closes overdue ones by the clock.

    `approximate`: counts, sums and averages are estimates of what they would be if nothing had been dropped.
    """

    select: str
    order: Order
    size: Size | None = None
    advance: Size | When | None = None
    align: str = "grid"
    timeout: Duration | None = None
    approximate: bool = False

    op = "aggregate"
    doc = "Windows over an ordered stream: one result per window and partition."
    keys = (
        Key("select", "select", "the results, such as `count(*) as n, avg(pos) as mean`", True),
        ORDER,
        Key("size", "size", "the width of a window; may be left out only with `advance: {when: ...}`"),
        Key("advance", _ADVANCE, "from one window to the next (default: size), or {when: PREDICATE}"),
        Key(
            "align",
            one_of("alignment", ALIGNMENTS),
            "`grid`: windows start at multiples of advance (default); `first`: at the first value",
        ),
        Key("timeout", "duration", "emit a window this long after it was opened, by the clock"),
        Key(
            "approximate",
            "flag",
            "true: count, sum and avg are estimates, with a field NAME_error each, where load was shed (default false)",
        ),
    )

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> None:
        """Check that `size` is missing only for data-driven windows."""
        if "size" not in settings and not isinstance(settings.get("advance"), Mapping | When):
            raise NetworkError("size: is missing (the width of a window; only `advance: {when: ...}` needs none)")

    @property
    def orderings(self) -> tuple[Order, ...]:
        """The order of its windows."""
        return (self.order,)

    @property
    def partitions(self) -> tuple[str, ...]:
        """The by fields; none for data-driven windows, whose results at the end are ordered across all partitions."""
        return () if isinstance(self.advance, When) else self.order.by

    def schemas(self, inputs: Sequence[Schema], functions: Functions | None) -> tuple[Schema, ...]:
        """Return the order field, the by fields and the results."""
        schema = inputs[0]
        with inside("order"):
            on, by = self.order.field(schema), self.order.by_fields(schema)
        self.window(schema)
        self.condition(schema, functions)
        results = self.results(schema, functions)
        if self.approximate:
            made = self.estimating(schema, functions, results)
            with inside("approximate: estimates are doubles"):
                results = made.results(widened(schema), functions)
        with inside("select"):
            return (result_schema((on, *by), results.results),)

    def window(self, schema: Schema) -> tuple[int | float | None, int | float | None]:
        """Return size and advance in the order field's unit; None: no size, or data-driven windows."""
        with inside("order"):
            type_ = self.order.field(schema).type
        with inside("size"):
            size = None if self.size is None else native_size(self.size, type_)
        if isinstance(self.advance, When):
            return size, None
        with inside("advance"):
            advance = size if self.advance is None else native_size(self.advance, type_)
        if size is not None and advance is not None and size / advance > MOST_WINDOWS:
            raise NetworkError(
                f"size: every tuple would be in more than {MOST_WINDOWS:,} windows; "
                f"a size is at most {MOST_WINDOWS:,} times the advance, which is {write_size(self.advance or 1)} here"
            )
        return size, advance

    def results(self, schema: Schema, functions: Functions | None = None) -> AggregateSelect:
        """Return the compiled select list; the by fields are its `extra` fields."""
        with inside("order"):
            by = self.order.by_fields(schema)
        with inside("select"):
            return compile_aggregates(self.select, Scope.of(schema, functions), Schema(by))

    def estimating(
        self, schema: Schema, functions: Functions | None = None, exact: AggregateSelect | None = None
    ) -> Aggregate:
        """Return the plain aggregate that computes this one's estimates, over the widened schema.

        `exact` is what `results` returned, if that is known.
        """
        exact = self.results(schema, functions) if exact is None else exact
        with inside("order"):
            taken = [field.name for field in (self.order.field(schema), *self.order.by_fields(schema))]
        with inside("select"):
            select = estimating(self.select, [name for name, _ in exact.results], schema, taken, functions)
        return replace(self, select=select, approximate=False)

    def condition(self, schema: Schema, functions: Functions | None = None) -> Expression | None:
        """Return the compiled predicate of data-driven windows: slots of the tuple, then of first, then of last."""
        if not isinstance(self.advance, When):
            return None
        scope = Scope([(None, schema), ("first", schema), ("last", schema)], functions)
        with inside("advance: when"):
            return compile_predicate(self.advance.predicate, scope)
