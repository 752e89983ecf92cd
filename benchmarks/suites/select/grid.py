"""Every named method over a grid of shapes, and ``auto`` compared with the best of them.

The methods of a cell (a shape, a k and a dtype) are timed on random data. The methods within CONTENDS of the best are
also timed on descending rows, which are slow for methods with a running minimum. The table of ``auto`` is learnt from
both times (``select_learn``), so that no cell is very slow. Then ``auto`` and the best named method are timed
alternately; the bar is 1.1 times the seconds of the latter.

``other-float32`` is a second grid, with shapes between those of the first. Nothing is learnt from it, so it shows the
quality of the table.

A method is not timed on a cell if it took more than HOPELESS times as long as the best method, and long enough to
matter, on a cell with the same number of rows, at most this n and at most this k. (With more rows it may be faster,
because a single row leaves lanes idle.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from ...harness.case import Bar, Case
from ...harness.datasets import selections
from ...harness.device import take_turns
from ...harness.proof.selection import PROOF, Proof
from ...harness.rows import Row, settings
from ...harness.run import Run, say, seconds_of
from .measure import call_of, columns, measure, over, size, speed, tried

ON, BAR, OTHER_BAR = "best named", 1.1, 1.15
BESIDE = "beside auto"
# Seconds spent on timing each variant of a cell, and on timing ``auto`` and the best variant.
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
OTHER_K = (20, 100, 700)
OTHER_ROWS = {"cuda": (3, 50, 700, 5000), "cpu": (3, 50, 1000)}
OTHER_N = {"cuda": (3000, 60_000, 500_000), "cpu": (3000, 60_000, 500_000)}
# Maximum number of values in a cell.
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
    """One cell of the grid: a dtype, a shape and k."""

    dtype: str
    rows: int
    n: int
    k: int


def variants(device: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the variants: every named method with each sensible combination of its options."""
    found = [(queue, options) for queue in ("insertion", "heap", "merge_queue") for options in QUEUE_OPTIONS]
    found += [("hierarchical", {"group": group}) for group in GROUPS]
    found += [("quick", {"unit": unit}) for unit in ("warp", "block")] if device == "cuda" else [("quick", {})]
    finishes = [{}] if device == "cuda" else [{"finish": finish} for finish in ("heap", "halving")]
    found += [("threshold", options) for options in finishes]
    return [*found, ("bitonic", {}), ("radix", {})]


def shapes(run: Run, dtype: str, *, learnt: bool = True) -> Iterator[Shape]:
    """Yield the cells of one dtype, small cells first.

    They are those of the grid from which ``auto`` learns, or of the other grid.
    """
    kind = run.device.kind
    seen = set()
    sizes_n, sizes_rows, sizes_k = (SIZES_N, SIZES_ROWS, SIZES_K) if learnt else (OTHER_N, OTHER_ROWS, OTHER_K)
    for n in sizes_n[kind]:
        for rows in sizes_rows[kind]:
            for k in sizes_k:
                shape = Shape(dtype, *size(run, rows, n), k)
                if shape.rows * shape.n <= LARGEST[kind] and k <= shape.n and shape not in seen:
                    seen.add(shape)
                    yield shape


class History:
    """A record of the cells on which each variant was hopelessly slow."""

    def __init__(self) -> None:
        self._hopeless: dict[str, list[Shape]] = {}

    def learn(self, shape: Shape, seconds: Mapping[str, float]) -> None:
        """Record the seconds of the variants on one cell."""
        best = min(seconds.values())
        for name, value in seconds.items():
            if value > HOPELESS * best and value > MATTERS:
                self._hopeless.setdefault(name, []).append(shape)

    def hopeless(self, name: str, shape: Shape) -> Shape | None:
        """Return a cell on which the variant was hopelessly slow, with as many rows, no larger n and no larger k.

        Return None if no such cell is known.
        """
        for known in self._hopeless.get(name, []):
            if known[:2] == shape[:2] and known.n <= shape.n and known.k <= shape.k:
                return known
        return None


def cases() -> Iterator[Case]:
    """Return a case for each dtype, and a case for a second grid of shapes.

    They take long, so they run only by name.
    """
    for device in ("cpu", "cuda"):
        common: dict[str, Any] = {"data": "random", "metric": "", "rare": True}
        for dtype in DTYPES:
            bars = (Bar(ON, BAR, most=True, home=""),)
            yield Case(f"grid-{dtype}", device, 0, 0, 0, 0, grid, bars=bars, dtype=dtype, cost=600.0, **common)
        bars = (Bar(ON, OTHER_BAR, most=True, home=""),)
        yield Case("other-float32", device, 0, 0, 0, 0, other, bars=bars, dtype="float32", cost=150.0, **common)


