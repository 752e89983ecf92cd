"""Weights of a graph's edges that measure the similarity of their two points, as symmetric SciPy matrices.

    gaussian   exp(-d(i, j)² / (s_i s_j)), s_i the distance of i's farthest neighbour     Zelnik-Manor and Perona 2004
    umap       a + b - a b, where a = exp(-max(0, d(i, j) - r_i) / t_i), b the same for j  McInnes et al. 2018
    jaccard    |N(i) ∩ N(j)| / |N(i) ∪ N(j)|, N(i) the neighbours of i                    Levine et al. 2015

r_i is the distance of i's nearest neighbour that is not a duplicate, and t_i is chosen so that the weights of i's k
neighbours sum to log2(k + 1), since umap-learn counts the point itself. Two points have an edge if one lists the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from tonari.core.process.floats import in_default_floats
from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.slices import cut
from tonari.graph import tuning
from tonari.graph.exports.common import HasLists, refuse_similarities, refuse_squares, with_self
from tonari.graph.exports.csr import matrix_of
from tonari.graph.lists import Lists
from tonari.graph.structure import shared

if TYPE_CHECKING:
    import scipy.sparse

_ROUNDS, _TOLERANCE = 64, 1e-5  # steps and tolerance of the bisection for t_i, as in umap-learn
_LEAST_SCALE = 1e-3  # smallest t_i in umap-learn, relative to the mean distance in the list of i, which includes i


@in_default_floats
def to_weights(graph: HasLists, kind: Literal["gaussian", "umap", "jaccard"]) -> scipy.sparse.csr_matrix:
    """Return a symmetric SciPy matrix with a weight for each edge: the similarity of its two points.

    Spectral methods and community detection take such weights: at most 1, and 0 without an edge. Two points have an
    edge if one lists the other, as with ``to_csr(symmetric="union")``. If column 0 is the point itself, it is left out.

    Parameters
    ----------
    kind : "gaussian", "umap" or "jaccard"
        "gaussian": exp(-d² / (s_i s_j)), where s_i is the distance of i's farthest neighbour [1]_; 1 for
        duplicates. If all neighbours of a point are duplicates, its other edges have weight 0.

        "umap": a + b - a b, where a = exp(-max(0, d - r_i) / t_i), b is the same with r_j and t_j, or b = 0 if j does
        not list i. r_i is the smallest distance above 0 in the list of i, and t_i is chosen so that the weights of i's
        k neighbours sum to log2(k + 1) [2]_. These are the weights of UMAP's ``fuzzy_simplicial_set`` for
        ``n_neighbors=k + 1``, which computes in float32.

        "jaccard": the number of neighbours that i and j have in common, divided by the number of points in either
        list [3]_. It does not depend on distances. Points do not count as neighbours of themselves.

    Returns
    -------
    scipy.sparse.csr_matrix of float64 and shape (n, n)
        Symmetric, with rows in order of column number and an empty diagonal. Weights of 0 are not stored.

    Raises
    ------
    ImportError
        SciPy is not installed.
    ValueError
        The kind is unknown; or the graph contains similarities, infinite distances or, for "umap", squared
        distances. "jaccard" accepts every graph.

    References
    ----------
    .. [1] Zelnik-Manor and Perona, "Self-tuning spectral clustering", NIPS 17 (2004), section 2.1, with k for 7.
    .. [2] McInnes, Healy and Melville, "UMAP: Uniform manifold approximation and projection for dimension
       reduction", arXiv:1802.03426 (2018), section 3.1, and umap-learn 0.5's bisection.
    .. [3] Levine et al., "Data-driven phenotypic dissection of AML" (PhenoGraph), Cell 162 (2015).

    Examples
    --------
    >>> import numpy as np, tonari
    >>> graph = tonari.knn_graph(np.array([[0.0], [1.0], [2.0], [4.0]], dtype=np.float32), k=2)
    >>> graph.to_weights("jaccard").toarray().round(2).tolist()
    [[0.0, 0.33, 0.33, 0.0], [0.33, 0.0, 0.33, 0.33], [0.33, 0.33, 0.0, 0.33], [0.0, 0.33, 0.33, 0.0]]
    """
    kinds = {"gaussian": _gaussian, "umap": _umap, "jaccard": _jaccard}
    if kind not in kinds:
        raise ValueError(f"kind={kind!r}: expected {', '.join(map(repr, kinds))}")
    matrix = kinds[kind](graph.lists.on_host())
    matrix.eliminate_zeros()
    return matrix


def _gaussian(lists: Lists) -> scipy.sparse.csr_matrix:
    refuse_similarities(lists, "weights('gaussian')")
    found = _finite(lists)
    scales = np.sqrt(np.where(found.indices >= 0, found.distances, 0).max(axis=1, initial=0).astype(np.float64))
    matrix, rows = _edges(lists)
    apart = matrix.data > 0
    with np.errstate(divide="ignore", over="ignore"):
        ratios = matrix.data[apart] / (scales[rows] * scales[matrix.indices])[apart]
        matrix.data[apart] = np.exp(-(ratios ** (2 / lists.measure.power)))
    matrix.data[~apart] = 1.0
    return matrix


def _umap(lists: Lists) -> scipy.sparse.csr_matrix:
    refuse_similarities(lists, "weights('umap')")
    refuse_squares(lists, "weights('umap')")
    found = _finite(lists)
    mean = float(np.where(found.indices >= 0, found.distances, 0).sum(dtype=np.float64))
    mean /= (found.indices >= 0).sum() + lists.n
    matrix = matrix_of(lists, dtype="float64")
    parts = []
    for rows in cut(lists.n, max(1, tuning.JACCARD_AT_ONCE // lists.k)):
        near, present = found.distances[rows].astype(np.float64), found.indices[rows] >= 0
        parts.append(_memberships(np.where(present, near, 0.0), present, mean)[present])
    matrix.data[:] = np.concatenate(parts)
    matrix.sort_indices()
    other = matrix.T.tocsr()
    joined: scipy.sparse.csr_matrix = (matrix + other - matrix.multiply(other)).tocsr()
    return joined


def _memberships(near: npt.NDArray[np.float64], present: npt.NDArray[np.bool_], mean: float) -> npt.NDArray[np.float64]:
    """Return the directed UMAP weights from some points to their neighbours, of shape (rows, k); 0 if one is missing.

    These are the numbers a of :func:`to_weights`, before they are combined into symmetric weights.
    """
    k = present.sum(axis=1)
    own_mean = near.sum(axis=1) / (k + 1)
    # distances relative to the row's mean, so that 64 bisection steps suffice for any scale of the data
    unit = np.where(own_mean > 0, own_mean, 1.0)[:, None]
    near = near / unit
    nearest = np.where(near > 0, near, np.inf).min(axis=1, initial=np.inf)
    nearest[np.isinf(nearest)] = 0.0
    beyond = np.maximum(near - nearest[:, None], 0.0)
    target = np.log2(k + 1)
    low, high, scale = np.zeros(len(k)), np.full(len(k), np.inf), np.ones(len(k))
    open_rows = np.arange(len(k))
    with np.errstate(over="ignore"):
        for _ in range(_ROUNDS):
            sums = np.where(present[open_rows], np.exp(-beyond[open_rows] / scale[open_rows, None]), 0.0).sum(axis=1)
            off = np.abs(sums - target[open_rows]) >= _TOLERANCE
            open_rows, above = open_rows[off], (sums > target[open_rows])[off]
            if not len(open_rows):
                break
            high[open_rows[above]] = scale[open_rows[above]]
            low[open_rows[~above]] = scale[open_rows[~above]]
            unbounded = np.isinf(high[open_rows])
            middle = np.where(unbounded, 2 * scale[open_rows], (low[open_rows] + high[open_rows]) / 2)
            scale[open_rows] = middle
        scale = np.maximum(scale, _LEAST_SCALE * np.where(nearest > 0, 1.0, mean / unit[:, 0]))
        weights: npt.NDArray[np.float64] = np.exp(-beyond / scale[:, None])
    return weights


def _jaccard(lists: Lists) -> scipy.sparse.csr_matrix:
    indices = with_self(lists, False).indices
    matrix, rows = _edges(lists)
    lengths = (indices >= 0).sum(axis=1)
    for part in cut(len(rows), max(1, tuning.JACCARD_AT_ONCE // lists.k)):
        ends = rows[part], matrix.indices[part]
        common = shared(*(indices[end] for end in ends))
        matrix.data[part] = common / (lengths[ends[0]] + lengths[ends[1]] - common)
    return matrix


def _edges(lists: Lists) -> tuple[scipy.sparse.csr_matrix, npt.NDArray[np.int64]]:
    """Return the matrix of the symmetric graph, with float64 distances, and the row number of each entry."""
    matrix = matrix_of(lists, order="index", symmetric="union", dtype="float64")
    return matrix, np.repeat(np.arange(lists.n), np.diff(matrix.indptr))


def _finite(lists: Lists) -> Neighbors:
    """Return the lists without self; refuse infinite distances."""
    found = with_self(lists, False)
    infinite = np.isinf(found.distances) & (found.indices >= 0)
    if infinite.any():
        row = int(infinite.any(axis=1).argmax())
        raise ValueError(f"row {row} has an infinite distance, which has no weight; build the graph of float64 points")
    return found
