"""Figures as small SVG files: panels side by side, one curve per series, machine and date above them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .machine import ROOT
from .rows import Row

IMAGES = ROOT / "docs" / "images"
MARKERS = "osD^vPX*<>"
PANELS_IN_A_ROW = 3

# the points (x, y) of a curve, by the name of the curve
Curves = dict[str, list[tuple[float, float]]]


@dataclass(frozen=True)
class Panel:
    """One pair of axes with curves. By default both axes are logarithmic: x to the base `base`, y to the base 10."""

    title: str
    x: str
    y: str
    curves: Curves
    log_x: bool = True
    log_y: bool = True
    base: int = 2


@dataclass(frozen=True)
class Figure:
    """A figure as data: the name of its file, its panels, and the rows that it shows.

    Attributes
    ----------
    table : text of a paper's table, which is printed instead of a drawing
    """

    name: str
    heading: str
    rows: Sequence[Row]
    panels: Sequence[Panel] = ()
    table: str = ""

    def write(self, folder: Path) -> Path | None:
        """Draw the figure into a file, or print it if it is a table.

        Return the path of the file, or None without one.
        """
        if self.table:
            print(f"{self.heading}\n{self.table}")
            return None
        path = folder / f"{self.name}.svg"
        return path if draw(path, self.panels, self.heading) else None


def where(row: Mapping[str, Any]) -> str:
    """Return the machine, threads and day of a row, for the heading of a figure."""
    threads = f", {row['threads']} threads" if row["threads"] else ""
    return f"{row['machine']}{threads}, {row['date'][:10]}"


def draw(path: Path, panels: Sequence[Panel], heading: str) -> bool:
    """Write the figure; if no panel has a curve, write nothing and return False."""
    if not any(places for panel in panels for places in panel.curves.values()):
        return False
    # matplotlib is imported only here, and draws without a window.
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import LogFormatter, NullFormatter

    style: Any = {
        "font.size": 8,
        "svg.fonttype": "none",  # text is stored as text and not as shapes, which makes files smaller
        "svg.hashsalt": "tonari",  # a fixed salt, so that equal rows give equal files
        "axes.grid": True,
        "grid.linewidth": 0.3,
        "lines.linewidth": 1,
        "lines.markersize": 3.5,
        "legend.fontsize": 7,
        "legend.frameon": False,
    }
    across = min(len(panels), PANELS_IN_A_ROW)
    down = -(-len(panels) // across)
    with plt.rc_context(style):
        width = 3.3 * across if across > 1 else 3.4  # the width of a page on a phone
        figure, grid = plt.subplots(down, across, figsize=(width, 2.7 * down + 0.4), squeeze=False)
        for axes, panel in zip(grid.flat, panels, strict=False):
            for marker, (series, places) in zip(MARKERS * 3, panel.curves.items(), strict=False):
                if places:
                    xs, ys = zip(*sorted(places), strict=True)
                    crowded = len(xs) > 20
                    axes.plot(xs, ys, marker=None if crowded else marker, label=series)
            axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
            if panel.log_x:
                axes.set_xscale("log", base=panel.base)
                axes.xaxis.set_minor_formatter(NullFormatter())  # labels of minor ticks would overlap
            if panel.log_y:
                axes.set_yscale("log")
                axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
                axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.4)))
            if axes.has_data():
                axes.legend()
        for axes in grid.flat[len(panels) :]:
            axes.remove()
        title = figure.suptitle(heading)
        _wrap(title, figure)
        figure.tight_layout()
        if any(_hides_lines(axes) for axes in figure.axes):
            for axes in figure.axes:
                _put_legend_below(axes)
            figure.set_figheight(figure.get_figheight() + 0.13 * down * max(map(len, (p.curves for p in panels))))
            figure.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata={"Date": None})
        plt.close(figure)
    return True


def _wrap(title: Any, figure: Any) -> None:
    """Break the lines of a heading that are wider than the figure, and make the figure higher."""
    lines = title.get_text().split("\n")
    for letters in range(max(map(len, lines)), 0, -1):
        parts = [part for line in lines for part in textwrap.wrap(line, letters, break_long_words=False)]
        title.set_text("\n".join(parts))
        if title.get_window_extent().width <= 0.98 * figure.bbox.width:
            break
    figure.set_figheight(figure.get_figheight() + 0.16 * title.get_text().count("\n"))


def _hides_lines(axes: Any) -> bool:
    """Whether the legend of the axes hides a part of a curve."""
    legend = axes.get_legend()
    if legend is None:
        return False
    box = legend.get_window_extent()
    return any(
        line.get_path().transformed(line.get_transform()).intersects_bbox(box, filled=False) for line in axes.lines
    )


def _put_legend_below(axes: Any) -> None:
    """Put the legend of the axes under the name of their horizontal axis."""
    if axes.get_legend() is not None:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2))
