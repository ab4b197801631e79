"""The page on all experiments: how it is made, and that the one in docs is up to date."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import headway_experiments.catalogue  # noqa: F401  (it registers them)
from headway.errors import InputError, OutputError
from headway_experiments.experiment import PAPERS, REGISTRY, Experiment
from headway_experiments.page import check_page_path, flat, page_text, section, write_page
from headway_experiments.results import Verdict, verdict_of, write_results
from headway_experiments.running import carry_out
from tests.experiments.toys import BAD, GOOD, REASON, TOY

DOCS = Path(__file__).parents[2] / "docs"
TOYS = {one.name: one for one in (BAD, TOY, GOOD)}


@pytest.fixture(scope="module")
def verdicts() -> dict[str, Verdict]:
    """Of all toys; the good one in full."""
    outcomes = {name: carry_out(one, quick=one is not GOOD) for name, one in TOYS.items()}
    return {name: verdict_of(replace(outcome, seconds=0.04)) for name, outcome in outcomes.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the results of two toys."""
    made = tmp_path_factory.mktemp("results")
    for one in (TOY, GOOD):
        write_results(carry_out(one, True), made)
    return made


def test_all_of_them(verdicts: dict[str, Verdict]) -> None:
    page = page_text(list(verdicts.values()), ["amos-tab1"])
    assert "3 experiments: 1 confirmed; 1 differs, explained; 1 FAILED.\n" in page
    assert "**`prb-toybad`, `prb-toy1` in the quick form**" in page
    assert "**Not run**: `amos-tab1`.\n" in page
    assert (
        "| [prb-toy1](#prb-toy1) | toy 1, toy 2 | fast against slow | sim | differs, explained (quick form) |" in page
    )
    assert "| [aurora-toy](#aurora-toy) | toy 1, toy 2 | fast against slow | sim | confirmed |" in page
    assert '"About x" is between x / 1.5 and 1.5 x' in page
    headings = re.findall(r"^##+ (.*)$", page, re.MULTILINE)
    papers = [f"{PAPERS[key].title} ({PAPERS[key].where})" for key in ("aurora", "prb")]
    assert headings[-5:] == [papers[0], "aurora-toy", papers[1], "prb-toybad", "prb-toy1"]
    assert "\n\n\n" not in page


def test_a_section(verdicts: dict[str, Verdict]) -> None:
    page = page_text(list(verdicts.values()), images="pictures")
    text = section(page, "prb-toy1")
    assert text is not None
    assert text.startswith("\n**Fast against slow** (toy 1, toy 2): differs, explained.\n")
    assert "![prb-toy1: fast against slow](pictures/prb-toy1.svg)" in text
    assert "*The paper.* Slow is slower than fast, by far." in text
    assert "- There are two policies.\n" in text
    assert "- The paper leaves the seeds open; we took 1 to 4.\n" in text
    assert "| `slower` | slow \\| has a higher latency | yes | slow / fast: 2.000 ± 0.000 |" in text
    assert "| `far` | slow has more than 3 times the latency | NO | slow / fast: 2.000 ± 0.000 |" in text
    assert f"*Why it differs* (`far`). {flat(REASON)} Shown by `twice`: slow has about twice the latency." in text
    assert "Run it: `headway experiment prb-toy1 --quick` (engine sim, 4 runs, 2 seeds, 0.0 s)." in text
    other = section(page, "aurora-toy")
    assert other is not None
    assert "toybad" not in other
    assert "Run it: `headway experiment aurora-toy` (" in other
    assert section(page, "aurora") is None


