"""Exact values on a GPU, with the bits of ``tonari.metrics.reference``, and the k best of them in order.

    widen     queries become float64 rows, padded to whole steps of 16 columns (kernels/rows/widen.py)
    values    exact values of the members of some groups, whose rows are gathered (kernels/refine/groups.py), or of a
              slice of all points (kernels/refine/dense.py)
    order     by (returned value, id) (select/cuda/ordering/order.py)

The host does not wait for the device. Rows must be finite, and elements of float64 rows at most 1e150 in magnitude;
other rows have arbitrary results, but cause no crash.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tonari.core.rows.slices import cut
from tonari.cuda.compiling.rehearsal import joined, to_visit
from tonari.cuda.launch import launch
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows.groups import POINT_TILE
from tonari.metrics import Metric, cuda_terms, get_metric
from tonari.select.cuda.dispatch import k_smallest
from tonari.select.cuda.ordering.order import by_value, decode

STEP = 16  # columns that a kernel adds in one step: one for each partial sum (lane) of the reference

# Bytes per candidate: its key, and at most the same number of bytes while the best candidates are selected.
CANDIDATE_BYTES = 16
NO_MEMBER = 2**31 - 1


def refine_groups(
    queries: Any,
    points: Any,
    groups: Any,
    k: int,
    *,
    metric: str,
    group: int,
    own: Any = None,
    double: bool,
) -> tuple[Any, Any]:
    """Find the k best of the members of each query's groups.

    Parameters
    ----------
    queries : tensor of shape (rows, d)
    points : tensor of shape (n, d)
        float32, float16, bfloat16, float64, uint8 or int8; the two may differ. Columns are contiguous; rows may have
        any stride.
    groups : int32 tensor of shape (rows, width)
        Group numbers (``rows/groups.py``), distinct within a row; -1 where missing. Rows may have any stride.
    k : int
        May exceed the number of members.
    group : int
        Points per group; 1 if `groups` lists points.
    own : int64 tensor of shape (rows,), optional
        For each query, the row number of the point to leave out.
    double : bool
        Return distances in float64 instead of float32.

    Returns
    -------
    distances : float32 or float64 tensor of shape (rows, k)
        Float64 values, rounded once; ascending, or descending for ``inner_product``. inf (-inf) where missing.
    indices : int32 tensor of shape (rows, k)
        Ascending among equal distances; -1 where missing.

    Notes
    -----
    Queries are processed in blocks, so that scratch memory stays below
    ``tuning.REFINE_SCRATCH_BYTES`` unless one query needs more.
    """
    rows = len(groups)
    per_row = CANDIDATE_BYTES * (2 if double else 1) * max(groups.shape[1] * group, k) + 8 * _whole(points.shape[1])
    block = max(1, tuning.REFINE_SCRATCH_BYTES // per_row)
    parts = [
        _refine_rows(
            queries[begin : begin + block],
            points,
            groups[begin : begin + block],
            k,
            metric,
            group,
            None if own is None else own[begin : begin + block],
            double,
        )
        for begin in range(0, max(rows, 1), block)
    ]
    if len(parts) == 1:
        return parts[0]
    distances, indices = zip(*parts, strict=True)
    return joined(distances), joined(indices)


def refine_all(
    queries: Any, points: Any, k: int, *, metric: str, own: Any = None, double: bool, scratch_bytes: int
) -> tuple[Any, Any]:
    """Find the k best of all points, slice by slice, for rows that no bound certifies as exact.

    Parameters
    ----------
    queries, points, k, metric, own, double : as for :func:`refine_groups`
    scratch_bytes : int
        Bytes of memory beyond input and output; the search of one query among k points may need more.

    Returns
    -------
    distances, indices : as from :func:`refine_groups`
    """
    import torch

    rows, n = len(queries), len(points)
    narrow = points.dtype != torch.float64 and not get_metric(metric).centred
    block, length = _shape_of_slices(rows, n, k, points.shape[1], 4 if narrow else 8, scratch_bytes)
    device = points.device
    distances = torch.empty((rows, k), dtype=torch.float64 if double else torch.float32, device=device)
    indices = torch.empty((rows, k), dtype=torch.int32, device=device)
    for here in to_visit(cut(rows, block), device):
        widened = widen(queries[here], metric)
        left_out = None if own is None else own[here]
        # In memory, the best points so far precede a slice, because they have the smaller ids, which win ties. At
        # first, all of them are missing.
        count = here.stop - here.start
        keys = torch.empty((count, k + length), dtype=torch.float64, device=device)
        keys[:, :k] = float("inf")
        ids = torch.full((count, k), -1, dtype=torch.int32, device=device)
        for slab in to_visit(cut(n, length), device):
            begin, end = slab.start, slab.stop
            part = widen(points[slab], metric, torch.float32 if narrow else torch.float64)
            _dense_values(widened, part, begin, points.shape[1], metric, left_out, double, keys[:, k:])
            best, columns = k_smallest(keys[:, : k + end - begin], k)
            keys[:, :k] = best
            if double:
                before = ids.gather(1, columns.clamp(max=k - 1).long())
                ids = torch.where(columns < k, before, columns + (begin - k))
        if double:
            distances[here], indices[here] = by_value(keys[:, :k], ids, k, metric)
        else:
            distances[here], indices[here] = decode(keys[:, :k].contiguous(), metric)
    return distances, indices


def refined_bytes(members: int, d: int, each: int = CANDIDATE_BYTES) -> int:
    """Return the bytes for refining this many candidates of a row, including the row in float64."""
    return each * members + 8 * (d + STEP - 1)


@dataclass(frozen=True)
class Widened:
    """Rows in float64 (or float32), padded with zeros, and for angular metrics the norms of the rows."""

    rows: Any
    norms: Any


def _whole(d: int) -> int:
    """Return the number of columns d, rounded up to a multiple of STEP."""
    return -(-d // STEP) * STEP


def load_unit(rows: Any) -> int:
    """Return the elements per load: the largest power of two that divides row length, stride and REFINE_UNIT."""
    return math.gcd(tuning.REFINE_UNIT, rows.shape[1], rows.stride(0))


def registers_of(metric: Metric, unit: int) -> int | None:
    """Return the registers per thread of kernels that refine rows of a metric; None leaves it to the compiler."""
    if unit != tuning.REFINE_UNIT:
        return None
    return tuning.CENTRED_REGISTERS if metric.centred else tuning.REFINE_REGISTERS


def widen(rows: Any, metric: str, dtype: Any = None) -> Widened:
    """Return rows in the form that kernels read as queries; `dtype` may be float32 if it represents all values."""
    import torch

    from tonari.exact.cuda.kernels.rows.widen import widen_kernel

    count, d = rows.shape
    width = _whole(d)
    out = torch.empty((count, width), dtype=dtype or torch.float64, device=rows.device)
    angular, centred = get_metric(metric).angular, get_metric(metric).centred
    norms = torch.empty(count, dtype=torch.float64, device=rows.device) if angular else None
    unit = load_unit(rows)
    launch(
        widen_kernel,
        -(-count // 32),
        {
            "rows_ptr": rows,
            "out_ptr": out,
            "norms_ptr": norms,
            "rows": count,
            "d": d,
            "units": rows.stride(0) // unit,
            "steps": width // STEP,
        },
        constants={"ANGULAR": angular, "CENTRED": centred, "UNIT": unit, "ROWS": 32},
        warps=4,
        fused=False,
    )
    return Widened(out, norms)


def _refine_rows(
    queries: Any, points: Any, groups: Any, k: int, metric: str, group: int, own: Any, double: bool
) -> tuple[Any, Any]:
    import torch

    from tonari.exact.cuda.kernels.refine.groups import refine_kernel

    rows, width = groups.shape
    count = width * group
    columns = max(count, k)
    record = get_metric(metric)
    chunk, chunks, warps = _chunks(count, tuning.DIVIDING_CANDIDATES if record.divides else tuning.WARP_CANDIDATES)
    device = points.device
    keys = torch.empty((rows, columns), dtype=torch.float64, device=device)
    keys[:, count:] = float("inf")
    constants = {"HAS_OWN": own is not None, "GROUP": group, "POINT_TILE": POINT_TILE, "CHUNK": chunk}
    ids = list_members(groups, len(points), group, own, columns) if double else None
    widened = widen(queries, metric)
    unit = load_unit(points)
    launch(
        refine_kernel,
        rows * chunks,
        {
            "queries_ptr": widened.rows,
            "norms_ptr": widened.norms,
            "points_ptr": points,
            "groups_ptr": groups,
            "own_ptr": own,
            "ids_ptr": ids,
            "out_ptr": keys,
            "d": points.shape[1],
            "query_width": widened.rows.shape[1],
            "units": points.stride(0) // unit,
            "width": width,
            "groups_stride": groups.stride(0),
            "columns": columns,
            "chunks": chunks,
            "n": len(points),
        },
        constants={"METRIC": record, "TERM": cuda_terms(metric).term, "LISTED": double, **constants, "UNIT": unit},
        warps=warps,
        registers=registers_of(record, unit),
        fused=False,
    )
    if not double:
        return decode(k_smallest(keys, k).values, metric)
    distances, indices = by_value(keys, ids, k, metric)
    return distances, torch.where(distances.isinf(), -1, indices)


def _chunks(count: int, per_warp: int) -> tuple[int, int, int]:
    """Return candidates per program, programs per row and warps per program for rows of `count` candidates."""
    warps = tuning.REFINE_WARPS if count > per_warp else 1
    return warps * per_warp, -(-count // (warps * per_warp)), warps


def list_members(groups: Any, n: int, group: int, own: Any, columns: int) -> Any:
    """Return the points of each row's groups in ascending order, int32 (rows, columns), padded with NO_MEMBER."""
    import torch

    from tonari.exact.cuda.kernels.refine.groups import members_kernel

    rows, width = groups.shape
    chunk, chunks, warps = _chunks(width * group, tuning.WARP_CANDIDATES)
    ids = torch.full((rows, columns), NO_MEMBER, dtype=torch.int32, device=groups.device)
    launch(
        members_kernel,
        rows * chunks,
        {
            "groups_ptr": groups,
            "own_ptr": own,
            "ids_ptr": ids,
            "width": width,
            "groups_stride": groups.stride(0),
            "columns": columns,
            "chunks": chunks,
            "n": n,
        },
        constants={"HAS_OWN": own is not None, "GROUP": group, "POINT_TILE": POINT_TILE, "CHUNK": chunk},
        warps=warps,
    )
    return ids.sort(dim=1).values


