"""Registries: what is registered keeps its name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headway.errors import PolicyError
from headway.plugins import Entry, Registry
from headway.scheduling.policy import Policy, make_policy, register_policy


def first(argument: str | None) -> str:
    return f"first {argument}"


def second(argument: str | None) -> str:
    return f"second {argument}"


@pytest.fixture
def known() -> Registry[Callable[[str | None], str]]:
    made = Registry[Callable[[str | None], str]]("thing", PolicyError)
    made.register("b", first, "about b", takes_argument=False)
    made.register("a", second, "about a", "a paper")
    return made


def test_entries_come_by_name(known: Registry[Callable[[str | None], str]]) -> None:
    assert known.names() == ("a", "b")
    assert known.entries() == (Entry("a", second, "about a", "a paper"), known["b"])


def test_a_name_may_have_an_argument(known: Registry[Callable[[str | None], str]]) -> None:
    assert [known.parse(text)[1] for text in ("a", "a:", "a:1:2")] == [None, "", "1:2"]
    with pytest.raises(PolicyError, match="thing 'b' takes no argument, not '1'"):
        known.parse("b:1")
    with pytest.raises(PolicyError, match="unknown thing 'c'; choices: a, b"):
        known.parse("c")


def test_a_name_is_not_taken_from_others(known: Registry[Callable[[str | None], str]]) -> None:
    with pytest.raises(PolicyError, match=r"thing 'a' is registered already, by tests.test_plugins.second: use"):
        known.register("a", first)
    assert known["a"].make is second


def test_the_same_code_may_register_again(known: Registry[Callable[[str | None], str]]) -> None:
    known.register("a", second, "other words")
    assert known["a"].about == "other words"

    def cell(answer: str) -> None:  # what a notebook's cell does, run twice
        known.register("mine", lambda argument: answer)

    cell("once")
    cell("again")
    assert known["mine"].make(None) == "again"


def test_policies_of_headway_stay() -> None:
    def make(argument: str | None) -> Policy:
        return make_policy("fifo")

    with pytest.raises(PolicyError, match=r"policy 'chain' is registered already, by headway.scheduling.chain"):
        register_policy("chain", make, "another chain")
    assert str(make_policy("chain")) == "Chain"
