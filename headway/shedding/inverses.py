"""Backward interval propagation: from the values of an output's field to those of a field at a drop box's entry.

A box can be inverted if the field of its results is a monotone function of one field of its input: filters and unions
pass it on, maps may rename it or compute ``a * x + b``. A filter's predicates over that field also say which values
never pass. Other boxes have no inverse: propagation stops there. (Aurora, section 4.5.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from headway.boxes.operator import Origin
from headway.checking import CheckedNetwork
from headway.columns import Floats
from headway.errors import ExpressionError, NetworkError, unknown
from headway.expressions import Scope
from headway.expressions.compiler import compile_tree
from headway.expressions.parsing import parse_one
from headway.expressions.types import is_decimal, is_integer, is_numeric
from headway.network import Box, Table, arc_name
from headway.network.qos import Graph
from headway.network.schema import Schema
from headway.shedding.intervals import (
    EVERYTHING,
    NOTHING,
    Domain,
    Linear,
    Monotone,
    Rounded,
    Truncated,
    below,
    cuts_at,
    snap,
    upto,
)
from headway.shedding.sites import Entry
from headway.structure import owner, upstream

if TYPE_CHECKING:
    from headway.expressions import Functions

_MOST = 16
"""The most paths from one arc to the output that are followed separately."""
_REMEMBERED = 4096
"""Analysed expressions that are cached: large networks repeat themselves, and outputs share boxes."""


@dataclass(frozen=True, slots=True)
class Form:
    """A number as a function of one field: ``a * before(field) + b``; without a field it is the constant b."""

    slot: int | None
    before: tuple[Monotone, ...] = ()
    a: float = 0.0
    b: float = 0.0

    @property
    def steps(self) -> tuple[Monotone, ...]:
        """All steps in order, including the linear one."""
        return self.before if (self.a, self.b) == (1.0, 0.0) else (*self.before, Linear(self.a, self.b))

    def plus(self, other: Form, sign: float = 1.0) -> Form | None:
        """Return the sum, or with `sign` -1 the difference; None if the two have different fields or steps."""
        if None not in (self.slot, other.slot) and (self.slot, self.before) != (other.slot, other.before):
            return None
        first = other if self.slot is None else self
        return Form(first.slot, first.before, self.a + sign * other.a, self.b + sign * other.b)

    def times(self, factor: float) -> Form:
        """Return the form multiplied by a factor."""
        return replace(self, a=self.a * factor, b=self.b * factor)


def form_of(tree: exp.Expression, scope: Scope) -> Form | None:
    """Return an expression as a form of one field; None if it is not linear, not numeric, or has several fields."""
    made = _form(tree, scope)
    if made is None or not np.isfinite((made.a, made.b)).all():
        return None
    return replace(made, slot=None, before=()) if made.slot is not None and made.a == 0 else made


def _form(tree: exp.Expression, scope: Scope) -> Form | None:
    if isinstance(tree, exp.Paren):
        return _form(tree.this, scope)
    if isinstance(tree, exp.Column) and not tree.table:
        slot = scope.resolve(tree.name)
        return Form(slot, (), 1.0) if is_numeric(scope.fields[slot].type) else None
    if tree.find(exp.Column) is None:
        node = compile_tree(tree, scope)
        if node.constant is None or node.is_null or not is_numeric(node.type):
            return None
        return Form(None, b=float(node.value))
    if isinstance(tree, exp.Neg):
        inner = _form(tree.this, scope)
        return None if inner is None else inner.times(-1.0)
    if isinstance(tree, exp.Cast):
        return _cast(tree, scope)
    if not isinstance(tree, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return None
    left, right = _form(tree.this, scope), _form(tree.expression, scope)
    if left is None or right is None:
        return None
    if isinstance(tree, exp.Add | exp.Sub):
        return left.plus(right, 1.0 if isinstance(tree, exp.Add) else -1.0)
    if isinstance(tree, exp.Div):
        return left.times(1.0 / right.b) if right.slot is None and right.b else None
    if left.slot is None:
        left, right = right, left
    return left.times(right.b) if right.slot is None else None


def _cast(tree: exp.Cast, scope: Scope) -> Form | None:
    """Return the form of a cast: to integers truncated, to decimals rounded, to floats exact."""
    inner = _form(tree.this, scope)
    source, target = compile_tree(tree.this, scope).type, compile_tree(tree, scope).type
    if inner is None or not is_numeric(target):
        return None
    step: Monotone | None = None
    if is_integer(target) and not is_integer(source):
        step = Truncated()
    elif is_decimal(target) and not is_integer(source) and not (is_decimal(source) and source.scale <= target.scale):
        step = Rounded(target.scale)
    if step is None:
        return inner
    if inner.slot is None or inner.a == 0:  # 0 * x is constant and cannot be inverted
        return Form(None, b=float(step.apply(np.array([inner.b]))[0]))
    return Form(inner.slot, (*inner.steps, step), 1.0)


@dataclass(frozen=True, slots=True)
class Truth:
    """For which non-NULL values of a field a predicate may be true, and for which it may be false."""

    true: Domain = EVERYTHING
    false: Domain = EVERYTHING

    def __invert__(self) -> Truth:
        """Return the truth of the negation."""
        return Truth(self.false, self.true)

    def __and__(self, other: Truth) -> Truth:
        """Return the truth of the conjunction."""
        return Truth(self.true & other.true, self.false | other.false)


_OPEN = Truth()
"""The truth of a predicate over other fields: it may be true or false for any value."""
_MIRRORED: dict[type[exp.Expression], type[exp.Expression]] = {
    exp.LT: exp.GT,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
}


def truth_of(tree: exp.Expression, slot: int, scope: Scope) -> Truth:
    """Return for which values of one field a predicate may be true or false, whatever the other fields are."""
    if isinstance(tree, exp.Paren):
        return truth_of(tree.this, slot, scope)
    if isinstance(tree, exp.Not):
        return ~truth_of(tree.this, slot, scope)
    if isinstance(tree, exp.And | exp.Or):
        parts = [truth_of(part, slot, scope) for part in _operands(tree)]
        return _all(parts) if isinstance(tree, exp.And) else ~_all([~part for part in parts])
    if isinstance(tree, exp.Boolean):
        return Truth(EVERYTHING, NOTHING) if tree.this else Truth(NOTHING, EVERYTHING)
    if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
        low, high = tree.args["low"], tree.args["high"]
        return _compare(exp.GTE, tree.this, low, slot, scope) & _compare(exp.LTE, tree.this, high, slot, scope)
    if isinstance(tree, exp.In) and tree.expressions:
        equal = [_compare(exp.EQ, tree.this, one, slot, scope) for one in tree.expressions]
        return ~_all([~one for one in equal])
    if isinstance(tree, exp.Is) and isinstance(tree.expression, exp.Null):
        inner = form_of(tree.this, scope)
        return Truth(NOTHING, EVERYTHING) if inner is not None and inner.slot == slot else _OPEN
    if type(tree) in _MIRRORED:
        return _compare(type(tree), tree.this, tree.expression, slot, scope)
    return _OPEN


def _operands(tree: exp.Expression) -> list[exp.Expression]:
    """Return the parts of a chain of ANDs, or of ORs; without recursion, since it may be long."""
    kind, parts = type(tree), []
    while isinstance(tree, kind):
        parts.append(tree.expression)
        tree = tree.this
    return [tree, *parts]


def _all(parts: Sequence[Truth]) -> Truth:
    made = parts[0]
    for part in parts[1:]:
        made &= part
    return made


def _compare(
    operator: type[exp.Expression], left: exp.Expression, right: exp.Expression, slot: int, scope: Scope
) -> Truth:
    """Return the truth of ``left operator right``, as ``a * x + b operator 0`` if both sides are forms of the field."""
    one, two = form_of(left, scope), form_of(right, scope)
    difference = None if one is None or two is None else one.plus(two, -1.0)
    if difference is None or difference.slot != slot or difference.a == 0:
        return _OPEN
    if difference.a < 0:
        operator = _MIRRORED[operator]
    bound = float(snap(np.array(-difference.b / difference.a)))
    if not np.isfinite(bound):
        return _OPEN
    domain = below(bound) if operator in (exp.LT, exp.GTE) else upto(bound)
    if operator in (exp.EQ, exp.NEQ):
        domain &= ~below(bound)
    if operator in (exp.GT, exp.GTE, exp.NEQ):
        domain = ~domain
    for step in reversed(difference.before):
        domain = domain.before(step)
    return Truth(domain, ~domain)


@dataclass(frozen=True, slots=True)
class Inverse:
    """How a field of an arc becomes the value of an output's field, and which of its values reach the output."""

    slot: int
    steps: tuple[Monotone, ...] = ()
    """In order from the arc to the output."""
    domain: Domain = EVERYTHING
    """The values on the arc that may reach the output."""

    def worth(self, values: Floats, graph: Graph) -> Floats:
        """Return the utility of the results of values on the arc; 0 for values without a result, and for NaN."""
        results = values
        for step in self.steps:
            results = step.apply(results)
        utility: Floats = np.where(self.domain.has(values), graph.values(results), 0.0)
        return np.nan_to_num(utility)

    def cuts(self, graph: Graph) -> Floats:
        """Return the edges on the arc between which the utility of the output is linear."""
        cuts = cuts_at(np.array([x for x, _ in graph.points]))
        for step in reversed(self.steps):
            cuts = step.cut(cuts)
        return np.union1d(cuts.edges, self.domain.edges)

    def back(self, results: Floats) -> Floats:
        """Return values on the arc that lead to these results."""
        for step in reversed(self.steps):
            results = step.invert(results)
        return results


