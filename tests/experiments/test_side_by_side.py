"""The plot of a comparison: panels, labels, and what is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from headway.experiments import plots
from headway.experiments.comparing import Figures
from headway.experiments.side_by_side import PANELS, draw, size

PLAIN = Figures("a", 0.5, 0.2, "o", 0.1, 0.5, 1000.0, 2000.0, 100.0, 0.1, 10)
SOME = [replace(PLAIN, policy=name, latency=0.1 * at) for at, name in enumerate("abc", 1)]


def drawn(*groups: tuple[str, list[Figures]], chosen: str = "b") -> Figure:
    figure = plots.new_figure(size(3, len(groups)))
    draw(figure, groups, chosen)
    figure.canvas.draw()
    return figure


def test_a_panel_for_each_figure_with_its_unit() -> None:
    axes = drawn(("predicted", SOME)).axes
    assert [one.get_title() for one in axes] == [panel.title for panel in PANELS]
    assert [one.get_xlabel().splitlines()[0] for one in axes] == [panel.unit for panel in PANELS]
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["a", "➤ b", "c"]
    widths = [patch.get_width() for patch in axes[1].patches]  # type: ignore[attr-defined]
    assert widths == pytest.approx([100, 200, 300])
    low, high = axes[0].get_ylim()
    assert low > high, "the first policy is on top"


def test_predicted_beside_measured() -> None:
    measured = [*SOME, replace(PLAIN, policy="threads", queued=None)]
    figure = drawn(("predicted", SOME), ("measured", measured), chosen="threads")
    assert len(figure.axes[0].patches) == 8
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["predicted", "measured"]


def test_without_utilities_there_is_no_panel_for_them() -> None:
    plain = [replace(one, utility=None, worst=None) for one in SOME]
    assert [one.get_title() for one in drawn(("predicted", plain)).axes] == [panel.title for panel in PANELS[1:]]


def test_very_different_latencies_are_drawn_by_their_order() -> None:
    wide = [replace(PLAIN, policy="a", latency=1e-3), replace(PLAIN, policy="b", latency=10.0, p99=20.0)]
    assert drawn(("predicted", wide)).axes[1].get_xscale() == "log"
    assert drawn(("predicted", SOME)).axes[1].get_xscale() == "linear"


def test_nothing_at_all_can_be_drawn() -> None:
    nothing = [replace(PLAIN, utility=0.0, worst=0.0, latency=None, p99=None, queued=0.0, peak=0, throughput=0.0)]
    assert len(drawn(("predicted", nothing), chosen="a").axes) == len(PANELS)
