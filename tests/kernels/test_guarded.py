"""The guard of foreign operators: what breaks the contract is an error that names box and operator, all else passes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import headway as hw
from headway.boxes.operator import load_entry
from headway.engines.signals import TerminatedError
from headway.errors import HeadwayError, NetworkError
from headway.files import load
from headway.kernels.chain import UnionKernel
from headway.kernels.compile import compile_kernel
from headway.kernels.guarded import GuardedKernel
from headway.kernels.kernel import Kernel, Result
from headway.program import compile_program
from headway.trains import Tick, Train
from tests.behaviour import sharded  # noqa: F401  (it registers itself)
from tests.kernels.strangers import SCHEMA, WRONG, Odd, OddKernel, network, site

ROWS = [(at, at / 2, str(at)) for at in range(20)]
ENGINES = ["local", "sim", "sharded"]


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this process find the operators as if they were installed."""
    (tmp_path / "quits.py").write_text("import sys\nsys.exit(3)\n")
    strangers = "tests.kernels.strangers:"
    others = {name.lower(): strangers + name for name in ("Keyless", "Fieldless", "Kindless", "Picky", "Unfinished")}
    monkeypatch.syspath_prepend(site(tmp_path, quits="quits:Quits", **others))
    yield
    load_entry.cache_clear()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("does", WRONG)
def test_a_result_that_breaks_the_contract_names_box_and_operator(engine: str, does: str) -> None:
    with pytest.raises(HeadwayError, match=f"(?s)box 'b': op 'odd': run: .*{WRONG[does][1]}") as caught:
        hw.run(network(does), {"s": ROWS}, engine=engine)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("does", ["pass", "pieces", "numpy ignored"])
@pytest.mark.parametrize("train", [1, 7, 1000])
def test_what_keeps_the_contract_passes(engine: str, does: str, train: int) -> None:
    result = hw.run(network(does), {"s": ROWS}, engine=engine, train=train)
    assert [tuple(row.values()) for row in result.outputs["o"].to_pylist()] == ROWS


MISTAKES = {
    "schemas raise": "box 'b': op 'odd': schemas: ZeroDivisionError: one",
    "schemas exit": "box 'b': op 'odd': schemas: SystemExit: enough",
    "schemas none": "box 'b': op 'odd': schemas must return a tuple with a Schema for each port, not None",
    "schemas empty": "box 'b': op 'odd': schemas must return 1 schema, one for each port, not 0",
    "schemas text": "box 'b': op 'odd': schemas must return a tuple with a Schema for each port, not ('a int',)",
    "schemas many": "box 'b': op 'odd': schemas must return 1 schema, one for each port, not 2",
    "timeout": "box 'b': op 'odd': timeout must be None or a Duration, not 5",
    "timeout raise": "box 'b': op 'odd': its properties: ZeroDivisionError: one",
    "partitions": "box 'b': op 'odd': partitions must be a tuple of names of fields",
    "ports": "box 'b': op 'odd': ports must be a tuple of different names",
    "port list": "box 'b': op 'odd': ports must be a tuple of different names",
    "may_fail": "box 'b': op 'odd': may_fail must be a bool, not None",
}


@pytest.mark.parametrize("does", MISTAKES)
def test_what_an_operator_declares_is_checked(does: str) -> None:
    with pytest.raises(NetworkError) as caught:
        hw.check(load(network(does)))
    assert str(caught.value).startswith(MISTAKES[does])


CLASSES = {
    "keyless": "op 'keyless': Keyless.keys must be a tuple of Key(name, kind, doc), not ('a',)",
    "fieldless": "op 'fieldless': Fieldless.keys: 'as' has no field 'as'; fields: does; Key(…, field=…)",
    "kindless": "op 'kindless': Kindless.keys: key 'does': unknown kind of key 'txt'; did you mean 'text'?",
    "picky": "op 'picky': reading its keys: ZeroDivisionError: one",
    "unfinished": "op 'unfinished': Unfinished must define schemas",
    "quits": "op 'quits': 'quits:Quits' of odd 1 cannot be loaded: SystemExit: 3",
}


@pytest.mark.parametrize("op", CLASSES)
def test_a_class_that_cannot_be_read_from_a_file_is_named(op: str) -> None:
    with pytest.raises(NetworkError) as caught:
        load(network("pass", op))
    assert str(caught.value).startswith(f"box 'b': {CLASSES[op]}")


STARTS = {
    "constructor": "box 'b': op 'odd': its kernel cannot be made: ZeroDivisionError: one",
    "constructor exit": "box 'b': op 'odd': its kernel cannot be made: SystemExit: enough",
    "initial": "box 'b': op 'odd': initial: ZeroDivisionError: one",
    "initial exit": "box 'b': op 'odd': initial: SystemExit: enough",
    "reads": "box 'b': op 'odd': reads: must be None or a frozenset of numbers of its one input's columns, below 3",
    "no ranks": "box 'b': op 'odd': declares partitions, so its kernel must define ranks(state, output)",
}


@pytest.mark.parametrize("does", STARTS)
def test_a_kernel_that_cannot_start_is_named(does: str) -> None:
    with pytest.raises(HeadwayError) as caught:
        hw.run(network(does), {"s": ROWS}, engine="local")
    assert str(caught.value).startswith(STARTS[does])


def test_states_and_ranks_are_looked_at_where_they_are_used() -> None:
    with pytest.raises(HeadwayError, match="box 'b': op 'odd': dump must return bytes, not 'text'"):
        hw.run(network("dump"), {"s": ROWS}, engine="sharded")
    kernel = guarded(OddKernel(Odd(), "b", [SCHEMA], (None,), None))
    with pytest.raises(HeadwayError, match="box 'b': op 'odd': load: ValueError"):
        kernel.load(b"no number")
    with pytest.raises(HeadwayError, match=r"box 'b': op 'odd': ranks: NotImplementedError$"):
        kernel.ranks(0, train_of(3))