def test_what_is_doubtful_is_told(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["prb-toy1"]
    [finding] = verdict["findings"]
    checks = [{**check, "certain": False} for check in verdict["checks"]]
    odd = {**verdict, "findings": [{**finding, "needed": False, "holds": False}], "checks": checks, "notes": "More."}
    text = page_text([odd])  # type: ignore[list-item]
    assert "*Differs elsewhere, not in these runs* (`far`)" in text
    assert "checks that do NOT all hold: `twice`" in text
    assert "| yes, not certain |" in text
    assert "| NO, not certain |" in text
    assert "\nMore.\n" in text
    assert "**All in the quick form**" in text


def test_machines(verdicts: dict[str, Verdict]) -> None:
    here, there = verdicts["prb-toy1"], {**verdicts["aurora-toy"], "day": "2026-01-01"}
    same = page_text([{**here, "machine": "one", "day": "2026-02-02"}, {**there, "machine": "one"}])  # type: ignore[typeddict-item]
    assert f"- one, Headway {here['headway']}; 2026-01-01 to 2026-02-02\n" in same
    two = page_text([{**here, "machine": "one"}, {**there, "machine": "two"}])  # type: ignore[typeddict-item]
    assert f"- two, Headway {here['headway']}; 2026-01-01: `aurora-toy`\n" in two


def test_writing(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "all.md"
    left_out = write_page(page, folder, {**TOYS, "new": replace(TOY, name="new")})
    assert left_out == []
    text = page.read_text("utf-8")
    assert "**Not run**: `prb-toybad`, `new`." in text
    pictures = sorted(path.name for path in (tmp_path / "all").iterdir())
    assert pictures == ["aurora-toy.svg", "prb-toy1.svg"]
    for name in pictures:
        assert f"](all/{name})" in text
    assert write_page(page, folder, {"aurora-toy": GOOD}) == ["prb-toy1"]  # there is no such experiment any more
    assert "prb-toy1" not in page.read_text("utf-8").partition("## All of them")[2]


def test_results_beside_the_page(folder: Path) -> None:
    """The folder of the plots may be that of the results."""
    page = folder.with_suffix(".md")
    write_page(page, folder, TOYS)
    assert f"]({folder.name}/prb-toy1.svg)" in page.read_text("utf-8")
    assert (folder / "prb-toy1.svg").read_text().startswith("<?xml")


def test_what_cannot_be(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    for path, message in (
        (tmp_path, "is a folder"),
        (tmp_path / "page.html", r"should end in \.md"),
        (tmp_path / "missing" / "page.md", "does not exist"),
        (tmp_path / "taken.md", "'.*taken' is a file"),
    ):
        with pytest.raises(OutputError, match=f"--page: .*{message}"):
            check_page_path(path)
    check_page_path(tmp_path / "page.md")
    with pytest.raises(InputError, match="there are no results in"):
        write_page(tmp_path / "page.md", tmp_path, TOYS)
    with pytest.raises(InputError, match="there are no results in"):
        write_page(tmp_path / "page.md", folder, {})
    with pytest.raises(OutputError, match="cannot be copied"):
        write_page(tmp_path / "taken.md", folder, TOYS)


@pytest.fixture(scope="module")
def documented() -> str:
    """The page in docs; once it is there, it must hold."""
    page = DOCS / "experiments.md"
    if not page.exists():
        pytest.skip("docs/experiments.md is not made yet: make experiments")
    return page.read_text("utf-8")


@pytest.mark.parametrize("experiment", REGISTRY.values(), ids=REGISTRY)
def test_the_page_is_up_to_date(documented: str, experiment: Experiment) -> None:
    """What it says of each experiment is what the code says now; its checks are compared in test_quick.py."""
    renew = f"run headway experiment {experiment.name} --out out/experiments --page docs/experiments.md"
    text = section(documented, experiment.name)
    assert text is not None, f"the page has no section on '{experiment.name}': {renew}"
    said = [experiment.title[1:], experiment.claim, *experiment.figures, *experiment.setting, *experiment.chosen]
    for words in (*said, *(finding.reason for finding in experiment.findings)):
        assert flat(words) in text, f"the page does not say of '{experiment.name}': {words}; {renew}"
    for finding in experiment.findings:
        assert f"(`{finding.check}`)" in text, renew
    assert (DOCS / "experiments" / f"{experiment.name}.svg").is_file()


def test_the_page_has_nothing_else(documented: str) -> None:
    listed = re.findall(r"^### (.+)$", documented, re.MULTILINE)
    assert sorted(listed) == sorted(REGISTRY), "run make experiments"
    assert sorted(path.stem for path in (DOCS / "experiments").glob("*")) == sorted(REGISTRY)
    assert "quick form**" not in documented, "the page in docs is of full runs: make experiments"
    assert "| FAILED |" not in documented
