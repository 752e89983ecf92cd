"""``select_k`` against ``torch.topk`` over shapes of every kind: one row of 2**28 values to a million rows of 64.

Two contracts are judged, like against like: rows in order (``sorted=True`` of both), and in any order (``select_k``
with ``sorted=False`` against the faster of ``torch.topk``'s two). ``select_k`` breaks ties by index, which
``torch.topk`` does not. The bar is 1.5 times the peer's seconds, in the same rounds.

Every answer is proved on its device before it is timed, in every row. On a GPU the kernels are compiled first, by a
process for each k.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from . import report, select_data
from .exact_cpu import WrongAnswer
from .select_device import take_turns
from .select_run import LONG, Run, say

MODE = "topk"
BAR = 1.5
WORST = 15
# Of timing a cell.
SECONDS = 0.04
SIZES_ROWS = {"cuda": (1, 2, 16, 128, 2**11, 2**15, 10**6), "cpu": (1, 16, 2**10)}
SIZES_N = {
    "cuda": (2**6, 2**10, 2**13, 2**15, 2**17, 2**20, 2**22, 2**24, 2**26, 2**28),
    "cpu": (2**6, 2**10, 2**13, 2**17, 2**20),
}
SIZES_K = (1, 10, 64, 256, 1024, 4096, 20_000, 65_536)
# float32 values of one cell, and of one that is made only to compile for it.
LARGEST = {"cuda": 2**31, "cpu": 2**24}
LARGEST_WARM = 2**28
# Values that are proved at a time.
PROVED_VALUES = 2**27


class Cell(NamedTuple):
    """One shape and k."""

    rows: int
    n: int
    k: int


def cells_of(run: Run) -> Iterator[Cell]:
    """The cells of the run's device, long rows first; the largest k is n where rows are short."""
    kind = run.device.kind
    seen = set()
    for n in reversed(SIZES_N[kind]):
        for rows in SIZES_ROWS[kind]:
            shape = run.size(rows, n)
            for k in (*SIZES_K, shape[1]):
                cell = Cell(*shape, k)
                if cell.rows * cell.n <= LARGEST[kind] and k <= min(cell.n, SIZES_K[-1]) and cell not in seen:
                    seen.add(cell)
                    yield cell


def warm(cells: Sequence[Cell]) -> None:
    """Compile what the cells need, in a process of its own: what is compiled stays on disk."""
    import torch

    import tonari

    for rows, n, k in cells:
        values = torch.rand((rows, n), device="cuda")
        for ordered in (True, False):
            tonari.select_k(values, k, sorted=ordered, nan="last")
        torch.cuda.synchronize()


def warm_all(cells: Sequence[Cell]) -> None:
    """Compile for all cells but the largest, a process for each k: their networks have nothing in common."""
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


def run_topk(run: Run) -> list[dict[str, Any]]:
    """Prove and time every cell: its rows of results."""
    cells = list(cells_of(run))
    if run.device.kind == "cuda":
        warm_all(cells)
    pool = select_data.Pool(max(cell.rows * cell.n for cell in cells), "float32", run.device.kind)
    results = []
    for cell in cells:
        if run.over():
            say("the run's time is up: this cell and those after it were not reached")
            break
        results += run.write(measure_cell(run, cell, pool.view(cell.rows, cell.n)))
    return results


def measure_cell(run: Run, cell: Cell, tensor: Any) -> list[dict[str, Any]]:
    """One row of results for each contract, or the note that stands for both."""
    shared = {"mode": MODE, "rows": cell.rows, "n": cell.n, "k": cell.k, "dtype": "float32", "data": "random"}
    shared |= {"method": "auto", "nan": "last"}

    def work() -> dict[str, Any]:
        return {"rows": judged_rows(run, cell, tensor)}

    found = run.guarded(f"{cell.rows} x {cell.n}, k = {cell.k}", work)
    rows: list[dict[str, Any]] = found.get("rows", [found])
    return [shared | row for row in rows]


