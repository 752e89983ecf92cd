"""Find duplicate rows that no answer can contain, so that a search can leave them out.

Points at equal distances are ordered by row number. An answer therefore contains at most the first k copies of a row,
or the first k + 1 if the query may be one of them. Leaving out later copies does not change any answer.

Copies can also make a search slow. If the k-th neighbour of a query has thousands of copies, thousands of groups share
its value. A search refines fewer groups than that, so the query remains unproved and is compared with all points.
Pictures with plain areas and tables with default values have many copies of rows.

    hash       each row                                          (kernels/rows/hash_rows.py)
    sort       rows by hash, then by number
    compare    each row with the row before it in that order     (kernels/rows/same_rows.py)
    count      the copies before each row

A hash collision affects only the time: if it sorts a different row between two copies, the second one counts as a first
copy. The same holds for rows that differ only in the signs of zeros.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tonari.core.results.neighbors import Neighbors
from tonari.cuda.launch import launch
from tonari.exact.cuda import tuning

SORTED_BYTES = 64  # scratch bytes per point while duplicate rows, or neighbourhoods of points, are found


class Subset:
    """Some of the points on a device, with their row numbers among all points.

    Parameters
    ----------
    points : tensor of shape (n, d)
        All points.
    kept : int64 tensor of shape (kept,)
        The row numbers of the subset's points, ascending.

    Attributes
    ----------
    rows : tensor of shape (kept, d)
    """

    def __init__(self, points: Any, kept: Any) -> None:
        self.kept, self.rows = kept, points[kept]
        self._n = len(points)

    def places(self, numbers: Any) -> Any:
        """Convert row numbers to positions in the subset, -1 for points outside it; None stays None."""
        import torch

        if numbers is None:
            return None
        places = torch.full((self._n,), -1, dtype=torch.int64, device=self.kept.device)
        places[self.kept] = torch.arange(len(self.kept), device=self.kept.device)
        return places[numbers]

    def of_all(self, found: Neighbors) -> Neighbors:
        """Convert neighbours found in the subset: from positions in the subset to row numbers among all points."""
        return Neighbors(found.distances, self.kept[found.indices].to(found.indices.dtype))


class FirstCopies(NamedTuple):
    """The first few of every set of equal rows, among which a search suffices, and the one that represents each row.

    Attributes
    ----------
    kept : int64 tensor of shape (kept,)
        The row numbers of these rows, ascending.
    alike : int64 tensor of shape (n,)
        For each row, its position in `kept`; for a row that is not kept, that of the last kept row that equals it.
    """

    kept: Any
    alike: Any


def first_copies(points: Any, most: int) -> FirstCopies | None:
    """Return the first `most` of every set of equal rows; None if no set has more.

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
    numbers = order[first].sort().values
    places = torch.empty_like(at)
    places[numbers] = torch.arange(len(numbers), device=points.device)
    alike = torch.empty_like(at)
    alike[order] = places[order[torch.minimum(at, begins + most - 1)]]
    return FirstCopies(numbers, alike)


def subset_bytes(n: int, row_bytes: int) -> int:
    """Return an upper bound on the bytes of a subset of n points: its rows, and scratch memory for choosing them."""
    return n * (SORTED_BYTES + row_bytes)


def numbers_of_first_copies(points: Any, most: int) -> Any:
    """Return the row numbers of the first `most` of every set of equal rows, ascending; None if no set has more."""
    found = first_copies(points, most)
    return None if found is None else found.kept


def runs_of_copies(points: Any) -> tuple[Any, Any]:
    """Return an order of the rows, int64 (n,), and a mark for each row that equals the row before it, int8 (n,).

    Equal rows are in ascending order of their row numbers.
    """
    import torch

    from tonari.exact.cuda.kernels.rows.hash_rows import hash_rows_kernel
    from tonari.exact.cuda.kernels.rows.same_rows import same_rows_kernel

    n, d = points.shape
    bits = points.view({1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[points.element_size()])
    hashes = torch.empty(n, dtype=torch.int64, device=points.device)
    same = torch.empty(n, dtype=torch.int8, device=points.device)
    rows = {"n": n, "d": d, "stride": bits.stride(0)}
    constants = {
        "STEP": math.gcd(d, bits.stride(0), 16 // points.element_size()),
        "ROWS": tuning.COPIED_ROWS,
        "COLUMNS": tuning.COPIED_COLUMNS,
    }
    programs = -(-n // tuning.COPIED_ROWS)
    hashed = {"bits_ptr": bits, "hashes_ptr": hashes}
    launch(hash_rows_kernel, programs, {**hashed, **rows}, constants=constants, warps=tuning.COPIED_WARPS)
    if points.device.type == "meta":
        # On the device "meta", the first call of torch's sort imports modules for half a second.
        order = torch.empty(n, dtype=torch.int64, device="meta")
    else:
        hashes, order = hashes.sort(stable=True)
    compared = {"bits_ptr": bits, "hashes_ptr": hashes, "order_ptr": order, "same_ptr": same}
    launch(same_rows_kernel, programs, {**compared, **rows}, constants=constants, warps=tuning.COPIED_WARPS)
    return order, same
