"""tang2015, section IV: queues, Buffered Search and Hierarchical Partition; figures 5 to 9 and table I.

Q = 2^13 rows of random values; N = 2^15 where k varies over 2^5 ... 2^10, k = 2^8 where N varies over 2^13 ... 2^16. An
improvement is the seconds of the bare queue divided by those of the queue with the technique. The merge queue is the
aligned one except in figure 5 and where table I says otherwise.

The number of updates of the insertion queue has a closed form. Of values in random order, the i-th is among the j
smallest so far with probability min(1, j / i). Then the queue's position for the j-th smallest value is written: by the
new value, or by a value that it moves. For a row of n values, the expected number of writes to this position is
E(j) = sum over i <= n of min(1, j / i) = j + j (H_n - H_j).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...harness.plots import Curves, Panel
from ...harness.rows import aligned
from ...harness.run import Run
from ...suites.select.measure import size
from ..sweep import Paper, Point, curves, improvements, seconds

Q, N, K = 2**13, 2**15, 2**8
SIZES_K = tuple(2**i for i in range(5, 11))
SIZES_N = tuple(2**i for i in range(13, 17))
COUNTED_ROWS, COUNTED_K = 1024, 2**6
GROUPS = (2, 4, 8, 16)

QUEUES: dict[str, tuple[str, dict[str, Any]]] = {
    "insertion": ("insertion", {}),
    "heap": ("heap", {}),
    "merge": ("merge_queue", {"aligned": True}),
}
COUNTED_QUEUES = {
    "insertion": ("insertion", {}),
    "heap": ("heap", {}),
    "merge": ("merge_queue", {"aligned": False}),
    "merge, aligned": ("merge_queue", {"aligned": True}),
}
BUFFERS = {"buffer": "own", "full buffer": "full", "full buffer, sorted": "sorted"}
BARE = "bare"
BOTH = {"buffer": "full", "group": 4}


def closed_form(n: int, k: int) -> np.ndarray:
    """Return the expected number of writes to each of the k positions of an insertion queue.

    The position of the largest value comes first.
    """
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n + 1))])
    j = np.arange(k, 0, -1)
    expected: np.ndarray = j + j * (harmonic[n] - harmonic[j])
    return expected


def points(run: Run) -> Iterator[Point]:
    """Yield all measurements, figure by figure."""
    rows, n = size(run, Q, N)
    for k in SIZES_K:
        for queue, (method, options) in COUNTED_QUEUES.items():
            yield Point("5", queue, min(rows, COUNTED_ROWS), n, k, method, options, counted=True)
    for queue, (method, options) in QUEUES.items():
        buffers: dict[str, dict[str, Any]] = {name: {"buffer": buffer} for name, buffer in BUFFERS.items()}
        for k in SIZES_K:
            for name, extra in {BARE: {}, **buffers}.items():
                yield Point("6", f"{queue}: {name}", rows, n, k, method, options | extra)
    for queue, (method, options) in QUEUES.items():
        groups: dict[str, dict[str, Any]] = {f"G = {group}": {"group": group} for group in GROUPS}
        for name, extra in {BARE: {}, **groups}.items():
            for k in SIZES_K:
                yield Point("7", f"{queue}: {name}", rows, n, k, method, options | extra)
            for length in _sizes_n(run):
                yield Point("8", f"{queue}: {name}", rows, length, K, method, options | extra)
    for queue, (method, options) in QUEUES.items():
        for name, extra in {BARE: {}, "both": BOTH}.items():
            for length, k in _table_cells(run):
                yield Point("9", f"{queue}: {name}", rows, length, k, method, options | extra)
    for series, (method, options) in table_methods(run.device.kind).items():
        for length, k in _table_cells(run):
            yield Point("table I", series, rows, length, k, method, options)


def _sizes_n(run: Run) -> list[int]:
    return sorted({size(run, Q, n)[1] for n in SIZES_N})


def _table_cells(run: Run) -> list[tuple[int, int]]:
    n = size(run, Q, N)[1]
    return list(dict.fromkeys([*((n, k) for k in SIZES_K), *((length, K) for length in _sizes_n(run))]))


def table_methods(device: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return (method, options) for each line of table I: the paper's methods, tonari's others, and torch.topk."""
    # on a GPU, the method "threshold" has only one finish, halving
    threshold: dict[str, tuple[str, dict[str, Any]]] = {"threshold": ("threshold", {})}
    if device == "cpu":
        threshold = {f"threshold, {finish}": ("threshold", {"finish": finish}) for finish in ("heap", "halving")}
    queues = {**QUEUES, "merge": ("merge_queue", {"aligned": False}), "merge, aligned": QUEUES["merge"]}
    quick: dict[str, dict[str, Any]] = {"quick": {}}
    if device == "cuda":
        quick = {f"quick, {unit}": {"unit": unit} for unit in ("warp", "block")}
    return {
        **queues,
        **{f"{queue}, buffer + HP": (method, options | BOTH) for queue, (method, options) in queues.items()},
        "bitonic": ("bitonic", {}),
        **{name: ("quick", options) for name, options in quick.items()},
        "hierarchical": ("hierarchical", {}),
        **threshold,
        "radix": ("radix", {}),
        "auto": ("auto", {}),
        "torch.topk": ("torch.topk", {}),
    }


