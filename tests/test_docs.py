"""The documents tell the truth: code in them runs, networks check, links lead somewhere, tables are the code's."""

from __future__ import annotations

import dataclasses
import inspect
import re
import runpy
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest

import headway as hw
from headway import functions as registry
from headway import runner
from headway.adaptive import layer as adaptive
from headway.adaptive import learning
from headway.cli import experiment
from headway.cli.main import main, make_parser
from headway.engines.models import LEARNED_KEYS, MODEL_KEYS, OVERHEAD_KEYS
from headway.engines.traces import CallRecord, StepRecord, Trace
from headway.living.fragments import read_fragment
from headway.mermaid import mermaid
from headway.network.yamls import read_text
from headway.scheduling import policy as policies
from headway.scheduling.schedule import DEFAULT_SCHEDULES, UNITS, WAITS
from headway.scheduling.superboxes import TRAVERSALS
from headway.scheduling.trains import TRAINS
from headway.shedding import strategies as shedding
from headway_experiments.experiment import CONFIRMED, DIFFERS, FAILED, UNCERTAIN
from scripts.key_tables import filled

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.md"), *ROOT.glob("examples/*/*.md")]
)
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]\n]+\]\(([^)\s]+)\)")


def name_of(path: Path) -> str:
    """Return a document's name for the test report."""
    return str(path.relative_to(ROOT))


def blocks(path: Path, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return [body for kind, body in _FENCE.findall(path.read_text()) if kind == language]


def _with(language: str) -> list[Path]:
    return [path for path in DOCUMENTS if blocks(path, language)]


def _anchors(path: Path) -> set[str]:
    text = _FENCE.sub("", path.read_text())
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    made = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
    return made | set(re.findall(r'<a id="([^"]+)"', text))


@pytest.fixture
def _apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run in a folder of its own that has the examples; what is registered there is forgotten afterwards."""
    monkeypatch.setattr(registry, "_registered", registry.functions())
    for known in (policies._policies, shedding._strategies, adaptive._layers, learning._strategies):
        monkeypatch.setattr(known, "_entries", dict(known._entries))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_apart")
@pytest.mark.parametrize("path", [path for path in _with("python") if path != README], ids=name_of)
def test_python_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine that starts at once stands for the default."""
    monkeypatch.setattr(runner, "DEFAULT_ENGINE", "local")
    _run_blocks(path, tmp_path)


@pytest.mark.usefixtures("_apart", "spark")
def test_python_of_the_readme_runs(tmp_path: Path) -> None:
    """It runs as a reader would run it, on Spark."""
    _run_blocks(README, tmp_path)


def _run_blocks(path: Path, tmp_path: Path) -> None:
    """Run all blocks of a document as one script, so that later ones can build on earlier ones."""
    script = tmp_path / "document.py"
    script.write_text("\n".join(blocks(path, "python")))
    runpy.run_path(str(script), {"hw": hw, "pa": pa, "pyarrow": pyarrow})


def _network(block: str) -> dict[str, Any]:
    """Return a block as a network; one that shows only sources gets an output for each."""
    data: Any = read_text(block)
    assert isinstance(data, dict), block
    if "network" not in data and set(data) == {"sources"}:
        outputs = {name: {"from": name} for name in data["sources"]}
        return {"network": "fragment", **data, "outputs": outputs}
    return data


@pytest.mark.parametrize("path", _with("yaml"), ids=name_of)
def test_networks_check(path: Path) -> None:
    for block in blocks(path, "yaml"):
        if block.startswith("attach:"):
            read_fragment(block)
        else:
            hw.check(hw.load(_network(block)))


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    for link in _LINK.findall(_FENCE.sub("", path.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        goal = (path.parent / target).resolve() if target else path
        assert goal.exists(), f"{link}: no such file"
        if anchor:
            assert anchor in _anchors(goal), f"{link}: no such heading"


@pytest.mark.parametrize("path", sorted(ROOT.glob("docs/*.md")), ids=name_of)
def test_files_that_are_named_exist(path: Path) -> None:
    named = set(re.findall(r"`((?:[\w-]+/)+[\w-]+\.py)`", path.read_text()))
    missing = [one for one in sorted(named) if not any((base / one).exists() for base in (ROOT, ROOT / "headway"))]
    assert not missing


@pytest.mark.parametrize("path", sorted(ROOT.glob("docs/*.md")), ids=name_of)
def test_tables_of_keys_are_the_code(path: Path) -> None:
    assert path.read_text() == filled(path.read_text()), "run python -m scripts.key_tables"


@pytest.mark.parametrize("path", sorted(ROOT.glob("docs/*.md")), ids=name_of)
def test_the_readme_leads_to_every_document(path: Path) -> None:
    assert f"(docs/{path.name})" in README.read_text()


def test_every_operator_has_a_section() -> None:
    text = (ROOT / "docs/operators.md").read_text()
    assert re.findall(r"^<!-- keys: (\w+) -->$", text, re.MULTILINE) == [
        "order",
        "filter",
        "map",
        "union",
        "bsort",
        "aggregate",
        "join",
        "resample",
        "universal",
    ]


def test_every_option_is_explained() -> None:
    text = (ROOT / "docs/cli.md").read_text()
    _, commands = make_parser()
    for name, parser in commands.items():
        assert f"headway {name}" in text
        section = text.partition(f"## headway {name}")[2].partition("\n## ")[0]
        for option in re.findall(r"--[a-z][a-z-]+", parser.format_usage()):
            assert f"`{option}" in section, f"docs/cli.md: headway {name} {option}"


def test_every_policy_has_a_section_and_a_row() -> None:
    text = (ROOT / "docs/policies.md").read_text()
    # Tests register policies of their own.
    known = [entry for entry in policies.registered_policies() if entry.make.__module__.startswith("headway.")]
    names = [entry.name for entry in known]
    assert {"round-robin", "threads"} <= set(names)
    for name in names:
        assert f"[`{name}`](#{name})" in text, name
        assert re.search(rf"^##+ {name}$", text, re.MULTILINE), name


@pytest.mark.parametrize("choices", [UNITS, TRAVERSALS, TRAINS, WAITS], ids=["units", "traversals", "trains", "waits"])
def test_every_part_of_a_schedule_is_explained(choices: Mapping[str, object]) -> None:
    text = (ROOT / "docs/policies.md").read_text()
    for name in choices:
        assert f"`{name}`" in text, name


def test_the_default_schedules_are_told() -> None:
    text = (ROOT / "docs/policies.md").read_text()
    for engine, schedule in DEFAULT_SCHEDULES.items():
        assert f"| `{engine}` | `{schedule}` |" in text


def test_every_key_of_a_model_is_explained() -> None:
    text = (ROOT / "docs/guide.md").read_text().partition("### Models")[2]
    for key in (*MODEL_KEYS, *OVERHEAD_KEYS, *LEARNED_KEYS):
        assert f"`{key.name}`" in text, key.name


def test_virtual_time_gives_the_tables_in_the_guide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the simulator prints is the same everywhere, so the guide can be held to it, line by line."""
    guide = ROOT / "docs/guide.md"
    monkeypatch.chdir(tmp_path)
    for name in ("calls", "sensors"):
        [network] = [block for block in blocks(guide, "yaml") if block.startswith(f"network: {name}\n")]
        Path(f"{name}.yaml").write_text(network)
    shown = [block for block in [*blocks(guide, ""), *blocks(guide, "text")] if block.startswith("$ headway ")]
    printed: Iterator[str] = iter(())
    assert len(shown) == 8
    for line in "".join(shown).splitlines():
        if line.startswith("$ headway "):
            capsys.readouterr()
            assert main(shlex.split(line)[2:]) == 0
            printed = iter(capsys.readouterr().out.splitlines())
        elif line != "…":
            assert line in printed, line  # after the lines that were found before


def test_every_public_name_is_explained() -> None:
    text = (ROOT / "docs/api.md").read_text()
    for name in hw.__all__:
        assert f"`hw.{name}" in text, name


def test_every_key_of_the_summary_is_explained() -> None:
    text = (ROOT / "docs/api.md").read_text().partition("## The summary")[2]
    for engine in ("local", "sim"):
        summary = hw.run(ROOT / "examples/query1/network.yaml", engine=engine).summary
        inner = [summary["outputs"]["alarms"], summary["boxes"]["across"], summary["sources"]["positions"]]
        for mapping in (summary, *inner, summary["time"], summary["dead_letters"], inner[0]["latency"]):
            for key in mapping:
                assert f"`{key}`" in text, key
    for key in (
        "master",
        "units",
        "batches",
        "cost_per_batch",
        "cost_per_tuple",
        "restarts",
        "state",
        "path",
        "can_continue",
    ):
        assert f"`{key}`" in text, key


def test_every_argument_of_run_is_explained() -> None:
    text = (ROOT / "docs/api.md").read_text()
    for name in inspect.signature(hw.run).parameters:
        assert name == "network" or re.search(rf"^\|( `\w+`,)* `{name}`", text, re.MULTILINE), name


def test_every_field_of_a_trace_is_explained() -> None:
    text = (ROOT / "docs/api.md").read_text().partition("## Traces")[2].partition("\n## ")[0]
    shown = {field.name for field in dataclasses.fields(Trace)} - {"network", "policy"}
    for name in (*shown, *StepRecord._fields, *CallRecord._fields):
        assert f"`{name}`" in text, name


def test_the_picture_in_the_readme_is_the_demo() -> None:
    network = hw.load(ROOT / "examples/border-watch/network.yaml")
    [picture] = blocks(README, "mermaid")
    assert picture == mermaid(hw.check(network))


def test_the_vocabulary_is_in_the_glossary() -> None:
    text = (ROOT / "docs/glossary.md").read_text()
    words = "box arc network train superbox snapshot policy plan engine catalog slack frontier partition progress tick"
    spark = "unit grant front shard spread log segment cut"
    scheduling = "traversal spanner preemption model trace slice bucket p-tuple term"
    more = ["connection point", "QoS graph", "arrival number", "universal box", "virtual time", "longest wait"]
    for word in [*words.split(), *spark.split(), *scheduling.split(), *more]:
        assert re.search(rf"^\| (<a [^|]*</a>)?(\w+, )?{word}\b", text, re.MULTILINE), word


def test_the_verdicts_of_experiments() -> None:
    text = (ROOT / "docs/cli.md").read_text()
    told = " ".join(experiment.EPILOG.split())
    for verdict in (CONFIRMED, UNCERTAIN, DIFFERS, FAILED):
        assert f"| `{verdict}` |" in text
        assert verdict in told
