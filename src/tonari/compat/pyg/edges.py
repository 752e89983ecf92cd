"""Drop-ins for the functions of PyTorch Geometric that return neighbours as edges, tensors of shape (2, edges)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tonari import inputs
from tonari.api import graphs, searching
from tonari.api import radius as verbs
from tonari.compat.pyg.arguments import both_of, check_flow, clouds_of, groups_of, options_of, rows_of, within_of
from tonari.core.process.compiling import not_compiled
from tonari.core.results.radius_neighbors import RadiusNeighbors


def no_edges(like: Any) -> Any:
    """Return a tensor of shape (2, 0), which has no edges, on the device of `like`."""
    return like.new_empty((2, 0)).long()


def edges_of(indices: Any) -> Any:
    """Convert indices of shape (n, k), -1 if missing, to edges: queries in row 0, their neighbours in row 1."""
    import torch

    rows = torch.arange(len(indices), device=indices.device)[:, None].expand_as(indices)
    present = indices >= 0
    return torch.stack([rows[present], indices[present].long()])


def edges_of_lists(found: RadiusNeighbors) -> Any:
    """Convert the result of a radius search to edges: queries in row 0, their neighbours in row 1."""
    import torch

    rows = torch.arange(len(found.indptr) - 1, device=found.indptr.device)
    return torch.stack([rows.repeat_interleave(found.indptr.diff()), found.indices.long()])


def flowing(edges: Any, flow: str) -> Any:
    """Order both rows of edges (centre, neighbour) by `flow`: (neighbour, centre) for "source_to_target"."""
    return edges.flip(0) if flow == "source_to_target" else edges


@not_compiled
def knn(
    x: Any,
    y: Any,
    k: int,
    batch_x: Any = None,
    batch_y: Any = None,
    cosine: bool = False,
    num_workers: int = 1,
    batch_size: int | None = None,
) -> Any:
    """Find the k nearest points of x for each point of y.

    Parameters
    ----------
    x, y : tensors of shape (n, d) and (m, d), or (n,) and (m,)
    k : int
    batch_x, batch_y : int tensors of shape (n,) and (m,), optional
        The cloud id of each point; only points of the query's cloud are found.
    cosine : bool
        Whether to use 1 - cosine similarity instead of Euclidean distance.
    num_workers : int
    batch_size : int, optional

    Returns
    -------
    int64 tensor of shape (2, edges)
        Row 0 has the indices of points of y, and row 1 the indices of their neighbours in x.

    Examples
    --------
    >>> import torch
    >>> from tonari.compat.pyg import knn
    >>> x = torch.tensor([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    >>> knn(x, torch.tensor([[-1.0, 0.0], [1.0, 0.0]]), k=2).tolist()
    [[0, 0, 1, 1], [0, 1, 2, 3]]
    """
    k, options = inputs.check_count(k, "k"), options_of(x, num_workers, cosine)
    points, queries = both_of(x, y)
    groups = groups_of(batch_x, batch_y, len(points), len(queries), batch_size)
    if not points.numel() or not queries.numel():
        return no_edges(points)
    found = searching.search(queries, points, min(k, len(points)), **groups, **options)
    return edges_of(found.indices)


@not_compiled
def knn_graph(
    x: Any,
    k: int,
    batch: Any = None,
    loop: bool = False,
    flow: str = "source_to_target",
    cosine: bool = False,
    num_workers: int = 1,
    batch_size: int | None = None,
) -> Any:
    """Find the k nearest other points of each point.

    Parameters
    ----------
    x : tensor of shape (n, d) or (n,)
    k : int
    batch : int tensor of shape (n,), optional
    loop : bool
        Whether each point counts as one of its own k neighbours.
    flow : "source_to_target" or "target_to_source"
    cosine, num_workers, batch_size
        As for :func:`knn`.

    Returns
    -------
    int64 tensor of shape (2, edges)
        Row 0 has neighbours and row 1 centres; with "target_to_source" the rows are swapped.

    Examples
    --------
    >>> import torch
    >>> from tonari.compat.pyg import knn_graph
    >>> knn_graph(torch.tensor([0.0, 1.0, 3.0]), k=1).tolist()
    [[1, 0, 1], [0, 1, 2]]
    """
    k, options = inputs.check_count(k, "k"), options_of(x, num_workers, cosine)
    loop, flow, points = inputs.check_flag(loop, "loop"), check_flow(flow), rows_of(x, "x")
    clouds = clouds_of(batch, "batch", len(points), batch_size)
    k = min(k, len(points) - (not loop))
    if k < 1 or not points.numel():
        return flowing(no_edges(points), flow)
    found = graphs.knn_graph(points, k, include_self=loop, batch=clouds, **options)
    return flowing(edges_of(found.indices), flow)


@not_compiled
def nearest(x: Any, y: Any, batch_x: Any = None, batch_y: Any = None) -> Any:
    """Find the nearest point of y for each point of x.

    Parameters
    ----------
    x, y : tensors of shape (n, d) and (m, d), or (n,) and (m,)
    batch_x, batch_y : int tensors of shape (n,) and (m,), optional
        The cloud of each point. If only one is given, all points of the other tensor belong to cloud 0.

    Returns
    -------
    int64 tensor of shape (n,)
        Row numbers of y; the smallest one in a tie.

    Raises
    ------
    ValueError
        y has no point in the cloud of a point of x.
    """
    options = options_of(x, -1)
    queries, points = both_of(x, y)
    if batch_x is not None or batch_y is not None:
        batch_x = np.zeros(len(queries), np.int64) if batch_x is None else batch_x
        batch_y = np.zeros(len(points), np.int64) if batch_y is None else batch_y
    theirs, ours = clouds_of(batch_x, "batch_x", len(queries), None), clouds_of(batch_y, "batch_y", len(points), None)
    groups: dict[str, Any] = {} if ours is None else {"query_groups": theirs, "point_groups": ours}
    if not len(queries):
        return no_edges(queries)[0]
    if not len(points):
        raise ValueError("y: has no points, expected at least one")
    found = searching.search(queries, points, 1, **groups, **options).indices[:, 0].long()
    if bool((found < 0).any()):
        raise ValueError("batch_x: has clouds that batch_y does not have, so some points of x have no nearest point")
    return found


@not_compiled
def radius(
    x: Any,
    y: Any,
    r: float,
    batch_x: Any = None,
    batch_y: Any = None,
    max_num_neighbors: int | None = 32,
    num_workers: int = 1,
    batch_size: int | None = None,
) -> Any:
    """Find all points of x at a distance less than r from each point of y.

    Parameters
    ----------
    x, y, batch_x, batch_y, num_workers, batch_size
        As for :func:`knn`.
    r : float
    max_num_neighbors : int, optional
        The largest number of points to keep for each point of y; the nearest ones are kept.

    Returns
    -------
    int64 tensor of shape (2, edges)
        Row 0 has row numbers of y, and row 1 row numbers of x.

    Examples
    --------
    >>> import torch
    >>> from tonari.compat.pyg import radius
    >>> radius(torch.tensor([0.0, 1.0, 3.0]), torch.tensor([0.5, 9.0]), r=1.0).tolist()
    [[0, 0], [0, 1]]
    """
    options, within = options_of(x, num_workers), within_of(r, max_num_neighbors)
    points, queries = both_of(x, y)
    groups = groups_of(batch_x, batch_y, len(points), len(queries), batch_size)
    if not points.numel() or not queries.numel():
        return no_edges(points)
    return edges_of_lists(verbs.radius_search(queries, points, **within, **groups, **options))


@not_compiled
def radius_graph(
    x: Any,
    r: float,
    batch: Any = None,
    loop: bool = False,
    max_num_neighbors: int | None = 32,
    flow: str = "source_to_target",
    num_workers: int = 1,
    batch_size: int | None = None,
) -> Any:
    """Find all other points at a distance less than r from each point.

    Parameters
    ----------
    x, batch, flow, num_workers, batch_size
        As for :func:`knn_graph`.
    r : float
    loop : bool
        Whether each point counts as its own neighbour.
    max_num_neighbors : int, optional
        The largest number of neighbours to keep for each point; the nearest ones are kept.

    Returns
    -------
    int64 tensor of shape (2, edges)
        Row 0 has neighbours and row 1 centres; with "target_to_source" the rows are swapped.

    Examples
    --------
    >>> import torch
    >>> from tonari.compat.pyg import radius_graph
    >>> radius_graph(torch.tensor([0.0, 1.0, 3.0]), r=1.5).tolist()
    [[1, 0], [0, 1]]
    """
    options, within = options_of(x, num_workers), within_of(r, max_num_neighbors)
    loop, flow, points = inputs.check_flag(loop, "loop"), check_flow(flow), rows_of(x, "x")
    clouds = clouds_of(batch, "batch", len(points), batch_size)
    if not points.numel():
        return flowing(no_edges(points), flow)
    if loop:
        groups: dict[str, Any] = {} if clouds is None else {"query_groups": clouds, "point_groups": clouds}
        found = verbs.radius_search(points, points, **within, **groups, **options)
    else:
        found = verbs.radius_graph(points, **within, batch=clouds, **options)
    return flowing(edges_of_lists(found), flow)