def guarded(kernel: Kernel) -> GuardedKernel:
    return GuardedKernel(kernel, Odd(), "b", [SCHEMA], [SCHEMA])


def train_of(count: int, **parts: Any) -> Train:
    batch = pa.RecordBatch.from_pylist([dict(zip("ixs", row, strict=True)) for row in ROWS[:count]])
    made = Train.from_batch(batch)
    return Train(made.columns, made.stamps, made.numbers, **{"progress": made.progress, **parts})


def test_only_foreign_kernels_are_guarded_and_their_input_is_not_copied() -> None:
    kernels = [type(one) for one in hw_kernels()]
    assert kernels.count(GuardedKernel) == 1

    class Looks(OddKernel):
        def run(self, state: Any, trains: Any, now: int) -> Any:
            seen.extend(trains)
            return super().run(state, trains, now)

    seen: list[Train] = []
    train = train_of(5)
    guarded(Looks(Odd(), "b", [SCHEMA], (None,), None)).run(0, [train], 0)
    for mine, theirs in zip([*seen[0].columns[:2]], train.columns, strict=False):
        assert not mine.values.flags.writeable
        assert np.shares_memory(mine.values, theirs.values)
    assert not seen[0].numbers.flags.writeable
    assert train.numbers.flags.writeable


def hw_kernels() -> tuple[Kernel, ...]:
    return compile_program(hw.check(load(network("pass")))).kernels({})


def test_the_readers_of_an_arc_do_not_see_what_a_kernel_tries_to_write() -> None:
    net = network("writes")
    net["boxes"].pop("d")
    net["outputs"] = {"all": {"from": "c"}, "o": {"from": "b"}}
    with pytest.raises(HeadwayError, match=r"box 'b': op 'odd': run: ValueError: .*read-only"):
        hw.run(net, {"s": ROWS}, engine="local")


def test_ticks_are_passed_on_and_may_be_causes() -> None:
    class Ticked(Kernel):
        def run(self, state: Any, trains: Any, now: int) -> Any:
            (train,) = trains
            numbers = np.full(1, train.ticks[0].number)
            made = Train(train.take(np.zeros(1, np.intp)).columns, numbers * 0, numbers, train.progress, train.ticks)
            return state, Result((made,))

    class Deaf(Kernel):
        def run(self, state: Any, trains: Any, now: int) -> Any:
            (train,) = trains
            return state, Result((Train(train.columns, train.stamps, train.numbers, train.progress),))

    ticks = train_of(3, progress=9, ticks=(Tick(7, 0),))
    guarded(Ticked(Odd(), "b", [SCHEMA], (None,), None)).run(None, [ticks], 0)
    with pytest.raises(HeadwayError, match="must pass on the input's ticks"):
        guarded(Deaf(Odd(), "b", [SCHEMA], (None,), None)).run(None, [ticks], 0)


def test_numbers_may_be_in_any_order_only_where_the_inputs_are() -> None:
    kernel = guarded(OddKernel(Odd(), "b", [SCHEMA], (None,), None))
    mixed = train_of(4)
    mixed = Train(mixed.columns, mixed.stamps, np.array([3, 9, 4, 5]), 5)
    assert kernel.run(0, [mixed], 0)[0] == 4
    several = GuardedKernel(UnionKernel(Odd(), "b", [], (), None), Odd(), "b", [SCHEMA, SCHEMA], [SCHEMA])
    _, result = several.run(None, [train_of(4, end=True), train_of(3)], 0)
    assert result.outputs[0].progress == 2
    assert not result.outputs[0].end


def test_a_signal_is_no_mistake_of_the_operator() -> None:
    class Interrupted(OddKernel):
        def run(self, state: Any, trains: Any, now: int) -> Any:
            raise TerminatedError(15)

    with pytest.raises(TerminatedError):
        guarded(Interrupted(Odd(), "b", [SCHEMA], (None,), None)).run(0, [train_of(1)], 0)


def test_the_rest_is_the_kernels_own() -> None:
    class Full(OddKernel):
        quiet = False
        kept: Any = None

        def deadline(self, state: Any) -> int:
            return 17

        def weigh_by(self, kept: Any) -> None:
            self.kept = kept

        def without_burning(self) -> Any:
            other = Full(Odd(), "b", [SCHEMA], (None,), None)
            other.quiet = True
            return other

        def ranks(self, state: Any, output: Train) -> Any:
            return np.zeros(len(output)), output.numbers

    inner = Full(Odd(), "b", [SCHEMA], (None,), None)
    inner.reads = frozenset({0, 2})
    kernel = guarded(inner)
    assert kernel.reads == frozenset({0, 2})
    assert kernel.deadline(0) == 17
    assert kernel.load(kernel.dump(4)) == 4
    kernel.weigh_by("shares")  # type: ignore[arg-type]
    assert inner.kept == "shares"
    other = kernel.without_burning()
    assert isinstance(other, GuardedKernel)
    assert other is not kernel
    assert other.without_burning()._kernel.quiet  # type: ignore[attr-defined]
    assert kernel.ranks(0, train_of(3))[1].tolist() == [0, 1, 2]


def test_a_package_without_a_kernel_is_named() -> None:
    with pytest.raises(NetworkError, match="box 'b': no package gives op 'lonely' a kernel"):
        compile_kernel(type("Lonely", (Odd,), {"op": "lonely"})(), "b", [SCHEMA], [None], None)
