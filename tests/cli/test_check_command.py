"""``headway check``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bad_networks.cases import CASES, Bad
from tests.cli.helpers import BORDER, LOCAL, assert_one_error, call

FUNCTIONS = """
import headway as hw

@hw.function("cli_half", args=["int"], returns="double")
def half(x):
    return x / 2
"""


def test_schemas_of_all_arcs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "check", "border.yaml")
    assert outcome.code == 0
    assert outcome.err == ""
    assert outcome.out.splitlines()[0] == "network 'border-watch' is well formed: 1 source, 4 boxes, 2 outputs"
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    assert "positions source across sid int, time bigint, pos int" in lines
    assert "across.else filter - sid int, time bigint, pos int" in lines
    assert "crowded.2 filter output pairs time bigint, n bigint" in lines
    assert "ratio map output alarms time bigint, n bigint, ratio double" in lines


def test_mermaid_only(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "check", "border.yaml", "--mermaid")
    assert outcome.code == 0
    assert outcome.out.startswith("flowchart LR\n")
    assert "border-watch" not in outcome.out


def test_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(call(capsys, "check", "border.yaml", "--json").out)
    assert found["network"] == "border-watch"
    assert found["arcs"]["ratio"] == {"time": "bigint", "n": "bigint", "ratio": "double"}
    assert found["outputs"] == {"alarms": "ratio", "pairs": "crowded.2"}
    assert found["boxes"]["counts"] == "aggregate"
    assert found["warnings"] == []


def test_warnings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = BORDER.replace("pos: int}\n", "pos: int}\n    source: tomorrow.csv\n")
    text = text.replace("boxes:\n", 'boxes:\n  spare: {op: filter, in: positions, where: "pos = 1"}\n')
    (folder / "b.yaml").write_text(text + "schedule: {engine: warp}\n")
    outcome = call(capsys, "check", "b.yaml")
    assert outcome.code == 0
    warnings = [line for line in outcome.out.splitlines() if line.startswith("warning: ")]
    assert any("'spare'" in line for line in warnings)
    assert any("tomorrow.csv" in line for line in warnings)
    assert any("'warp'" in line and "local" in line for line in warnings)


def test_functions_of_a_module(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "cli_mine.py").write_text(FUNCTIONS)
    (folder / "f.yaml").write_text(BORDER.replace('"pos >= 30"', '"cli_half(pos) >= 15"'))
    assert_one_error(call(capsys, "check", "f.yaml"), "box 'across'", "cli_half")
    path = list(sys.path)
    assert call(capsys, "check", "f.yaml", "--functions", "cli_mine").code == 0
    assert sys.path == path


def test_tables(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "t.yaml").write_text(
        "network: t\nsources: {s: {schema: {sid: int}}}\n"
        "boxes: {j: {op: join, in: [s, {table: people}], on: left.sid = right.sid}}\noutputs: {o: {from: j}}\n"
    )
    (folder / "people.csv").write_text("sid,name\n1,Ann\n")
    assert_one_error(call(capsys, "check", "t.yaml"), "box 'j'", "people")
    outcome = call(capsys, "check", "t.yaml", "--table", "people=people.csv")
    assert outcome.code == 0
    assert "sid bigint, name string" in outcome.out
    assert_one_error(
        call(capsys, "check", "t.yaml", "--table", "poeple=people.csv"), "'poeple'", "did you mean 'people'"
    )
    assert_one_error(call(capsys, "check", "t.yaml", "--table", "people=people.txt"), "people.txt", ".csv")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("pos: int}\n", "pos: int}\n    source: {csvv: x.csv}\n", ("source 'positions'", "csvv", "did you mean 'csv'")),
        ("pos: int}\n", "pos: int}\n    source: x.txt\n", ("source 'positions'", "x.txt", ".parquet")),
        ("pos: int}\n", "pos: int}\n    source: {generate: {fields: {sid: 1}}}\n", ("'positions'", "'time'")),
        ("pairs: {", "pairs: {sink: x.doc, ", ("output 'pairs'", "x.doc", ".jsonl")),
        ("outputs:", "schedule: {policy: round-robbin}\noutputs:", ("round-robbin", "did you mean 'round-robin'")),
    ],
)
def test_connectors_and_schedule(
    folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, expected: tuple[str, ...]
) -> None:
    (folder / "bad.yaml").write_text(BORDER.replace(old, new))
    assert_one_error(call(capsys, "check", "bad.yaml"), *expected)


def test_an_output_may_be_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "parts.yaml").write_text(BORDER.replace("pairs: {", "pairs: {sink: parts/, "))
    outcome = call(capsys, "check", "parts.yaml")
    assert (outcome.code, outcome.err) == (0, ""), "as a run takes it"


@pytest.mark.parametrize("bad", CASES, ids=[case.id for case in CASES])
def test_bad_networks(tmp_path: Path, capsys: pytest.CaptureFixture[str], bad: Bad) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(bad.text)
    outcome = call(capsys, "check", path)
    assert_one_error(outcome, *bad.expected)
    assert outcome.out == ""


@pytest.mark.parametrize("bad", CASES[::7], ids=[case.id for case in CASES[::7]])
def test_bad_networks_do_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str], bad: Bad) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(bad.text)
    assert_one_error(call(capsys, "run", path), *bad.expected)


BUSY = """network: busy
sources:
  s: {schema: {i: bigint}, source: {generate: {rate: 1000, fields: {i: "i"}}}}
  t: {schema: {i: bigint}, source: {generate: {burst: {size: 100, every: 1s}, fields: {i: "i"}}}}
