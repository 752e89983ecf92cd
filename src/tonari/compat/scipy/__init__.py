"""Drop-in for ``scipy.spatial.KDTree``.

Import it by ``from tonari.compat.scipy import KDTree, cKDTree``.

kdtree.py       KDTree, cKDTree: query, query_ball_point
two_trees.py    query_ball_tree, query_pairs, count_neighbors, sparse_distance_matrix
periodic.py     searches in a periodic box
arguments.py    conversion of SciPy's arguments

================================================  ====================================================================
covered                                           how
================================================  ====================================================================
``query``                                         k as a number or a list of ranks; a missing neighbour has index n
                                                  and distance inf
``query_ball_point``                              one radius r, or a radius for each point; ``return_length``
``query_ball_tree``, ``query_pairs``,             as SciPy's, between trees of this class
``sparse_distance_matrix``, ``count_neighbors``
``p``                                             1, 1.5, 2, 3, 4 and inf
``workers``                                       threads; -1 lets the amount of work decide
``leafsize``, ``compact_nodes``,                  checked, no effect: tonari chooses the shape of its trees itself
``balanced_tree``
``data n m maxes mins leafsize boxsize``          as SciPy's
``boxsize``                                       a periodic box, with one length or a length for each dimension
``cKDTree``                                       the base class of ``KDTree``, as in SciPy
------------------------------------------------  --------------------------------------------------------------------
refused                                           alternative or reason
================================================  ====================================================================
other values of ``p``                             scipy.spatial.KDTree
an empty array; values beyond 1e150; k below 1;   none (SciPy reads outside its memory for k = [0], and squares a
a negative radius                                 negative radius)
``size``, ``indices``, ``tree``                   none; the nodes of a tree are not accessible
================================================  ====================================================================

As in SciPy, rows are converted to float64 and distances are float64. Distances may differ from SciPy's in the last bit,
since SciPy adds squares in another order. A point is within a radius if its returned distance is at most the radius,
and within ``distance_upper_bound`` if its distance is less; SciPy compares squared distances. Neighbours at equal
distances are in ascending order of index; in SciPy their order depends on the tree. Lists of row numbers are sorted by
row number, or by distance with ``return_sorted=False``.
"""

from tonari.compat.scipy.kdtree import KDTree, cKDTree
from tonari.core.hints import missing_from

__all__ = ["KDTree", "cKDTree"]

__getattr__ = missing_from(__name__)
