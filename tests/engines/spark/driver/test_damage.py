"""Damage to a state directory: every file of it flipped, cut short, deleted or swapped for another.

A run that goes on from there either says what is wrong, or gives exactly the right results. It never gives wrong ones.
"""

from __future__ import annotations

import contextlib
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headway as hw
from headway.checking import check
from headway.engines.opening import open_readers
from headway.engines.runs import RunSettings
from headway.engines.spark.driver.journal import verify
from headway.engines.spark.driver.state import lock_directory, open_directory
from headway.errors import HeadwayError, RunError
from headway.scheduling.schedule import Schedule
from headway.storage.filesystems import locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIELDS = {"sid": "int", "time": "bigint", "pos": "int"}
NETWORK: dict[str, Any] = {
    "network": "damaged",
    "sources": {"positions": {"schema": FIELDS}, "more": {"schema": FIELDS}},
    "boxes": {
        "counts": {
            "op": "aggregate",
            "in": "positions",
            "select": "count(*) as n, sum(pos) as total",
            "order": {"on": "time", "by": ["sid"], "slack": 2},
            "size": 5,
        },
        "busy": {"op": "filter", "in": "counts", "where": ["n >= 2"]},
        "both": {"op": "union", "in": ["positions", "more"]},
        "flat": {"op": "map", "in": "both", "select": "sid, 100 / pos as share"},
    },
    "outputs": {"busy": {"from": "busy"}, "flat": {"from": "flat"}},
}
CUT = {"units": "one"}
COUNT = 300
TRAIN = 100
STOP = 350
"""A run stops when this many tuples have gone through the map: in its fourth micro-batch of six."""
HARMLESS = ("lock", "tables/", "exchange/", "feeds/")
"""What is made anew, or holds nothing."""

Change = Callable[[Path], None]
Outputs = dict[str, list[dict[str, Any]]]


class _StopError(Exception):
    """Ends a run as a fault would."""


def write_inputs(folder: Path) -> dict[str, Path]:
    chance = random.Random(3)
    paths = {}
    for name in NETWORK["sources"]:
        rows = [f"{chance.randrange(3)},{at // 5},{chance.randrange(9)}" for at in range(COUNT)]
        rows[40] = "1,2,many"
        paths[name] = folder / f"{name}.csv"
        paths[name].write_text("\n".join(["sid,time,pos", *rows]) + "\n")
    return paths


def go_on(state: Path, inputs: dict[str, Path], **more: Any) -> Outputs:
    result = hw.run(NETWORK, inputs, engine="spark", state=state, train=TRAIN, cut=CUT, **more)
    found = {name: table.to_pylist() for name, table in result.outputs.items()} | {"letters": listed(result)}
    return {name: sorted(rows, key=str) for name, rows in found.items()}


