"""The interface of ``scipy.spatial.KDTree``, with tonari's neighbours.

Import it by ``from tonari.compat.scipy import KDTree, cKDTree``.

kdtree.py       KDTree, cKDTree: query, query_ball_point
two_trees.py    query_ball_tree, query_pairs, count_neighbors, sparse_distance_matrix
periodic.py     searches in a periodic box
arguments.py    conversion of SciPy's arguments

================================================  ====================================================================
covered                                           how
================================================  ====================================================================
``query``                                         k as a number or a list of ranks; missing neighbours are n at inf
``query_ball_point``                              r as a number or one for each point; ``return_length``
``query_ball_tree``, ``query_pairs``,             as SciPy's, between trees of this class
``sparse_distance_matrix``, ``count_neighbors``
``p``                                             1, 1.5, 2, 3, 4 and inf
``workers``                                       threads; -1 lets the amount of work decide
``leafsize``, ``compact_nodes``,                  checked; they change no answer, and tonari shapes its trees itself
``balanced_tree``
``data n m maxes mins leafsize boxsize``          as SciPy's
``boxsize``                                       a periodic box, with a length for all dimensions or one for each
``cKDTree``                                       the base class of ``KDTree``, as in SciPy
------------------------------------------------  --------------------------------------------------------------------
refused                                           alternative or reason
================================================  ====================================================================
other values of ``p``                             scipy.spatial.KDTree
an empty array; values beyond 1e150; k below 1;   none (SciPy reads beyond its memory for k = [0], and squares a
a negative radius                                 negative radius)
``size``, ``indices``, ``tree``                   none; the nodes of a tree are not accessible
================================================  ====================================================================

As in SciPy, rows are converted to float64 and distances are float64. They may differ from SciPy's in the last bit,
since SciPy adds squares in another order. A point is within a radius if its returned distance is at most the radius,
and within ``distance_upper_bound`` if it is less; SciPy compares squares. Equal distances are in ascending order of
index; in SciPy their order depends on the tree. Lists of row numbers are in ascending order of row number, or, with
``return_sorted=False``, in ascending order of distance.
"""

from tonari.compat.scipy.kdtree import KDTree, cKDTree
from tonari.core.hints import missing_from

__all__ = ["KDTree", "cKDTree"]

__getattr__ = missing_from(__name__)
