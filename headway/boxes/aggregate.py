"""Aggregate: windows over an ordered stream, one result per window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headway import expressions
from headway.boxes.approximate import estimating, widened
from headway.boxes.durations import Duration, Size, native_size, parse_size, parse_timeout, write_size
from headway.boxes.keys import Key, Settings, check_keys, inside, parse_flag, parse_select, parse_text
from headway.boxes.operator import Operator, register, result_schema
from headway.boxes.order import Order
from headway.boxes.scopes import fields_of, make_scope, scope_of
from headway.errors import NetworkError, unknown
from headway.schema import Schema

if TYPE_CHECKING:
    from headway.expressions import AggregateSelect, Expression, Functions

ALIGNMENTS = ("grid", "first")
MOST_WINDOWS = 100_000
"""How many windows a tuple may be in: a day every second is 86,400."""


@dataclass(frozen=True, slots=True)
class When:
    """Data-driven windows: where the predicate holds for an arriving tuple, a new window starts with it.

    It sees the tuple's fields, and the open window's ``first.x`` and ``last.x``.
    """

    predicate: str

    keys = (
        Key("when", "text", "the predicate that starts a new window; it may use first.x and last.x", required=True),
    )

    @classmethod
    def parse(cls, value: object) -> When:
        """Read ``{when: PREDICATE}``."""
        if isinstance(value, When):
            return value
        if not isinstance(value, Mapping):
            raise NetworkError(f"must be a size or {{when: PREDICATE}}, not {value!r}")
        check_keys(value, cls.keys)
        with inside("when"):
            return cls(parse_text(value["when"]))


@register
@dataclass(frozen=True, slots=True)
class Aggregate(Operator):
    """Windows of `size` every `advance` (None: `size`), per partition; `timeout` closes late ones by the clock.

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
        Key("select", "select", "the results, such as `count(*) as n, avg(pos) as mean`", required=True),
        Key("order", "order", "the order field, the slack and the partitions", required=True),
        Key("size", "size", "the width of a window; may be left out only with `advance: {when: ...}`"),
        Key("advance", "advance", "from one window to the next (default: size), or {when: PREDICATE}"),
        Key("align", "align", "`grid`: windows start at multiples of advance (default); `first`: at the first value"),
        Key("timeout", "duration", "emit a window this long after it was opened, by the clock"),
        Key(
            "approximate",
            "flag",
            "true: count, sum and avg are estimates, with a field NAME_error each, where load was shed (default false)",
        ),
    )

    @classmethod
    def read(cls, settings: Settings) -> Aggregate:
        """Read all keys; `size` may be missing only for data-driven windows."""
        select = settings.need("select", parse_select)
        order = settings.need("order", Order.parse)
        size = settings.get("size", parse_size, None)
        advance = settings.get("advance", _parse_advance, None)
        align = settings.get("align", _parse_align, "grid")
        if size is None and not isinstance(advance, When):
            raise NetworkError("size: is missing (the width of a window; only `advance: {when: ...}` needs none)")
        timeout = settings.get("timeout", parse_timeout, None)
        return cls(select, order, size, advance, align, timeout, settings.get("approximate", parse_flag, False))

    @property
    def orderings(self) -> tuple[Order, ...]:
        """The order of its windows."""
        return (self.order,)

    @property
    def partitions(self) -> tuple[str, ...]:
        """The by fields. What data-driven windows emit at the end is ordered by all partitions together."""
        return () if isinstance(self.advance, When) else self.order.by

    def to_mapping(self) -> dict[str, Any]:
        """Return the keys that are not at their default."""
        mapping: dict[str, Any] = {"select": self.select, "order": self.order.to_mapping()}
        if self.size is not None:
            mapping["size"] = write_size(self.size)
        if isinstance(self.advance, When):
            mapping["advance"] = {"when": self.advance.predicate}
        elif self.advance is not None:
            mapping["advance"] = write_size(self.advance)
        if self.align != "grid":
            mapping["align"] = self.align
        if self.timeout is not None:
            mapping["timeout"] = str(self.timeout)
        if self.approximate:
            mapping["approximate"] = True
        return mapping

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
            return (result_schema((on, *by, *fields_of(results.results))),)

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
            return expressions.compile_aggregates(self.select, scope_of(schema, functions), Schema(by))

    def estimating(
        self, schema: Schema, functions: Functions | None = None, exact: AggregateSelect | None = None
    ) -> Aggregate:
        """Return the plain aggregate that gives this one's estimates, over the widened schema.

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
        scope = make_scope([(None, schema), ("first", schema), ("last", schema)], functions)
        with inside("advance: when"):
            return expressions.compile_predicate(self.advance.predicate, scope)


def _parse_advance(value: object) -> Size | When:
    return When.parse(value) if isinstance(value, Mapping | When) else parse_size(value)


def _parse_align(value: object) -> str:
    if value not in ALIGNMENTS:
        raise NetworkError(unknown("alignment", str(value), ALIGNMENTS))
    return str(value)
