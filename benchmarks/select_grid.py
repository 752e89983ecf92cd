"""Every named method over a grid of shapes, and ``auto`` against the best of them.

Seconds of a cell decide on random data. Those methods that come within CONTENDS of the best are timed on descending
rows too, which no method by running minimum likes: the table of ``auto`` is learnt from both (``select_learn``), so
that no cell has a cliff. Then ``auto`` and the best named method take turns; the bar is 1.1 times its seconds.

A method is left out of a cell when for as many rows, no longer and with no larger k, it took more than HOPELESS times
as long as the best, and long enough to matter. (More rows can do it good: one row leaves the lanes beside it idle.)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from . import report, select_data
from .select_device import take_turns
from .select_proof import Proof
from .select_run import Run, case_columns, say

MODE = "grid"
BAR = 1.1
# Of timing, for each variant of a cell, and for ``auto`` against the best.
SECONDS = 0.05
CONTENDS = 2.0
HOPELESS = 20.0
MATTERS = 1e-3

DTYPES = ("float32", "float16", "float64", "uint8")
SIZES_K = (10, 32, 64, 256, 1024, 2048)
SIZES_ROWS = {"cuda": (1, 4, 16, 2**7, 2**10, 2**13), "cpu": (1, 16, 2**8, 2**11)}
SIZES_N = {
    "cuda": (2**10, 2**13, 2**15, 2**17, 2**20, 2**24),
    "cpu": (2**10, 2**13, 2**15, 2**17, 2**20),
}
# Values of one cell.
LARGEST = {"cuda": 2**30, "cpu": 2**26}
GROUPS = (4, 8, 16, 32, 64)
QUEUE_OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"buffer": "full"},
    {"buffer": "sorted"},
    {"buffer": "full", "group": 4},
    {"buffer": "full", "group": 16},
)


class Shape(NamedTuple):
    """One cell of the grid."""

    dtype: str
    rows: int
    n: int
    k: int


def variants(device: str) -> list[tuple[str, dict[str, Any]]]:
    """Named methods with the options that make sense."""
    found = [(queue, options) for queue in ("insertion", "heap", "merge_queue") for options in QUEUE_OPTIONS]
    found += [("hierarchical", {"group": group}) for group in GROUPS]
    found += [("quick", {"unit": unit}) for unit in ("warp", "block")] if device == "cuda" else [("quick", {})]
    finishes = [{}] if device == "cuda" else [{"finish": finish} for finish in ("heap", "halving")]
    found += [("threshold", options) for options in finishes]
    return [*found, ("bitonic", {}), ("radix", {})]


def shapes(run: Run, dtype: str) -> Iterator[Shape]:
    """The cells of one dtype, each after those that are smaller."""
    kind = run.device.kind
    seen = set()
    for n in SIZES_N[kind]:
        for rows in SIZES_ROWS[kind]:
            for k in SIZES_K:
                shape = Shape(dtype, *run.size(rows, n), k)
                if shape.rows * shape.n <= LARGEST[kind] and k <= shape.n and shape not in seen:
                    seen.add(shape)
                    yield shape


class History:
    """Which variants were hopeless where."""

    def __init__(self) -> None:
        self._hopeless: dict[str, list[Shape]] = {}

    def learn(self, shape: Shape, seconds: Mapping[str, float]) -> None:
        """Seconds of the variants of one cell."""
        best = min(seconds.values())
        for name, value in seconds.items():
            if value > HOPELESS * best and value > MATTERS:
                self._hopeless.setdefault(name, []).append(shape)

    def hopeless(self, name: str, shape: Shape) -> Shape | None:
        """A cell of as many rows, no larger otherwise, where the variant was hopeless."""
        for known in self._hopeless.get(name, []):
            if known[:2] == shape[:2] and known.n <= shape.n and known.k <= shape.k:
                return known
        return None


def run_grid(
    run: Run, dtypes: Sequence[str], repeats: int = 7, methods: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Measure every cell, all methods or those named: rows of results."""
    results: list[dict[str, Any]] = []
    named = [variant for variant in variants(run.device.kind) if methods is None or variant[0] in methods]
    for dtype in dtypes:
        cells = list(shapes(run, dtype))
        pool = select_data.Pool(max(shape.rows * shape.n for shape in cells), dtype, run.device.kind)
        history = History()
        for (rows, n), group in groupby(cells, lambda shape: (shape.rows, shape.n)):
            # The truth about both kinds of rows is found once for all k.
            widest = min(n, max(SIZES_K))
            proof = Proof(pool.view(rows, n), widest)
            steep = Proof(select_data.make("descending", rows, n, dtype, run.device.kind), widest)
            for shape in group:
                say(f"{dtype}, {rows} x {n}, k = {shape.k}")
                if run.over():
                    say("the run's time is up: this cell and those after it were not reached")
                    return results
                narrow = proof.narrowed(shape.k), steep.narrowed(shape.k)
                results += run.write(measure_cell(run, shape, *narrow, history, repeats, named))
    return results


