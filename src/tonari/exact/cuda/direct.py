"""Small searches on a GPU by exact values of all points: no form, no packed points, no screen, no certificate.

    direct     the k best of each share of the points, in registers        kernels/direct.py
    answer     merged, and written as they are returned

Points are read once for a few queries, which is all that such a search takes. The kernels find queries and answers
through cells of pinned memory (:class:`Cells`), where they also mark values that searches refuse. A search waits for
the device once, to read these marks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tonari import inputs
from tonari.core.neighbors import Neighbors
from tonari.core.progress import Counter
from tonari.core.slices import cut
from tonari.cuda.devices import to_device
from tonari.cuda.launch import launch
from tonari.cuda.rehearsal import to_visit
from tonari.cuda.streams import synchronize
from tonari.exact.cuda.oom_retry import in_batches
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.refine import LARGEST_UNIT, load_unit
from tonari.exact.report import Report
from tonari.metrics import cuda_terms, get_metric
from tonari.select.cuda.keys import FORMATS
from tonari.select.cuda.survivors import power_of_two

CHUNK, WARPS = 64, 4  # points per tile, sixteen per warp as in refine.py
DIVIDING_WARPS = 8  # if a term divides, which takes more registers
LEAST_RUN = 16  # pairs that a program keeps: a power of two, at least k and at most CHUNK
# Programs of all queries together: four on each of 132 multiprocessors, as many as are at work at once if each thread
# has 128 registers. By default ptxas uses fewer for aligned rows, and waits for the loads of every step.
PROGRAMS, REGISTERS = 528, 128
MERGE_WARPS = 4, 8  # up to 16 pairs of a run, and beyond
COLUMNS = 1024  # of a query that are checked at once
MOST_ROWS = 1 << 16  # queries at once, whose runs take at most 64 MiB


class Unpacked(NamedTuple):
    """Points on a device for a single search, which checks their values itself."""

    points: Any


def unpacked(points: Any, plan: CudaPlan) -> Unpacked:
    """Return points, which may be in host memory, for a single search by a direct plan."""
    return Unpacked(to_device(points, plan.devices[0]))


class Cells:
    """Where the queries of a search are, where its answers go, and the marks of queries, for the kernels.

    Parameters
    ----------
    rows : int
    device : torch.device
        Of the search. The cells are in pinned memory, which host and device share.
    """

    def __init__(self, rows: int, device: Any) -> None:
        import torch

        from tonari.exact.cuda.kernels.direct import MARKS

        place = "meta" if device.type == "meta" else "cpu"
        count = MARKS.value + rows
        self.tensor = torch.empty(count, dtype=torch.int64, device=place, pin_memory=device.type == "cuda")
        if place == "cpu":
            self._numbers = self.tensor.numpy()
            self._marks = self._numbers[MARKS.value :]

    def aim(self, queries: Any, distances: int, indices: int) -> None:
        """Tell the kernels the addresses of queries, whose columns are contiguous, and of their answers."""
        self._numbers[:4] = queries.data_ptr(), queries.stride(0), distances, indices

    def marks(self) -> list[int]:
        """Return the mark of each query, 0 for a valid one; the caller has waited for the device."""
        marks: list[int] = self._marks.tolist()
        return marks


def search_directly(queries: Any, prepared: Any, plan: CudaPlan, bar: Counter) -> tuple[Neighbors, Report]:
    """Search points on a device for checked queries there.

    Parameters
    ----------
    queries : tensor of shape (m, d)
    prepared : DevicePoints or Unpacked
    plan : CudaPlan
    bar : Counter
        Counts pairs, m * n in all.

    Returns
    -------
    Neighbors of tensors of shape (m, k), and the Report of the run, without its seconds

    Raises
    ------
    ValueError
        A row has a value that searches refuse; points are reported before queries.
    MemoryError
        The device has not enough memory for even one query at a time.
    """
    import torch

    points, unpacked = prepared.points, isinstance(prepared, Unpacked)
    m, device = len(queries), points.device
    if not unpacked:
        prepared.read()
        prepared.check()
    double = torch.float64 in (queries.dtype, points.dtype)
    found = Neighbors(
        torch.empty((m, plan.k), dtype=torch.float64 if double else torch.float32, device=device),
        torch.empty((m, plan.k), dtype=torch.int32, device=device),
    )

    def work(rows: slice) -> None:
        some, (distances, indices) = queries[rows], (part[rows] for part in found)
        cells = Cells(len(some), device)
        cells.aim(some, distances.data_ptr(), indices.data_ptr())
        launch_search(cells, len(some), queries.dtype, points, plan.k, plan.metric, checked=unpacked)
        synchronize((device,))
        check_marks(cells.marks(), queries, points, plan.metric)
        bar.add(len(some) * len(points))

    in_batches(m, min(plan.query_batch, MOST_ROWS), work, planned=plan.total_bytes)
    report = Report(rows=m)
    report.certify(plan.precisions[-1], m)
    return found, report


def check_marks(marks: list[int], queries: Any, points: Any, metric: str) -> None:
    """Raise the error for what is marked."""
    if not any(marks):
        return
    from tonari.exact.cuda.kernels.direct import POINTS_REFUSED

    nonnegative = get_metric(metric).nonnegative
    if any(mark & POINTS_REFUSED.value for mark in marks):
        inputs.check_values(points, "points", first=0, nonnegative=nonnegative)
    inputs.check_values(queries, "queries", first=0, nonnegative=nonnegative)
    raise AssertionError("a value was marked, but none is to be refused")


def rehearse_directly(plan: CudaPlan, points: Any, queries: Any, *, checked: bool) -> None:
    """Launch what a search launches, as a rehearsal: points and queries are on the device "meta"."""
    for rows in to_visit(cut(plan.m, min(plan.query_batch, MOST_ROWS)), points.device):
        some = len(queries[rows])
        cells = Cells(some, points.device)
        launch_search(cells, some, queries.dtype, points, plan.k, plan.metric, checked=checked)


def launch_search(
    cells: Cells, rows: int, query_dtype: Any, points: Any, k: int, metric: str, *, checked: bool
) -> None:
    """Launch the search of `rows` queries that the cells aim at; does not wait for the device.

    Parameters
    ----------
    cells : Cells
    rows : int
    query_dtype : torch.dtype
    points : tensor of shape (n, d)
        Columns are contiguous; rows may have any stride.
    k : int
        At most CHUNK.
    metric : str
    checked : bool
        Whether the values of the points are checked, too.
    """
    import torch
    import triton.language as tl

    from tonari.exact.cuda.kernels.direct import answer_kernel, direct_kernel

    n, d = points.shape
    device, record = points.device, get_metric(metric)
    double = torch.float64 in (query_dtype, points.dtype)
    form = FORMATS["float64" if double else "float32"]
    parts, tiles = parts_of(n, rows)
    run = run_length(k)
    keys = torch.empty((rows, parts, run), dtype=torch.int64 if double else torch.int32, device=device)
    ids = torch.empty((rows, parts, run), dtype=torch.int32, device=device)
    marks = torch.empty((rows, parts), dtype=torch.int32, device=device) if checked else None
    unit = load_unit(points)
    shared = {
        "METRIC": record,
        "QUERY": getattr(tl, str(query_dtype).removeprefix("torch.")),
        "CHECKED": checked,
        "DOUBLE": double,
        "INFINITE": form.infinite,
        "K": run,
    }
    launch(
        direct_kernel,
        rows * parts,
        {
            "points_ptr": points,
            "cells_ptr": cells.tensor,
            "keys_ptr": keys,
            "ids_ptr": ids,
            "marks_ptr": marks,
            "n": n,
            "d": d,
            "units": points.stride(0) // unit,
            "rows": rows,
            "parts": parts,
            "tiles": tiles,
        },
        constants=shared | {"TERM": cuda_terms(metric).term, "UNIT": unit, "CHUNK": CHUNK},
        warps=DIVIDING_WARPS if record.divides else WARPS,
        registers=REGISTERS if unit == LARGEST_UNIT else None,
        fused=False,
    )
    launch(
        answer_kernel,
        rows,
        {
            "keys_ptr": keys,
            "ids_ptr": ids,
            "marks_ptr": marks,
            "cells_ptr": cells.tensor,
            "d": d,
            "k": k,
            "parts": parts,
            "share": tiles * CHUNK,
        },
        constants=shared | {"COLUMNS": COLUMNS, "RUNS": max(run, power_of_two(parts))},
        warps=MERGE_WARPS[run > LEAST_RUN],
        fused=False,
    )


def run_length(k: int) -> int:
    """Return the pairs that each program keeps.

    >>> [run_length(k) for k in (1, 16, 17, 64)]
    [16, 16, 32, 64]
    """
    return max(LEAST_RUN, power_of_two(k))


def parts_of(n: int, rows: int) -> tuple[int, int]:
    """Return the shares into which n points are divided for each of some queries, and the tiles of a share.

    >>> [parts_of(*sizes) for sizes in ((1, 1), (100_000, 1), (100_000, 3), (1_000, 600))]
    [(1, 1), (521, 3), (174, 9), (1, 16)]
    """
    tiles = -(-n // CHUNK)
    each = -(-tiles // -(-PROGRAMS // rows))
    return -(-tiles // each), each


def scratch_bytes(rows: int, n: int, k: int, *, double: bool) -> int:
    """Return the bytes of the runs and marks of some queries at once."""
    return rows * parts_of(n, rows)[0] * (run_length(k) * (12 if double else 8) + 4)
