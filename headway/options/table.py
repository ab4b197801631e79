"""The single table of all options of a run.

`OPTIONS` defines every option once: its name, default, help, and where it is valid; only the types of the arguments
of `headway.run` are in `RunOptions`, for type checkers. Everything else derives from it: the signature and the checks
of `headway.run`, the keys of a file's ``schedule``, their JSON Schema, the command line, and the tables of options in
``docs/``. Options are parsed to `headway.engines.runs.RunSettings`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from headway.catalog import HALF_LIFE, REMEMBER
from headway.errors import RunError, check_known
from headway.options.kinds import Option, check_value

if TYPE_CHECKING:
    from headway.adaptive.layer import Adaptive
    from headway.clock import Clock
    from headway.engines.control import Control
    from headway.engines.models import Model
    from headway.engines.runs import Status
    from headway.expressions import Functions
    from headway.network.trust import Trust
    from headway.scheduling.policy import Planner
    from headway.shedding.settings import ShedSettings
    from headway.shedding.strategies import Strategy


class RunOptions(TypedDict, total=False):
    """The options of `headway.run`, besides the network and its inputs, for type checkers."""

    outputs: Mapping[str, object] | None
    rates: Mapping[str, float] | None
    tables: Mapping[str, Any] | None
    functions: Functions | None
    strict: bool
    dead_letters: object
    engine: str | None
    policy: str | Mapping[str, Any] | Planner | None
    train: int | str | None
    wait: str | None
    workers: int | None
    memory: int | None
    remember: float | None
    half_life: float | None
    shed: bool | str | Mapping[str, Any] | Strategy | ShedSettings | None
    adaptive: str | Mapping[str, Any] | Adaptive | None
    model: Model | Mapping[str, Any] | str | Path | None
    trace: bool
    control: Control | None
    on_status: Callable[[Status], None] | None
    clock: Clock | None
    history: str | Path | None
    trust: Trust | Mapping[str, Any] | str | None
    master: str | None
    state: str | Path | None
    keep: float
    restart: Iterable[str]
    cut: Mapping[str, Any] | None
    spark: Mapping[str, str] | None


def _type_of(name: str) -> str:
    written = RunOptions.__annotations__.get(name)
    return "" if written is None else written.__forward_arg__.removesuffix(" | None")


_DATA: Mapping[str, Option] = {
    "inputs": Option(
        "where a source's tuples come from; overrides the file",
        "by name",
        of="source",
        flag="--input SOURCE=PATH",
        takes="by source: a path, an Arrow table or reader, an iterable of rows, a connector",
        see="[sources and sinks](connectors.md)",
        type="Mapping[str, object]",
    ),
    "outputs": Option(
        "where an output's tuples go; overrides the file",
        "by name",
        of="output",
        flag="--output OUTPUT=PATH",
        takes="by output: a path, a function of a record batch, a connector, or None to discard",
        see="[sources and sinks](connectors.md)",
    ),
    "rates": Option(
        "let a source's tuples arrive at this rate, in tuples per second, instead of as fast as they are read",
        "by name",
        of="source",
        flag="--rate SOURCE=N",
        takes="by source: tuples per second",
    ),
    "tables": Option(
        "the data of a static table that the network names",
        "by name",
        of="table",
        flag="--table NAME=PATH",
        takes="by name: a path, a `pyarrow.Table`, a pandas or polars DataFrame, a mapping of columns, or a list "
        "of rows as mappings",
    ),
    "functions": Option("the functions that expressions may call", "functions", told="all registered functions"),
    "strict": Option(
        "stop at the first malformed row or failing tuple, instead of counting it as a dead letter",
        "flag",
        False,
        flag="--strict",
    ),
    "dead_letters": Option(
        "write all malformed rows and failing tuples, with their reasons, to this file",
        "path",
        flag="--dead-letters PATH",
        takes="a path, or a function of a record batch",
    ),
}
_RUN: Mapping[str, Option] = {
    "engine": Option(
        "what executes the network: `spark` survives crashes and runs on clusters, `local` starts at once and has "
        "latencies of milliseconds, `sim` runs in virtual time, at modelled costs",
        "name",
        "spark",
        flag="--engine ENGINE",
        key=True,
        see="[which engine](guide.md#which-engine)",
    ),
    "policy": Option(
        "which box runs when: a policy such as `qos`, or a whole schedule such as `qos/superbox/mc/auto`; "
        "`headway policies` lists them",
        "policy",
        flag="--policy P",
        key=True,
        takes="text; a mapping with the keys `policy`, `unit`, `traversal`, `train`, `wait`, `plan`; or a policy "
        "object of your own, which may also be the value of `policy` in the mapping",
        see="[a schedule](policies.md#a-schedule)",
    ),
    "train": Option(
        "the most tuples that a step takes: few for latency, many for throughput; or a rule: `50%`, `5ms`, "
        "`64kB`, `spread:10ms`, `overhead:5%`, `auto`",
        "train",
        flag="--train N",
        key=True,
        see="[trains](policies.md#trains)",
    ),
    "wait": Option(
        "run a unit that has been ready for this long, whatever the policy says; `off` for never",
        "wait",
        "10s",
        flag="--longest-wait TIME",
        key=True,
        see="[the longest wait](policies.md#the-longest-wait)",
    ),
    "workers": Option(
        "how many boxes, or on Spark streaming queries, may run at once; in `sim` the number of processors",
        "workers",
        told="1; on Spark the number of cores",
        flag="--workers N",
        key=True,
    ),
    "memory": Option(
        "how much data may be queued before the sources wait",
        "bytes",
        256 << 20,
        told="256 MiB",
        flag="--memory SIZE",
        takes="bytes",
    ),
    "remember": Option(
        "how many recent calls of a box its statistics (cost, selectivity, size) reflect: a smaller number reacts "
        "faster to changes, a larger one gives steadier values",
        "calls",
        REMEMBER,
        flag="--remember CALLS",
        key=True,
    ),
    "half_life": Option(
        "seconds after which a tuple counts half as much in rates and recent utilities",
        "seconds",
        HALF_LIFE,
        flag="--half-life SECONDS",
        key=True,
    ),
    "shed": Option(
        "drop tuples under overload: `on`, `off`, a strategy (`loss`, `uniform`), or settings such as "
        "`{most: 0.5, headroom: 0.8}`",
        "shed",
        told="`off`",
        flag="--shed HOW",
        key=True,
        takes="True, False, a strategy by name or as an object, or a mapping of [settings](shedding.md#settings)",
        see="[load shedding](shedding.md)",
    ),
    "adaptive": Option(
        "switch policies during the run: `amos` (learns which is best), `optimizer` (meets goals for latency, memory "
        "and throughput), `off`, or settings such as `{use: amos, objectives: {latency: 1}}`",
        "adaptive",
        told="`off`",
        flag="--adaptive LAYER",
        key=True,
        takes="a layer by name, a mapping with its settings, or a layer object of your own",
        see="[adaptive layers](policies.md#adaptive-layers)",
    ),
    "model": Option(
        "the costs of boxes and of the engine: costs, overheads and seed, or the summary of a real run",
        "model",
        told="1us per tuple, and the costs of universal boxes",
        flag="--model FILE",
        key=True,
        engine="sim",
        takes="a mapping, a path, or a `headway.engines.models.Model`",
        see="[models](guide.md#models)",
    ),
    "trace": Option(
        "record every step and why it was chosen; the trace's file opens in `ui.perfetto.dev` or `chrome://tracing`, "
        "and `headway explain` reads it",
        "flag",
        False,
        flag="--trace FILE",
        group="reports",
        takes="True: the record is `result.trace`",
        see="[why](guide.md#why-did-it-do-that)",
    ),
    "control": Option(
        "lets other threads and callbacks stop or pause the run, or change its policy, load shedding or adaptive layer",
        "control",
        takes="an `hw.Control`",
    ),
    "on_status": Option(
        "called with a `Status` four times a second; if it raises, the run ends with a `RunError` that says so",
        "callable",
        takes="a function",
        see="[its fields](#while-it-runs)",
    ),
    "clock": Option(
        "the clock to use: `headway.clock.ManualClock()` runs timed sources and timeouts in virtual time (not for "
        "`sim`, which has its own)",
        "clock",
    ),
    "history": Option(
        "where connection points keep what passes them, as Parquet files, for later runs, too; a directory",
        "path",
        told="a temporary folder",
        flag="--history DIR",
    ),
    "trust": Option(
        "how far to trust the file: `own` (yours) may name any path and host, `stranger` only what is allowed",
        told="that given to `hw.load`, else `own`",
        takes='`"own"`, `"stranger"` or an `hw.Trust`',
        see="[safety](safety.md)",
    ),
}
_SPARK: Mapping[str, Option] = {
    "master": Option(
        "where Spark runs: on all cores of this machine, or on a cluster; an active session is used as it is",
        told="`local[*]`",
        flag="--master URL",
    ),
    "state": Option(
        "where to save what the run needs to continue: after Ctrl-C or a crash, the same command continues it, with "
        "nothing lost or repeated; a directory, or a URI that all machines of the cluster can reach",
        "path",
        flag="--state DIR",
        see="[state](spark.md#state)",
    ),
    "keep": Option(
        "how long the log in the state keeps tuples that every query has read: seconds, or on the command line a "
        "duration such as `10m` or `2 hours`",
        "duration",
        0.0,
        told="`0s`",
        flag="--keep DURATION",
        takes="seconds",
    ),
    "restart": Option(
        "discard the saved state of this box; needed when the box has changed",
        "names",
        (),
        of="box",
        flag="--restart BOX",
        takes="names of boxes",
    ),
    "cut": Option(
        "how the network is cut into streaming queries",
        "cut",
        takes="a mapping with `units`, `spread`, `shards`, `front`",
        see="[the cut](spark.md#the-cut)",
    ),
    "spark": Option(
        "a setting of the Spark session, such as `spark.executor.memory=4g`",
        "by name",
        flag="--conf NAME=VALUE",
        takes="settings by name",
    ),
}
"""The options of `headway.run`. For those that are None, the file or the default applies."""
_PARTS = {
    "unit": Option("what is scheduled as one unit: `box`, `superbox`, `spanner:5`", "name"),
    "traversal": Option("the order of the boxes in a superbox: `mc`, `ml`, `mm`, `best`", "name"),
    "plan": Option(
        "how many steps run before the policy is asked again",
        "positive",
        256,
        engine="local",
    ),
}
"""The parts of a schedule that only a mapping (an argument, or a file's) gives separately."""
_CUT = {
    "units": Option(
        "which outputs share a streaming query: `qos`: those with common inputs and the same latency graph; "
        "`loss`: like `qos`, but only if their loss and value graphs are the same, too; `one`: all outputs with "
        "common inputs share a query, which is cheapest; `output`: each output gets its own, which costs at least "
        "0.3 s per micro-batch but schedules best",
        "units",
        told="`qos`, or `loss` if load is shed",
        flag="--units RULE",
        see="[the cut](spark.md#the-cut)",
    ),
    "spread": Option(
        "which aggregates run in all shards at once, each shard with its share of the partitions: `auto`: all that "
        "can; `none`; or boxes by name",
        "spread",
        "auto",
        flag="--spread BOX[,BOX]",
    ),
    "shards": Option(
        "number of parallel shards per query, and thus the most cores its stateful boxes can use",
        "positive",
        told="the number of cores; a saved state keeps its own",
        flag="--shards N",
    ),
    "front": Option(
        "what runs queries without state: `native`: Spark's own operations, where they give the same results; "
        "`kernels`: Headway's kernels; `auto`: whichever is better",
        "front",
        "auto",
        flag="--front HOW",
    ),
}
"""How a network is cut into streaming queries: the keys of `cut`, which in a file are keys of the schedule itself."""


def _named(options: Mapping[str, Option], **common: Any) -> dict[str, Option]:
    """Return options with their names, their types, and what they have in common."""
    return {name: replace(one, name=name, type=one.type or _type_of(name), **common) for name, one in options.items()}


OPTIONS: Mapping[str, Option] = {
    **_named(_DATA, group="data"),
    **_named(_RUN),
    **_named(_SPARK, engine="spark"),
    **_named(_PARTS, key=True, call=False),
    **_named(_CUT, key=True, call=False, engine="spark"),
}
"""By name: all options of a call, a file's ``schedule``, or the command line."""
CALL = tuple(option for option in OPTIONS.values() if option.call)
"""The options of `headway.run`."""
SCHEDULE = tuple(option for option in OPTIONS.values() if option.key)
"""The keys of a file's ``schedule``."""
CUT_KEYS = tuple(_CUT)
_EXAMPLES = {"source": "{'source': 'file.csv'}", "output": "{'output': 'file.csv'}", "rates": "{'source': 100}"}


def default_of(name: str) -> Any:
    """Return an option's default."""
    return OPTIONS[name].default


def check_call(options: Mapping[str, Any]) -> None:
    """Raise a RunError for unknown options of `headway.run`, and for invalid values."""
    check_known("option", options, [option.name for option in CALL], RunError)
    for name, value in options.items():
        option = OPTIONS[name]
        if value is None or option.kind in ("policy", "train", "wait", "model", "shed", "adaptive"):
            continue  # its parser reports errors
        if option.kind == "by name" and not isinstance(value, Mapping):
            example = _EXAMPLES.get(name, _EXAMPLES.get(option.of, "{'name': 'value'}"))
            raise RunError(f"{name} is a mapping such as {example}, not {value!r:.100}")
        check_value(option, value, RunError)


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return a function's signature with the options in place of its last parameter, which collects them."""
    own = inspect.signature(function)
    first = list(own.parameters.values())[:-1]
    named = [
        inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=option.type)
        for option in CALL
        if option.name not in own.parameters
    ]
    return own.replace(parameters=[*first, *named])