def measure_cell(
    run: Run,
    shape: Shape,
    proof: Proof,
    steep: Proof,
    history: History,
    repeats: int,
    chosen: Sequence[tuple[str, dict[str, Any]]],
) -> list[dict[str, Any]]:
    """All variants of one cell, ``auto`` against the best, and the contenders on descending rows (``steep``)."""
    rows = []
    seconds: dict[str, float] = {}
    named = {variant_name(method, extra): (method, extra) for method, extra in chosen}
    for name, (method, extra) in named.items():
        known = history.hopeless(name, shape)
        if known is None:
            row = run.measure(proof, method, extra, seconds=SECONDS, most=repeats)
        else:
            row = {"note": f"hopeless at {known.rows} x {known.n}, k = {known.k}"}
        rows.append(case_columns(MODE, proof, method, extra) | row)
        if "seconds_median" in row:
            seconds[name] = row["seconds_median"]
    if not seconds:
        return rows
    history.learn(shape, seconds)
    best = min(seconds, key=seconds.__getitem__)
    rows.append(_auto_row(run, proof, named[best], repeats))
    for name in seconds:
        if seconds[name] <= CONTENDS * seconds[best]:
            row = run.measure(steep, *named[name], seconds=SECONDS, most=repeats)
            rows.append(case_columns(MODE, steep, *named[name], data="descending") | row)
    return rows


def variant_name(method: str, options: Mapping[str, Any]) -> str:
    """How a variant is written in tables: ``heap buffer=full group=4``."""
    return " ".join([method, *(f"{key}={value}" for key, value in options.items())])


def _auto_row(run: Run, proof: Proof, best: tuple[str, dict[str, Any]], repeats: int) -> dict[str, Any]:
    """``auto`` and the best named method in turns, judged."""

    def work() -> dict[str, Any]:
        calls = {
            name: run.call(proof.tensor, proof.k, method, options, "last")
            for name, (method, options) in {"auto": ("auto", {}), "best": best}.items()
        }
        verified = proof.check(calls["auto"]())
        timings = take_turns(run.device, calls, seconds=4 * SECONDS, most=2 * repeats + 1)
        ratio = timings["auto"].median / timings["best"].median
        return run.speed(timings["auto"], proof.tensor.nbytes) | {
            "verified": verified,
            "peer": variant_name(*best),
            "peer_seconds": timings["best"].median,
            "ratio": ratio,
            "bar_on": "best named",
            "bar": BAR,
            "passed": ratio <= BAR,
        }

    return case_columns(MODE, proof, "auto", {}) | run.guarded(f"auto at {tuple(proof.tensor.shape)}", work)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """One line a cell: ``auto``, the best named method, and how far the first is behind; and how many keep the bar."""
    lines = [("dtype", "rows", "n", "k", "auto ms", "GB/s", "best ms", "ratio", "", "best named")]
    judged = []
    for row in rows:
        if row["method"] != "auto":
            continue
        what = (row["dtype"], str(row["rows"]), str(row["n"]), str(row["k"]))
        if row.get("note"):
            lines.append((*what, "", "", "", "", "", row["note"]))
            continue
        judged.append(row["passed"])
        lines.append(
            (
                *what,
                f"{row['seconds_median'] * 1e3:.4g}",
                f"{row['gbps']:.4g}",
                f"{row['peer_seconds'] * 1e3:.4g}",
                f"{row['ratio']:.2f}",
                "pass" if row["passed"] else "MISS",
                row["peer"],
            )
        )
    kept = f"auto within {BAR} times the best named method in {sum(judged)} of {len(judged)} cells"
    return f"{report.aligned(lines)}\n{kept}"


def all_seconds(rows: Sequence[Mapping[str, Any]]) -> str:
    """The whole grid: milliseconds of every variant on random rows, a line each, a column a cell's k."""
    cells: dict[tuple[str, int, int], dict[str, dict[int, str]]] = {}
    for row in rows:
        if row["data"] != "random" or row["method"] == "auto":
            continue
        options = json.loads(row["options"])
        note = row.get("note")
        cell = str(note).split()[0].rstrip(":") if note else f"{row['seconds_median'] * 1e3:.4g}"
        shape = cells.setdefault((row["dtype"], row["rows"], row["n"]), {})
        shape.setdefault(variant_name(row["method"], options), {})[row["k"]] = cell
    blocks = []
    for (dtype, count, n), found in cells.items():
        sizes = sorted({k for line in found.values() for k in line})
        lines = [[f"{dtype}, {count} x {n}, ms", *(f"k={k}" for k in sizes)]]
        lines += [[name, *(line.get(k, "") for k in sizes)] for name, line in found.items()]
        blocks.append(report.aligned(lines))
    return "\n\n".join(blocks)