def judged_rows(run: Run, cell: Cell, tensor: Any) -> list[dict[str, Any]]:
    """Prove, time and judge both contracts."""
    calls = {
        "sorted": run.call(tensor, cell.k, "auto", {}, "last"),
        "any order": run.call(tensor, cell.k, "auto", {"sorted": False}, "last"),
        "peer sorted": topk(tensor, cell.k, ordered=True),
        "peer": topk(tensor, cell.k, ordered=False),
    }
    verified = prove(tensor, cell.k, calls["sorted"](), calls["any order"]())
    slowest = max(run.device.once(call) for call in calls.values())
    least = 3 if slowest <= LONG else 1
    timings = take_turns(run.device, calls, seconds=SECONDS, least=least, most=9)
    peers = {"sorted": ("peer sorted",), "any order": ("peer sorted", "peer")}
    rows = []
    for name, against in peers.items():
        peer = min(timings[other].median for other in against)
        ratio = timings[name].median / peer
        rows.append(
            run.speed(timings[name], tensor.nbytes)
            | {
                "options": json.dumps({"sorted": name == "sorted"}),
                "verified": verified,
                "peer": "torch.topk",
                "peer_seconds": peer,
                "ratio": ratio,
                "bar_on": "torch.topk",
                "bar": BAR,
                "passed": ratio <= BAR,
            }
        )
    return rows


def topk(tensor: Any, k: int, *, ordered: bool) -> Callable[[], Any]:
    """The peer, ready to be run."""
    import torch

    return lambda: torch.topk(tensor, k, dim=1, largest=False, sorted=ordered)


def prove(tensor: Any, k: int, ordered: Any, unordered: Any) -> int:
    """Raise WrongAnswer unless both answers are right, in all rows, of which the number is returned.

    Pairs that ascend are k different ones; if just k pairs of the row do not exceed the last of them, it is they.
    """
    import torch

    rows, n = tensor.shape
    for part in (*ordered, *unordered):
        if tuple(part.shape) != (rows, k):
            raise WrongAnswer(f"shape {tuple(part.shape)}, expected {(rows, k)}")
    (values, columns), (loose_values, loose_columns) = (
        tuple(torch.as_tensor(part, device=tensor.device) for part in found) for found in (ordered, unordered)
    )
    places = torch.arange(n, dtype=torch.int32, device=tensor.device)
    step = max(1, PROVED_VALUES // n)
    for begin in range(0, rows, step):
        block = slice(begin, begin + step)
        row, best, at, loose = tensor[block], values[block], columns[block], loose_columns[block]
        for each in (at, loose):
            _none((each < 0) | (each >= n), begin, "has an index out of range")
        _none(row.gather(1, at.long()) != best, begin, "holds values of other columns")
        before, after = best[:, :-1], best[:, 1:]
        later = at[:, :-1] < at[:, 1:]
        _none(~((before < after) | ((before == after) & later)), begin, "is out of order")
        last = best[:, -1:]
        reached = (row < last) | ((row == last) & (places <= at[:, -1:]))
        _none(reached.sum(dim=1, keepdim=True) != k, begin, "does not have the smallest")
        _none(row.gather(1, loose.long()) != loose_values[block], begin, "in any order holds values of other columns")
        _none(at.sort(dim=1).values != loose.sort(dim=1).values, begin, "in any order has other columns")
    return rows


def _none(fault: Any, begin: int, message: str) -> None:
    rows = fault.any(dim=1)
    if bool(rows.any()):
        raise WrongAnswer(f"row {begin + int(rows.int().argmax())} {message}")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """For each contract our seconds over the peer's, a line a shape, a column a k; then the worst cells of both."""
    blocks = []
    for name, text in ((True, "in order"), (False, "in any order")):
        mine = [row for row in rows if row.get("note") or json.loads(row["options"])["sorted"] == name]
        sizes = sorted({row["k"] for row in mine})
        cells: dict[tuple[int, int], dict[int, str]] = {}
        for row in mine:
            note = row.get("note")
            cell = str(note).split()[0].rstrip(":") if note else f"{row['ratio']:.2f}"
            cells.setdefault((row["rows"], row["n"]), {})[row["k"]] = cell
        lines = [[f"{text}: ours/topk", *(f"k={k}" for k in sizes)]]
        lines += [[f"{count} x {n}", *(line.get(k, "") for k in sizes)] for (count, n), line in cells.items()]
        blocks.append(report.aligned(lines))
    judged = [row for row in rows if not row.get("note")]
    worst = sorted(judged, key=lambda row: -row["ratio"])[:WORST]
    lines = [["worst cells", "k", "order", "ms", "topk ms", "ratio"]]
    for row in worst:
        order = "sorted" if json.loads(row["options"])["sorted"] else "any"
        times = f"{row['seconds_median'] * 1e3:.4g}", f"{row['peer_seconds'] * 1e3:.4g}", f"{row['ratio']:.2f}"
        lines.append([f"{row['rows']} x {row['n']}", str(row["k"]), order, *times])
    blocks.append(report.aligned(lines))
    blocks.append(f"within {BAR} times torch.topk in {sum(row['passed'] for row in judged)} of {len(judged)} cells")
    return "\n\n".join(blocks)
