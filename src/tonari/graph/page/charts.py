"""Charts as inline SVG; template.py sets the colours of their classes."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.graph.statistics import Histogram

WIDTH, HEIGHT = 360, 190
SHADES = 5  # colours of points on a map; template.py has a class for each

_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 10, 34
_MAP, _EDGE = 360, 8


def short(value: float) -> str:
    """Return a number in few characters: whole numbers below a million in full, others to three digits."""
    if np.isinf(value):
        return "∞" if value > 0 else "-∞"
    if abs(value) < 1e6 and value == int(value):
        return f"{int(value):,}"
    return f"{value:.3g}"


def bars(of: Histogram, *, label: str, unit: str, whole: bool = False) -> str:
    """Draw a histogram.

    Parameters
    ----------
    of : Histogram
    label : str
        The name of the values: the text below the axis, also for screen readers.
    unit : str
        The plural noun for the counted items, such as "points".
    whole : bool
        Whether the values are whole numbers, such as occurrences. Heights are then logarithms of 1 + count, so that
        rare values stay visible.
    """
    heights = np.log1p(of.counts) if whole else of.counts.astype(np.float64)
    least, past = (of.edges + 0.5, of.edges - 0.5) if whole else (of.edges, of.edges)  # first and last value of a bin
    most = float(heights.max()) or 1.0
    right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    step = (right - _LEFT) / len(of.counts)
    drawn = []
    for at, (count, height) in enumerate(zip(of.counts.tolist(), heights, strict=True)):
        if count:
            tall = max(1.0, (bottom - _TOP) * float(height) / most)
            text = f"{short(least[at])} to {short(past[at + 1])}: {count:,} {unit}"
            place = f'x="{_LEFT + at * step:.2f}" y="{bottom - tall:.2f}" width="{max(0.5, step - 1):.2f}"'
            drawn.append(f'<rect class="bar" {place} height="{tall:.2f}"><title>{escape(text)}</title></rect>')
    ticks = []
    for at in (0, len(of.edges) // 2, len(of.edges) - 1) if len(of.counts) > 1 else (0,):
        x = _LEFT + at * step
        anchor = "start" if at == 0 else "end" if at == len(of.edges) - 1 else "middle"
        value = past[at] if anchor == "end" else least[at]
        ticks.append(f'<text x="{x:.2f}" y="{bottom + 14}" text-anchor="{anchor}">{short(value)}</text>')
    highest = int(of.counts.max())
    ticks.append(f'<text x="{_LEFT - 6}" y="{_TOP + 9}" text-anchor="end">{short(highest)}</text>')
    ticks.append(f'<text x="{_LEFT - 6}" y="{bottom}" text-anchor="end">0</text>')
    ticks.append(f'<text class="axis" x="{(_LEFT + right) / 2}" y="{HEIGHT - 4}">{escape(label)}</text>')
    line = f'<path class="line" d="M{_LEFT} {bottom}H{right}"/>'
    text = f"Histogram: {label}"
    return _svg(WIDTH, HEIGHT, text, line + "".join(drawn) + "".join(ticks))


def shades(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    """Return the shade of each value, from 0 to SHADES - 1, and the values at which one shade changes to the next.

    Each shade has about the same number of values.
    """
    limits = np.quantile(values, np.arange(1, SHADES) / SHADES, method="inverted_cdf")
    return np.searchsorted(limits, values, side="left"), limits


def dots(positions: npt.NDArray[np.float64], values: npt.NDArray[Any], *, label: str) -> str:
    """Draw points, the smallest values in the strongest shade."""
    low, span = positions.min(axis=0), np.ptp(positions, axis=0)
    span[span == 0] = 1.0
    at = _EDGE + (_MAP - 2 * _EDGE) * (positions - low) / span
    at[:, 1] = _MAP - at[:, 1]
    shade, _ = shades(values)
    paths = []
    for number in reversed(range(SHADES)):  # the strongest shade is drawn last, on top
        here = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in at[shade == number].tolist())
        if here:
            paths.append(f'<path class="dot s{number}" d="{here}"/>')
    return _svg(_MAP, _MAP, label, "".join(paths))


def _svg(width: int, height: int, label: str, inside: str) -> str:
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}">{inside}</svg>'
