"""An operator of a package of its own: the example `largest`, on every engine, against a plain reading of what it says.

Headway knows nothing of it: it is found by the entry points of an installed package, as in a user's environment.
"""

from __future__ import annotations

import copy
import json
import os
import random
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import headway as hw
from headway.boxes.operator import load_entry
from headway.engines.spark.driver.cut import cut
from headway.errors import NetworkError
from headway.files import load
from headway.jsonschema import schema, text
from headway.network.yamls import read_text
from headway.program import compile_program
from tests.behaviour import sharded  # noqa: F401  (it registers itself)
from tests.cli.helpers import call
from tests.kernels.strangers import network as strange
from tests.kernels.strangers import site

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "own-operator"
Row = tuple[int, int, float | None]


def installed(folder: Path, **points: str) -> Path:
    """Put down what installing a package leaves beside its code, with the example's entry points or other ones."""
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
    home = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    home.mkdir()
    (home / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = {group: dict(entries) for group, entries in project["entry-points"].items()}
    for op, target in points.items():
        groups["headway.operators"][op] = target
    lines = [
        f"[{group}]\n" + "\n".join(f"{op} = {where}" for op, where in one.items()) for group, one in groups.items()
    ]
    (home / "entry_points.txt").write_text("\n\n".join(lines) + "\n")
    return folder


@pytest.fixture
def package(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this process find the example as if it were installed."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.syspath_prepend(str(installed(tmp_path_factory.mktemp("site"))))
    yield
    load_entry.cache_clear()


def network(slack: int = 1, k: int = 2, by: bool = True) -> dict[str, Any]:
    order: dict[str, Any] = {"on": "t", "slack": slack, **({"by": ["p"]} if by else {})}
    boxes = {
        "some": {"op": "filter", "in": "s", "where": "t >= 0"},
        "best": {"op": "largest", "in": "some", "of": "v", "k": k, "order": order, "size": 10},
        "shown": {"op": "map", "in": "best", "select": "t, p, v"},
    }
    return {
        "network": "own",
        "sources": {"s": {"schema": {"t": "int", "p": "int", "v": "double"}}},
        "boxes": boxes,
        "outputs": {"o": {"from": "shown"}},
    }


def expected(rows: list[Row], slack: int, k: int, by: bool) -> tuple[list[Row], int]:
    """Return what the operator says it does, tuple by tuple, and how many tuples came too late."""
    seen: dict[int, list[int]] = defaultdict(list)
    held: dict[tuple[int, int], list[Row]] = {}
    out: list[Row] = []
    late = 0

    def close(window: int, part: int) -> None:
        out.extend(sorted(held.pop((window, part)), key=lambda row: -(row[2] or 0.0))[:k])

    first: list[int] = []
    for row in rows:
        t, part = row[0], row[1] if by else 0
        if part not in first:
            first.append(part)
        if sum(other > t for other in seen[part]) > slack:
            late += 1
            continue
        seen[part].append(t)
        if row[2] is not None:
            held.setdefault((t // 10, part), []).append(row)
        if len(seen[part]) > slack:
            frontier = sorted(seen[part])[-slack - 1]
            for window, whose in sorted(held):
                if whose == part and (window + 1) * 10 <= frontier:
                    close(window, part)
    for window, part in sorted(held, key=lambda one: (one[0], first.index(one[1]))):
        close(window, part)
    return out, late


def made(seed: int, count: int = 300) -> list[Row]:
    chance = random.Random(seed)
    values: list[float | None] = [None, 1.0, 1.0, 2.0, 2.5, 3.0, -4.0]
    return [(at // 4 + chance.randint(0, 4), chance.randint(1, 3), chance.choice(values)) for at in range(count)]


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("engine", ["local", "sim", "sharded"])
@pytest.mark.parametrize(("slack", "k", "by"), [(0, 1, True), (1, 2, True), (2, 3, False)])
def test_it_gives_what_it_says_whatever_the_trains(engine: str, slack: int, k: int, by: bool) -> None:
    for seed, (policy, train) in enumerate([("round-robin/box", 1), ("fifo/box", 7), ("round-robin/superbox", 1000)]):
        rows = made(seed)
        result = hw.run(network(slack, k, by), {"s": rows}, engine=engine, policy=policy, train=train)
        wanted, late = expected(rows, slack, k, by)
        assert [tuple(row.values()) for row in result.outputs["o"].to_pylist()] == wanted
        box = result.summary["boxes"]["best"]
        assert box["ignored"] == late > 0
        if engine != "sharded":  # which is of the tests, and counts no more
            assert (box["tuples_in"], box["tuples_out"]) == (len(rows), len(wanted))


@pytest.mark.usefixtures("package")
def test_what_it_cannot_place_becomes_a_dead_letter() -> None:
    mapping = network(0)
    mapping["sources"]["s"]["schema"]["t"] = "bigint"
    result = hw.run(mapping, {"s": [(5, 1, 1.0), (1 << 62, 1, 2.0), (25, 1, 3.0)]}, engine="local")
    assert result.outputs["o"].column("v").to_pylist() == [1.0, 3.0]
    assert result.dead_letters.num_rows == 1


def smoothed(**keys: Any) -> dict[str, Any]:
    return {
        "network": "smooth",
        "sources": {"s": {"schema": {"p": "string", "v": "double"}}},
        "boxes": {"mean": {"op": "ema", "in": "s", "of": "v", "weight": 0.25, "as": "m", **keys}},
        "outputs": {"o": {"from": "mean"}},
    }


def averages(rows: list[tuple[str, float | None]]) -> list[tuple[str, float, float]]:
    last: dict[str, float] = {}
    out = []
    for part, value in rows:
        if value is not None:
            before = last.get(part, value)
            last[part] = before + 0.25 * (value - before)
            out.append((part, value, last[part]))
    return out


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("engine", ["local", "sim", "sharded"])
@pytest.mark.parametrize("train", [1, 7, 1000])
def test_the_moving_average_is_the_same_whatever_the_trains(engine: str, train: int) -> None:
    chance = random.Random(train)
    rows = [(chance.choice("abc"), chance.choice([None, 1.0, 2.5, -4.0])) for _ in range(200)]
    result = hw.run(smoothed(by=["p"]), {"s": rows}, engine=engine, train=train)
    assert [tuple(row.values()) for row in result.outputs["o"].to_pylist()] == averages(rows)


@pytest.mark.usefixtures("package")
def test_the_moving_average_says_what_is_wrong_with_its_keys() -> None:
    for keys, error in (
        ({"of": "p"}, "box 'mean': of: field 'p' must be a double"),
        ({"by": ["q"]}, "box 'mean': by: unknown field 'q'"),
        ({"as": "v"}, "box 'mean': as: "),
        ({"weight": 0}, "box 'mean': weight: must be a number above 0"),
    ):
        with pytest.raises(NetworkError) as caught:
            hw.check(load(smoothed(**keys)))
        assert str(caught.value).startswith(error)


def test_it_runs_on_spark_where_every_process_finds_the_package(tmp_path: Path) -> None:
    """The example as a user runs it, from the command line, spread over shards by what it declares."""
    site = installed(tmp_path)
    busiest = read_text((FOLDER / "busiest.yaml").read_text())
    assert isinstance(busiest, dict)
    busiest["boxes"]["long"] = {"op": "map", "in": "calls", "select": ["desk", "cast(seconds as double) as s"]}
    busiest["boxes"]["mean"] = {"op": "ema", "in": "long", "of": "s", "weight": 0.25, "by": "desk"}
    busiest["outputs"]["means"] = {"from": "mean"}
    both = tmp_path / "both.json"  # JSON is YAML
    both.write_text(json.dumps(busiest))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(FOLDER), str(ROOT)])}
    outputs, others = {}, {}
    for engine in ("local", "spark"):
        path = tmp_path / f"{engine}.csv"
        means = tmp_path / f"{engine}-means.csv"
        arguments = ["run", str(both), "--engine", engine, "--input", "calls=calls.csv", "--train", "5"]
        arguments += ["--output", f"long_calls={path}", "--output", f"means={means}"]
        arguments += [*(["--master", "local[2]"] if engine == "spark" else [])]
        done = subprocess.run(
            [sys.executable, "-m", "headway", *arguments],
            cwd=FOLDER,
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        outputs[engine], others[engine] = path.read_text(), means.read_text()
    assert others["spark"] == others["local"]
    assert len(others["local"].split()) == 15
    assert outputs["spark"] == outputs["local"] == (FOLDER / "expected" / "long_calls.csv").read_text()


def test_what_breaks_the_contract_on_spark_is_named_there_too(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([site(tmp_path), str(ROOT)])}
    (tmp_path / "n.json").write_text(json.dumps(strange("no trains")))
    (tmp_path / "s.csv").write_text("id,x,s\n1,2.0,a\n2,3.0,b\n")
    arguments = ["run", "n.json", "--engine", "spark", "--master", "local[2]", "--input", "s=s.csv"]
    done = subprocess.run(
        [sys.executable, "-m", "headway", *arguments, "--output", "o=o.csv", "--output", "all=all.csv"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 2
    wanted = "box 'b': op 'odd': run: Result.outputs must be a tuple of a Train for each port, 1 in all, not 0"
    assert done.stderr.splitlines()[-1] == f"headway: error: {wanted}"


@pytest.mark.usefixtures("package")
def test_the_example_is_what_its_readme_shows() -> None:
    rows = hw.run(FOLDER / "busiest.yaml", {"calls": FOLDER / "calls.csv"}, engine="local")
    found = [",".join(map(str, row.values())) for row in rows.outputs["long_calls"].to_pylist()]
    assert ["desk,minute,seconds", *found] == (FOLDER / "expected" / "long_calls.csv").read_text().split()
    readme = (FOLDER / "README.md").read_text()
    assert all(line in readme for line in found)


@pytest.mark.usefixtures("package")
def test_check_infers_its_schema_and_says_where_spark_would_run_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "check", str(FOLDER / "busiest.yaml"), "--engine", "spark", "--rate", "calls=100")
    assert code == 0
    assert "longest" in out
    assert "largest" in out
    assert "partitions told apart by desk" in out
    for key, value, error in (
        ("k", 0, "box 'best': k: must be a whole number from 1 to 1000000, not 0"),
        ("of", "w", "box 'best': of: unknown field 'w'"),
        ("kk", 1, "box 'best': unknown key 'kk'; did you mean 'k'?"),
        ("op", "larges", "box 'best': unknown op 'larges'; did you mean 'largest'?"),
    ):
        mapping = network()
        mapping["boxes"]["best"][key] = value
        with pytest.raises(NetworkError, match=r"^" + error[:40].replace("'", ".")) as caught:
            hw.check(load(mapping))
        assert str(caught.value).startswith(error)


@pytest.mark.usefixtures("package")
def test_the_builder_takes_it_by_name() -> None:
    net = hw.Network("own")
    some = net.source("s", "t int, p int, v double").filter("t >= 0", name="some")
    best = some.box("largest", name="best", of="v", k=2, order={"on": "t", "slack": 1, "by": ["p"]}, size=10)
    best.map("t, p, v", name="shown").output("o")
    assert net.build() == load(network())


@pytest.mark.usefixtures("package")
def test_the_builder_says_what_is_wrong_with_its_keys() -> None:
    s = hw.Network("own").source("s", "t int, p int, v double")
    with pytest.raises(NetworkError, match="box 'largest_1': k: must be a whole number from 1 to 1000000, not 0"):
        s.box("largest", of="v", k=0, order={"on": "t"}, size=10)
    with pytest.raises(NetworkError, match="box 'largest_1': order: is missing"):
        s.box("largest", of="v", k=1, size=10)


@pytest.mark.usefixtures("package")
def test_it_is_spread_or_the_error_says_why_not() -> None:
    parted, whole = (compile_program(hw.check(load(network(by=by)))) for by in (True, False))
    assert cut(parted, 2, spread=["best"]).units[0].placements["best"].spread
    with pytest.raises(NetworkError, match="box 'best' cannot be spread: this largest has no independent partitions"):
        cut(whole, 2, spread=["best"])


@pytest.mark.usefixtures("package")
def test_the_json_schema_knows_it() -> None:
    validator = jsonschema.Draft202012Validator(schema())
    good = read_text((FOLDER / "busiest.yaml").read_text())
    validator.validate(good)
    validator.validate(load(good).to_mapping())
    for key, value in (("k", 0), ("k", 1_000_001), ("biggest", 1)):
        bad = copy.deepcopy(good)
        bad["boxes"]["longest"][key] = value
        assert not validator.is_valid(bad)
    assert '"largest"' not in text(), "Headway's own schema is that of its own operators"
    assert '"largest"' in text(None)


@pytest.mark.usefixtures("package")
def test_load_is_shed_before_it_by_what_its_results_are_worth() -> None:
    """A value graph behind it is followed to before it, because its results are its input's tuples."""
    mapping = network(slack=5, k=100)
    fields = {"t": {"sequence": [0, 1]}, "p": {"uniform": [1, 3]}, "v": {"uniform": [0, 100]}}
    mapping["sources"]["s"]["source"] = {"generate": {"phases": [["4s", 300], ["2s", 20]], "seed": 1, "fields": fields}}
    mapping["boxes"]["work"] = {"op": "universal", "in": "s", "cost": "10ms"}
    mapping["boxes"]["some"]["in"] = "work"
    worth = {"field": "v", "graph": [[0, 0], [50, 0], [51, 1], [100, 1]]}
    soon = [[0, 1], [2, 1], [4, 0]]
    mapping["outputs"]["o"]["qos"] = {"latency": soon, "loss": [[100, 1], [0, 0.5]], "value": worth}
    result = hw.run(mapping, engine="sim", policy="round-robin/box/10", shed=True)
    summary = result.summary["outputs"]["o"]
    assert summary["shed"] > 0
    values = result.outputs["o"].column("v").to_pylist()
    assert sum(one > 50 for one in values) > 2 * sum(one <= 50 for one in values)


@pytest.mark.usefixtures("package")
def test_a_stranger_may_use_it_because_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(network(), trust="stranger").boxes[1].spec.op == "largest"
    from headway_largest.specification import Largest

    monkeypatch.setattr(Largest, "for_strangers", False)
    load(network())
    with pytest.raises(NetworkError, match="box 'best': op: a file from a stranger may not use 'largest'"):
        load(network(), trust="stranger")


def test_a_package_that_is_not_as_it_should_be_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NetworkError, match="unknown op 'largest'"):
        load(network())
    monkeypatch.syspath_prepend(
        str(installed(tmp_path, gone="headway_gone:Gone", text="headway.network.schema:Schema", filter="x:Y"))
    )
    for op, error in (
        ("gone", "op 'gone': 'headway_gone:Gone' of headway-largest 1.0 cannot be loaded: ModuleNotFoundError"),
        ("text", "op 'text': the entry point in the group headway.operators is not an Operator with this name"),
    ):
        mapping = network()
        mapping["boxes"]["best"]["op"] = op
        with pytest.raises(NetworkError, match=error):
            load(mapping)
    mapping = network()
    mapping["boxes"] = {"best": {"op": "filter", "in": "s", "where": "t > 0"}, "shown": mapping["boxes"]["shown"]}
    assert hw.check(load(mapping)).order[0].spec.passes, "a package cannot replace an operator of Headway's own"
    load_entry.cache_clear()
