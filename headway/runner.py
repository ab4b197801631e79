"""`run`: a network, its inputs, an engine and a policy."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import headway.adaptive.amos
import headway.adaptive.optimizer
import headway.engines.local
import headway.engines.sim
import headway.engines.spark.entry
import headway.shedding.greedy
import headway.shedding.uniform  # noqa: F401  (engines, layers and strategies register themselves)
from headway.adaptive.layer import parse_adaptive
from headway.builder import NetworkBuilder
from headway.catalog import HALF_LIFE, REMEMBER
from headway.checking import check
from headway.clock import Clock
from headway.connectors.tagging import tag_shared
from headway.engines.base import RunResult, RunSettings, Status, make_engine
from headway.engines.claims import check_files
from headway.engines.control import Control
from headway.engines.models import Model, parse_model
from headway.engines.opening import LETTERS, permit
from headway.errors import InputError, OutputError, PolicyError, RunError, finite, unknown
from headway.expressions import Functions
from headway.files import load
from headway.network import Network, thaw
from headway.scheduling.schedule import PARTS, Schedule, default_schedule
from headway.shedding.settings import ShedSettings
from headway.trust import OWN, Trust, read_trust

_notes = logging.getLogger("headway.check")
DEFAULT_ENGINE = "spark"
_FOR_EVER = 1e9
"""Seconds, which as nanoseconds still fit into 64 bits."""


def run(
    network: Network | NetworkBuilder | str | Path | Mapping[str, Any],
    inputs: Mapping[str, object] | None = None,
    *,
    engine: str | None = None,
    policy: str | Mapping[str, Any] | None = None,
    train: int | str | None = None,
    workers: int | None = None,
    outputs: Mapping[str, object] | None = None,
    rates: Mapping[str, float] | None = None,
    tables: Mapping[str, Any] | None = None,
    functions: Functions | None = None,
    strict: bool = False,
    memory: int | None = None,
    dead_letters: object = None,
    clock: Clock | None = None,
    on_status: Callable[[Status], None] | None = None,
    wait: str | None = None,
    remember: float | None = None,
    half_life: float | None = None,
    trace: bool = False,
    model: Model | Mapping[str, Any] | str | Path | None = None,
    shed: bool | str | Mapping[str, Any] | None = None,
    adaptive: str | Mapping[str, Any] | None = None,
    control: Control | None = None,
    master: str | None = None,
    spark: Mapping[str, str] | None = None,
    state: str | Path | None = None,
    keep: float = 0.0,
    restart: Iterable[str] = (),
    cut: Mapping[str, Any] | None = None,
    trust: Trust | Mapping[str, Any] | str | None = None,
) -> RunResult:
    """Run a network until all inputs have ended, and return its outputs and a summary.

    `network` is a Network, a builder, or whatever `load` takes. `inputs` gives by source a path, an Arrow
    table or reader, or an iterable of rows; a source that is not named reads what the network file says.
    `outputs` gives by output a path or a function of a record batch; what is not named goes where the
    network file says, or else into ``result.outputs`` as an Arrow table. `rates` (tuples per second) lets a
    source's tuples arrive in time instead of in turn. `policy` is text such as ``qos/superbox/mc/auto``, or a mapping
    with the keys policy, unit, traversal, train, wait; `train` the most tuples in a box call, or another rule such as
    ``50%`` or ``5ms``; `wait` the longest that a ready unit waits (``10s``, or ``off``); `workers` how many boxes may
    run at once (default 1). `strict` stops at the first malformed row or failing tuple. Above `memory` queued bytes,
    sources wait. `dead_letters` may name a file for all of them. `remember` is how many calls of a box its statistics
    remember (default 1000), `half_life` the seconds after which a tuple counts half in rates (default 5). With
    `trace`, ``result.trace`` tells for every step when it ran and why it was chosen.

    `shed` says whether load is shed when there is too much (default: the file's, else not): True, a strategy (``loss``,
    ``uniform``) or a mapping. `adaptive` is a layer that changes policies while the run goes on: ``amos``,
    ``optimizer``, or a mapping ``{"use": "amos", ...}`` with its settings; `control` lets other threads change its
    specification.

    `trust` says what the network file may name (default: what `load` was told, else anything): ``own``, ``stranger``,
    or a `Trust` with what a stranger's file is allowed. What this call itself gives is never asked about.

    `model` is for the engine ``sim``: what boxes cost and what else takes time, as a Model, a mapping, or a path, which
    may be that of the summary of a real run.

    The rest is for the engine ``spark``: `master` is the cluster, `spark` settings of the session that this run
    starts, `state` a directory (or a URI that all executors reach) from which a run continues after a crash,
    `keep` the seconds for which its log keeps what everybody has read, `restart` boxes that may begin anew although
    they have changed since, `cut` how the network is cut (`units`, `spread`, `shards`, `front`), over what the
    network file says.
    """
    if isinstance(network, NetworkBuilder):
        network = network.build()
    elif not isinstance(network, Network):
        network = load(network)
    if trust is not None:
        network = replace(network, trust=read_trust(trust))
    checked = check(network, functions, tables, contact=True)
    for warning in checked.warnings:
        _notes.warning("%s", warning)
    schedule: Mapping[str, Any] = network.schedule or {}
    for given, what, example in (
        (inputs, "inputs", "{'source': 'file.csv'}"),
        (outputs, "outputs", "{'output': 'file.csv'}"),
        (rates, "rates", "{'source': 100}"),
    ):
        if given is not None and not isinstance(given, Mapping):
            raise RunError(f"{what} is a mapping such as {example}, not {given!r:.100}")
    if on_status is not None and not callable(on_status):
        raise RunError(f"on_status is a function of a Status, not {on_status!r:.100}")
    if control is not None and not isinstance(control, Control):
        raise RunError(f"control is a headway.Control, not {control!r:.100}")
    inputs, outputs, rates = inputs or {}, outputs or {}, rates or {}
    sources = [source.name for source in network.sources]
    names = [output.name for output in network.outputs]
    for given, known, kind, error in (
        (inputs, sources, "source", InputError),
        (rates, sources, "source", InputError),
        (outputs, names, "output", OutputError),
    ):
        for name in given:
            if name not in known:
                raise error(unknown(kind, name, known))
    writes = {**{f"output '{name}'": what for name, what in outputs.items()}, LETTERS: dead_letters}
    check_files(network, inputs, writes, tables=tables or ())
    # Lines of several outputs on standard output could not be told apart.
    destinations = {output.name: outputs.get(output.name, thaw(output.sink)) for output in network.outputs}
    tagged = tag_shared({**destinations, LETTERS: dead_letters})
    dead_letters = tagged.pop(LETTERS, dead_letters)
    outputs = {**outputs, **tagged}
    if workers is None:
        workers = schedule.get("workers")
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise RunError(f"workers is a number above 0, not {workers!r}")
    if memory is not None and (isinstance(memory, bool) or not isinstance(memory, int) or memory < 1):
        raise RunError(f"memory is a number of bytes above 0, not {memory!r}")
    if remember is None:
        remember = schedule.get("remember")
    if remember is not None and not _from(remember, 1):
        raise RunError(f"remember is a number of calls, 1 or more, not {remember!r}")
    if half_life is None:
        half_life = schedule.get("half_life")
    if half_life is not None and not _from(half_life, math.nextafter(0, 1)):
        raise RunError(f"half_life is a number of seconds above 0, not {half_life!r}")
    if not _from(keep, 0):
        raise RunError(f"keep is a number of seconds, 0 or more, not {keep!r}")
    engine = engine or schedule.get("engine") or DEFAULT_ENGINE
    for option, value in {"master": master, "spark": spark, "state": state, "keep": keep, "cut": cut}.items():
        if value and engine != "spark":
            raise RunError(f"{option} is for the engine 'spark'; the engine of this run is '{engine}'")
    if model is not None and engine != "sim":
        raise RunError(f"model is for the engine 'sim'; the engine of this run is '{engine}'")
    told = policy if isinstance(policy, Mapping) else schedule if policy is None else {"policy": policy}
    # Trains for the default policy are not for one that somebody names.
    graphs = [output.qos.latency is not None for output in network.outputs] if told.get("policy") is None else []
    default = default_schedule(engine, graphs)
    parsed = _schedule_of(policy, train, wait, schedule, default)
    if parsed.threads and engine != "local":
        raise RunError(f"policy 'threads' is for the engine 'local'; the engine of this run is '{engine}'")
    if parsed.threads and trace:
        raise RunError("policy 'threads' has no steps that could be recorded: trace another policy")
    shedding = ShedSettings.parse(thaw(schedule.get("shed")) if shed is None else shed)
    adaption = parse_adaptive(thaw(schedule.get("adaptive")) if adaptive is None else adaptive)
    if parsed.threads and (shedding or adaption):
        raise RunError("policy 'threads' has nobody who could shed load or adapt: choose another policy")
    if shedding is not None:
        shedding.limits(names, [output.qos for output in network.outputs])
    simulated = None
    if engine == "sim":
        modelled = schedule.get("model") if model is None else model
        folder, vouched = (network.folder, network.trust) if model is None else (None, OWN)
        simulated = None if modelled is None else parse_model(thaw(modelled), folder, vouched)
    settings = RunSettings(
        schedule=parsed,
        inputs=inputs,
        outputs=outputs,
        rates=rates,
        tables=tables,
        workers=workers,
        strict=strict,
        dead_letters=dead_letters,
        clock=clock,
        on_status=None if on_status is None else _guarded(on_status),
        master=master,
        spark=spark or {},
        state=None if state is None else str(state),
        keep=min(keep, _FOR_EVER),
        restart=frozenset(restart),
        cut=cut or {},
        trace=trace,
        model=simulated,
        shed=shedding,
        adaptive=adaption,
        control=control,
        remember=REMEMBER if remember is None else float(remember),
        half_life=HALF_LIFE if half_life is None else float(half_life),
        **({} if memory is None else {"memory": memory}),
    )
    permit(checked, settings)
    return make_engine(engine).run(checked, settings)


def _from(value: object, least: float) -> bool:
    """Whether it is a number of at least so much; infinity is one, too."""
    number = math.inf if value == math.inf else finite(value)
    return number is not None and number >= least


def _guarded(on_status: Callable[[Status], None]) -> Callable[[Status], None]:
    """Return a user's function whose failure names it, as that of a sink does."""

    def call(status: Status) -> None:
        try:
            on_status(status)
        except Exception as error:
            raise RunError(f"on_status raised {type(error).__name__}: {error}") from error

    return call


def _schedule_of(
    policy: str | Mapping[str, Any] | None,
    train: int | str | None,
    wait: str | None,
    schedule: Mapping[str, Any],
    default: Schedule | None,
) -> Schedule:
    """Return the schedule: what the run says, over what the file says, over the engine's default.

    A run that names a policy means all of it: parts that only the file names go with the file's policy.
    """
    made = Schedule.of(schedule, default)
    if isinstance(policy, Mapping):
        unknown_keys = [key for key in policy if key not in PARTS]
        if unknown_keys:
            raise PolicyError(f"policy: {unknown('key', str(unknown_keys[0]), PARTS)}")
        made = Schedule.of(policy, default)
    elif policy is not None:
        made = Schedule.parse(policy, None, Schedule.parse(None, schedule.get("train"), default))
    return Schedule.parse(None, train, made, wait=wait)
