"""The plot of a comparison: panels, labels, and what is missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from headway.compare import plots
from headway.compare.figures import Figures
from headway.compare.plots import PANELS, draw, size

PLAIN = Figures("a", 0.5, 0.2, "o", 0.1, 0.5, 1000.0, 2000.0, 100.0, 0.1, 10)
SOME = [replace(PLAIN, policy=name, latency=0.1 * at) for at, name in enumerate("abc", 1)]


def drawn(*groups: tuple[str, list[Figures]], chosen: str = "b") -> Figure:
    figure = plots.new_figure(size(3, len(groups)))
    draw(figure, groups, chosen, "network 'n': 3 policies")
    figure.canvas.draw()
    return figure


def test_a_panel_for_each_figure_with_its_unit() -> None:
    axes = drawn(("predicted", SOME)).axes
    assert [one.get_title() for one in axes] == [panel.title for panel in PANELS]
    assert [one.get_xlabel().splitlines()[0] for one in axes] == [panel.unit for panel in PANELS]
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["a", "➤ b", "c"]
    assert list(axes[1].lines[0].get_xdata()) == pytest.approx([100, 200, 300])  # type: ignore[arg-type]
    assert not any(one.patches for one in axes), "dots, not bars: they may stand on logarithmic axes"
    low, high = axes[0].get_ylim()
    assert low > high, "the first policy is on top"


def test_a_title_labels_and_the_values_as_text() -> None:
    figure = drawn(("predicted", SOME))
    assert figure.get_suptitle() == "network 'n': 3 policies"
    assert figure.axes[0].get_ylabel() == "policy"
    assert [text.get_text() for text in figure.axes[1].texts] == ["100", "◇ 500", "200", "◇ 500", "300", "◇ 500"]
    assert [text.get_text() for text in figure.axes[-1].texts] == ["10", "10", "10"]


def test_values_stand_beside_the_dots_not_on_them() -> None:
    for latency in (0.1, 1e-4):  # a linear and a logarithmic axis
        figure = drawn(("predicted", [replace(one, latency=latency * at) for at, one in enumerate(SOME, 1)]))
        axes = figure.axes[1]
        values: list[float] = [float(x) for line in axes.lines for x in line.get_xdata()]  # type: ignore
        dots = [axes.transData.transform([[x, 0.0]])[0][0] for x in values]
        assert max(dots) < min(text.get_window_extent().x0 for text in axes.texts)


def test_predicted_beside_measured() -> None:
    measured = [*SOME, replace(PLAIN, policy="threads", queued=None)]
    figure = drawn(("predicted", SOME), ("measured", measured), chosen="threads")
    assert [len(line.get_xdata()) for line in figure.axes[0].lines[:2]] == [3, 4]  # type: ignore[arg-type]
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["predicted", "measured"]


def test_without_utilities_there_is_no_panel_for_them() -> None:
    plain = [replace(one, utility=None, worst=None) for one in SOME]
    assert [one.get_title() for one in drawn(("predicted", plain)).axes] == [panel.title for panel in PANELS[1:]]


def test_very_different_latencies_are_drawn_by_their_order() -> None:
    wide = [replace(PLAIN, policy="a", latency=1e-3), replace(PLAIN, policy="b", latency=10.0, p99=20.0)]
    assert drawn(("predicted", wide)).axes[1].get_xscale() == "log"
    assert drawn(("predicted", SOME)).axes[1].get_xscale() == "linear"


def test_nothing_beside_much_is_drawn_at_the_edge() -> None:
    """A dot at 0 of a logarithmic axis was infinitely far away, and left no room for the panels."""
    some = [SOME[0], replace(SOME[1], latency=0.0, p99=1e-9, queued=0.0, peak=1e9), SOME[2]]
    axes = drawn(("predicted", some)).axes
    for one in axes:
        low, high = one.get_xlim()
        for line in one.lines:
            xs = np.asarray(line.get_xdata(), float)
            assert low <= xs.min()
            assert xs.max() <= high
        assert one.get_position().width > 0.1
    assert "0" in [text.get_text() for text in axes[1].texts]


def test_nothing_at_all_can_be_drawn() -> None:
    nothing = [replace(PLAIN, utility=0.0, worst=0.0, latency=None, p99=None, queued=0.0, peak=0, throughput=0.0)]
    assert len(drawn(("predicted", nothing), chosen="a").axes) == len(PANELS)
