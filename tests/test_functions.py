"""Users' functions and aggregates."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headway import functions as hw
from headway.errors import ExpressionError, InputError, NetworkError
from headway.expressions import BUILTIN, EvaluationError, Scope, compile_aggregates, compile_expression
from headway.network.schema import Schema, type_name
from tests.expressions.helpers import evaluate


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hw, "_registered", BUILTIN)


def test_a_scalar_function() -> None:
    calls: list[float] = []

    @hw.function("Fahrenheit", args=["double"], returns="double")
    def fahrenheit(celsius: float) -> float:
        calls.append(celsius)
        return celsius * 9 / 5 + 32

    assert fahrenheit(0) == 32
    rows = [(0,), (None,), (100,)]
    assert evaluate("fahrenheit(c)", "c int", rows, hw.functions()) == [32.0, None, 212.0]
    assert None not in calls
    assert evaluate("FAHRENHEIT(37.5) > 99", "c int", [(1,)], hw.functions()) == [True]


def test_null_can_be_passed() -> None:
    @hw.function("known", args=["string"], returns="boolean", null_on_null=False)
    def known(name: str | None) -> bool:
        return name is not None

    assert evaluate("known(s)", "s string", [("a",), (None,)], hw.functions()) == [True, False]


def test_no_arguments() -> None:
    @hw.function("answer", args=[], returns="int")
    def answer() -> int:
        return 42

    assert evaluate("answer() + n", "n int", [(1,), (2,)], hw.functions()) == [43, 44]


def test_a_vectorised_function() -> None:
    @hw.function("double_it", args=["bigint"], returns="bigint", vectorised=True)
    def double_it(values: pa.Array) -> pa.Array:
        return pc.multiply(values, 2)

    assert evaluate("double_it(n)", "n int", [(1,), (None,)], hw.functions()) == [2, None]


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (lambda values: pa.array([1]), "returned 1 values for 2 tuples"),
        (lambda values: 3, "must return an Arrow array, not int"),
        (lambda values: pa.array(["x", "y"]), "did not return int"),
        (lambda values: values.nope, "raised AttributeError"),
    ],
)
def test_bad_vectorised_results(result: Any, reason: str) -> None:
    hw.function("bad", args=["int"], returns="int", vectorised=True)(result)
    expression = compile_expression("bad(n)", Scope.of(Schema.parse("n int"), hw.functions()))
    with pytest.raises(EvaluationError, match=reason):
        expression.evaluate([_column([1, 2])], 2)


def _column(values: list[int]) -> Any:
    from headway.columns import from_pylist

    return from_pylist(values, pa.int32())


def test_what_a_function_raises_concerns_the_tuples() -> None:
    @hw.function("inverse", args=["int"], returns="double")
    def inverse(n: int) -> float:
        return 1 / n

    @hw.function("wrong", args=["int"], returns="int")
    def wrong(n: int) -> str:
        return "text"

    scope = Scope.of(Schema.parse("n int"), hw.functions())
    with pytest.raises(EvaluationError, match="inverse raised ZeroDivisionError: division by zero"):
        compile_expression("inverse(n)", scope).evaluate([_column([1, 0])], 2)
    with pytest.raises(EvaluationError, match="wrong did not return int"):
        compile_expression("wrong(n)", scope).evaluate([_column([1])], 1)
    guarded = compile_expression("case when n <> 0 then inverse(n) else 0 end", scope)
    assert guarded.evaluate([_column([2, 0])], 2).values.tolist() == [0.5, 0.0]


def test_arguments_are_checked() -> None:
    @hw.function("f", args=["int", "string"], returns="int")
    def f(n: int, s: str) -> int:
        return n

    scope = Scope.of(Schema.parse("n int, b bigint, s string, v double"), hw.functions())
    for text, part in [
        ("f(n)", "f(int, string) takes 2 arguments, not 1"),
        ("f(b, s)", "argument 1 of f(int, string) must be int, not bigint; use cast"),
        ("f(s, s)", "argument 1 of f(int, string) must be int, not string"),
        ("f(n, n)", "argument 2 of f(int, string) must be string, not int"),
        ("g(n)", "unknown function 'g'"),
    ]:
        with pytest.raises(ExpressionError) as caught:
            compile_expression(text, scope)
        assert part in str(caught.value)
    assert type_name(compile_expression("f(NULL, s)", scope).type) == "int"


def test_an_aggregate() -> None:
    @hw.aggregate("center", args=["int"], returns="double")
    class Center:
        def init(self) -> list[int]:
            return []

        def incr(self, state: list[int], value: int) -> list[int]:
            return [*state, value]

        def final(self, state: list[int]) -> float:
            return sum(state) / len(state)

    scope = Scope.of(Schema.parse("n int, ok boolean, s string"), hw.functions())
    made = compile_aggregates("center(n) as c, CENTER(n) + 1 as d, center(n) filter (where ok) as e", scope)
    assert [call.function for call in made.calls] == ["center", "center"]
    user = made.calls[0].user
    assert user is not None
    assert user is hw.functions().aggregates["center"]
    assert not user.vectorised
    assert user.init is not None
    assert user.incr is not None
    assert user.final is not None
    assert user.final(user.incr(user.incr(user.init(), 1), 4)) == 2.5
    with pytest.raises(ExpressionError, match="argument 1 of center"):
        compile_aggregates("center(s)", scope)
    with pytest.raises(ExpressionError, match="aggregate functions are only allowed"):
        compile_expression("center(n)", scope)


def test_a_vectorised_aggregate() -> None:
    @hw.aggregate("span", args=["double"], returns="double", vectorised=True)
    def span(values: pa.Array) -> object:
        return pc.subtract(pc.max(values), pc.min(values)).as_py()

    user = hw.functions().aggregates["span"]
    assert user.vectorised
    assert user.function is span


def test_registration_is_checked() -> None:
    cases: list[tuple[Any, str]] = [
        (lambda: hw.function("upper", args=[], returns="int"), "'upper': this is a built-in function"),
        (lambda: hw.aggregate("sum", args=["int"], returns="int"), "'sum': this is a built-in"),
        (lambda: hw.function("a b", args=[], returns="int"), "a name of letters"),
        (lambda: hw.function("f", args="int", returns="int"), "args is a list of types"),
        (lambda: hw.function("f", args=["itn"], returns="int"), "'f': unknown type 'itn'"),
        (lambda: hw.aggregate("f", args=["int"], returns="int")(object), "init and incr and final missing"),
        (lambda: hw.function("f", args=["int"], returns="int")(3), "a function is expected"),  # type: ignore[type-var]
    ]
    for make, part in cases:
        with pytest.raises(NetworkError) as caught:
            make()
        assert part in str(caught.value)


def test_a_registry_that_is_handed_out_does_not_change() -> None:
    before = hw.functions()
    hw.function("late", args=[], returns="int")(lambda: 1)
    assert "late" not in before.scalars
    assert "late" in hw.functions().scalars


def test_registration_from_several_threads() -> None:
    def register(number: int) -> None:
        hw.function(f"f{number}", args=[], returns="int")(lambda: number)

    threads = [threading.Thread(target=register, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(hw.functions().scalars) == 20


def test_load_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "hw_test_module.py").write_text(
        "from headway.functions import function\n"
        "@function('seven', args=[], returns='int')\n"
        "def seven():\n    return 7\n"
    )
    (tmp_path / "hw_broken_module.py").write_text("raise ValueError('oh no')\n")
    assert "seven" in hw.load_functions("hw_test_module").scalars
    with pytest.raises(InputError, match="'hw_missing_module' cannot be imported: ModuleNotFoundError"):
        hw.load_functions("hw_missing_module")
    with pytest.raises(InputError, match="cannot be imported: ValueError: oh no"):
        hw.load_functions("hw_broken_module")


def test_a_vectorised_function_is_not_called_for_nothing() -> None:
    @hw.function("same", args=["bigint"], returns="bigint", vectorised=True)
    def same(values: pa.Array) -> pa.Array:
        return pc.add(pc.subtract(values, values[0]), values[0])  # there is no first one of none

    assert evaluate("same(n)", "n bigint", [], hw.functions()) == []
    assert evaluate("same(n)", "n bigint", [(3,), (5,)], hw.functions()) == [3, 5]


@pytest.mark.parametrize("vectorised", [True, False])
def test_a_function_cannot_end_the_process(vectorised: bool) -> None:
    @hw.function("leave", args=["bigint"], returns="bigint", vectorised=vectorised)
    def leave(value: Any) -> Any:
        raise SystemExit(0)

    with pytest.raises(EvaluationError, match="leave raised SystemExit: 0"):
        evaluate("leave(n)", "n bigint", [(1,)], hw.functions())


def test_what_a_signal_raises_is_not_the_function_s() -> None:
    class Terminated(SystemExit):
        pass

    @hw.function("told", args=["bigint"], returns="bigint")
    def told(value: int) -> int:
        raise Terminated

    with pytest.raises(Terminated):
        evaluate("told(n)", "n bigint", [(1,)], hw.functions())