def invert(box: Box, port: str, schema: Schema, functions: Functions, inverse: Inverse) -> Inverse | str:
    """Return the inverse at a box's inputs, the same for all of them, from that at one of its ports; or why not."""
    try:
        origin = box.spec.origin(port, inverse.slot, schema, functions)
        if origin is not None:
            return _before(origin, box.name, schema, functions, inverse)
    except (ExpressionError, RecursionError):  # an expression nested too deeply cannot be parsed again from its SQL
        return f"'{box.name}' cannot be looked into"
    return f"'{box.name}' mixes tuples"


def _before(origin: Origin, box: str, schema: Schema, functions: Functions, inverse: Inverse) -> Inverse | str:
    scope = Scope.of(schema, functions)
    slot, steps, domain = origin.value, inverse.steps, inverse.domain
    if not isinstance(slot, int):
        form = _read_form(slot.sql, scope)
        if form is None or form.slot is None:
            return f"'{box}' computes '{origin.name}' in a way that has no inverse"
        for step in reversed(form.steps):
            domain = domain.before(step)
        slot, steps = form.slot, _chain((*form.steps, *steps))
    for predicate, holds in origin.conditions:
        truth = _read_truth(predicate.sql, slot, scope)
        domain &= truth.true if holds else truth.false
    return Inverse(slot, steps, domain)


