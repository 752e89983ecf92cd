"""Make the initial lists: compare each point with the members of near clusters."""

from __future__ import annotations

from typing import Any

import torch

from tonari.cuda.launch import launch
from tonari.nn_descent import tuning
from tonari.nn_descent.cuda.clusters import Clusters
from tonari.nn_descent.cuda.form import Form, step_of
from tonari.nn_descent.entries import MISSING, NEW
from tonari.select.cuda.dispatch import k_smallest

# maximum number of members of a cluster that are compared: their positions have 11 bits in kernels/scan.py
MOST_COMPARED = 1 << 11


def scan(form: Form, clusters: Clusters, size: int, block: int, *, boundary: int | None = None) -> Any:
    """Make the initial list of every point from the members of near clusters.

    Parameters
    ----------
    form : Form of n points
    size : int
        The number of columns.
    block : int
        The number of points per block.
    boundary : int, optional
        Compare only points of different graphs: ids below this number belong to the first graph.

    Returns
    -------
    int32 tensor of shape (n, size)
        Entries, nearest first, padded with MISSING.
    """
    n, probes = clusters.near.shape
    bounds = clusters.bounds if boundary is None else _bounds_by_side(clusters, boundary)
    best, limit = best_of(probes, size), _most_compared(n, len(bounds) - 1)
    entries = torch.empty((n, size), dtype=torch.int32, device=clusters.near.device)
    for begin in range(0, n, block):
        rows = clusters.order[begin : begin + block]
        near = clusters.near[rows]
        if boundary is not None:
            near = 2 * near.to(torch.int32) + (rows < boundary)[:, None]
        scores, ids = scan_block(form, clusters.order, bounds, near, begin, best, limit)
        del near
        nearest = k_smallest(scores, min(size, scores.shape[1])).indices
        members = ids.gather(1, nearest.long())
        entries[rows, : members.shape[1]] = torch.where(members >= 0, members | NEW, MISSING)
        if members.shape[1] < size:
            entries[rows, members.shape[1] :] = MISSING
    return entries


def best_of(probes: int, size: int) -> int:
    """Return the number of members to keep per near cluster, so that a point keeps at least `size` members in total."""
    best = tuning.SCORES_OF_A_PAIR
    while best * probes < size:
        best *= 2
    return best


def _most_compared(n: int, clusters: int) -> int:
    """Return the largest number of members that are compared in one cluster."""
    return min(MOST_COMPARED, max(2 * tuning.SCAN_MEMBERS, tuning.LARGE_CLUSTER * -(-n // clusters)))


def _bounds_by_side(clusters: Clusters, boundary: int) -> Any:
    """Split the members of each cluster at the id `boundary`; return the bounds of both parts for all clusters.

    The members of a cluster are sorted by id, so a binary search finds the split.
    """
    order, low, high = clusters.order, clusters.bounds[:-1], clusters.bounds[1:]
    for _ in range(len(order).bit_length()):
        middle = (low + high) // 2
        below = (low < high) & (order[middle.clamp(max=len(order) - 1)] < boundary)
        low, high = torch.where(below, middle + 1, low), torch.where(below, high, middle)
    bounds = clusters.bounds.new_empty(2 * len(clusters.bounds) - 1)
    bounds[::2], bounds[1::2] = clusters.bounds, low
    return bounds


def scan_block(form: Form, order: Any, bounds: Any, near: Any, begin: int, best: int, limit: int) -> tuple[Any, Any]:
    """Compare points with the members of near clusters; return the best scores and ids, (rows, probes * best).

    The points are consecutive in `order`, from position `begin` on. `near` has the near clusters of each point.
    """
    from tonari.nn_descent.cuda.kernels.scan import scan_kernel

    (rows, probes), count = near.shape, len(bounds) - 1
    device = near.device
    programs = rows * probes // tuning.SCAN_QUERIES + min(count, rows * probes)
    pairs, pair_bounds, tiles, tile_clusters = _tiles_of(near, count, programs)
    scores = torch.empty((rows, probes * best), dtype=torch.float32, device=device)
    ids = torch.empty((rows, probes * best), dtype=torch.int32, device=device)
    width = form.rows.shape[1]
    launch(
        scan_kernel,
        programs,
        {
            "rows_ptr": form.rows,
            "query_terms_ptr": form.query_terms,
            "member_terms_ptr": form.member_terms,
            "order_ptr": order,
            "bounds_ptr": bounds,
            "pairs_ptr": pairs,
            "pair_bounds_ptr": pair_bounds,
            "tile_bounds_ptr": tiles,
            "tile_clusters_ptr": tile_clusters,
            "scores_ptr": scores,
            "ids_ptr": ids,
            "clusters": count,
            "probes": probes,
            "first": begin,
            "limit": limit,
        },
        constants={
            "D": width,
            "STEP": step_of(width),
            "QUERIES": tuning.SCAN_QUERIES,
            "MEMBERS": tuning.SCAN_MEMBERS,
            "BEST": best,
        },
        warps=tuning.SCAN_WARPS,
    )
    return scores, ids


def _tiles_of(near: Any, count: int, programs: int) -> tuple[Any, Any, Any, Any]:
    """Sort pairs (point, cluster) by cluster, and cut the pairs of each cluster into tiles.

    A program processes a tile of at most SCAN_QUERIES pairs. Returns the sorted pairs, the bounds of each cluster's
    pairs, the bounds of its tiles, and the cluster of each program.
    """
    device = near.device
    if device.type == "meta":  # a rehearsal skips the rest, because importing torch's sort takes seconds
        lengths = (near.numel(), count + 1, count + 1, programs)
        pairs, pair_bounds, tiles, tile_clusters = (
            torch.empty(length, dtype=torch.int64, device="meta") for length in lengths
        )
        return pairs, pair_bounds, tiles, tile_clusters
    pairs = torch.sort(near.view(-1), stable=True)
    numbers = torch.arange(count + 1, dtype=near.dtype, device=device)
    pair_bounds = torch.searchsorted(pairs.values, numbers)
    tiles = torch.zeros(count + 1, dtype=torch.int64, device=device)
    tiles[1:] = ((pair_bounds.diff() + tuning.SCAN_QUERIES - 1) // tuning.SCAN_QUERIES).cumsum(0)
    tile_clusters = torch.searchsorted(tiles, torch.arange(programs, device=device), right=True) - 1
    return pairs.indices, pair_bounds, tiles, tile_clusters
