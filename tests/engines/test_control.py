"""Commands to a run that goes on: that it does something else, or that it ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import headway as hw
from headway.clock import SECOND, processor
from headway.connectors.protocol import Chunk, Malformed
from headway.engines.control import Pause, Resume, Specify
from headway.engines.runs import Status
from headway.errors import InputError


def test_commands_come_once_and_in_their_order() -> None:
    control = hw.Control()
    commands = control.listen()
    assert commands() == ()
    control.specify({"objectives": "latency"})
    control.pause()
    control.resume()
    control.specify({"objectives": "queue"})
    first, *others, last = commands()
    assert (first, last) == (Specify({"objectives": "latency"}), Specify({"objectives": "queue"}))
    assert others == [Pause(), Resume()]
    assert commands() == ()


def test_runs_that_share_a_control_each_obey_and_what_comes_too_late_is_not_for_the_next() -> None:
    control = hw.Control()
    control.pause()
    one, other = control.listen(), control.listen()
    control.resume()
    assert one() == other() == [Pause(), Resume()]
    control.pause()
    assert one() == [Pause()]
    control.ended()
    assert other() == [Pause()], "it goes on"
    assert control.listen()() == ()
    hw.run(ENDLESS | {"sources": {"s": {"schema": {"i": "bigint"}}}}, {"s": [(1,)]}, engine="sim", control=control)
    control.pause()
    control.resume()
    assert control.listen()() == [Pause(), Resume()], "given before a run, it is for that run"


def test_two_runs_at_once_both_go_on_after_a_pause() -> None:
    control, made = hw.Control(), {**ENDLESS, "sources": {"s": {"schema": {"i": "bigint"}}}}
    control.pause()
    found = list[hw.RunResult]()
    runs = [
        threading.Thread(
            target=lambda: found.append(hw.run(made, {"s": [(1,), (2,)]}, engine="local", control=control)), daemon=True
        )
        for _ in range(2)
    ]
    for run in runs:
        run.start()
    runs[0].join(0.3)
    assert not found
    control.resume()
    for run in runs:
        run.join(20)
    assert [result.outputs["all"].num_rows for result in found] == [2, 2]
    assert [one["change"] for one in found[0].summary["commands"]] == ["pause", "resume"]


def test_commands_that_need_a_scheduler_are_refused_without_one() -> None:
    control = hw.Control()
    control.pause()
    control.policy("fifo")
    made = {**ENDLESS, "sources": {"s": {"schema": {"i": "bigint"}}}}
    result = hw.run(made, {"s": [(1,), (2,)]}, engine="local", policy="threads", control=control)
    assert result.outputs["all"].num_rows == 2
    assert [(one["change"], one["reason"]) for one in result.summary["commands"]] == [
        ("pause refused", "policy 'threads' runs without a scheduler"),
        ("policy fifo refused", "policy 'threads' runs without a scheduler"),
    ]
    with pytest.raises(hw.HeadwayError, match="'threads' runs without a scheduler"):
        control.policy("threads")
    with pytest.raises(hw.HeadwayError, match="shed takes True or False, not 'off'"):
        control.shed("off")  # type: ignore[arg-type]


def test_any_thread_may_command() -> None:
    control = hw.Control()
    commands = control.listen()

    def command(who: str) -> None:
        for at in range(100):
            control.specify({who: at})

    threads = [threading.Thread(target=command, args=(who,)) for who in "abcd"]
    for thread in threads:
        thread.start()
    found = []
    while any(thread.is_alive() for thread in threads):
        found += [one.settings for one in commands() if isinstance(one, Specify)]
    for thread in threads:
        thread.join(20)
    found += [one.settings for one in commands() if isinstance(one, Specify)]
    for who in "abcd":
        assert [one[who] for one in found if who in one] == list(range(100)), "none is lost, each thread's in order"


FIELD = {"fields": {"i": "i"}}
ENDLESS: dict[str, Any] = {
    "network": "endless",
    "sources": {"s": {"schema": {"i": "bigint"}, "source": {"generate": {"rate": 20000, **FIELD}}}},
    "boxes": {
        "c": {"op": "aggregate", "in": "s", "select": "count(*) as n", "order": {"on": "i"}, "size": 100},
    },
    "outputs": {"all": {"from": "s"}, "counts": {"from": "c"}},
}


@pytest.mark.parametrize(
    "how", [{"engine": "local"}, {"engine": "local", "policy": "threads"}, {"engine": "local", "workers": 2}]
)
def test_stop_from_another_thread_ends_inputs_and_drains(how: dict[str, Any]) -> None:
    control, begun = hw.Control(), threading.Event()

    def stop() -> None:
        begun.wait(60)
        control.stop()

    thread = threading.Thread(target=stop)
    thread.start()
    result = hw.run(
        ENDLESS, control=control, on_status=lambda status: begun.set() if status.tuples_out else None, **how
    )
    thread.join()
    arrived = result.summary["tuples_in"]
    assert arrived > 0
    assert (result.summary["interrupted"], result.summary["stopped_by"]) == (True, "control")
    assert result.outputs["all"]["i"].to_pylist() == list(range(arrived))
    assert sum(result.outputs["counts"]["n"].to_pylist()) == arrived


@pytest.mark.parametrize("engine", ["local", "sim"])
def test_stop_from_a_callback(engine: str) -> None:
    control, seen = hw.Control(), list[int]()

    def see(batch: pa.RecordBatch) -> None:
        seen.extend(batch.column(0).to_pylist())
        if len(seen) > 1000:
            control.stop()

    result = hw.run(ENDLESS, engine=engine, outputs={"all": see}, control=control)
    assert result.summary["stopped_by"] == "control"
    assert seen == list(range(result.summary["tuples_in"]))


@pytest.mark.parametrize("engine", ["local", "sim"])
def test_stop_while_a_source_says_nothing(engine: str) -> None:
    """What it has said before is processed and delivered."""
    control, silent, found = hw.Control(), threading.Event(), list[hw.RunResult]()

    def rows() -> Iterator[tuple[int]]:
        yield from ((at,) for at in range(250))
        control.stop()
        silent.wait(60)

    network = hw.load(ENDLESS)
    run = threading.Thread(
        target=lambda: found.append(hw.run(network, {"s": rows()}, engine=engine, control=control)), daemon=True
    )
    run.start()
    run.join(20)
    silent.set()
    (result,) = found
    assert result.summary["stopped_by"] == "control"
    assert result.outputs["all"]["i"].to_pylist() == list(range(result.summary["tuples_in"]))
    if engine == "sim":
        assert result.summary["tuples_in"] == 250


class Strange:
    """A reader of the user's own whose read ends programs."""

    finite = timed = False
    live = True

    def read(self, limit: int) -> Chunk | None:
        raise SystemExit(7)

    def malformed(self) -> list[Malformed]:
        return []

    def close(self) -> None:
        pass


