"""Imports point downwards only; no code is made from text; one reader of the clock."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import headway
import headway_experiments

ROOTS = (Path(headway.__file__).parent, Path(headway_experiments.__file__).parent)
MODULES = sorted(path for root in ROOTS for path in root.rglob("*.py"))
LAYERS = (
    ("headway_experiments",),
    ("__main__",),
    ("cli",),
    ("compare",),
    ("",),  # the public names
    ("running",),
    ("runner",),
    ("engines",),
    ("connectors",),
    ("history",),
    ("adaptive", "shedding"),
    ("scheduling", "storage"),
    ("costs", "totals"),
    ("program",),
    ("kernels",),
    ("jsonschema", "mermaid", "builder", "living"),
    ("files", "checking"),
    ("expansion",),
    ("boxes",),
    ("functions", "structure", "tables", "options"),
    ("expressions", "catalog", "sieves"),
    ("trains",),
    ("network",),
    ("durations", "extras", "fading", "paths", "plugins", "sizes"),
    ("columns",),
    ("clock", "errors"),
)
"""From top to bottom; a package stands for all its modules. Within a layer only a package may import from itself."""

RANK = {name: len(LAYERS) - at for at, names in enumerate(LAYERS) for name in names}


def _part(module: str) -> str:
    """Return the name under which a module stands in the layers."""
    package, _, rest = module.partition(".")
    return package if package == "headway_experiments" else rest.partition(".")[0]


def _name(path: Path) -> str:
    root = next(root for root in ROOTS if root in path.parents)
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class _Source(NamedTuple):
    """What the tests look at in a module, so that it is parsed and walked only once."""

    lines: int
    docstring: str | None
    imports: tuple[tuple[int, str], ...]
    calls: tuple[ast.Call, ...]


@cache
def _source(path: Path) -> _Source:
    text = path.read_text()
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    imports = tuple(_imports(path, nodes))
    calls = tuple(node for node in nodes if isinstance(node, ast.Call))
    return _Source(len(text.splitlines()), ast.get_docstring(tree), imports, calls)


def _imports(path: Path, nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    for_types = {
        inner
        for node in nodes
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in nodes:
        if node in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            names = [alias.name for alias in node.names] if module == "headway" else [""]
            yield from ((node.lineno, f"{module}.{name}" if name and name in RANK else module) for name in names)


def test_every_module_has_a_layer() -> None:
    assert {_part(_name(path)) for path in MODULES} <= set(RANK)


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_imports_point_downwards(path: Path) -> None:
    own = _part(_name(path))
    for line, module in _source(path).imports:
        if module.split(".")[0] not in {"headway", "headway_experiments"}:
            continue
        other = _part(module)
        assert other == own or RANK[other] < RANK[own], f"{_name(path)}:{line} imports {module}, which is not below it"


FOLDERS = {
    "": set(),
    "process": {"process"},
    "local": {"local", "process"},
    "sim": {"sim", "process"},
    "spark.wire": {"spark.wire"},
    "spark.worker": {"spark.wire", "spark.worker"},
    "spark.driver": {"spark.wire", "spark.worker", "spark.driver"},
    "spark": {"spark", "spark.wire", "spark.worker", "spark.driver"},
}
"""By folder of `headway.engines`: the folders that it may import from, besides `headway.engines` itself."""


def _folder(module: str) -> str:
    """Return the folder of a module in `headway.engines`."""
    inner = module.removeprefix("headway.engines").removeprefix(".")
    return next((name for name in sorted(FOLDERS, reverse=True) if name and f"{inner}.".startswith(f"{name}.")), "")


@pytest.mark.parametrize("folder", FOLDERS)
def test_engines_do_not_import_each_other(folder: str) -> None:
    """What they share knows none of them; on Spark, executors import nothing of the driver."""
    for path in (ROOTS[0] / "engines" / folder.replace(".", "/")).glob("*.py"):
        for line, module in _source(path).imports:
            if module.startswith("headway.engines") and _folder(module):
                assert _folder(module) in FOLDERS[folder], f"{_name(path)}:{line} imports {module}"


def test_the_design_shows_these_layers() -> None:
    text = (Path(__file__).parent.parent / "docs/design.md").read_text()
    drawn = text.partition("## Layers")[2].split("```")[1].split("\n")[1:-1]
    assert [line.split() for line in drawn] == [[name or "headway" for name in layer] for layer in LAYERS]


def test_the_loop_knows_nothing_of_threads_and_signals() -> None:
    """Of the engines it imports only what commands are."""
    engines = ROOTS[0] / "engines"
    imports = {
        module for name in ("loop", "control", "instructions") for _, module in _source(engines / f"{name}.py").imports
    }
    engines_own = {"headway.engines.control", "headway.engines.instructions"}
    assert {module for module in imports if module.startswith("headway.engines")} == engines_own
    assert not imports & {"threading", "signal", "socket", "selectors"}


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_no_code_from_text_and_one_clock(path: Path) -> None:
    for line, module in _source(path).imports:
        assert module.split(".")[0] not in {"pickle", "marshal", "shelve", "dill"}, f"{_name(path)}:{line}"
        if _name(path) != "headway.clock":
            assert module != "time", f"{_name(path)}:{line} reads a clock of its own"
    for node in _source(path).calls:
        called = node.func
        if isinstance(called, ast.Name):
            assert called.id not in {"eval", "exec", "compile"}, f"{_name(path)}:{node.lineno}"
        elif isinstance(called, ast.Attribute):
            reads = called.attr in {"now", "utcnow", "today"} and ast.unparse(called.value) in {
                "datetime",
                "date",
                "dt.datetime",
                "dt.date",
                "datetime.datetime",
            }
            assert not reads, f"{_name(path)}:{node.lineno} reads a clock of its own"


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_every_module_says_what_it_is(path: Path) -> None:
    lines, docstring, *_ = _source(path)
    assert docstring, f"{_name(path)} has no docstring"
    assert lines <= 500, f"{_name(path)} is long: split it by idea"


KEPT = {
    "headway.adaptive.layer": {"_layers"},
    "headway.adaptive.learning": {"_strategies"},
    "headway.boxes.operator": {"REGISTRY"},
    "headway.connectors.output_files": {"_formats"},
    "headway.connectors.registry": {"_objects"},
    "headway.connectors.spark": {"_openers"},
    "headway.engines.runs": {"_engines"},
    "headway.engines.spark.driver.queries": {"warm"},
    "headway.engines.spark.worker.tasks": {"_compiled"},
    "headway.functions": {"global _registered"},
    "headway.scheduling.policy": {"_policies"},
    "headway.shedding.strategies": {"_strategies"},
    "headway.storage.temporary": {"_held"},
    "headway.tables.datasets": {"_openers"},
    "headway.tables.references": {"_loaders"},
    "headway_experiments.experiment": {"REGISTRY"},
}
"""Mutable state of modules. Imports fill registries, also those of users' functions, and runs do not. The others are
facts about the process: compiled code by its checksum, whether its JVM is warm, which folders it holds."""

_EMPTY = {"dict", "list", "set", "deque", "defaultdict", "Counter", "WeakKeyDictionary", "WeakValueDictionary"}


def _is_empty_container(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Dict | ast.List | ast.Set):
        return not (value.keys if isinstance(value, ast.Dict) else value.elts)
    if not isinstance(value, ast.Call):
        return False
    called = value.func.value if isinstance(value.func, ast.Subscript) else value.func
    name = ast.unparse(called).split(".")[-1]
    return name == "Registry" or (name in _EMPTY and not value.args)


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_a_second_run_in_the_same_process_sees_nothing_of_the_first(path: Path) -> None:
    tree = ast.parse(path.read_text())
    found = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Global)}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and _is_empty_container(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {ast.unparse(target) for target in targets}
    assert found - {"__all__"} == KEPT.get(_name(path), set()), f"{_name(path)} keeps state in the module"
