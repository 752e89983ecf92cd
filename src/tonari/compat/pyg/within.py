"""Drop-ins for the radius searches of PyTorch Geometric: ``radius`` and ``radius_graph``."""

from __future__ import annotations

from typing import Any

from tonari import inputs
from tonari.api import radius as verbs
from tonari.compat.pyg.arguments import both_of, check_flow, clouds_of, groups_of, options_of, rows_of, within_of
from tonari.compat.pyg.edges import edges_of_lists, flowing, no_edges
from tonari.core.process.compiling import not_compiled


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
