"""Networks as Mermaid text."""

from __future__ import annotations

import re

from headway.checking import check
from headway.files import load
from headway.mermaid import mermaid
from headway.network.schema import Schema
from tests.networks import ALL, BORDER


def test_the_example_of_the_design() -> None:
    network = load(BORDER)
    assert mermaid(check(network)).splitlines() == [
        "flowchart LR",
        '    s0(["positions"])',
        '    b0["across<br/>filter<br/>pos #gt;= 30"]',
        '    b1["counts<br/>aggregate<br/>count(*) as n, avg(pos) as mean"]',
        '    b2["crowded<br/>filter<br/>n #gt;= 3; n = 2"]',
        '    b3["names<br/>map<br/>time, n, n * 2 as twice"]',
        '    o0((("alarms")))',
        '    s0 -->|"sid, time, pos"| b0',
        '    b0 -->|"sid, time, pos"| b1',
        '    b1 -->|"time, n, mean"| b2',
        '    b2 -->|"1: time, n, mean"| b3',
        '    b3 -->|"time, n, twice"| o0',
    ]


def test_every_operator() -> None:
    network = load(ALL)
    text = mermaid(check(network, tables={"people": Schema.parse("person int")}))
    assert '    t0[("people")]' in text
    assert "    t0 -.-> b8" in text
    assert "sid, time, pos, name, …" in text


def test_labels_are_escaped() -> None:
    text = """
network: x
sources: {s: {schema: a string}}
boxes: {b: {op: filter, in: s, where: "a = '\\"]|`<b>&#x' or\\n a > 'end'"}}
outputs: {o: {from: b}}
"""
    drawn = mermaid(check(load(text)))
    (label,) = re.findall(r'    b0\["(.*)"\]', drawn)
    assert "#quot;]#124;#96;#lt;b#gt;#amp;#35;x" in label
    assert not re.search(r'["`|]', label)
    assert len(drawn.splitlines()) == 6


def test_long_labels_are_cut() -> None:
    where = " and ".join(["a > 1"] * 50)
    text = "network: x\nsources: {s: {schema: a int}}\nboxes: {b: {op: filter, in: s, where: WHERE}}\n"
    text = text.replace("WHERE", where) + "outputs: {o: {from: b}}\n"
    assert max(map(len, mermaid(check(load(text))).splitlines())) < 200
