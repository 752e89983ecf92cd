"""Points without the copies of a row that no answer can hold.

Points at the same distance are listed by their numbers. So k neighbours hold no copy of a row beyond its first k, or
its first k + 1 where the query may itself be one of them. The copies after those are left out of long searches.

A query whose k-th neighbour has thousands of copies cannot be proved otherwise: as many groups share its k-th value,
more than are ever refined, and it is compared with all points. Pictures with plain areas, and tables with default
values, have many such rows.

    hash       a number of each row                              (kernels/hash_rows.py)
    sort       by hash, then by number: copies come together
    compare    each row with the one before it in that order     (kernels/same_rows.py)
    count      the copies before each row

A hash that different rows share costs time only: between two copies it makes the second one a first. So do zeros of
different signs.
"""

from __future__ import annotations

import math
from typing import Any

from tonari.core.neighbors import Neighbors
from tonari.core.progress import Counter
from tonari.cuda.launch import launch
from tonari.exact.cuda.contracted_search import prepare_points
from tonari.exact.cuda.partition import Place, plan_for_part
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.search import Searchable, search_on_device
from tonari.exact.report import Report

ROWS, COLUMNS, WARPS = 16, 64, 4


class FirstCopies:
    """Prepared points on one GPU that leave out copies; they serve searches of one k.

    Parameters
    ----------
    points : tensor of shape (n, d)
        All of them.
    kept : int64 tensor of shape (kept,)
        The numbers of those that are searched, ascending.
    plan : CudaPlan
    """

    def __init__(self, points: Any, kept: Any, plan: CudaPlan) -> None:
        import torch

        self.points, self.kept = points, kept
        self.plan = plan_for_part(plan, len(kept), plan.m, plan.devices[0])
        self.places = torch.full((len(points),), -1, dtype=torch.int64, device=points.device)
        self.places[kept] = torch.arange(len(kept), device=points.device)
        self.searched: Searchable = prepare_points(points[kept], self.plan)

    def without_data(self) -> Searchable:
        """Return what stands for the points that are searched in a rehearsal, on the device "meta"."""
        return self.searched.without_data()

    def search(self, queries: Any, place: Place, bar: Counter) -> tuple[Neighbors, Report]:
        """Search the points that are kept for checked queries; a query that is left out has no point to leave out."""
        own = place.own(len(queries), queries.device)
        found, report = search_on_device(
            queries,
            self.searched,
            self.plan,
            own=None if own is None else self.places[own],
            bar=bar,
            all_points=self.points,
        )
        bar.add(len(queries) * (len(self.points) - len(self.kept)))
        return Neighbors(found.distances, self.kept[found.indices].to(found.indices.dtype)), report


def prepare_once(points: Any, plan: CudaPlan) -> Searchable | FirstCopies:
    """Prepare points for one search of the plan's k, without copies that it cannot find; waits for the device."""
    kept = numbers_of_first_copies(points, plan.k + 1)
    return prepare_points(points, plan) if kept is None else FirstCopies(points, kept, plan)


def numbers_of_first_copies(points: Any, most: int) -> Any:
    """Return the numbers of the first `most` copies of every row, ascending; None if these are all rows.

    Waits for the device.

    Parameters
    ----------
    points : tensor of shape (n, d), of unit stride along rows
    most : int
    """
    import torch

    order, same = runs_of_copies(points)
    at = torch.arange(len(points), device=points.device)
    begins = torch.where(same != 0, 0, at).cummax(0).values
    first = at - begins < most
    if bool(first.all()):
        return None
    return order[first].sort().values


def runs_of_copies(points: Any) -> tuple[Any, Any]:
    """Return an order of the rows, int64 (n,), and which are copies of the one before in it, int8 (n,).

    Copies are in the order of their numbers.
    """
    import torch

    from tonari.exact.cuda.kernels.hash_rows import hash_rows_kernel
    from tonari.exact.cuda.kernels.same_rows import same_rows_kernel

    n, d = points.shape
    bits = points.view({1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[points.element_size()])
    hashes = torch.empty(n, dtype=torch.int64, device=points.device)
    same = torch.empty(n, dtype=torch.int8, device=points.device)
    rows = {"n": n, "d": d, "stride": bits.stride(0)}
    constants = {"STEP": math.gcd(d, bits.stride(0), 16 // points.element_size()), "ROWS": ROWS, "COLUMNS": COLUMNS}
    programs = -(-n // ROWS)
    hashed = {"bits_ptr": bits, "hashes_ptr": hashes}
    launch(hash_rows_kernel, programs, {**hashed, **rows}, constants=constants, warps=WARPS)
    hashes, order = hashes.sort(stable=True)
    compared = {"bits_ptr": bits, "hashes_ptr": hashes, "order_ptr": order, "same_ptr": same}
    launch(same_rows_kernel, programs, {**compared, **rows}, constants=constants, warps=WARPS)
    return order, same
