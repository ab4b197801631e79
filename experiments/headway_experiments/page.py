"""The page docs/experiments.md: every experiment with its plot, the paper's claim, what we found and why it differs.

It is made from the verdicts that experiments left in a folder, so that each number on it comes from a run.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from headway.errors import InputError, OutputError
from headway.paths import whole
from headway_experiments.checks import ABOUT
from headway_experiments.experiment import CONFIRMED, DIFFERS, FAILED, PAPERS, UNCERTAIN, Experiment, Paper
from headway_experiments.results import Explained, Verdict, held_text, read_verdicts, runs_text, why_text, write_whole

MEANING = {
    CONFIRMED: "every check holds, and the interval lies on the right side of its bound",
    UNCERTAIN: "every check holds in the mean, but the interval of at least one reaches over its bound: more runs may "
    "say otherwise",
    DIFFERS: "a claim does not hold here; we looked into it, and the evidence for what we found is among the checks "
    "and holds",
    FAILED: "a claim does not hold here and nothing explains it, or what should explain it does not hold",
}

INTRO = """\
# The papers' experiments

Five papers say which scheduling policy is better than which, where, and by how much. Here each of their experiments is
run again with Headway, and each claim is a check that can fail.

<!-- This page is made by `headway experiment --page`; do not change it by hand. -->

```
headway experiment list                 names all experiments
headway experiment prb-fig3             runs one: a table (CSV), a plot (PNG and SVG) and a verdict
headway experiment all --quick          runs all, in a form that takes a few minutes
make experiments                        runs all in full, and writes this page
```

