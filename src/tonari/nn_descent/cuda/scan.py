"""The start: compare each point with the members of the clusters near it."""

from __future__ import annotations

from typing import Any

import torch

from tonari.cuda.launch import launch
from tonari.nn_descent.cuda.clusters import Clusters
from tonari.nn_descent.cuda.form import Form, step_of
from tonari.nn_descent.entries import MISSING, NEW
from tonari.nn_descent.memory import SCORES_OF_A_PAIR
from tonari.select.cuda.dispatch import k_smallest

QUERIES, MEMBERS = 64, 64  # tile shape
MOST_COMPARED = 1 << 11  # members per cluster: what the member number in the keys of kernels/scan.py can hold
_WARPS = 4  # no row is split between warps, so its minimum needs no synchronization
LARGE = 4  # members compared in a large cluster, at most, as a multiple of the mean cluster size


def scan(form: Form, clusters: Clusters, size: int, block: int, *, boundary: int | None = None) -> Any:
    """Make new entries for every point from the members of the clusters near it.

    Parameters
    ----------
    form : Form of n points
    clusters : Clusters
    size : int
        Columns wanted.
    block : int
        Points at once.
    boundary : int, optional
        Compare only points on different sides of this number.

    Returns
    -------
    int32 tensor of shape (n, size)
        The nearest first, padded with MISSING.
    """
    n, probes = clusters.near.shape
    count = len(clusters.bounds) - 1
    best = SCORES_OF_A_PAIR
    while best * probes < size:
        best *= 2
    limit = min(MOST_COMPARED, max(2 * MEMBERS, LARGE * -(-n // count)))
    entries = torch.empty((n, size), dtype=torch.int32, device=clusters.near.device)
    for begin in range(0, n, block):
        rows = clusters.order[begin : begin + block]
        scores, ids = _scan_block(form, clusters, begin, len(rows), best, limit, boundary)
        kept = k_smallest(scores, min(size, scores.shape[1])).indices
        members = ids.gather(1, kept.long())
        entries[rows, : members.shape[1]] = torch.where(members >= 0, members | NEW, MISSING)
        if members.shape[1] < size:
            entries[rows, members.shape[1] :] = MISSING
    return entries


def _scan_block(
    form: Form, clusters: Clusters, begin: int, rows: int, best: int, limit: int, boundary: int | None
) -> tuple[Any, Any]:
    """Return scores and ids, (rows, probes * best), for the points from position `begin` in the order of clusters."""
    from tonari.nn_descent.cuda.kernels.scan import scan_kernel

    near, order, bounds = clusters
    probes, count = near.shape[1], len(bounds) - 1
    device = near.device
    pairs = torch.sort(near[order[begin : begin + rows]].view(-1), stable=True)
    numbers = torch.arange(count + 1, dtype=near.dtype, device=device)
    pair_bounds = torch.searchsorted(pairs.values, numbers)
    tiles = torch.zeros(count + 1, dtype=torch.int64, device=device)
    tiles[1:] = ((pair_bounds.diff() + QUERIES - 1) // QUERIES).cumsum(0)
    programs = rows * probes // QUERIES + min(count, rows * probes)
    tile_clusters = torch.searchsorted(tiles, torch.arange(programs, device=device), right=True) - 1
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
            "pairs_ptr": pairs.indices,
            "pair_bounds_ptr": pair_bounds,
            "tile_bounds_ptr": tiles,
            "tile_clusters_ptr": tile_clusters,
            "scores_ptr": scores,
            "ids_ptr": ids,
            "clusters": count,
            "probes": probes,
            "first": begin,
            "limit": limit,
            "boundary": 0 if boundary is None else boundary,
        },
        constants={
            "D": width,
            "STEP": step_of(width),
            "QUERIES": QUERIES,
            "MEMBERS": MEMBERS,
            "BEST": best,
            "ACROSS": boundary is not None,
        },
        warps=_WARPS,
    )
    return scores, ids
