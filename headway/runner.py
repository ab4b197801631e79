"""`run`: execute a network with given inputs, engine and policy."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import headway.adaptive.amos
import headway.adaptive.optimizer
import headway.engines.local
import headway.engines.sim
import headway.engines.spark.entry
import headway.shedding.greedy
import headway.shedding.uniform  # noqa: F401  (engines, layers and strategies register themselves)
from headway.adaptive.layer import parse_adaptive
from headway.builder import NetworkBuilder
from headway.checking import CheckedNetwork, check
from headway.connectors.jsonl import tag_shared
from headway.engines.control import Control
from headway.engines.models import Model, parse_model
from headway.engines.opening import LETTERS, check_files, permit, table_refs
from headway.engines.runs import RunResult, RunSettings, Status, make_engine
from headway.errors import HeadwayError, InputError, NetworkError, OutputError, PolicyError, RunError, check_known
from headway.files import load
from headway.network import Network, Table, thaw
from headway.network.trust import read_trust
from headway.options.kinds import Option, check_value
from headway.options.table import CUT_KEYS, OPTIONS, RunOptions, check_call, default_of, signature_of
from headway.scheduling.schedule import PARTS, Schedule, default_schedule
from headway.shedding.settings import ShedSettings
from headway.tables import Statics, load_static

AnyNetwork = Network | NetworkBuilder | str | Path | Mapping[str, Any]

_notes = logging.getLogger("headway.check")
DEFAULT_ENGINE: str = default_of("engine")
_FOR_EVER = 1e9
"""Seconds, which as nanoseconds still fit into 64 bits."""


class Prepared(NamedTuple):
    """A validated run: everything is read and checked, nothing is opened."""

    engine: str
    checked: CheckedNetwork
    settings: RunSettings
    network: Network
    """As written."""


def run(network: AnyNetwork, inputs: Mapping[str, object] | None = None, **options: Unpack[RunOptions]) -> RunResult:
    """Run a network until all inputs have ended, and return its outputs and a summary.

    `network` is a Network, a builder, or anything `load` accepts. `inputs` maps source names to a path, an Arrow table
    or reader, or an iterable of rows; a source without an entry uses the connector in the network file. Outputs without
    a sink are in ``result.outputs`` as Arrow tables. An option that is omitted or None takes its value from the file's
    ``schedule``, or else its default.
    """
    engine, checked, settings, _ = prepare(network, inputs, options)
    return make_engine(engine).run(checked, settings)


run.__signature__ = signature_of(run)  # type: ignore[attr-defined]
run.__doc__ = "\n".join(
    [run.__doc__ or "", *[f"    {name}: {one.meaning(one.default_text)}" for name, one in OPTIONS.items() if one.call]]
)


def prepare(network: AnyNetwork, inputs: Mapping[str, object] | None, options: RunOptions) -> Prepared:
    """Read and check everything for a run, or raise a HeadwayError. Options of the call override the file."""
    call: Mapping[str, Any] = {"inputs": inputs, **options}
    check_call(call)
    if isinstance(network, NetworkBuilder):
        network = network.build()
    elif not isinstance(network, Network):
        network = load(network)
    if (trust := options.get("trust")) is not None:
        network = replace(network, trust=read_trust(trust))
    checked = check(network, options.get("functions"), options.get("tables"), contact=True)
    network = checked.network
    for warning in checked.warnings:
        _notes.warning("%s", warning)
    in_file: Mapping[str, Any] = network.schedule or {}
    said: dict[str, Any] = {}
    for name, option in OPTIONS.items():
        given = call.get(name)
        if given is None and option.key:
            given = in_file.get(name)
        said[name] = option.default if given is None else given
    engine: str = options.get("engine") or in_file.get("engine") or DEFAULT_ENGINE
    for name, option in OPTIONS.items():
        value = options.get(name)
        if option.call and option.engine not in ("", engine) and (value is not None if name == "model" else value):
            raise RunError(f"{name} is for the engine '{option.engine}'; the engine of this run is '{engine}'")
    check_names(network, said, OPTIONS.values())
    inputs = said["inputs"] or {}
    outputs, dead_letters = _destinations(network, inputs, said)
    schedule = _schedule(engine, network, options)
    shedding = ShedSettings.parse(thaw(said["shed"]))
    adaption = parse_adaptive(thaw(said["adaptive"]))
    if schedule.threads:
        _check_threads(engine, bool(said["trace"]), bool(shedding or adaption))
    if shedding is not None:
        shedding.limits([one.name for one in network.outputs], [one.qos for one in network.outputs])
    on_status, state = options.get("on_status"), said["state"]
    if not isinstance(said["control"], Control | None):
        raise RunError(f"control is a headway.Control, not {said['control']!r:.100}")
    parsed: dict[str, Any] = {
        "schedule": schedule,
        "inputs": inputs,
        "outputs": outputs,
        "rates": said["rates"] or {},
        "dead_letters": dead_letters,
        "on_status": None if on_status is None else _guarded(on_status),
        "spark": said["spark"] or {},
        "state": None if state is None else str(state),
        "history": None if said["history"] is None else str(said["history"]),
        "keep": min(said["keep"], _FOR_EVER),
        "restart": frozenset(said["restart"]),
        "cut": _cut(said["cut"]),
        "model": model_of(network, options.get("model")) if engine == "sim" else None,
        "shed": shedding,
        "adaptive": adaption,
    }
    settings = RunSettings(
        **{one.name: parsed[one.name] if one.name in parsed else said[one.name] for one in fields(RunSettings)}
    )
    permit(checked, settings)
    return Prepared(engine, checked, replace(settings, tables=_read(checked, settings.tables)), network)


def _read(checked: CheckedNetwork, tables: Mapping[str, Any] | None) -> Statics:
    """Return the static tables that the boxes of a network look up, read; they stay so until a refresh."""
    network, statics = checked.network, Statics(tables)
    streamed = [(network.streamed(source.name), source.schema) for source in network.sources]
    schemas = {point.name: schema for point, schema in streamed if point is not None}
    items = {item.ref: item for every in checked.inputs.values() for item in every if isinstance(item, Table)}
    contents = {ref: load_static(network, item, statics) for ref, item in items.items()}
    return statics.having(network, {**schemas, **contents})


def check_names(network: Network, given: Mapping[str, Any], options: Iterable[Option], *, flags: bool = False) -> None:
    """Raise for option entries that name nothing in the network; with `flags` the message names the flag."""
    known: Mapping[str, tuple[Collection[str], type[HeadwayError]]] = {
        "source": ([one.name for one in network.sources], InputError),
        "output": ([one.name for one in network.outputs], OutputError),
        "box": ([one.name for one in network.boxes], RunError),
        "table": (table_refs(network), NetworkError),
    }
    for option in options:
        if option.of in known:
            names, error = known[option.of]
            check_known(option.of, given.get(option.name) or (), names, error, option.long if flags else "")


def _destinations(
    network: Network, inputs: Mapping[str, object], said: Mapping[str, Any]
) -> tuple[Mapping[str, object], object]:
    """Return where outputs and dead letters go; refuse a file that is both read and written, or written twice."""
    outputs: Mapping[str, object] = said["outputs"] or {}
    writes = {**{f"output '{name}'": what for name, what in outputs.items()}, LETTERS: said["dead_letters"]}
    check_files(network, inputs, writes, tables=said["tables"] or ())
    # On standard output, lines of several outputs would be indistinguishable without a tag.
    every = {output.name: outputs.get(output.name, thaw(output.sink)) for output in network.outputs}
    tagged = tag_shared({**every, LETTERS: said["dead_letters"]})
    return {**outputs, **{name: what for name, what in tagged.items() if name != LETTERS}}, tagged.get(
        LETTERS, said["dead_letters"]
    )


def _schedule(engine: str, network: Network, options: RunOptions) -> Schedule:
    """Return the schedule: the call overrides the file, and the file overrides the engine's default.

    A call that names a policy replaces all parts of the file's policy; the file's `train` remains unless the call gives
    a mapping or a train of its own.
    """
    schedule: Mapping[str, Any] = network.schedule or {}
    policy = options.get("policy")
    parts = policy if isinstance(policy, Mapping) else None
    told = parts if parts is not None else schedule if policy is None else {"policy": policy}
    # The default policy's train rule does not apply to a policy that is named explicitly.
    graphs = [output.qos.latency is not None for output in network.outputs] if told.get("policy") is None else []
    default = default_schedule(engine, graphs)
    made = Schedule.of(schedule, default)
    if parts is not None:
        check_known("key", parts, PARTS, PolicyError, "policy")
        made = Schedule.of(parts, default)
    elif policy is not None:
        made = Schedule.of({"policy": policy}, Schedule.parse(None, schedule.get("train"), default))
    return Schedule.parse(None, options.get("train"), made, wait=options.get("wait"))


def _check_threads(engine: str, trace: bool, steered: bool) -> None:
    if engine != "local":
        raise RunError(f"policy 'threads' is for the engine 'local'; the engine of this run is '{engine}'")
    if trace:
        raise RunError("policy 'threads' has no steps that could be recorded: trace another policy")
    if steered:
        raise RunError(
            "policy 'threads' runs without a scheduler, which shedding and adaptive layers need: choose another policy"
        )


def _cut(given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the call's cut options, checked."""
    given = given or {}
    check_known("key", given, CUT_KEYS, RunError, "cut")
    for key, value in given.items():
        if value is not None:
            check_value(OPTIONS[key], value, RunError, key=True)
    return given


def model_of(network: Network, given: Any) -> Model | None:
    """Return the model from the call, or else from the file; the file's trust applies only to what the file says."""
    schedule: Mapping[str, Any] = network.schedule or {}
    if given is not None:
        return parse_model(thaw(given))
    said = schedule.get("model")
    return None if said is None else parse_model(thaw(said), network.folder, network.trust)


def _guarded(on_status: Callable[[Status], None]) -> Callable[[Status], None]:
    """Wrap the user's callback so that its failure is reported under its name, as a sink's is."""

    def call(status: Status) -> None:
        try:
            on_status(status)
        except Exception as error:
            raise RunError(f"on_status raised {type(error).__name__}: {error}") from error

    return call
