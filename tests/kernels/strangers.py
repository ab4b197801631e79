"""An operator that does what its key `does` says, right or wrong, as an installed package would bring it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headway.boxes.keys import Key, KeyKind
from headway.boxes.operator import Operator
from headway.columns import Column
from headway.expressions import Functions
from headway.kernels.kernel import DeadLetter, Kernel, Result, Tables
from headway.network.schema import Schema
from headway.trains import Tick, Train

SCHEMA = Schema.parse("id bigint, x double, s string")
TEXT = KeyKind({"type": "string"})


def _boom(*_: object) -> Any:
    raise ZeroDivisionError("one\ntwo")


def _exit(*_: object) -> Any:
    sys.exit("enough")


@dataclass(frozen=True, slots=True)
class Odd(Operator):
    """Passes tuples on, unless told otherwise."""

    does: str = "pass"

    op = "odd"
    doc = "Do something odd."
    keys = (Key("does", TEXT, "what"),)

    def schemas(self, inputs: Sequence[Schema], functions: Functions | None) -> tuple[Schema, ...]:
        wrong: Mapping[str, Callable[[], Any]] = {
            "schemas raise": _boom,
            "schemas exit": _exit,
            "schemas none": lambda: None,
            "schemas empty": tuple,
            "schemas text": lambda: ("a int",),
            "schemas many": lambda: (inputs[0], inputs[0]),
        }
        made: tuple[Schema, ...] = wrong.get(self.does, lambda: (inputs[0],))()
        return made

    @property
    def timeout(self) -> Any:
        if self.does == "timeout raise":
            _boom()
        return 5 if self.does == "timeout" else None

    @property
    def partitions(self) -> Any:
        return {"partitions": "id", "no ranks": ("id",)}.get(self.does, ())

    @property
    def ports(self) -> Any:
        return {"ports": (), "port list": [""]}.get(self.does, ("",))

    def may_fail(self, schema: Schema, functions: Functions | None) -> Any:
        return None if self.does == "may_fail" else True


class Keyless(Odd):
    """Its keys are no keys."""

    op = "keyless"
    keys = ("a",)  # type: ignore[assignment]


class Fieldless(Odd):
    """Its key has no field."""

    op = "fieldless"
    keys = (Key("as", TEXT, "a name"),)


class Kindless(Odd):
    """Its key is of no kind."""

    op = "kindless"
    keys = (Key("does", "txt", "what"),)


@dataclass(frozen=True)
class Picky(Odd):
    """It cannot be made."""

    op = "picky"

    def __post_init__(self) -> None:
        _boom()


class Unfinished(Operator):
    """It defines no schemas."""

    op = "unfinished"


def change(train: Train, **parts: Any) -> Train:
    """Return a train with other parts."""
    names = ("columns", "stamps", "numbers", "progress", "ticks", "end")
    return Train(**{name: parts.get(name, getattr(train, name)) for name in names})


def _nth(train: Train, at: int, column: Any) -> Train:
    return change(train, columns=(*train.columns[:at], column, *train.columns[at + 1 :]))


def _one(make: Callable[[Train], Any]) -> Callable[[Train], Any]:
    return lambda train: Result((make(train),))


def _write(train: Train) -> Result:
    train.columns[0].values[:] = 7
    return Result((train,))


def _pieces(train: Train, *ends: dict[str, Any]) -> Result:
    """Return a train in two pieces, changed."""
    half = (len(train) + 1) // 2
    first, second = train.slice(0, half), train.slice(half, len(train))
    second = change(second, ticks=train.ticks, end=train.end, progress=train.progress)
    if half == len(train):
        first = change(first, progress=-1)
    first, second = (change(one, **parts) for one, parts in zip((first, second), ends, strict=True))
    return Result((first,), rest=iter([Result((second,))]))


def _broken(train: Train) -> Result:
    def rest() -> Iterator[Result]:
        yield Result((train,))
        _boom()

    return Result((train.slice(0, 0),), rest=rest())


INT = np.dtype(np.int64)
WRONG: Mapping[str, tuple[Callable[[Train], Any], str]] = {
    "nothing": (lambda train: None, "must return .state, Result., not a tuple"),
    "no trains": (lambda train: Result(()), "outputs must be a tuple of a Train for each port, 1 in all, not 0"),
    "two trains": (lambda train: Result((train, train)), "for each port, 1 in all, not 2"),
    "a bare train": (lambda train: Result(train), "for each port, 1 in all, not a Train"),  # type: ignore[arg-type]
    "no train": (_one(lambda train: None), "must be a Train, not None"),
    "too far": (_one(lambda train: change(train, progress=1 << 60)), "progress must be at most"),
    "one too far": (_one(lambda train: change(train, progress=train.progress + 1)), "progress must be at most"),
    "forgotten progress": (
        _one(lambda train: Train(train.columns, train.stamps, train.numbers, end=train.end)),
        "must pass on the input's progress",
    ),
    "no end": (_one(lambda train: change(train, end=False)), "must pass on the input's end: end must be True"),
    "early end": (_one(lambda train: change(train, end=True)), "end must be False"),
    "odd ticks": (_one(lambda train: change(train, ticks=(Tick(0, 0),))), "must pass on the input's ticks"),
    "few numbers": (_one(lambda train: change(train, numbers=train.numbers[1:])), "numbers must be one per tuple"),
    "many stamps": (
        _one(lambda train: change(train, stamps=np.zeros(len(train) + 1, INT))),
        "stamps and numbers must be one per tuple",
    ),
    "float numbers": (_one(lambda train: change(train, numbers=train.numbers * 1.0)), "numbers must be .* int64"),
    "falling": (_one(lambda train: change(train, numbers=train.numbers[::-1])), "arrival numbers must ascend"),
    "old": (_one(lambda train: change(train, numbers=train.numbers - 1)), "arrival number must be that of the tuple"),
    "new": (_one(lambda train: change(train, numbers=train.numbers + 2)), "arrival number must be that of the tuple"),
    "no columns": (_one(lambda train: change(train, columns=())), "a Column for each field, id, x, s: 3 in all, not 0"),
    "swapped": (
        _one(lambda train: change(train, columns=train.columns[::-1])),
        "field 'id' is a bigint: its values must be a numpy array of int64",
    ),
    "swapped numbers": (
        _one(lambda train: change(train, columns=(train.columns[1], train.columns[0], train.columns[2]))),
        "field 'id' is a bigint",
    ),
    "short column": (_one(lambda train: _nth(train, 0, train.columns[0].slice(1, len(train)))), "field 'id' must have"),
    "short text": (_one(lambda train: _nth(train, 2, train.columns[2].slice(1, len(train)))), "field 's' must have"),
    "bare values": (_one(lambda train: _nth(train, 1, train.columns[1].values)), "field 'x' must be a Column"),
    "narrow": (_one(lambda train: _nth(train, 0, Column(train.columns[0].values.astype(np.int32)))), "array of int64"),
    "short mask": (
        _one(lambda train: _nth(train, 1, Column(train.columns[1].values, np.ones(len(train) + 1, np.bool_)))),
        "field 'x' must have",
    ),
    "binary": (
        _one(lambda train: _nth(train, 2, Column(train.columns[2].values.cast(pa.binary())))),
        "array of string",
    ),
    "ignored": (lambda train: Result((train,), -5), "ignored must be zero or more, not -5"),
    "half ignored": (lambda train: Result((train,), 0.5), "ignored must be a whole number"),  # type: ignore[arg-type]
    "writes": (_write, "ValueError: .*read-only"),
    "raises": (_boom, "ZeroDivisionError: one$"),
    "exits": (_exit, "SystemExit: enough"),
    "letters of others": (
        lambda train: Result((train,), dead=(DeadLetter("other", "why", train, SCHEMA),)),
        "a dead letter must name its box, 'b', not 'other'",
    ),
    "end before the last": (lambda train: _pieces(train, {"end": True}, {}), "end must "),
    "no end at last": (lambda train: _pieces(train, {}, {"end": False}), "must pass on the input's end"),
    "pieces too far": (lambda train: _pieces(train, {"progress": train.progress}, {}), "arrival number must be that"),
    "a rest that raises": (_broken, "rest: ZeroDivisionError: one$"),
}


class OddKernel(Kernel):
    """Passes tuples on, unless told otherwise."""

    def __init__(
        self, spec: Odd, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None
    ) -> None:
        super().__init__(spec, box, schemas, tables, functions)
        self._does = spec.does
        {"constructor": _boom, "constructor exit": _exit}.get(spec.does, list)()
        if spec.does == "reads":
            self.reads = frozenset({9})

    def initial(self) -> Any:
        return {"initial": _boom, "initial exit": _exit}.get(self._does, lambda: 0)()

    def run(self, state: Any, trains: Sequence[Train], now: int) -> Any:
        (train,) = trains
        if self._does in WRONG and (len(train) > 1 or train.end):
            return state, WRONG[self._does][0](train)
        if self._does == "pieces" and len(train) > 1:
            return state, _pieces(train, {}, {})
        if self._does == "numpy ignored":
            return state, Result((train,), np.int64(1))  # type: ignore[arg-type]
        return state + len(train), Result((train,))

    def dump(self, state: Any) -> Any:
        return "text" if self._does == "dump" else str(state).encode()

    def load(self, data: bytes) -> Any:
        return int(data)


def network(does: str, op: str = "odd") -> dict[str, Any]:
    """Return a network with the operator between others, beside another reader of the same arc."""
    return {
        "network": "n",
        "sources": {"s": {"schema": {"id": "bigint", "x": "double", "s": "string"}}},
        "boxes": {
            "b": {"op": op, "in": "s", "does": does},
            "c": {"op": "map", "in": "s", "select": "id + 1 as id"},
            "d": {"op": "bsort", "in": "b", "order": {"on": "id", "slack": 2}},
        },
        "outputs": {"o": {"from": "d"}, "all": {"from": "c"}},
    }


def site(folder: Path, **points: str) -> str:
    """Put down what installing a package with `odd` and these operators leaves; all have its kernel."""
    home = folder / "odd-1.dist-info"
    home.mkdir()
    (home / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1\n")
    points = {"odd": "tests.kernels.strangers:Odd", **points}
    lines = ["[headway.operators]", *[f"{op} = {where}" for op, where in points.items()]]
    lines += ["[headway.kernels]", *[f"{op} = tests.kernels.strangers:OddKernel" for op in points]]
    (home / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return str(folder)
