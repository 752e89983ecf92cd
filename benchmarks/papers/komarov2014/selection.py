"""komarov2014, Results: quick multi-select compared with other selections; figures 5 to 10 and table 2.

- Figures 5 and 6: insertion (Garcia et al.). Figure 5 varies n and k, with enough rows to fill the device; figure 6
  varies the number of rows and k. Our copy of the paper lacks the ranges; figure 5 has the n and k of tang2015.
- Figures 7 and 8: truncated bitonic sort, and radix selection. The product of rows and n is constant, their ratio
  varies. The paper's radix selection processes one row after the other, ours all rows at once.
- Figure 9: time per row against the number of rows, which shows when the device is full.
- Figure 10: one core. The paper has std::nth_element; here it is NumPy's partition, with a similar loop, and
  torch.topk.
- Table 2: the spread of the time over data sets, here over rows of different kinds with the same shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...harness.datasets.selections import sift_size
from ...harness.plots import Curves, Panel
from ...harness.rows import aligned
from ...harness.run import Run
from ...suites.select.measure import size
from ..sweep import Paper, Point, curves, seconds

PRODUCT = {"cuda": 2**26, "cpu": 2**24}
SIZES_ROWS = {"cuda": tuple(2**i for i in range(4, 15, 2)), "cpu": tuple(2**i for i in range(2, 13, 2))}
SIZES_K = (32, 128, 512)
# Sizes of figure 9.
N = 2**15
QUERIES = tuple(2**i for i in range(14))
SIZES_N = tuple(2**i for i in range(11, 17))
ROWS = 2**9
# Sizes of figures 5 and 6.
INSERTED_K = tuple(2**i for i in range(5, 10))
INSERTED_N = tuple(2**i for i in range(13, 17))
FULL_ROWS = {"cuda": 2**13, "cpu": 2**8}
INSERTED_ROWS = {"cuda": tuple(2**i for i in range(5, 15)), "cpu": tuple(2**i for i in range(4, 10))}
# Shapes and kinds of data of table 2.
TABLE_ROWS = {"cuda": 2**11, "cpu": 2**9}
TABLE_DATA = ("uniform", "random", "exponential", "ascending", "descending", "repeated", "sift")
RIVALS = {"5": ("insertion",), "6": ("insertion",), "7": ("bitonic",), "8": ("radix",), "10": ("numpy", "torch.topk")}


def quicks(device: str) -> dict[str, dict[str, Any]]:
    """Return the options of quick multi-select for each contestant's name; on a GPU there are two variants."""
    return {f"quick, {unit}": {"unit": unit} for unit in ("warp", "block")} if device == "cuda" else {"quick": {}}


def points(run: Run) -> Iterator[Point]:
    """Yield all measurements for the figures and table 2."""
    device = run.device.kind
    contestants = {name: ("quick", options) for name, options in quicks(device).items()}
    inserted = [("5", FULL_ROWS[device], n) for n in INSERTED_N] + [("6", m, N) for m in INSERTED_ROWS[device]]
    for figure, rows, n in inserted:
        rows, n = size(run, rows, n)
        for k in INSERTED_K:
            for name, (method, options) in (contestants | {"insertion": ("insertion", {})}).items():
                yield Point(figure, f"k = {k}: {name}", rows, n, k, method, options)
    for figure in ("7", "8"):
        rivals = contestants | {rival: (rival, {}) for rival in RIVALS[figure]}
        for wanted in SIZES_ROWS[device]:
            rows, n = size(run, wanted, PRODUCT[device] // wanted)
            for k in SIZES_K:
                for name, (method, options) in rivals.items():
                    yield Point(figure, f"k = {k}: {name}", rows, n, k, method, options)
    for wanted in QUERIES:
        rows, n = size(run, wanted, N)
        for k in SIZES_K:
            for name, (method, options) in contestants.items():
                yield Point("9", f"k = {k}: {name}", rows, n, k, method, options)
    rivals = contestants | {rival: (rival, {}) for rival in RIVALS["10"]}
    for wanted in SIZES_N:
        rows, n = size(run, ROWS, wanted)
        for k in SIZES_K:
            for name, (method, options) in rivals.items():
                yield Point("10", f"k = {k}: {name}", rows, n, k, method, options)
    # all kinds of data have the same shape, one for which enough descriptors exist
    rows, n = sift_size(*size(run, TABLE_ROWS[device], N))
    for k in SIZES_K:
        for name, (method, options) in contestants.items():
            for data in TABLE_DATA:
                yield Point("table 2", f"k = {k}: {name}", rows, n, k, method, options, data)


# --- drawing -----------------------------------------------------------------------------------------------------


def panels(figure: str, rows: Sequence[dict[str, Any]]) -> list[Panel]:
    """Return the panels of one figure of the paper, made from its rows."""
    if figure == "9":
        times = curves(rows, "m", lambda row: _scaled(row, 1e6 / row["m"]))
        return [Panel("", "rows", "microseconds per row", times)]
    along = {"5": "n", "6": "m", "10": "n"}.get(figure)
    placed = [row | {"x": row[along] if along else row["n"] / row["m"]} for row in rows]
    found = curves(placed, "x", seconds)
    label = {"n": "n", "m": "rows", None: "n / rows, at constant rows x n"}[along]
    return [
        Panel(f"{rival}'s time / quick's", label, "times faster", speedups(found, rival), log_y=False)
        for rival in RIVALS[figure]
    ]


def speedups(found: Curves, rival: str) -> Curves:
    """Return, for each k, the seconds of a rival divided by those of the faster variant of quick multi-select."""
    better: Curves = {}
    for series, places in found.items():
        k, _, name = series.partition(": ")
        if name != rival:
            continue
        quick: dict[float, float] = {}
        for other, theirs in found.items():
            if other.startswith(f"{k}: quick"):
                for x, y in theirs:
                    quick[x] = min(y, quick.get(x, y))
        better[k] = [(x, y / quick[x]) for x, y in places if x in quick]
    return better


def _scaled(row: dict[str, Any], factor: float) -> float | None:
    value = seconds(row)
    return None if value is None else value * factor


def table(found: Sequence[dict[str, Any]]) -> str:
    """Return table 2 as text: milliseconds on each kind of data, their mean, and their standard deviation."""
    lines = [["ms", *TABLE_DATA, "mean", "deviation"]]
    for series in dict.fromkeys(row["series"] for row in found):
        at = {row["data"]: seconds(row) for row in found if row["series"] == series}
        times = [value for value in at.values() if value is not None]
        cells = ["" if at.get(data) is None else f"{at[data] * 1e3:.3g}" for data in TABLE_DATA]
        mean, spread = np.mean(times), np.std(times)
        lines.append([series, *cells, f"{mean * 1e3:.3g}", f"{100 * spread / mean:.2g} %"])
    return aligned(lines)


PAPER = Paper("komarov2014", ("5", "6", "7", "8", "9", "10", "table 2"), points, panels, tables={"table 2": table})
