"""Many tests in one run: a Spark run takes seconds, however small its network, and hundreds of tests want one each.

Every test runs in a thread of its own, on an engine that only takes its network and inputs and waits. When all tests
wait, their networks become one network, side by side, which runs once on the real engine; every test gets its own part
of the result and goes on. A test that runs several networks one after the other takes part in several rounds.

Numbers of arrivals interleave differently than if a network ran alone, dead letters of all come together, and trains
are cut for all at once: nothing of that may change what a test sees.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow.compute as pc

from headway.checking import CheckedNetwork, check
from headway.engines.runs import Engine, RunResult, RunSettings
from headway.network import Box, Network
from headway.scheduling.policy import Plan, Policy, Step
from headway.scheduling.schedule import Schedule
from headway.scheduling.snapshot import Snapshot

Tests = Mapping[str, Callable[[], object]]


@dataclass
class _Request:
    """A run that tests wait for, and how many do."""

    checked: CheckedNetwork
    settings: RunSettings
    waiting: int = 0
    done: threading.Event = field(default_factory=threading.Event)
    result: RunResult | BaseException | None = None


class Gathering:
    """An engine for tests in threads. Only one of them runs at a time, and the rest wait."""

    def __init__(self, engine: Engine, seed: int, cut: Mapping[str, Any], groups: int) -> None:
        """Run rounds on `engine`, their outputs in so many units, with trains that follow from the seed."""
        self._engine = engine
        self._chance = random.Random(seed)
        self._cut = cut
        self._groups = groups
        self._turn = threading.Lock()
        self._changed = threading.Condition()
        self._busy = 0
        self._requests: dict[str, _Request] = {}
        self._known: dict[str, RunResult] = {}
        self.rounds: list[int] = []
        """The number of networks of each round."""
        self.batches = 0
        """Micro-batches of all rounds."""

    def carry_out(self, tests: Tests) -> dict[str, BaseException | None]:
        """Run all tests to their ends; returns what each raised."""
        raised: dict[str, BaseException | None] = {}
        self._busy = len(tests)
        for name, test in tests.items():
            threading.Thread(target=self._live, args=(name, test, raised), name=name, daemon=True).start()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._busy == 0)
                requests, self._requests = list(self._requests.values()), {}
                self._busy = sum(request.waiting for request in requests)
            if not requests:
                return {name: raised[name] for name in tests}
            self._answer(requests)

    def _live(self, name: str, test: Callable[[], object], raised: dict[str, BaseException | None]) -> None:
        with self._turn:
            try:
                test()
                raised[name] = None
            except BaseException as error:
                raised[name] = error
        self._leave()

    def _leave(self) -> None:
        with self._changed:
            self._busy -= 1
            self._changed.notify()

    def run(self, checked: CheckedNetwork, settings: RunSettings) -> RunResult:
        """Wait for the next round. How a network runs is not the test's choice, so the same one runs only once."""
        own = (settings.rates, settings.tables, settings.strict, settings.clock, settings.outputs)
        assert not any(own), "a test with settings of its own cannot be gathered"
        key = f"{checked.network} {settings.inputs}"
        if key not in self._known:
            with self._changed:
                request = self._requests.setdefault(key, _Request(checked, settings))
                request.waiting += 1
            self._leave()
            self._turn.release()
            request.done.wait()
            self._turn.acquire()
            if isinstance(request.result, BaseException):
                raise request.result
            assert request.result is not None
            self._known[key] = request.result
        return self._known[key]

    def _answer(self, requests: Sequence[_Request]) -> None:
        self.rounds.append(len(requests))
        try:
            results = self._run_together(requests)
        except BaseException as error:  # every test of the round fails with it
            results = [error] * len(requests)  # type: ignore[list-item]
        for request, result in zip(requests, results, strict=True):
            request.result = result
            request.done.set()

    def _run_together(self, requests: Sequence[_Request]) -> list[RunResult]:
        inputs = {
            _prefix(at) + name: given
            for at, request in enumerate(requests)
            for name, given in request.settings.inputs.items()
        }
        network = side_by_side([request.checked.network for request in requests])
        outputs = [output.name for output in network.outputs]
        self._chance.shuffle(outputs)
        units = [outputs[at :: self._groups] for at in range(min(self._groups, len(outputs)))]
        settings = RunSettings(
            Schedule(Portions(self._chance.randrange(1000))), inputs, {}, cut={"units": units, **self._cut}
        )
        result = self._engine.run(check(network), settings)
        self.batches += sum(unit["batches"] for unit in result.summary["units"].values())
        return [_part(result, _prefix(at)) for at in range(len(requests))]


def _prefix(number: int) -> str:
    return f"n{number}_"


def side_by_side(networks: Sequence[Network]) -> Network:
    """Return networks as one; the names of the n-th begin with its number."""
    parts = [_renamed(network, _prefix(at)) for at, network in enumerate(networks)]
    return Network(
        "gathered",
        tuple(source for part in parts for source in part.sources),
        tuple(box for part in parts for box in part.boxes),
        tuple(output for part in parts for output in part.outputs),
    )


def _renamed(network: Network, prefix: str) -> Network:
    def box(one: Box) -> Box:
        inputs = tuple(prefix + item if isinstance(item, str) else item for item in one.inputs)
        return replace(one, name=prefix + one.name, inputs=inputs)

    return replace(
        network,
        sources=tuple(replace(one, name=prefix + one.name) for one in network.sources),
        boxes=tuple(box(one) for one in network.boxes),
        outputs=tuple(replace(one, name=prefix + one.name, input=prefix + one.input) for one in network.outputs),
    )


def _part(result: RunResult, prefix: str) -> RunResult:
    """Return what belongs to one network, under its own names."""
    letters = result.dead_letters
    letters = letters.filter(pc.starts_with(letters["box"], prefix))
    plain = pc.utf8_slice_codeunits(letters["box"], len(prefix))
    summary = {kind: _under(result.summary[kind], prefix) for kind in ("sources", "boxes", "outputs")}
    return RunResult(_under(result.outputs, prefix), summary, letters.set_column(0, "box", plain))


def _under(found: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): one for name, one in found.items() if name.startswith(prefix)}


@dataclass(frozen=True, slots=True)
class Portions(Policy):
    """A policy that gives a ready unit a random share of what waits; at last all of it, so that runs are quick."""

    seed: int
    most: int = 5

    def start(self) -> dict[int, int]:
        """No unit has had a step."""
        return {}

    def plan(self, snapshot: Snapshot, memory: dict[int, int]) -> tuple[Plan, dict[int, int]]:
        """Return one step for each unit that is ready; the memory is how many each has had."""
        steps = []
        for unit in np.flatnonzero(snapshot.ready).tolist():
            taken = memory.get(unit, 0)
            chance = random.Random(self.seed * 1_000_003 + unit * 1_009 + taken)
            waiting = int(snapshot.waiting[unit])
            share = waiting if taken >= self.most else chance.choice((1, 7, *[chance.randint(1, max(1, waiting))] * 3))
            steps.append(Step(unit, max(1, share)))
            memory = memory | {unit: taken + 1}
        return Plan(tuple(steps)), memory
