"""Figures: lines go from left to right, no text is cut off, and no legend lies on a line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness.plots import Panel, draw

HEADING = "contracted rows, k = 10; a processor with a long name (family 26 model 2), 2 threads, 2026-11-21, abcdef0"


@pytest.fixture
def drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Draws panels, and returns the figure."""
    pytest.importorskip("matplotlib", reason="what draws")
    from matplotlib import pyplot as plt

    figures: list[Any] = []
    monkeypatch.setattr(plt, "close", figures.append)

    def drawing(*panels: Panel, heading: str = "title") -> Any:
        assert draw(tmp_path / "figure.svg", panels, heading)
        return figures[-1]

    return drawing


def test_points_are_joined_from_left_to_right(drawn: Any) -> None:
    figure = drawn(Panel("panel", "x", "y", {"a": [(8, 1), (2, 4), (4, 2)]}))
    assert figure.axes[0].lines[0].get_xdata().tolist() == [2, 4, 8]


@pytest.mark.parametrize("panels", [1, 2, 3])
def test_a_long_heading_is_whole(drawn: Any, panels: int) -> None:
    figure = drawn(*(Panel(f"panel {i}", "x", "y", {"a": [(1, 2), (2, 1)]}) for i in range(panels)), heading=HEADING)
    title = figure._suptitle
    assert re.sub(r"\s+", " ", title.get_text()) == HEADING
    box = title.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
    assert box.y0 > max(axes.title.get_window_extent().y1 for axes in figure.axes)


def test_a_legend_that_would_lie_on_a_line_is_below(drawn: Any) -> None:
    places = [(x, y) for x in range(1, 20) for y in (1, 1000)]  # everywhere
    axes = drawn(Panel("panel", "x", "y", {"everywhere": places})).axes[0]
    assert axes.get_legend().get_window_extent().y1 < axes.bbox.y0
    axes = drawn(Panel("panel", "x", "y", {"a": [(1, 1), (1000, 1000)]})).axes[0]
    assert axes.get_legend().get_window_extent().y0 > axes.bbox.y0