@pytest.mark.parametrize("engine", ["local", "sim"])
def test_a_reader_that_wants_to_end_the_program_ends_the_run(engine: str) -> None:
    with pytest.raises(InputError, match="source 's': its reader raised SystemExit: 7"):
        hw.run(ENDLESS, {"s": Strange()}, engine=engine)


@pytest.mark.parametrize("engine", ["local", "sim"])
def test_a_control_that_is_stopped_stays_so(engine: str) -> None:
    control = hw.Control()
    control.stop()
    result = hw.run(ENDLESS, engine=engine, control=control)
    assert (result.summary["tuples_in"], result.summary["stopped_by"]) == (0, "control")


@pytest.mark.parametrize("engine", ["local", "sim"])
def test_a_run_that_nobody_stops(engine: str) -> None:
    result = hw.run(ENDLESS, {"s": [(at,) for at in range(250)]}, engine=engine, control=hw.Control())
    assert (result.summary["interrupted"], result.summary["stopped_by"]) == (False, None)


def test_the_status_tells_of_every_output() -> None:
    """Tuples, latency, utility and what was shed, as the summary has them at the end."""
    network = {
        "network": "late",
        "sources": {"s": {"schema": {"i": "bigint"}, "source": {"generate": {"rate": 3000, "count": 6000, **FIELD}}}},
        "boxes": {"slow": {"op": "universal", "in": "s", "cost": "1ms"}},
        "outputs": {
            "all": {"from": "s"},
            "late": {"from": "slow", "qos": {"latency": [[0, 1], [0.2, 1], [0.6, 0]], "loss": [[100, 1], [0, 0.8]]}},
        },
    }
    told: list[Status] = []
    result = hw.run(network, engine="local", on_status=told.append, shed={"interval": "100ms", "drain": "500ms"})
    last, summary = told[-1], result.summary["outputs"]
    assert set(last.outputs) == {"all", "late"}
    assert last.tuples_out == sum(one.tuples for one in last.outputs.values())
    assert (last.outputs["all"].utility, last.outputs["all"].shed) == (1.0, 0)
    late = last.outputs["late"]
    assert 0 < late.tuples <= summary["late"]["tuples"]
    assert 0 < (late.latency or 0) < 60
    assert 0 <= (late.utility or 0) < 1
    assert 0 < late.shed <= summary["late"]["shed"]
    shed = [status.outputs["late"].shed for status in told]
    assert shed == sorted(shed)
    assert all(status.starting == "" for status in told)