boxes:
  first: {op: universal, in: s, cost: 200us, selectivity: 0.5}
  wide:  {op: universal, in: first, cost: 400us, selectivity: 2}
  slim:  {op: universal, in: first, cost: 100us}
  join:  {op: universal, in: [wide, slim, t], cost: {uniform: [400us, 600us]}, selectivity: 0.1}
outputs: {x: {from: join}, y: {from: slim}, z: {from: t}}
"""
"""To join come 1,000 tuples of wide, 500 of slim and 100 of t: 1,600 of 0.5 ms."""


def rows(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def loads(capsys: pytest.CaptureFixture[str], *argv: object) -> dict[str, Any]:
    outcome = call(capsys, "check", *argv, "--json")
    assert outcome.code == 0, outcome
    found: dict[str, Any] = json.loads(outcome.out)
    load: dict[str, Any] = found["load"]
    said = [warning for warning in found["warnings"] if warning.startswith("load: ")]
    fine = not load["known"] or (load["fits"] and all(box["stable"] for box in load["boxes"].values()))
    assert bool(said) != fine
    return load


def test_load_of_declared_boxes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "busy.yaml").write_text(BUSY)
    outcome = call(capsys, "check", "busy.yaml")
    assert (outcome.code, outcome.err) == (0, "")
    assert rows(outcome.out)[-8:] == [
        "box tuples/s in out cost per tuple processors share",
        "----- ----------- ----- -------------- ---------- -----",
        "join 1,600 160 500 µs 0.8 64 %",
        "first 1,000 500 200 µs 0.2 16 %",
        "wide 500 1,000 400 µs 0.2 16 %",
        "slim 500 500 100 µs 0.05 4 %",
        "results per second: x 160, y 500, z 100",
        "warning: load: needs 1.25 processors; 1 × 0.9 headroom: overloaded by 0.35; 'join' alone needs 0.8; "
        "2 workers would be enough; or make boxes cheaper, or shed load (schedule: shed)",
    ]


def test_the_document_shows_what_is_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[2] / "docs/cli.md").read_text()
    network = text.partition("```yaml\nnetwork: busy\n")[2].partition("```")[0]
    shown = text.partition("$ headway check busy.yaml\n")[2].partition("```")[0]
    (folder / "busy.yaml").write_text(f"network: busy\n{network}")
    assert shown
    assert call(capsys, "check", "busy.yaml").out.endswith(f"\n\n{shown}")


def test_load_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "busy.yaml").write_text(BUSY)
    load = loads(capsys, "busy.yaml")
    assert (load["known"], load["missing"], load["notes"]) == (True, [], [])
    assert (load["fits"], load["overloaded"], load["workers"], load["headroom"]) == (False, True, 1, 0.9)
    assert [load["needs"], load["held_back"], load["excess"]] == pytest.approx([1.25, 1.25, 0.35])
    assert load["sources"] == {"s": 1000, "t": pytest.approx(100)}
    assert load["outputs"] == pytest.approx({"x": 160, "y": 500, "z": 100})
    assert list(load["boxes"]) == ["join", "first", "wide", "slim"]
    assert load["boxes"]["wide"] == {
        "rate_in": 500,
        "rate_out": 1000,
        "cost_per_tuple": pytest.approx(0.0004),
        "load": pytest.approx(0.2),
        "stable": True,
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--workers", 2), "load: needs 1.25 processors; 2 × 0.9 headroom: fits, up to 1.25 times these rates"),
        (("--rate", "s=100"), "load: needs 0.17 processors; 1 × 0.9 headroom: fits, up to 5.29 times these rates"),
        (("--workers", 2, "--headroom", 0.6), "warning: load: needs 1.25 processors; 2 × 0.6 headroom: short by 0.05;"),
        (("--rate", "s=3000"), "warning: load: needs 3.65 processors; 1 × 0.9 headroom: overloaded by 2.75;"),
        (
            ("--rate", "s=3000"),
            "'join' alone needs 2.3; more workers do not help 'join', because only Spark can spread a box",
        ),
        (("--rate", "s=3000"), "boxes downstream would get less, and only 2.35 processors would be busy"),
        (("--rate", "s=3000", "--workers", 9), "warning: load: needs 3.65 processors; 9 × 0.9 headroom: fits; 'join' "),
        (("--rate", "t=500"), "warning: load: needs 1.25 processors"),  # a burst is 100 tuples a second at any pace
    ],
)
def test_verdicts(folder: Path, capsys: pytest.CaptureFixture[str], options: tuple[object, ...], expected: str) -> None:
    # 0.2 + 0.2 + 0.05 processors per 1,000 tuples of s, and (1.5 * s + 100) * 0.5 ms for the join
    (folder / "busy.yaml").write_text(BUSY)
    outcome = call(capsys, "check", "busy.yaml", *options)
    assert (outcome.code, outcome.err) == (0, "")
    assert expected in outcome.out


def test_a_rate_that_a_run_would_refuse(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "busy.yaml").write_text(BUSY)
    assert_one_error(call(capsys, "check", "busy.yaml", "--rate", "t=50"), "source 't'", "do not fit into 1s")


def test_workers_and_model_of_the_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "m.yaml").write_text("costs: {first: 1ms}\noverheads: {call: 10ms}\n")
    (folder / "busy.yaml").write_text(BUSY + "schedule: {workers: 3, train: 100, model: m.yaml}\n")
    load = loads(capsys, "busy.yaml")
    assert load["workers"] == 3
    # a call's 10 ms over 100 tuples are 0.1 ms for each; what the model does not name costs what the box says
    costs = {name: box["cost_per_tuple"] for name, box in load["boxes"].items()}
    assert costs == pytest.approx({"first": 0.0011, "join": 0.0006, "wide": 0.0005, "slim": 0.0002})
    assert not load["boxes"]["first"]["stable"]
    assert loads(capsys, "busy.yaml", "--workers", 5)["workers"] == 5


def test_a_bad_model_of_the_file_is_a_warning(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "busy.yaml").write_text(BUSY + "schedule: {model: nowhere.yaml}\n")
    outcome = call(capsys, "check", "busy.yaml")
    assert outcome.code == 0
    assert any(
        line.startswith("warning: schedule: model: ") and "nowhere.yaml" in line for line in outcome.out.splitlines()
    )
    assert "needs 1.25 processors" in outcome.out


@pytest.mark.parametrize(
    ("connector", "options", "expected"),
    [
        ("{generate: {rate: 50, arrivals: poisson, fields: {i: i}}}", (), 50),
        ("{generate: {rate: 50, burst: {on: 1s, off: 4s}, fields: {i: i}}}", (), 10),
        ("{generate: {rate: 50, burst: {on: 1s, off: 4s}, fields: {i: i}}}", ("--rate", "s=100"), 20),
        ("{generate: {fields: {i: i}}}", (), None),
        ("{generate: {fields: {i: i}}}", ("--rate", "s=7"), 7),
        ("{replay: {file: x.csv, rate: 30}}", (), 30),
        ("{replay: {file: x.csv, by: i}}", (), None),
        ("x.csv", (), None),
        ("x.csv", ("--rate", "s=2.5"), 2.5),
    ],
)
def test_rates_of_sources(
    folder: Path, capsys: pytest.CaptureFixture[str], connector: str, options: tuple[str, ...], expected: float | None
) -> None:
    (folder / "one.yaml").write_text(
        f"network: one\nsources: {{s: {{schema: {{i: bigint}}, source: {connector}}}}}\n"
        "boxes: {a: {op: universal, in: s, cost: 1us}}\noutputs: {o: {from: a}}\n"
    )
    load = loads(capsys, "one.yaml", *options)
    if expected is None:
        assert load == {"known": False, "missing": ["no rate for source 's' (--rate s=1000)"], "notes": []}
    else:
        assert load["sources"] == {"s": pytest.approx(expected)}


def test_what_is_missing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    last = call(capsys, "check", "border.yaml").out.splitlines()[-1]
    assert last == (
        "load: unknown: no rate for source 'positions' (--rate positions=1000); no cost for boxes 'across', 'counts', "
        "'crowded', 'ratio' (--model FILE: a model, or the summary of a real run)"
    )
    last = call(capsys, "check", "border.yaml", "--rate", "positions=5").out.splitlines()[-1]
    assert last.startswith("load: unknown: no cost for boxes 'across'")


def test_load_without_boxes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "network: n\nsources: {s: {schema: {i: bigint}}, t: {schema: {i: bigint}}}\noutputs: {o: {from: s}}\n"
    (folder / "none.yaml").write_text(text)
    assert loads(capsys, "none.yaml")["missing"] == ["no rate for source 's' (--rate s=1000)"]  # nobody reads t
    assert call(capsys, "check", "none.yaml", "--rate", "s=20").out.endswith(
        "\n\nresults per second: o 20\nload: needs 0 processors; 1 × 0.9 headroom: fits\n"
    )


def test_load_by_a_model_says_what_it_assumes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "m.yaml").write_text("costs: {counts: 2us}\ndefault: 1us\n")
    load = loads(capsys, "border.yaml", "--rate", "positions=30000", "--model", "m.yaml")
    assert {name: box["load"] for name, box in load["boxes"].items()} == pytest.approx(
        {"counts": 0.06, "across": 0.03, "crowded": 0.03, "ratio": 0.01}
    )
    assert load["outputs"] == pytest.approx({"alarms": 10_000, "pairs": 10_000})  # the rest goes to 'else'
    assert load["notes"] == [
        "selectivity not known, assumed to be 1: 'across', 'counts'",
        "division of tuples over outputs not known, assumed to be equal: 'crowded'",
    ]


def summary(**boxes: tuple[int, int, float, float]) -> dict[str, Any]:
    """Return the part of a summary that counts: by box tuples in and out, seconds per tuple and per call."""
    keys = ("tuples_in", "tuples_out", "cost_per_tuple", "cost_per_call")
    return {
        "engine": "local",
        "boxes": {name: dict(zip(keys, values, strict=True)) for name, values in boxes.items()},
        "outputs": {"alarms": {"tuples": 30}, "pairs": {"tuples": 10}},
        "time": {"scheduler": 1.0, "storage": 1.0},
        "plans": 10,
        "box_calls": 10,
    }


MEASURED = summary(
    across=(1000, 500, 1e-5, 0.0),
    counts=(500, 50, 2e-5, 1e-2),
    crowded=(50, 50, 1e-4, 0.0),
    ratio=(30, 30, 1e-3, 0.0),
)


def test_load_by_the_summary_of_a_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "run.json").write_text(json.dumps(MEASURED))
    load = loads(capsys, "border.yaml", "--rate", "positions=10000", "--model", "run.json")
    assert load["notes"] == []
    found = {name: (box["rate_in"], box["load"]) for name, box in load["boxes"].items()}
    # 30 of 50 tuples of 'crowded' went to 'ratio', 10 to the output; a call's 10 ms are shared by 1,000 tuples
    assert list(found) == ["ratio", "counts", "across", "crowded"]
    assert found["ratio"] == pytest.approx((300, 0.3))
    assert found["counts"] == pytest.approx((5000, 5000 * 3e-5))
    assert found["across"] == pytest.approx((10_000, 0.1))
    assert found["crowded"] == pytest.approx((500, 0.05))
    assert load["outputs"] == pytest.approx({"alarms": 300, "pairs": 100})


def test_a_model_over_a_measured_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "run.json").write_text(json.dumps(MEASURED))
    (folder / "m.yaml").write_text("measured: run.json\ncosts: {ratio: 2ms}\n")
    load = loads(capsys, "border.yaml", "--rate", "positions=10000", "--model", "m.yaml")
    assert load["boxes"]["ratio"]["load"] == pytest.approx(0.6)
    assert load["boxes"]["across"]["load"] == pytest.approx(0.1)


def test_boxes_that_a_run_did_not_measure(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    idle = summary(across=(1000, 0, 1e-5, 0), counts=(0, 0, 0, 0), crowded=(0, 0, 0, 0), ratio=(0, 0, 0, 0))
    (folder / "run.json").write_text(json.dumps(idle))
    load = loads(capsys, "border.yaml", "--rate", "positions=10000", "--model", "run.json")
    assert load["needs"] == pytest.approx(0.1)  # nothing comes to the others
    some = summary(across=(1000, 500, 1e-5, 0), counts=(0, 0, 0, 0), crowded=(50, 50, 1e-4, 0))
    (folder / "run.json").write_text(json.dumps(some))
    load = loads(capsys, "border.yaml", "--rate", "positions=10000", "--model", "run.json")
    assert load["missing"] == [
        "no cost for boxes 'counts', 'ratio' (--model FILE: a model, or the summary of a real run)"
    ]


def test_load_by_a_real_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = call(capsys, "run", "border.yaml", "--input", "positions=day.csv", "--summary", "run.json", "--quiet", *LOCAL)
    assert run.code == 0
    load = loads(capsys, "border.yaml", "--rate", "positions=1900", "--model", "run.json")
    # all 19 tuples are across; six windows, one of them a dead letter of 'ratio'
    assert {name: box["rate_in"] for name, box in load["boxes"].items()} == pytest.approx(
        {"across": 1900, "counts": 1900, "crowded": 600, "ratio": 400}
    )
    assert load["outputs"] == pytest.approx({"alarms": 300, "pairs": 200})
    assert load["needs"] > 0


def test_many_boxes_are_not_all_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    boxes = "".join(f"  b{at}: {{op: universal, in: s, cost: {at + 1}us}}\n" for at in range(12))
    outputs = "".join(f"  o{at}: {{from: b{at}}}\n" for at in range(12))
    (folder / "many.yaml").write_text(
        f"network: many\nsources: {{s: {{schema: {{i: bigint}}}}}}\nboxes:\n{boxes}outputs:\n{outputs}"
    )
    lines = rows(call(capsys, "check", "many.yaml", "--rate", "s=1000").out)
    shown = lines[lines.index("box tuples/s in out cost per tuple processors share") + 2 :]
    assert [line.split()[0] for line in shown[:10]] == [f"b{at}" for at in range(11, 1, -1)]
    assert shown[10] == "and 2 more boxes: 4 %"  # 3 of 78 us
    assert shown[11].endswith("o9 1,000, and 2 more")
    assert len(loads(capsys, "many.yaml", "--rate", "s=1000")["boxes"]) == 12


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--rate", "position=5"), ("--rate", "'position'", "did you mean 'positions'")),
        (("--rate", "positions=fast"), ("--rate", "'positions'", "'fast'")),
        (("--rate", "positions"), ("--rate", "SOURCE=N")),
        (("--workers", "0"), ("--workers", "from 1 to 65536")),
        (("--headroom", "0"), ("--headroom", "0.9", "'0'")),
        (("--headroom", "1.5"), ("--headroom", "'1.5'")),
        (("--headroom", "much"), ("--headroom", "'much'")),
        (("--model", "nowhere.yaml"), ("nowhere.yaml", "cannot be read")),
        (("--model", "list.yaml"), ("list.yaml", "must hold a mapping")),
        (("--model", "names.yaml"), ("'acros'", "did you mean 'across'")),
        (("--model", "broken.json"), ("not the summary of a run", "tuples_in")),
        (("--model", "deep.yaml"), ("nothing.json", "cannot be read")),
    ],
)
def test_bad_options(
    folder: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    (folder / "list.yaml").write_text("[1, 2]\n")
    (folder / "names.yaml").write_text("costs: {acros: 1us}\n")
    (folder / "deep.yaml").write_text("measured: nothing.json\n")
    broken = json.loads(json.dumps(MEASURED))
    del broken["boxes"]["counts"]["tuples_in"]
    (folder / "broken.json").write_text(json.dumps(broken))
    assert_one_error(call(capsys, "check", "border.yaml", *options), *expected)
