"""Compute exact values of candidate parts, and select the points within each row's limit (kernels/refine/within.py)."""

from __future__ import annotations

from typing import Any, NamedTuple

from tonari.cuda.launch import launch
from tonari.exact.cuda import tuning
from tonari.exact.cuda.refine.candidate_parts import Blocks
from tonari.exact.cuda.refine.groups import load_unit, registers_of, widen
from tonari.exact.cuda.rows.groups import LEAST_GROUP, POINT_TILE
from tonari.metrics import cuda_terms, get_metric


class Hits(NamedTuple):
    """The points within each row's limit, row after row, unordered within a row.

    Attributes
    ----------
    counts : int64 tensor of shape (rows,)
    values : float32 or float64 tensor of one dimension; None if points were only counted
    ids : int32 tensor of one dimension; None if points were only counted
    """

    counts: Any
    values: Any = None
    ids: Any = None


def parts_per_block(metric: str) -> int:
    """Return the number of parts (groups of LEAST_GROUP points) in a block, which one program refines."""
    per_warp = tuning.DIVIDING_CANDIDATES if get_metric(metric).divides else tuning.WARP_CANDIDATES
    return tuning.REFINE_WARPS * per_warp // LEAST_GROUP


def refine_within(
    queries: Any,
    points: Any,
    blocks: Blocks,
    limits: Any,
    metric: str,
    *,
    own: Any = None,
    later: bool = False,
    listed: bool,
) -> Hits:
    """Find the points in some blocks whose returned values are within the limit of their row.

    Parameters
    ----------
    queries : tensor of shape (rows, d)
    points : tensor of shape (n, d)
    blocks : Blocks
        Blocks of ``parts_per_block(metric)`` parts.
    limits : float32 or float64 tensor of shape (rows,), contiguous
        The limits, in the dtype of returned values.
    own : int64 tensor of shape (rows,), optional
        For each query, the row number of the point to leave out.
    later : bool
        Whether the points before the query's own point are excluded, too.
    listed : bool
        Whether to return the points or only their counts. To return points, the host waits for the device.
    """
    import torch

    count, size = blocks.parts.shape
    chunk, device = size * LEAST_GROUP, points.device
    hits = torch.empty(count, dtype=torch.int32, device=device)
    widened = widen(queries, metric)
    per_block = chunk * (4 + limits.element_size())
    block = max(1, tuning.WITHIN_SCRATCH_BYTES // per_block) if listed else max(1, count)
    found = []
    for begin in range(0, count, block):
        part = slice(begin, min(begin + block, count))
        some = part.stop - begin
        values = ids = None
        if listed:
            values = torch.empty((some, chunk), dtype=limits.dtype, device=device)
            ids = torch.empty((some, chunk), dtype=torch.int32, device=device)
        _compare(widened, points, blocks, limits, metric, (own, later), part, (values, ids, hits))
        if listed:
            found.append(_pack(values, ids, hits[part]))
    ends = torch.zeros(count + 1, dtype=torch.int64, device=device)
    torch.cumsum(hits, 0, out=ends[1:])
    counts = ends[blocks.begins].diff()
    if not listed:
        return Hits(counts)
    if not found:
        return Hits(counts, limits.new_empty(0), torch.empty(0, dtype=torch.int32, device=device))
    if len(found) == 1:
        return Hits(counts, *found[0])
    return Hits(counts, *(torch.cat(parts) for parts in zip(*found, strict=True)))


def _compare(
    widened: Any,
    points: Any,
    blocks: Blocks,
    limits: Any,
    metric: str,
    own: tuple[Any, bool],
    part: slice,
    out: tuple[Any, Any, Any],
) -> None:
    import torch

    from tonari.exact.cuda.kernels.refine.within import within_kernel

    record, unit = get_metric(metric), load_unit(points)
    launch(
        within_kernel,
        part.stop - part.start,
        {
            "queries_ptr": widened.rows,
            "norms_ptr": widened.norms,
            "points_ptr": points,
            "limits_ptr": limits,
            "rows_ptr": blocks.rows,
            "parts_ptr": blocks.parts,
            "own_ptr": own[0],
            "values_ptr": out[0],
            "ids_ptr": out[1],
            "hits_ptr": out[2],
            "d": points.shape[1],
            "query_width": widened.rows.shape[1],
            "units": points.stride(0) // unit,
            "n": len(points),
            "first_block": part.start,
        },
        constants={
            "METRIC": record,
            "TERM": cuda_terms(metric).term,
            "DOUBLE": limits.dtype == torch.float64,
            "LISTED": out[0] is not None,
            "HAS_OWN": own[0] is not None,
            "LATER": own[1],
            "GROUP": LEAST_GROUP,
            "POINT_TILE": POINT_TILE,
            "UNIT": unit,
            "CHUNK": blocks.parts.shape[1] * LEAST_GROUP,
        },
        warps=tuning.REFINE_WARPS,
        registers=registers_of(record, unit),
        fused=False,
    )


def _pack(values: Any, ids: Any, hits: Any) -> tuple[Any, Any]:
    """Concatenate the points within the limits of some blocks; return their values and ids."""

    from tonari.exact.cuda.kernels.refine.within import pack_hits_kernel

    ends = hits.cumsum(0)
    total = int(ends[-1])
    packed = values.new_empty(total), ids.new_empty(total)
    launch(
        pack_hits_kernel,
        len(hits),
        {
            "values_ptr": values,
            "ids_ptr": ids,
            "places_ptr": ends - hits,
            "out_values_ptr": packed[0],
            "out_ids_ptr": packed[1],
        },
        constants={"CHUNK": values.shape[1]},
        warps=1,
    )
    return packed