@lru_cache(maxsize=_REMEMBERED)
def _read_truth(sql: str, slot: int, scope: Scope) -> Truth:
    return truth_of(parse_one(sql), slot, scope)


@lru_cache(maxsize=_REMEMBERED)
def _read_form(sql: str, scope: Scope) -> Form | None:
    return form_of(parse_one(sql), scope)


def _chain(steps: Sequence[Monotone]) -> tuple[Monotone, ...]:
    """Return the steps with neighbouring linear ones merged."""
    made: list[Monotone] = []
    for step in steps:
        last = made[-1] if made else None
        if isinstance(step, Linear) and isinstance(last, Linear):
            made[-1] = Linear(step.a * last.a, step.a * last.b + step.b)
        else:
            made.append(step)
    return tuple(made)


class Route:
    """All paths from an entry to an output: their boxes, in topological order."""

    def __init__(self, checked: CheckedNetwork, output: int | str, entry: Entry | str) -> None:
        """Find the boxes. An entry is one input of a box, or an arc by name, which means all inputs that read it."""
        names = [one.name for one in checked.network.outputs]
        if isinstance(output, str) and output not in names:
            raise NetworkError(unknown("output", output, names))
        self.checked = checked
        self.output = checked.network.outputs[names.index(output) if isinstance(output, str) else output]
        self.target = checked.outputs[self.output.name]
        index = {box.name: at for at, box in enumerate(checked.order)}
        if isinstance(entry, str):
            if entry not in checked.arcs:
                raise NetworkError(unknown("arc", entry, checked.arcs))
            self.arc = entry
            readers = [one for one in checked.consumers[entry] if one.kind == "box"]
            self.starts = frozenset((one.name, one.input) for one in readers)
            first = min((index[name] for name, _ in self.starts), default=len(index))
        else:
            first = entry.consumer
            name = checked.order[first].name
            items = checked.inputs[name]
            place = entry.place
            if isinstance(items[place], Table):  # a static table is not a stream: use the other input
                place = next(at for at, item in enumerate(items) if not isinstance(item, Table))
            self.arc = str(items[place])
            self.starts = frozenset({(name, place)})
        self.direct = isinstance(entry, str) and self.arc == self.target
        """Whether the output reads the entry's arc itself."""
        self.boxes = self._between(index, first)

    def _between(self, index: dict[str, int], first: int) -> tuple[Box, ...]:
        order, inputs = self.checked.order, self.checked.inputs
        above = upstream(inputs, [owner(self.target)])
        self._reached: set[str] = set()
        # What stands before the entry leads to it, not from it.
        for at in sorted(at for name in above if (at := index.get(name, -1)) >= first):
            name = order[at].name
            if any(self.leads(name, place) for place in range(len(inputs[name]))):
                self._reached.add(name)
        return tuple(order[at] for at in sorted(map(index.__getitem__, self._reached)))

    @property
    def schema(self) -> Schema:
        """The schema at the entry."""
        return self.checked.arcs[self.arc]

    def leads(self, box: str, place: int) -> bool:
        """Return whether tuples of the entry reach an input of a box."""
        item = self.checked.inputs[box][place]
        return isinstance(item, str) and ((box, place) in self.starts or owner(item) in self._reached)


