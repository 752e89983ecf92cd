"""Export a graph for scikit-learn's estimators with ``metric="precomputed"``."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from tonari.graph.exports.common import HasLists, refuse_similarities, with_self
from tonari.graph.exports.csr import matrix_of
from tonari.graph.lists import Lists, refuse_filtered

if TYPE_CHECKING:
    import scipy.sparse


def to_sklearn(graph: HasLists, *, eps: float | None = None) -> scipy.sparse.csr_matrix:
    """Export the graph for scikit-learn's estimators with ``metric="precomputed"``.

    ============================================  ==========================================================
    estimator                                     k of the graph, at least
    ============================================  ==========================================================
    LocalOutlierFactor(n_neighbors), Isomap,      n_neighbors
    KNeighborsClassifier, KNeighborsRegressor
    TSNE(perplexity, init="random")               int(3 * perplexity + 1), or n - 1 if that is less
    SpectralEmbedding, SpectralClustering         n_neighbors - 1: self counts.
                                                  ``affinity="precomputed_nearest_neighbors"``
    DBSCAN(eps)                                   such that no list ends within eps; pass `eps` to check this
    ============================================  ==========================================================

    For example, local outlier factors are computed by
    ``LocalOutlierFactor(20, metric="precomputed").fit_predict(tonari.knn_graph(points, 20).to_sklearn())``.

    Parameters
    ----------
    eps : float, optional
        The eps of DBSCAN. DBSCAN assumes that each list contains all points within eps; if `eps` is given, this is
        checked.

    Returns
    -------
    scipy.sparse.csr_matrix of shape (n, n)
        Each row has the point itself first, at a stored distance of 0, then its neighbours, nearest first. scikit-learn
        assumes that the first entry of a row is the point itself: without it, the nearest neighbour would be lost.

    Raises
    ------
    ValueError
        The graph contains similarities, or a list may lack points within eps, as in every graph that was built with
        filters.
    ImportError
        SciPy is not installed.

    Notes
    -----
    The estimators refuse a graph with too few columns. TSNE squares its distances, so do not pass it a graph of
    "sqeuclidean".

    Examples
    --------
    >>> import numpy as np, tonari
    >>> graph = tonari.knn_graph(np.array([[0.0], [1.0], [1.0], [3.0]], dtype=np.float32), k=1)
    >>> matrix = graph.to_sklearn()
    >>> matrix.indices.reshape(4, 2).tolist(), matrix.data.reshape(4, 2).tolist()
    ([[0, 1], [1, 2], [2, 1], [3, 1]], [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 2.0]])
    """
    lists = graph.lists
    refuse_similarities(lists, "scikit-learn")
    if eps is not None:
        _refuse_cut_balls(lists, eps)
    return matrix_of(lists, include_self=True)


def _refuse_cut_balls(lists: Lists, eps: Any) -> None:
    """Refuse lists that may be too short to contain all points within eps."""
    if not isinstance(eps, Real) or not float(eps) >= 0:
        raise ValueError(f"eps={eps!r}: expected a number of at least 0")
    instead = "leave eps out if DBSCAN should count allowed points only"
    refuse_filtered(lists.filters, "the graph", f"DBSCAN assumes that lists contain all points within eps; {instead}")
    distances, indices = with_self(lists, False)
    k = indices.shape[1]
    if k == lists.n - 1 and (indices >= 0).all():
        return
    # A list with missing neighbours cannot prove that it contains all points within eps.
    cut = (distances[:, -1] <= float(eps)) | (indices[:, -1] < 0) if k else np.ones(lists.n, bool)
    count = int(cut.sum())
    if count:
        raise ValueError(
            f"eps={eps}: {count} of {lists.n} lists of k={k} neighbours may end before all points within eps, which "
            f"DBSCAN would take for all; build the graph with a larger k, such as {min(lists.n - 1, 2 * k)}, or choose "
            "a smaller eps"
        )
