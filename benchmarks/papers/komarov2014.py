"""komarov2014, Results: quick multi-select against sorting, digits and one core; figures 7 to 10.

Figures 7 (truncated bitonic sort) and 8 (radix selection) keep rows x n constant and vary their ratio; there radix
took one row at a time, ours takes all. Figure 10 has std::nth_element on one core: here NumPy's partition on one core,
whose loop is the same kind, and torch.topk beside it. Figure 9 asks when the device is full: time per row against rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..harness.plots import Curves, Panel
from ..harness.run import Run
from ..suites.select.measure import size
from .sweep import Paper, Point, curves, seconds

PRODUCT = {"cuda": 2**26, "cpu": 2**24}
SIZES_ROWS = {"cuda": tuple(2**i for i in range(4, 15, 2)), "cpu": tuple(2**i for i in range(2, 13, 2))}
SIZES_K = (32, 128, 512)
# Figure 9.
N = 2**15
QUERIES = tuple(2**i for i in range(14))
SIZES_N = tuple(2**i for i in range(11, 17))
ROWS = 2**9
RIVALS = {"7": ("bitonic",), "8": ("radix",), "10": ("numpy", "torch.topk")}


def quicks(device: str) -> dict[str, dict[str, Any]]:
    """Options of quick multi-select, by name."""
    return {f"quick, {unit}": {"unit": unit} for unit in ("warp", "block")} if device == "cuda" else {"quick": {}}


def points(run: Run) -> Iterator[Point]:
    """All measurements."""
    device = run.device.kind
    contestants = {name: ("quick", options) for name, options in quicks(device).items()}
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


# --- drawing -----------------------------------------------------------------------------------------------------


def panels(figure: str, rows: Sequence[dict[str, Any]]) -> list[Panel]:
    """One figure of the paper, from its rows."""
    if figure == "9":
        times = curves(rows, "m", lambda row: _scaled(row, 1e6 / row["m"]))
        return [Panel("", "rows", "microseconds per row", times)]
    placed = [row | {"x": row["n"] if figure == "10" else row["n"] / row["m"]} for row in rows]
    found = curves(placed, "x", seconds)
    label = "n" if figure == "10" else "n / rows, at constant rows x n"
    return [
        Panel(f"{rival}'s time / quick's", label, "times faster", speedups(found, rival), log_y=False)
        for rival in RIVALS[figure]
    ]


def speedups(found: Curves, rival: str) -> Curves:
    """Seconds of a rival over those of the faster form of quick, by k."""
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


PAPER = Paper("komarov2014", ("7", "8", "9", "10"), points, panels)
SUITE = PAPER.suite()