def _shape_of_slices(rows: int, n: int, k: int, d: int, item: int, scratch_bytes: int) -> tuple[int, int]:
    """Return the number of queries per block and of points per slice, which together fit into the scratch memory."""

    def points_beside(block: int) -> int:
        room = scratch_bytes - block * (8 * _whole(d) + 3 * CANDIDATE_BYTES * k)
        return max(1, room // (block * CANDIDATE_BYTES + item * _whole(d) + 8))

    block = max(1, rows)
    while block > 1 and points_beside(block) < min(n, max(tuning.LEAST_SLICE, 4 * k)):
        block = -(-block // 2)
    return block, min(n, max(k, points_beside(block)))


def _dense_values(
    queries: Widened, points: Widened, first: int, d: int, metric: str, own: Any, double: bool, out: Any
) -> None:
    from tonari.exact.cuda.kernels.refine.dense import dense_kernel

    rows, count = len(queries.rows), len(points.rows)
    parts = -(-rows // tuning.DENSE_ROWS)
    per_part = -(-rows // (4 * parts)) * 4
    launch(
        dense_kernel,
        parts * -(-count // tuning.DENSE_POINTS),
        {
            "queries_ptr": queries.rows,
            "query_norms_ptr": queries.norms,
            "points_ptr": points.rows,
            "point_norms_ptr": points.norms,
            "own_ptr": own,
            "out_ptr": out,
            "rows": rows,
            "count": count,
            "first_id": first,
            "d": d,
            "units": points.rows.shape[1] // tuning.DENSE_LANES,
            "out_stride": out.stride(0),
            "parts": parts,
            "rows_per_part": per_part,
        },
        constants={
            "METRIC": get_metric(metric),
            "TERM": cuda_terms(metric).term,
            "DOUBLE": double,
            "HAS_OWN": own is not None,
            "POINTS": tuning.DENSE_POINTS,
            "LANES": tuning.DENSE_LANES,
        },
        warps=4,
        fused=False,
    )
