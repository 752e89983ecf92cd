"""Search the tree on one CUDA device by single walks; papers/cuda/buffered.py has the buffered traversal."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from tonari.core.process.progress import Counter
from tonari.core.results.neighbors import Neighbors
from tonari.cuda.compiling.rehearsal import order_of as order_of_keys
from tonari.cuda.launch import launch
from tonari.kdtree import tuning
from tonari.kdtree.cuda.steps import Steps
from tonari.kdtree.cuda.tree import BLOCK, MOST_LEVELS, WIDTH, DeviceTree
from tonari.metrics import get_metric

_MOST_COLUMNS = 32  # maximum number of columns of a tree on CUDA
LISTS = (32, 64)  # lengths of a kernel's list of nearest points


def order_of(queries: Any, tree: DeviceTree, metric: str) -> Any:
    """Return the row numbers of the queries, sorted by each query's first leaf: int64 tensor of shape (m,)."""
    from tonari.kdtree.cuda.kernels.home import home_kernel

    homes = torch.empty(len(queries), dtype=torch.int32, device=queries.device)
    launch(
        home_kernel,
        -(-len(queries) // tuning.HOME_QUERIES),
        {
            "queries_ptr": queries,
            "leaves_ptr": homes,
            "count": len(queries),
            **boxes_of(tree),
        },
        constants={**nodes_of(tree, metric), "BLOCK": tuning.HOME_QUERIES},
        warps=1,
    )
    return order_of_keys(homes)


def order_of_points(tree: DeviceTree) -> Any:
    """Return the row numbers of the tree's points, leaf by leaf: int64 (n,), the search order of a self-join."""
    return tree.ids[: tree.n].long()


class TreeSearch(NamedTuple):
    """A search of a tree on a device: the queries, and the tensors that receive their neighbours.

    Attributes
    ----------
    queries : tensor of shape (m, d), contiguous, of the dtype of the tree's rows
        With magnitudes of at most :func:`largest_of`.
    tree : DeviceTree
        The tree of points with magnitudes of at most :func:`largest_of`.
    k : int
        At most 64.
    metric : str
        One of the metrics that a tree supports.
    found : Neighbors of contiguous tensors of shape (m, k)
        Output: distances of the tree's dtype and int32 indices; inf and -1 for missing neighbours.
    own : int64 tensor of shape (m,), optional
        For each query, the index of its own point, which is left out.
    """

    queries: Any
    tree: DeviceTree
    k: int
    metric: str
    found: Neighbors
    own: Any = None


def walk(search: TreeSearch, order: Any, *, visits: Any = None, most_visits: int = 0, given_up: Any = None) -> None:
    """Find the k nearest points of the queries listed in `order`, in one launch.

    Parameters
    ----------
    search : TreeSearch
    order : int64 tensor
        Row numbers of queries; queries that are near each other should be adjacent.
    visits : int32 tensor of shape (m, 2), optional
        Output: the counts of leaves and of nodes that each query visits.
    most_visits : int
        The largest number of nodes and leaves that a query may visit; 0 for no limit.
    given_up : bool tensor of shape (m,), optional
        Output if `most_visits` is not 0: True for queries that reached the limit; their lists are not valid.
    """
    from tonari.kdtree.cuda.kernels.search import search_kernel

    queries, tree, k, metric, found, own = search
    launch(
        search_kernel,
        len(order),
        {
            "queries_ptr": queries,
            "order_ptr": order,
            "own_ptr": own,
            "distances_ptr": found.distances,
            "indices_ptr": found.indices,
            "visits_ptr": visits,
            "given_up_ptr": given_up.view(torch.uint8) if most_visits else None,
            "k": k,
            "most_visits": most_visits,
            **boxes_of(tree),
            **leaves_of(tree),
        },
        constants={
            **nodes_of(tree, metric),
            "DOUBLE": tree.rows.dtype == torch.float64,
            "BLOCK": BLOCK,
            "LIST": next(size for size in LISTS if k <= size),
            "HAS_OWN": own is not None,
            "COUNT": visits is not None,
            "BOUNDED": most_visits > 0,
        },
        warps=1,
        fused=False,
    )


def walk_in_steps(
    search: TreeSearch,
    order: Any,
    *,
    most_visits: int = 0,
    given_up: Any = None,
    steps: Steps,
    check: Callable[[], None],
    bar: Counter,
) -> None:
    """Search by :func:`walk`, some queries per launch; `check` is called before a launch, and `bar` counts queries."""
    in_steps(
        order,
        lambda some: walk(search, some, most_visits=most_visits, given_up=given_up),
        steps=steps,
        check=check,
        bar=bar,
    )


def in_steps(
    order: Any, launch_some: Callable[[Any], None], *, steps: Steps, check: Callable[[], None], bar: Counter
) -> None:
    """Search all queries, some in each launch; `check` is called before each launch, and `bar` counts queries."""
    begin, m = 0, len(order)
    while begin < m:
        check()
        some = order[begin : begin + steps.size]
        with steps.launching(len(some)):
            launch_some(some)
        bar.add(len(some))
        begin += len(some)


def largest_of(metric: str) -> float:
    """Return the largest magnitude of a value, a power of two, at which distances do not overflow in single precision.

    >>> math.log2(largest_of("euclidean")), math.log2(largest_of("power:4"))
    (60.0, 29.0)
    """
    record = get_metric(metric)
    # A sum of 32 terms, of differences up to twice the magnitude, is at most 2^127.
    power = 2.0 if record.squares else max(record.power, 2.0)
    return 2.0 ** (math.floor((127 - math.log2(_MOST_COLUMNS)) / power) - 1)


def beyond(rows: Any, metric: str) -> Any:
    """Return a mask of the rows with a value that is not finite, or is too large for a tree to compare."""
    if not rows.dtype.is_floating_point:
        return torch.zeros(len(rows), dtype=torch.bool, device=rows.device)
    return ~(torch.maximum(rows.amax(1), -rows.amin(1)) <= largest_of(metric))


def has_beyond(rows: Any, metric: str) -> bool:
    """Whether :func:`beyond` marks any row; waits for the device."""
    if not rows.dtype.is_floating_point:
        return False
    return not float(torch.maximum(rows.amax(), -rows.amin())) <= largest_of(metric)  # NaN if any value is NaN


def boxes_of(tree: DeviceTree) -> dict[str, Any]:
    """Return arguments of kernels: the boxes, and the position in them at which each of levels 1 to 3 begins.

    The position of an absent level is 0.
    """
    node = tree.d * 2 * WIDTH
    begins = dict(enumerate(tree.levels))
    offsets = {f"levels_{level}": begins.get(level, 0) * node for level in range(1, MOST_LEVELS)}
    return {"boxes_ptr": tree.boxes, **offsets}


def leaves_of(tree: DeviceTree) -> dict[str, Any]:
    """Return the points of the tree as arguments of kernels that read leaves."""
    return {"rows_ptr": tree.rows, "ids_ptr": tree.ids, "blocks": tree.leaf // BLOCK}


def nodes_of(tree: DeviceTree, metric: str) -> dict[str, Any]:
    """Return the constants of kernels that visit the nodes of a tree."""
    return {"TOP": len(tree.levels) - 1, "D": tree.d, "METRIC": get_metric(metric), "WIDTH": WIDTH}