def summary(counters: Any, point: Point) -> dict[str, Any]:
    """Return the counted updates per row: in total and, for the k of figure 5a, at each position of the queue."""
    updates = np.asarray(counters.updates) / point.rows
    kept: dict[str, Any] = {"updates": float(updates.sum()), "merges": counters.merges, "lanes": counters.lanes}
    if point.k == COUNTED_K:
        kept["positions"] = [round(float(value), 3) for value in updates]
    return kept


# --- drawing -----------------------------------------------------------------------------------------------------


def panels(figure: str, rows: Sequence[dict[str, Any]]) -> list[Panel]:
    """Return the panels of one figure of the paper, made from its rows."""
    if figure == "5":
        return _updates(rows)
    axes = {"6": ("k",), "7": ("k",), "8": ("n",), "9": ("k", "n")}[figure]
    found = []
    for axis in axes:
        for queue in QUEUES:
            own = [
                row | {"series": row["series"].partition(": ")[2]}
                for row in rows
                if row["series"].partition(": ")[0] == queue
            ]
            places = _along(own, axis)
            better = improvements(curves(places, axis, seconds), BARE)
            title = f"{queue} queue, {_fixed(places, axis)}"
            found.append(Panel(title, axis, "bare queue's time / time", better, log_y=False))
    return found


def _along(rows: Sequence[dict[str, Any]], axis: str) -> list[dict[str, Any]]:
    """Return the rows to draw against k or n (`axis`): those with the most frequent value of the other one."""
    other = "n" if axis == "k" else "k"
    values = [row[other] for row in rows]
    return [row for row in rows if row[other] == max(set(values), key=values.count)] if rows else []


def _fixed(rows: Sequence[dict[str, Any]], axis: str) -> str:
    if not rows:
        return ""
    return f"n = {rows[0]['n']}" if axis == "k" else f"k = {rows[0]['k']}"


def _updates(rows: Sequence[dict[str, Any]]) -> list[Panel]:
    at: Curves = {}
    for row in rows:
        if "positions" in row["counters"]:
            at[row["series"]] = [(place + 1, value) for place, value in enumerate(row["counters"]["positions"])]
    totals = curves(rows, "k", lambda row: row["counters"].get("updates"))
    if rows:
        n = rows[0]["n"]
        at["insertion, closed form"] = [(i + 1, float(v)) for i, v in enumerate(closed_form(n, COUNTED_K))]
        sizes = sorted({row["k"] for row in rows})
        totals["insertion, closed form"] = [(k, float(closed_form(n, k).sum())) for k in sizes]
    return [
        Panel(f"k = {COUNTED_K}", "position in the queue, head first", "updates per row", at, log_x=False),
        Panel("all positions", "k", "updates per row", totals),
    ]


def table(found: Sequence[dict[str, Any]]) -> str:
    """Return table I as text, in milliseconds, made from its rows."""
    cells = list(dict.fromkeys((row["n"], row["k"]) for row in found))
    lines = [["ms", *(f"n={n} k={k}" for n, k in cells)]]
    for series in dict.fromkeys(row["series"] for row in found):
        at = {(row["n"], row["k"]): row for row in found if row["series"] == series}
        lines.append([series, *(_cell(at.get(cell)) for cell in cells)])
    return aligned(lines)


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    value = seconds(row)
    return str(row["note"]).partition(":")[0] if value is None else f"{value * 1e3:.3g}"


PAPER = Paper("tang2015", ("5", "6", "7", "8", "9", "table I"), points, panels, summary, tables={"table I": table})
