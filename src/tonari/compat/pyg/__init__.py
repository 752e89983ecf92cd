"""Drop-in for the neighbour functions of ``torch_geometric.nn`` and ``torch_cluster``, which return edges.

Import them by ``from tonari.compat.pyg import knn_graph``.

edges.py        knn, knn_graph, nearest, radius, radius_graph, and conversion of neighbour lists to tensors of edges
arguments.py    checks and conversion of PyG's arguments

========================================  =============================================================================
covered                                   how
========================================  =============================================================================
``knn``, ``radius``                       edges: row 0 has queries (rows of y), row 1 has points (rows of x)
``knn_graph``, ``radius_graph``           edges: row 0 has neighbours, row 1 their centres; the other way round with
                                          ``flow="target_to_source"``
``nearest``                               for each row of x the row number of its nearest row of y
``batch``, ``batch_x``, ``batch_y``       the cloud id of each point, from 0, in any order
``batch_size``                            checked: every cloud id in ``batch`` must be less than it
``num_workers``                           CPU threads; -1 lets the amount of work decide. No effect on CUDA
``max_num_neighbors``                     the most points that are kept for a query, the nearest ones; None keeps all
``cosine``                                1 - cosine similarity
----------------------------------------  -----------------------------------------------------------------------------
refused                                   alternative
========================================  =============================================================================
``batch_x`` without ``batch_y``           give both (``nearest`` assumes zeros for a missing one)
whole numbers in x and y                  ``x.float()``
NaN and infinity
========================================  =============================================================================

Edges are int64 tensors on the device of x, in order of (query or centre, distance, row number). A query has fewer than
k edges if its cloud has fewer points. As in torch_cluster, a point is within a radius if its distance is less than r.
Differences:

- ``knn_graph`` and ``radius_graph`` exclude a point from its own list by row number, so it has k neighbours even if it
  has copies; torch_cluster searches for k + 1 points and drops the point itself if it is among them. With
  ``loop=True``, ``knn_graph`` puts the point itself first.
- If more than ``max_num_neighbors`` points are within the radius, tonari keeps the nearest ones, and torch_cluster
  keeps any of them. With ``loop=True``, ``radius_graph`` may therefore drop the point itself if it has that many
  copies.
- Distances are float64 values rounded once, on every device.
"""

from tonari.compat.pyg.edges import knn, knn_graph, nearest, radius, radius_graph
from tonari.core.hints import missing_from

__all__ = ["knn", "knn_graph", "nearest", "radius", "radius_graph"]

__getattr__ = missing_from(__name__)
