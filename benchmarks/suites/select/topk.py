"""``select_k`` compared with ``torch.topk`` for shapes of every kind: one row of 2**28 values to a million rows of 64.

Two comparisons are judged: rows in order (``sorted=True`` of both), and rows in any order (``select_k`` with
``sorted=False`` compared with the faster of ``torch.topk``'s two modes). ``select_k`` breaks ties by index,
``torch.topk`` does not. The bar is 1.5 times the peer's seconds, in the same rounds.

Every answer is verified on its device before it is timed, in every row. On a GPU the kernels are compiled first, by a
process for each k.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ...harness.case import Bar, Case
from ...harness.datasets import selections
from ...harness.device import take_turns
from ...harness.proof.selection import PROOF, prove_both
from ...harness.rows import Row
from ...harness.run import Run, seconds_of
from .measure import LONG, call_of, over, size, speed, tried

ON, BAR = "torch.topk", 1.5
IN_ORDER, ANY_ORDER = "in order", "in any order"
# Seconds spent on timing each cell.
SECONDS = 0.04
SIZES_ROWS = {"cuda": (1, 2, 16, 128, 2**11, 2**15, 10**6), "cpu": (1, 16, 2**10)}
SIZES_N = {
    "cuda": (2**6, 2**10, 2**13, 2**15, 2**17, 2**20, 2**22, 2**24, 2**26, 2**28),
    "cpu": (2**6, 2**10, 2**13, 2**17, 2**20),
}
SIZES_K = (1, 10, 64, 256, 1024, 4096, 20_000, 65_536)
# Maximum number of float32 values in a cell that is timed.
LARGEST = {"cuda": 2**31, "cpu": 2**24}
# Maximum number of float32 values in a cell whose kernels are compiled in advance.
LARGEST_WARM = 2**28


class Cell(NamedTuple):
    """A shape (rows, n) and a k."""

    rows: int
    n: int
    k: int


def cells_of(run: Run) -> Iterator[Cell]:
    """Return the cells for the device of the run, long rows first; k never exceeds n."""
    kind = run.device.kind
    seen = set()
    for n in reversed(SIZES_N[kind]):
        for rows in SIZES_ROWS[kind]:
            shape = size(run, rows, n)
            for k in (*SIZES_K, shape[1]):
                cell = Cell(*shape, k)
                if cell.rows * cell.n <= LARGEST[kind] and k <= min(cell.n, SIZES_K[-1]) and cell not in seen:
                    seen.add(cell)
                    yield cell


def warm(cells: Sequence[Cell]) -> None:
    """Compile the kernels of the cells in a separate process; they stay in the cache on disk."""
    import torch

    import tonari

    for rows, n, k in cells:
        values = torch.rand((rows, n), device="cuda")
        for ordered in (True, False):
            tonari.select_k(values, k, sorted=ordered, nan="last")
        torch.cuda.synchronize()


def warm_all(cells: Sequence[Cell]) -> None:
    """Compile the kernels of all cells except the largest, in one process for each k.

    Different k share no kernels.
    """
    context = multiprocessing.get_context("spawn")
    small = [cell for cell in cells if cell.rows * cell.n <= LARGEST_WARM]
    children = [
        context.Process(target=warm, args=([cell for cell in small if cell.k == k],))
        for k in sorted({cell.k for cell in small})
    ]
    for child in children:
        child.start()
    for child in children:
        child.join()


def cases() -> Iterator[Case]:
    """Return a case for each device; both run only by name."""
    bar = Bar(ON, BAR, most=True, home="")
    for device in ("cpu", "cuda"):
        common: dict[str, Any] = {"data": "random", "metric": "", "rare": True, "cost": 300.0}
        yield Case("topk", device, 0, 0, 0, 0, every_shape, bars=(bar,), peers=(ON,), **common)


def every_shape(run: Run, case: Case) -> None:
    """Verify and time every cell."""
    cells = list(cells_of(run))
    if run.cuda:
        warm_all(cells)
    pool = selections.Pool(max(cell.rows * cell.n for cell in cells), "float32", run.device.kind)
    for cell in cells:
        if over(run):
            run.write(case, [{"who": "tonari", "note": "not reached: this cell and those after it"}])
            return
        run.write(case, measure_cell(run, case, cell, pool.view(cell.rows, cell.n)))


def measure_cell(run: Run, case: Case, cell: Cell, tensor: Any) -> list[Row]:
    """Measure a cell; return rows of both libraries, in order and in any order, or a row with a note."""
    sizes = {"m": cell.rows, "n": cell.n, "k": cell.k}
    found = tried(run, f"{cell.rows} x {cell.n}, k = {cell.k}", lambda: {"rows": judged_rows(run, case, cell, tensor)})
    rows: list[Row] = found["rows"] if "rows" in found else [{"who": "tonari"} | found]
    return [sizes | row for row in rows]


def judged_rows(run: Run, case: Case, cell: Cell, tensor: Any) -> list[Row]:
    """Verify and time both libraries, once with the k values in order and once in any order; return the rows."""
    calls = {
        IN_ORDER: call_of(run, tensor, cell.k, "auto", {}, "last"),
        ANY_ORDER: call_of(run, tensor, cell.k, "auto", {"sorted": False}, "last"),
        "peer sorted": topk(tensor, cell.k, ordered=True),
        "peer": topk(tensor, cell.k, ordered=False),
    }
    proved = prove_both(tensor, cell.k, calls[IN_ORDER](), calls[ANY_ORDER]())
    slowest = max(run.device.once(call) for call in calls.values())
    least = 3 if slowest <= LONG else 1
    timings = take_turns(run.device, calls, seconds=SECONDS, least=least, most=9)
    against = {IN_ORDER: ("peer sorted",), ANY_ORDER: ("peer sorted", "peer")}
    rows: list[Row] = []
    for stage, names in against.items():
        peer = min((timings[name] for name in names), key=lambda timing: timing.median)
        ratio = timings[stage].median / peer.median
        (verdict,) = run.verdicts(case.bars, {ON: ratio})
        given = {"method": "auto", "nan": "last", "sorted": stage == IN_ORDER}
        ours = {"who": "tonari", "stage": stage, "parameters": given, "proof": PROOF, "proved": proved}
        rows.append(ours | speed(run, timings[stage], tensor.nbytes) | verdict)
        rows.append({"who": ON, "stage": stage, "ratio": 1 / ratio} | seconds_of(peer))
    return rows


def topk(tensor: Any, k: int, *, ordered: bool) -> Callable[[], Any]:
    """Return the call of ``torch.topk``."""
    import torch

    return lambda: torch.topk(tensor, k, dim=1, largest=False, sorted=ordered)