The [command line](cli.md#headway-experiment) has all options.

## How to read it

- A **claim** is the paper's, in our words. Each thing it says is a **check** with the paper's number as its bound.
"""


def heading(name: str) -> str:
    """Return the heading of an experiment's section."""
    return f"### {name}"


def section(page: str, name: str) -> str | None:
    """Return the part of a page that is about an experiment, or None if there is none."""
    _, found, rest = page.partition(f"\n{heading(name)}\n")
    if not found:
        return None
    return rest.partition("\n## ")[0].partition("\n### ")[0]


def flat(text: str) -> str:
    """Return a text as it stands in a paragraph: on one line."""
    return " ".join(text.split())


def cell(text: str) -> str:
    """Return a text as it stands in a table."""
    return flat(text).replace("|", "\\|")


def page_text(verdicts: Sequence[Verdict], missing: Sequence[str] = (), images: str = "experiments") -> str:
    """Return the page on verdicts, in their order; `missing` names experiments without one."""
    parts = [INTRO + "".join(f"- {flat(line)}\n" for line in _reading()), "\n".join(_machines(verdicts))]
    parts.append("\n".join(_overview(verdicts, missing)))
    for key, paper in PAPERS.items():
        own = [one for one in verdicts if one["paper"] == key]
        if own:
            parts.append(f"## {_paper(paper)}")
            parts += ["\n".join(_section(one, images)) for one in own]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _reading() -> Iterator[str]:
    yield f"""\"About x\" is between x / {ABOUT:g} and {ABOUT:g} x, everywhere on this page. No bound was made wider
        so that a check passes."""
    yield """`0.95 ± 0.02` is a mean over runs with different seeds and its 95 % confidence interval. Policies are
        compared on the same arrivals, pair by pair. A check is judged by the mean; it is "not certain" if the interval
        reaches over the bound. A check "by construction" follows from the setting and cannot fail: it is shown to be
        complete, and confirms and explains nothing."""
    yield """Some experiments have a **note**: what of them is modelled where the engine's name alone would say more
        than was done."""
    for verdict, meaning in MEANING.items():
        yield f"**{verdict}**: {meaning}."


def _machines(verdicts: Sequence[Verdict]) -> Iterator[str]:
    yield "## Where and when"
    yield ""
    found: dict[str, list[Verdict]] = {}
    for one in verdicts:
        found.setdefault(f"{one['machine']}, Headway {one['headway']}", []).append(one)
    for where, own in found.items():
        days = sorted({one["day"] for one in own})
        span = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
        which = "" if len(found) == 1 else ": " + _names(one["name"] for one in own)
        yield f"- {where}; {span}{which}"
    yield "- Simulated runs are in virtual time and give the same numbers on every machine."


def _overview(verdicts: Sequence[Verdict], missing: Sequence[str]) -> Iterator[str]:
    yield "## All of them"
    yield ""
    counts = Counter(one["verdict"] for one in verdicts)
    told = "; ".join(f"{counts[verdict]} {verdict}" for verdict in MEANING if counts[verdict])
    yield f"{len(verdicts)} {'experiment' if len(verdicts) == 1 else 'experiments'}: {told or 'none'}."
    quick = [one["name"] for one in verdicts if one["quick"]]
    if quick:
        which = "All" if len(quick) == len(verdicts) else _names(quick)
        yield ""
        yield f"**{which} in the quick form**: fewer seeds and shorter runs, so that intervals are wide."
    if missing:
        yield ""
        yield f"**Not run**: {_names(missing)}."
    yield ""
    yield "| experiment | reproduces | what | engine | verdict |"
    yield "|---|---|---|---|---|"
    for one in verdicts:
        link = f"[{one['name']}](#{one['name']})"
        verdict = one["verdict"] + (" (quick form)" if one["quick"] else "")
        verdict += f" ([note](#{one['name']}))" if one["label"] else ""
        yield f"| {link} | {_figures(one)} | {cell(one['title'])} | {one['engine']} | {verdict} |"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _paper(paper: Paper) -> str:
    return f"{paper.title} ({paper.where})"


def _figures(verdict: Verdict) -> str:
    return cell(", ".join(verdict["figures"]))


def _section(verdict: Verdict, images: str) -> Iterator[str]:
    name, title = verdict["name"], flat(verdict["title"])
    yield heading(name)
    yield ""
    yield f"**{title[:1].upper()}{title[1:]}** ({_figures(verdict)}): {verdict['verdict']}."
    yield ""
    yield f"![{name}: {title}]({images}/{name}.svg)"
    yield ""
    if verdict["label"]:
        yield f"*Note.* {flat(verdict['label'])}"
        yield ""
    yield f"*The paper.* {flat(verdict['claim'])}"
    yield ""
    for label, lines in (("The setting", verdict["setting"]), ("What it leaves open", verdict["chosen"])):
        if lines:
            yield f"*{label}.*"
            yield ""
            yield from (f"- {flat(line)}" for line in lines)
            yield ""
    yield "| check | claim | holds? | evidence |"
    yield "|---|---|---|---|"
    for check in verdict["checks"]:
        yield f"| `{check['key']}` | {cell(check['claim'])} | {held_text(check)} | {cell(check['evidence'])} |"
    yield ""
    claims = {check["key"]: check["claim"] for check in verdict["checks"]}
    for finding in verdict["findings"]:
        yield _finding(finding, claims)
        yield ""
    if verdict["notes"]:
        yield verdict["notes"]
        yield ""
    form = " --quick" if verdict["quick"] else ""
    yield f"Run it: `headway experiment {name}{form}` ({runs_text(verdict)})."


def _finding(finding: Explained, claims: Mapping[str, str]) -> str:
    evidence = "; ".join(f"`{key}`: {flat(claims[key]).rstrip('.')}" for key in finding["shown_by"])
    shown = "Shown by" if finding["holds"] else "This should be shown by checks that do NOT all hold:"
    return f"*{why_text(finding)}* (`{finding['check']}`). {flat(finding['reason'])} {shown} {evidence}."


def images_of(page: Path) -> Path:
    """Return the folder for the plots of a page: docs/experiments.md has docs/experiments."""
    return page.with_suffix("")


def check_page_path(page: Path) -> None:
    """Raise an OutputError now, not after long runs, if the page cannot be written there."""
    if page.is_dir():
        raise OutputError(f"--page: '{page}' is a folder; expected a file such as docs/experiments.md")
    if page.suffix != ".md":
        raise OutputError(f"--page: '{page}' should end in .md; its plots go to a folder of the same name without it")
    if not page.parent.is_dir():
        raise OutputError(f"--page: the folder '{page.parent}' for '{page.name}' does not exist")
    images = images_of(page)
    if images.exists() and not images.is_dir():
        raise OutputError(f"--page: '{images}' is a file; the page's plots go to a folder of this name")
    for folder in (page.parent, images):
        if folder.is_dir() and not os.access(folder, os.W_OK):
            raise OutputError(f"--page: the folder '{folder}' cannot be written: no permission")


def write_page(page: Path, folder: Path, registry: Mapping[str, Experiment]) -> list[str]:
    """Write the page on all results of a folder, and its plots beside it, in the order of the registry.

    Returns the names of results that were left out, for there are no such experiments any more. Raises a HeadwayError.
    """
    found = {one["name"]: one for one in read_verdicts(folder)}
    verdicts = [found[name] for name in registry if name in found]
    if not verdicts:
        raise InputError(f"there are no results in '{folder}'; 'headway experiment NAME --out {folder}' makes them")
    images = images_of(page)
    try:
        images.mkdir(exist_ok=True)
        for one in verdicts:
            _copy(folder / f"{one['name']}.svg", images / f"{one['name']}.svg")
    except OSError as error:
        raise OutputError(f"--page: the plots cannot be copied: {error}") from error
    write_whole(page, page_text(verdicts, [name for name in registry if name not in found], images.name), "--page")
    return [name for name in found if name not in registry]


def _copy(path: Path, target: Path) -> None:
    if path.resolve() != target.resolve():
        with whole(target, "--page") as partial:
            shutil.copyfile(path, partial)
