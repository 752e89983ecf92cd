"""Neighbours as ``torch_geometric.nn`` and ``torch_cluster`` return them: ``from tonari.compat.pyg import knn_graph``.

lists_of_k.py   knn, knn_graph, nearest
within.py       radius, radius_graph
arguments.py    PyG's arguments in tonari's words
edges.py        lists of neighbours as edges

========================================  =============================================================================
covered                                   how
========================================  =============================================================================
``knn``, ``radius``                       edges from a query, row 0 (of y), to a point, row 1 (of x)
``knn_graph``, ``radius_graph``           edges from a neighbour, row 0, to its centre, row 1; the other way round with
                                          ``flow="target_to_source"``
``nearest``                               for each row of x the number of the nearest row of y
``batch``, ``batch_x``, ``batch_y``       clouds: whole numbers from 0, which need not be sorted
``batch_size``                            checked: no number of a cloud may reach it
``num_workers``                           threads on the CPU; -1 is as many as the work is worth. Of no effect on CUDA
``max_num_neighbors``                     the nearest are kept; None keeps all
``cosine``                                1 - cosine similarity
----------------------------------------  -----------------------------------------------------------------------------
refused                                   instead
========================================  =============================================================================
``batch_x`` without ``batch_y``           give both (``nearest`` takes the other one for zeros)
whole numbers in x and y                  ``x.float()``
NaN and infinity
========================================  =============================================================================

Edges are int64 tensors on the device of x, in the order of queries (centres), the nearest first and equal ones by their
numbers. There are fewer than k where a cloud has fewer points. As in torch_cluster, a point is within a radius if its
distance is less than r. What differs:

- ``knn_graph`` and ``radius_graph`` leave a point out of its own list by its number, so it has k neighbours however
  many copies it has; torch_cluster looks for k + 1 points and drops the point itself where it finds it. With
  ``loop=True``, ``knn_graph`` puts the point itself first.
- Of more than ``max_num_neighbors`` points torch_cluster keeps any, and so may the point itself, with ``loop=True`` of
  ``radius_graph``, be missing here where there are as many copies of it.
- Distances are float64 values rounded once, on every device.
"""

from tonari.compat.pyg.lists_of_k import knn, knn_graph, nearest
from tonari.compat.pyg.within import radius, radius_graph
from tonari.core.hints import missing_from

__all__ = ["knn", "knn_graph", "nearest", "radius", "radius_graph"]

__getattr__ = missing_from(__name__)