HOW = [
    {"engine": "local"},
    {"engine": "local", "policy": "threads"},
    {"engine": "local", "workers": 2},
    {"engine": "local", "policy": "preemptive-rate-based"},
    {"engine": "sim"},
]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("end", ["stop", "resume"])
def test_a_paused_run_waits_without_work_until_it_goes_on_or_stops(how: dict[str, Any], end: str) -> None:
    control = hw.Control()
    control.pause()
    used: list[int] = []

    def later() -> None:
        threading.Event().wait(0.2)
        begun = processor()
        threading.Event().wait(0.6)
        used.append(processor() - begun)
        getattr(control, end)()

    thread = threading.Thread(target=later)
    thread.start()
    result = hw.run(
        {**ENDLESS, "sources": {"s": {"schema": {"i": "bigint"}}}},
        {"s": [(at,) for at in range(500)]},
        control=control,
        **how,
    )
    thread.join()
    assert result.outputs["all"].num_rows == 500, "what has arrived is processed"
    assert used[0] < 0.3 * SECOND


@pytest.mark.parametrize("how", [{"engine": "local"}, {"engine": "local", "workers": 2}, {"engine": "sim"}])
def test_another_policy_decides_and_results_stay(how: dict[str, Any]) -> None:
    control = hw.Control()
    for one in ("fifo", "preemptive-rate-based", "rate-based", "chain"):
        control.policy(one)
    control.shed(True)
    made = {**ENDLESS, "sources": {"s": {"schema": {"i": "bigint"}}}}
    rows = [(at,) for at in range(5_000)]
    result = hw.run(made, {"s": rows}, control=control, train=10, **how)
    wanted = hw.run(made, {"s": rows}, **how)
    assert {name: table.equals(wanted.outputs[name]) for name, table in result.outputs.items()} == {
        "all": True,
        "counts": True,
    }
    told = [(one["change"], one["reason"]) for one in result.summary["commands"]]
    assert told[0] == ("policy fifo", "by command")
    assert told[-1] == ("load shedding on refused", "the run was started without it")
    assert "commands" not in wanted.summary


def test_an_adaptive_layer_refuses_a_policy() -> None:
    control = hw.Control()
    control.policy("fifo")
    made = {**ENDLESS, "sources": {"s": {"schema": {"i": "bigint"}}}}
    result = hw.run(made, {"s": [(1,)]}, control=control, adaptive="amos", engine="sim")
    assert [one["change"] for one in result.summary["commands"]] == ["policy fifo refused"]


def test_a_policy_that_is_none_is_refused_at_once() -> None:
    control = hw.Control()
    with pytest.raises(hw.HeadwayError, match="unknown policy 'fof'"):
        control.policy("fof")
    with pytest.raises(hw.HeadwayError, match=r"int is not a policy \(missing: start"):
        control.policy(3)  # type: ignore[arg-type]


def test_load_shedding_is_switched_off_while_it_drops() -> None:
    """Ten seconds of virtual time at twice what can be done: what is dropped is dropped until the command."""
    dropped, flood = [], {"rate": 2000, "count": 20_000, **FIELD}
    for off in (False, True):
        control = hw.Control()
        if off:
            control.shed(False)
        made = {
            "network": "n",
            "sources": {"s": {"schema": {"i": "bigint"}, "source": {"generate": flood}}},
            "boxes": {"b": {"op": "universal", "in": "s", "cost": "1ms"}},
            "outputs": {"o": {"from": "b", "qos": {"latency": [[0, 1], [1, 1], [2, 0]], "loss": [[100, 1], [0, 0.5]]}}},
        }
        result = hw.run(made, engine="sim", shed=True, control=control)
        dropped.append(result.summary["outputs"]["o"]["shed"])
    assert dropped[0] > 1_000
    assert dropped[1] == 0