def listed(result: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = result.dead_letters.to_pylist()
    return rows


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, inputs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a run has left that fell over in the middle: after some micro-batches, in another one."""
    state = tmp_path_factory.mktemp("stopped") / "state"
    seen = 0

    def tap(batch: Any) -> None:
        nonlocal seen
        seen += batch.num_rows
        if seen > STOP:
            raise _StopError

    with pytest.raises(HeadwayError):
        go_on(state, inputs, outputs={"flat": tap})
    return state


@pytest.fixture(scope="module")
def right(stopped: Path, inputs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    """The results of the run when it goes on undisturbed: those of a run that nothing happened to."""
    state = Path(shutil.copytree(stopped, tmp_path_factory.mktemp("right") / "state"))
    found = go_on(state, inputs)
    whole = hw.run(NETWORK, inputs, engine="local")
    for name, table in whole.outputs.items():
        assert found[name] == sorted(table.to_pylist(), key=str)
    return found


def files_of(state: Path) -> list[str]:
    return sorted(str(path.relative_to(state)) for path in state.rglob("*") if path.is_file())


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def shorten(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 3 // 4])


def swap(path: Path) -> None:
    """Put another file of the same folder in its place."""
    others = [one for one in sorted(path.parent.iterdir()) if one.is_file() and one.suffix == path.suffix]
    other = others[(others.index(path) + 1) % len(others)]
    path.write_bytes(other.read_bytes())


CHANGES: dict[str, Change] = {"flip": flip, "shorten": shorten, "delete": Path.unlink, "swap": swap}


def cases(state: Path) -> Iterator[tuple[str, str]]:
    for file in files_of(state):
        for kind in CHANGES:
            if not file.startswith(HARMLESS) and (kind == "delete" or (state / file).stat().st_size):
                yield file, kind


def damaged(stopped: Path, folder: Path, file: str, kind: str) -> Path | None:
    """Return a copy with one file changed; None if the change leaves it as it was."""
    state = Path(shutil.copytree(stopped, folder / "state", dirs_exist_ok=False))
    before = (state / file).read_bytes()
    CHANGES[kind](state / file)
    if kind != "delete" and (state / file).read_bytes() == before:
        return None
    return state


def refused_at_once(state: Path) -> str | None:
    """Return what the verification before a run says; it needs no Spark."""
    try:
        with contextlib.ExitStack() as stack:
            lock_directory(str(state), True, stack)
    except RunError as error:
        return str(error)
    return None


def outcome(state: Path, file: str, kind: str, inputs: dict[str, Path], right: Outputs) -> str:
    """Go on, and return what became of it; fails if the results are wrong."""
    message = refused_at_once(state)
    if message is None:
        try:
            found = go_on(state, inputs)
        except HeadwayError as error:
            message = str(error)
        else:
            assert found == right, f"{kind} {file}: wrong results, and nothing was said"
            return "right"
    assert "--state" in message, f"{kind} {file}: {message}"
    assert len(message) < 1000, f"{kind} {file}: {message}"
    assert "Traceback" not in message, f"{kind} {file}: {message}"
    return f"refused: {message}"


def test_a_whole_state_is_not_refused(stopped: Path, right: Outputs) -> None:
    assert refused_at_once(stopped) is None
    assert len(right["busy"]) > 20
    assert len(right["letters"]) > 2


MUST_BE_NOTICED = ("log/", "journal/", "results/", "letters/", "plan.json")


@pytest.fixture(scope="module")
def looked(stopped: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str, str | None]]:
    """By file and kind of damage what the verification says of it; one copy is damaged and mended again and again."""
    state = Path(shutil.copytree(stopped, tmp_path_factory.mktemp("looked") / "state"))
    found = []
    for file, kind in list(cases(state)):
        path = state / file
        before = path.read_bytes()
        CHANGES[kind](path)
        if kind == "delete" or path.read_bytes() != before:
            found.append((file, kind, refused_at_once(state)))
        path.write_bytes(before)
    assert refused_at_once(state) is None
    return found


def test_damage_is_named_before_spark_starts(stopped: Path, looked: list[tuple[str, str, str | None]]) -> None:
    """What Headway wrote: every file, every kind of damage; what Spark wrote: as far as it is needed."""
    for file, kind, message in looked:
        if file.startswith(MUST_BE_NOTICED) and not _open_ended(stopped, file, kind):
            assert message is not None, f"{kind} {file}: not noticed"
        if message is not None:
            assert message.endswith("--state"), message
            assert len(message) < 1000, message


def _open_ended(state: Path, file: str, kind: str) -> bool:
    """Whether a file is what a kill may leave or not: it does not count, or nobody has seen it."""
    if file.startswith(("results/", "letters/")) and not file.startswith("letters/log-"):
        named = "".join(path.read_text() for path in (state / "journal").rglob("*.json*"))
        return Path(file).stem.partition(".")[0] not in named
    return kind == "delete" and file.startswith(("log/commits/newest", "letters/log-"))


SAMPLE = 2


def test_damage_ends_in_a_message_or_in_right_results(
    stopped: Path,
    inputs: dict[str, Path],
    right: Outputs,
    looked: list[tuple[str, str, str | None]],
    tmp_path: Path,
) -> None:
    silent = [(file, kind) for file, kind, message in looked if message is None]
    random.Random(1).shuffle(silent)
    for file, kind in silent[:SAMPLE]:
        state = damaged(stopped, tmp_path / "go on", file, kind)
        assert state is not None
        outcome(state, file, kind, inputs, right)
        shutil.rmtree(tmp_path / "go on")


@pytest.mark.slow
def test_damage_to_every_file_ends_in_a_message_or_in_right_results(
    stopped: Path, inputs: dict[str, Path], right: Outputs, tmp_path: Path
) -> None:
    """The long form: also with Spark's own checksum files gone, so that nothing of Spark's notices."""
    for bare in (False, True):
        base = Path(shutil.copytree(stopped, tmp_path / f"base-{bare}"))
        if bare:
            for path in base.rglob(".*.crc"):
                path.unlink()
        for file, kind in cases(base):
            state = damaged(base, tmp_path / "one", file, kind)
            if state is not None:
                print(bare, kind, file, outcome(state, file, kind, inputs, right), flush=True)
            shutil.rmtree(tmp_path / "one")


# Inputs


def test_another_file_under_the_same_name_is_refused(stopped: Path, inputs: dict[str, Path], tmp_path: Path) -> None:
    other = tmp_path / "positions.csv"
    text = inputs["positions"].read_text()
    other.write_text(text.replace("\n1,", "\n2,", 1))
    state = Path(shutil.copytree(stopped, tmp_path / "state"))
    with pytest.raises(
        HeadwayError, match=r"source 'positions': '.*positions\.csv' is not the file .* another --state"
    ):
        go_on(state, {**inputs, "positions": other})


def test_an_input_that_has_grown_is_accepted(
    stopped: Path, inputs: dict[str, Path], right: Outputs, tmp_path: Path
) -> None:
    grown = tmp_path / "more.csv"
    grown.write_text(inputs["more"].read_text() + "1,999,5\n")
    state = Path(shutil.copytree(stopped, tmp_path / "state"))
    if not _is_ended(stopped, "more"):  # how far the log is when the run falls over depends on the machine's speed
        found = go_on(state, {**inputs, "more": grown})
        assert len(found["flat"]) == len(right["flat"]) + 1
    grown.write_text(grown.read_text() + "1,999,5\n")
    with pytest.raises(HeadwayError, match="grown since it was read to its end"):
        go_on(state, {**inputs, "more": grown})


def _is_ended(state: Path, source: str) -> bool:
    """Whether the log has all that an input gave."""
    found = verify(locate(str(state)))
    assert found is not None
    assert found.commit is not None
    return found.ended or bool(found.commit.inputs[source][-1])


def test_an_input_that_has_ended_may_not_grow_while_others_go_on(spark: SparkSession, tmp_path: Path) -> None:
    """Its last row was not written to its end: what it was then has been delivered."""
    half, long, state = tmp_path / "half.csv", tmp_path / "long.csv", tmp_path / "state"
    half.write_text("sid,time,pos\n1,2,10\n1,2,3")
    long.write_text("sid,time,pos\n" + "1,3,1\n" * 5000)
    inputs = {"positions": long, "more": half}

    def tap(batch: Any) -> None:
        raise _StopError

    with pytest.raises(HeadwayError):
        go_on(state, inputs, outputs={"flat": tap}, rates={"positions": 200})
    assert refused_inputs(state, inputs) is None
    half.write_text(half.read_text() + "4\n")
    message = refused_inputs(state, inputs)
    assert message is not None
    assert "source 'more'" in message
    assert "grown since it was read to its end" in message


def refused_inputs(state: Path, inputs: dict[str, Path]) -> str | None:
    """Return why a run would not go on with these inputs, before Spark starts."""
    checked = check(hw.load(NETWORK))
    settings = RunSettings(Schedule.parse(None, None), inputs, {}, state=str(state))
    with contextlib.ExitStack() as stack:
        try:
            open_directory(checked.network.sources, open_readers(checked, settings, stack), settings, stack)
        except HeadwayError as error:
            return str(error)
    return None


def test_what_spark_was_writing_when_it_was_killed_is_removed(stopped: Path, tmp_path: Path) -> None:
    """Spark refuses to begin a stateful query whose folder of offsets holds such a file, and nothing else."""
    state = Path(shutil.copytree(stopped, tmp_path / "state"))
    before = files_of(state)
    for unit in sorted((state / "checkpoints").iterdir()):
        for name in (".7.638db523-f89a-41b9-9e40-d26fd103fe56.tmp", "..7.638db523-f89a-41b9-9e40-d26fd103fe56.tmp.crc"):
            (unit / "offsets" / name).write_text("v1")
    assert len(files_of(state)) > len(before)
    assert refused_at_once(state) is None
    assert files_of(state) == before


def test_a_state_is_for_its_owner_only(stopped: Path) -> None:
    assert stopped.stat().st_mode & 0o077 == 0
    for file in files_of(stopped):
        if not file.startswith("checkpoints/"):  # Spark's own; nobody else comes that far
            assert (stopped / file).stat().st_mode & 0o077 == 0, file
    assert locate(str(stopped)).local
