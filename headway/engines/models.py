"""Models for the simulator: the costs of boxes and of the engine itself.

A model is frozen data, read from a mapping or a file, or derived from the summary of a real run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from headway.boxes.costs import Constant, Cost, parse_cost
from headway.boxes.keys import Key, check_keys, inside
from headway.errors import HeadwayError, NetworkError, RunError, unknown
from headway.network.trust import OWN, Trust
from headway.network.yamls import read_text

MODEL_KEYS = (
    Key(
        "costs",
        "costs",
        "by box what a tuple costs: `2ms`, seconds, {uniform: [1ms, 3ms]} or {zipf: [2, 100, 10us]}",
    ),
    Key("default", "cost", "what a tuple costs at all other boxes (default 1us; universal boxes cost what they say)"),
    Key("overheads", "overheads", "what else takes time: {call, scheduler, preemption, storage} (default 0)"),
    Key("measured", "text", "the summary of a real run (--summary), whose measured costs are taken"),
    Key("like", "text", "`local`: plans, arrivals and results as in that engine, to predict it (default: exact)"),
    Key("seed", "count", "what distributions of costs are drawn from (default 0)"),
    Key("learned", "learned", "costs are measured as in real engines: true, or {warmup: 50ms, noise: 0.3}"),
)
OVERHEAD_KEYS = (
    Key("call", "cost", "each call of a box"),
    Key("scheduler", "cost", "each time the policy is asked"),
    Key("preemption", "cost", "each time a step is preempted"),
    Key("storage", "cost", "each time a box takes tuples from a queue that another step filled"),
    Key("round", "cost", "with `like: local`, each time the engine lets tuples in and asks the policy"),
    Key("arrival", "cost", "with `like: local`, each tuple that is let in"),
    Key("wake", "cost", "with `like: local`, each time there was nothing to do: until it notices that there is"),
)
LEARNED_KEYS = (
    Key("warmup", "cost", "extra cost of a box's first call, a quarter of it at the next, and so on (default 0)"),
    Key("noise", "number", "by which part of it a call is off, as a standard deviation (default 0)"),
)
LOCAL = "local"
"""The value of `like`: the engine whose behaviour is followed."""
_ROUNDS = ("round", "arrival", "wake")
_NOISIEST = 2.0


@dataclass(frozen=True, slots=True)
class Overheads:
    """The engine's own costs per event, in seconds."""

    call: float = 0.0
    scheduler: float = 0.0
    preemption: float = 0.0
    storage: float = 0.0
    round: float = 0.0
    arrival: float = 0.0
    wake: float = 0.0


@dataclass(frozen=True, slots=True)
class Learned:
    """Costs that are unknown in advance: the run measures them, as a real engine does, and calls vary."""

    warmup: float = 0.0
    """Extra seconds that a box's first call takes; each further call takes a quarter of the previous extra."""
    noise: float = 0.0
    """The standard deviation of the logarithm of a call's duration; its mean is unchanged."""


@dataclass(frozen=True, slots=True)
class Model:
    """How long everything takes in virtual time."""

    costs: Mapping[str, Cost] = field(default_factory=dict)
    """By box: the cost of a tuple. A universal box that is not named has its own declared cost."""
    calls: Mapping[str, float] = field(default_factory=dict)
    """By box: the overhead of a call, in seconds."""
    default: Cost = Constant(1e-6)  # noqa: RUF009 - frozen
    overheads: Overheads = Overheads()
    seed: int = 0
    like: str = ""
    """LOCAL: simulate that engine. A whole plan is carried out before the loop looks again, tuples that arrive
    meanwhile are let in then, and results leave when their call ends. Otherwise everything happens at its exact
    moment."""
    summary: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    """The summary of the real run that the costs were taken from."""
    learned: Learned | None = None
    """None: policies and the load shedder know the costs of boxes. Otherwise they have to measure them."""

    def check(self, boxes: Mapping[str, Any]) -> None:
        """Raise a RunError if the model names a box that the network does not have."""
        for name in (*self.costs, *self.calls):
            if name not in boxes:
                raise RunError(f"model: costs: {unknown('box', name, boxes)}")


