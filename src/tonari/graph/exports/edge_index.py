"""Export a graph as PyTorch Geometric's ``edge_index``."""

from __future__ import annotations

from typing import Any, Literal

from tonari import inputs
from tonari.graph.exports.common import HasLists

_FLOWS = ("source_to_target", "target_to_source")


def to_edge_index(
    graph: HasLists, *, flow: Literal["source_to_target", "target_to_source"] = "source_to_target"
) -> tuple[Any, Any]:
    """Export the edges for PyTorch Geometric, without self-loops, on the device of the graph.

    Parameters
    ----------
    flow : "source_to_target" or "target_to_source"
        As for ``torch_geometric.nn.knn_graph``. "source_to_target": row 0 holds neighbours and row 1 the points
        that list them, so that messages go from neighbours to points. "target_to_source": the other way round.

    Returns
    -------
    edge_index : int64 tensor of shape (2, edges)
        A contiguous tensor, ordered by point, and for each point nearest first. Missing neighbours are left out.
    edge_attr : float32 or float64 tensor of shape (edges,)
        The distances.

    Raises
    ------
    ValueError
        The flow is unknown.
    ImportError
        PyTorch is not installed.

    Notes
    -----
    Each point has exactly k edges, also among duplicates. ``torch_geometric.nn.knn_graph`` searches for k + 1
    points and drops the point itself; among duplicates it may return k + 1 edges.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> graph = tonari.knn_graph(np.array([[0.0], [1.0], [3.0]], dtype=np.float32), k=1)
    >>> graph.to_edge_index()[0].tolist()
    [[1, 0, 1], [0, 1, 2]]
    """
    if flow not in _FLOWS:
        raise ValueError(f"flow={flow!r}: expected {' or '.join(map(repr, _FLOWS))}")
    try:
        import torch
    except ImportError as error:
        raise ImportError("to_edge_index needs PyTorch: pip install torch") from error
    lists = graph.lists
    first = int(lists.include_self)
    distances, indices = (inputs.as_tensor(part)[:, first:] for part in lists.found)
    present = indices >= 0
    centres = torch.arange(lists.n, device=indices.device)[:, None].expand_as(indices)[present]
    ends = indices[present].long(), centres
    return torch.stack(ends if flow == _FLOWS[0] else ends[::-1]), distances[present]