@dataclass(frozen=True, slots=True)
class Backward:
    """The result of propagation: how far upstream the value of an output's field could be followed."""

    entry: tuple[Inverse, ...]
    """The inverses at the entry, one per path that reached it."""
    stopped: dict[str, tuple[Inverse, ...]]
    """By arc: the inverses of paths that ended there, because the box before has no inverse."""
    through: tuple[str, ...]
    """The boxes that were passed, the output's first."""
    why: tuple[str, ...]
    """The reasons for stopping, in the order of `stopped`."""


def propagate(route: Route) -> Backward:
    """Follow the field of an output's value graph upstream, as far as boxes have inverses."""
    checked, value = route.checked, route.output.qos.value
    assert value is not None
    ways: dict[str, list[Inverse]] = {route.target: [Inverse(checked.arcs[route.target].index(value.field))]}
    entry: list[Inverse] = list(ways[route.target]) if route.direct else []
    stopped: dict[str, tuple[Inverse, ...]] = {}
    through: list[str] = []
    why: list[str] = []
    for box in reversed(route.boxes):
        schema = next(checked.arcs[item] for item in checked.inputs[box.name] if isinstance(item, str))
        passed = False
        for port in box.spec.ports:
            arc = arc_name(box.name, port)
            found = ways.pop(arc, [])
            if not found:
                continue
            made = [invert(box, port, schema, checked.functions, one) for one in found]
            inverses = [one for one in made if isinstance(one, Inverse)]
            if len(inverses) < len(made) or len(made) > _MOST:
                reasons = [one for one in made if isinstance(one, str)]
                stopped[arc] = tuple(found)
                why.append(reasons[0] if reasons else f"there are too many ways behind '{box.name}'")
                continue
            passed = True
            for place, item in enumerate(checked.inputs[box.name]):
                if not route.leads(box.name, place):
                    continue
                if (box.name, place) in route.starts:
                    entry += inverses
                else:
                    ways.setdefault(str(item), []).extend(inverses)
        if passed:
            through.append(box.name)
    return Backward(tuple(entry), stopped, tuple(through), tuple(why))