def grid(run: Run, case: Case) -> None:
    """Measure each cell of a dtype, with all methods or only with those that the user named."""
    _measure_cells(run, case, learnt=True)


def other(run: Run, case: Case) -> None:
    """Measure a second grid of shapes, from which ``auto`` learns nothing, on random rows only."""
    _measure_cells(run, case, learnt=False)


def _measure_cells(run: Run, case: Case, *, learnt: bool) -> None:
    dtype, device = case.dtype, run.device.kind
    named = [variant for variant in variants(device) if run.wants(variant[0])]
    cells = list(shapes(run, dtype, learnt=learnt))
    pool = selections.Pool(max(shape.rows * shape.n for shape in cells), dtype, device)
    history = History()
    for (rows, n), together in groupby(cells, lambda shape: (shape.rows, shape.n)):
        # the true selection of both kinds of rows is computed once for all k
        group = list(together)
        widest = max(shape.k for shape in group)
        proof = Proof(pool.view(rows, n), widest)
        steep = Proof(selections.make("descending", rows, n, dtype, device), widest) if learnt else None
        for shape in group:
            say(f"{dtype}, {rows} x {n}, k = {shape.k}")
            if over(run):
                run.write(case, [{"who": "tonari", "note": "not reached: this cell and those after it"}])
                return
            below = None if steep is None else steep.narrowed(shape.k)
            run.write(case, measure_cell(run, case, shape, proof.narrowed(shape.k), below, history, named))


def measure_cell(
    run: Run,
    case: Case,
    shape: Shape,
    proof: Proof,
    steep: Proof | None,
    history: History,
    chosen: Sequence[tuple[str, dict[str, Any]]],
) -> list[Row]:
    """Time all variants of one cell, and compare ``auto`` with the best.

    Variants that are nearly as fast as the best are also timed on descending rows.
    """
    rows = []
    seconds: dict[str, float] = {}
    named = {variant_name(method, extra): (method, extra) for method, extra in chosen}
    for name, (method, extra) in named.items():
        known = history.hopeless(name, shape)
        if known is None:
            row = measure(run, proof, method, extra, seconds=SECONDS, most=run.repeats)
        else:
            row = {"note": f"hopeless at {known.rows} x {known.n}, k = {known.k}"}
        rows.append(columns(proof, method, extra) | row)
        if "seconds_median" in row:
            seconds[name] = row["seconds_median"]
    if not seconds:
        return rows
    history.learn(shape, seconds)
    best = min(seconds, key=seconds.__getitem__)
    rows += _auto_rows(run, case, proof, named[best])
    for name in seconds if steep is not None else ():
        if seconds[name] <= CONTENDS * seconds[best]:
            row = measure(run, steep, *named[name], seconds=SECONDS, most=run.repeats)
            rows.append(columns(steep, *named[name], data="descending") | row)
    return rows


def variant_name(method: str, options: Mapping[str, Any]) -> str:
    """Return the name of a variant in tables, such as ``heap buffer=full group=4``."""
    return f"{method} {settings(options)}".strip()


def _auto_rows(run: Run, case: Case, proof: Proof, best: tuple[str, dict[str, Any]]) -> list[Row]:
    """Time ``auto`` and the best named method alternately, and judge ``auto``."""
    ours, other = columns(proof, "auto", {}), columns(proof, *best) | {"stage": BESIDE}

    def work() -> dict[str, Any]:
        calls = {
            name: call_of(run, proof.tensor, proof.k, method, options, "last")
            for name, (method, options) in {"auto": ("auto", {}), "best": best}.items()
        }
        proved = proof.check(calls["auto"]())
        timings = take_turns(run.device, calls, seconds=4 * SECONDS, most=2 * run.repeats + 1)
        ratio = timings["auto"].median / timings["best"].median
        (verdict,) = run.verdicts(case.bars, {ON: ratio})
        fast = speed(run, timings["auto"], proof.tensor.nbytes) | {"proof": PROOF, "proved": proved}
        return {"rows": [ours | fast | verdict, other | {"ratio": 1 / ratio} | seconds_of(timings["best"])]}

    found = tried(run, f"auto at {tuple(proof.tensor.shape)}", work)
    rows: list[Row] = found["rows"] if "rows" in found else [ours | found]
    return rows