def parse_model(value: object, folder: Path | None = None, trust: Trust = OWN) -> Model:
    """Read a model from a mapping, a path to one, or a path to the summary of a real run; raise a HeadwayError.

    Paths in it must be allowed by `trust`, as they may come from a network file.
    """
    if isinstance(value, Model):
        return value
    if isinstance(value, str | Path):
        trust.check_path(value, folder, "schedule: model", RunError)
        path = Path(value) if folder is None else folder / value
        content = _read(path)
        if not isinstance(content, Mapping):
            raise RunError(f"model: {path}: must hold a mapping, not {content!r:.40}")
        return parse_model(content, path.parent, trust)
    if not isinstance(value, Mapping):
        raise RunError(f"model: must be a mapping or the path of a file, not {value!r}")
    if "engine" in value and "boxes" in value:
        return model_of_summary(value)
    with inside("model"):
        check_keys(value, MODEL_KEYS)
        base = Model()
        if value.get("measured") is not None:
            measured = value["measured"]
            if isinstance(measured, str | Path):
                trust.check_path(measured, folder, "model: measured", RunError)
                measured = _read(Path(measured) if folder is None else folder / measured)
            base = model_of_summary(measured)
        with inside("costs"):
            costs = _costs(value.get("costs"))
        with inside("default"):
            default = base.default if value.get("default") is None else parse_cost(value["default"])
        seed = value.get("seed", base.seed)
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise NetworkError(f"seed: must be a whole number, zero or more, not {seed!r}")
        calls = {name: seconds for name, seconds in base.calls.items() if name not in costs}
        like = base.like if value.get("like") is None else value["like"]
        if like not in ("", LOCAL):
            raise NetworkError(f"like: must be '{LOCAL}', the only engine that can be followed, not {like!r}")
        overheads = _overheads(value.get("overheads"), base.overheads)
        if not like:
            for name in _ROUNDS:
                if getattr(overheads, name):
                    raise NetworkError(f"overheads: {name}: needs 'like: {LOCAL}', where there are such rounds")
        learned = _learned(value.get("learned"))
        return Model({**base.costs, **costs}, calls, default, overheads, seed, like, base.summary, learned)


def _learned(value: object) -> Learned | None:
    if value is None or value is False:
        return None
    if value is True:
        return Learned()
    with inside("learned"):
        if not isinstance(value, Mapping):
            raise NetworkError(f"must be true, false or a mapping such as {{warmup: 50ms, noise: 0.3}}, not {value!r}")
        check_keys(value, LEARNED_KEYS)
        with inside("warmup"):
            warmup = parse_cost(value.get("warmup", 0.0)).mean
        noise = value.get("noise", 0.0)
        if isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 <= noise <= _NOISIEST:
            raise NetworkError(f"noise: must be a number from 0 to {_NOISIEST:g}, not {noise!r}")
        return Learned(warmup, float(noise))


def _costs(value: object) -> dict[str, Cost]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise NetworkError(f"must be a mapping from boxes to costs, not {value!r}")
    costs = {}
    for name, cost in value.items():
        with inside(f"box '{name}'"):
            costs[str(name)] = parse_cost(cost)
    return costs


def _overheads(value: object, base: Overheads) -> Overheads:
    if value is None:
        return base
    with inside("overheads"):
        if not isinstance(value, Mapping):
            raise NetworkError(f"must be a mapping such as {{call: 5us, scheduler: 20us}}, not {value!r}")
        check_keys(value, OVERHEAD_KEYS)
        for name, cost in value.items():
            with inside(name):
                base = replace(base, **{name: parse_cost(cost).mean})
        return base


def model_of_summary(summary: object) -> Model:
    """Return the model given by a run's summary: measured costs, and the engine's overheads per event.

    A summary of the engine `local` makes a model that follows that engine.
    """
    try:
        assert isinstance(summary, Mapping)
        boxes: Mapping[str, Any] = summary["boxes"]
        spent, plans, calls = summary["time"], summary["plans"], summary["box_calls"]
        local = summary["engine"] == LOCAL
        return Model(
            {name: _measured(name, one["cost_per_tuple"]) for name, one in boxes.items()},
            {name: _measured(name, one["cost_per_call"]).mean for name, one in boxes.items()},
            overheads=Overheads(
                scheduler=_each(spent, plans, "scheduler"),
                storage=_each(spent, calls, "storage"),
                round=_each({"sources": 0, "sinks": 0, **spent}, plans, "sources", "sinks") if local else 0.0,
            ),
            like=LOCAL if local else "",
            summary=summary,
        )
    except (AssertionError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise RunError(
            f"model: measured: this is not the summary of a run ({type(error).__name__}: {error})"
        ) from error


def _each(spent: Mapping[str, Any], times: Any, *names: str) -> float:
    """Return the seconds per event from a summary's total; the summary may have been edited."""
    total = sum([float(spent[name]) for name in names])
    with inside("model"), inside("measured"), inside(f"time: {' and '.join(names)}"):
        return parse_cost(total / max(1, times)).mean


def _measured(box: str, value: Any) -> Cost:
    """Check a cost from a summary, which may have been edited."""
    with inside("model"), inside("measured"), inside(f"box '{box}'"):
        return parse_cost(float(value))


def _read(path: Path) -> object:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        unreadable = "not a text file in UTF-8" if isinstance(error, UnicodeDecodeError) else error
        reason = getattr(error, "strerror", None) or unreadable
        raise RunError(f"model: {path}: cannot be read: {reason}") from error
    try:
        return json.loads(text) if path.suffix == ".json" else read_text(text)
    except (ValueError, RecursionError, HeadwayError) as error:
        raise RunError(f"model: {path}: {error}") from error
