"""Queries through the tree on one card."""

from __future__ import annotations

from typing import Any

import torch

from tonari.core.neighbors import Neighbors
from tonari.cuda.launch import launch
from tonari.kdtree.cuda.tree import BLOCK, MOST_LEVELS, WIDTH, DeviceTree
from tonari.metrics import get_metric

# Squares of differences between larger values could overflow in single precision.
LARGEST = 2.0**60
LISTS = (32, 64)  # lengths of the list of nearest points
HOME_QUERIES = 8  # of a program


def order_of(queries: Any, tree: DeviceTree, metric: str) -> Any:
    """Queries in the order of the leaves at which they begin: int64 tensor of shape (m,)."""
    from tonari.kdtree.cuda.kernels.home import home_kernel

    homes = torch.empty(len(queries), dtype=torch.int32, device=queries.device)
    launch(
        home_kernel,
        -(-len(queries) // HOME_QUERIES),
        {
            "queries_ptr": queries,
            "boxes_ptr": tree.boxes,
            "leaves_ptr": homes,
            "count": len(queries),
            **_offsets(tree),
        },
        constants={
            "TOP": len(tree.levels) - 1,
            "D": tree.d,
            "METRIC": get_metric(metric),
            "WIDTH": WIDTH,
            "BLOCK": HOME_QUERIES,
        },
        warps=1,
    )
    return torch.sort(homes).indices


def walk(
    queries: Any,
    tree: DeviceTree,
    order: Any,
    k: int,
    metric: str,
    found: Neighbors,
    *,
    own: Any = None,
    visits: Any = None,
) -> None:
    """Write the neighbours of the queries that `order` names.

    Parameters
    ----------
    queries : tensor of shape (m, d), contiguous, of the dtype of the tree's rows, magnitudes up to LARGEST
    tree : DeviceTree
        Of points with magnitudes up to LARGEST.
    order : int64 tensor
        Rows of the queries; near ones should follow each other.
    k : int
        Up to 64.
    metric : str
        One of the tree's.
    found : Neighbors of contiguous tensors of shape (m, k)
        Distances of the tree's dtype and int32 indices; inf and -1 behind the last point.
    own : int64 tensor of shape (m,), optional
        The point that each query is, which it must not find.
    visits : int32 tensor of shape (m, 2), optional
        Leaves and nodes that each query enters.
    """
    from tonari.kdtree.cuda.kernels.search import search_kernel

    launch(
        search_kernel,
        len(order),
        {
            "queries_ptr": queries,
            "order_ptr": order,
            "own_ptr": own,
            "rows_ptr": tree.rows,
            "ids_ptr": tree.ids,
            "boxes_ptr": tree.boxes,
            "distances_ptr": found.distances,
            "indices_ptr": found.indices,
            "visits_ptr": visits,
            "k": k,
            "blocks": tree.leaf // BLOCK,
            **_offsets(tree),
        },
        constants={
            "TOP": len(tree.levels) - 1,
            "D": tree.d,
            "METRIC": get_metric(metric),
            "DOUBLE": tree.rows.dtype == torch.float64,
            "BLOCK": BLOCK,
            "LIST": next(size for size in LISTS if k <= size),
            "WIDTH": WIDTH,
            "HAS_OWN": own is not None,
            "COUNT": visits is not None,
        },
        warps=1,
        fused=False,
    )


def beyond(rows: Any) -> Any:
    """Which rows hold a value that is not finite or larger than the tree can compare: a bool tensor."""
    if not rows.dtype.is_floating_point:
        return torch.zeros(len(rows), dtype=torch.bool, device=rows.device)
    return ~(torch.maximum(rows.amax(1), -rows.amin(1)) <= LARGEST)


def _offsets(tree: DeviceTree) -> dict[str, int]:
    """Elements before the boxes of levels 1 to 3; 0 where the tree has no such level."""
    node = tree.d * 2 * WIDTH
    begins = dict(enumerate(tree.levels))
    return {f"levels_{level}": begins.get(level, 0) * node for level in range(1, MOST_LEVELS)}
