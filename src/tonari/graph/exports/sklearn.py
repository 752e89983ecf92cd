"""Export a graph for scikit-learn's estimators with ``metric="precomputed"``."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from tonari.graph.exports.common import refuse_similarities, with_self
from tonari.graph.exports.csr import to_csr
from tonari.graph.lists import Lists

if TYPE_CHECKING:
    import scipy.sparse


def to_sklearn(lists: Lists, eps: float | None) -> scipy.sparse.csr_matrix:
    """Export lists; see :meth:`tonari.KNNGraph.to_sklearn`."""
    refuse_similarities(lists, "scikit-learn")
    if eps is not None:
        _refuse_cut_balls(lists, eps)
    return to_csr(lists, order="distance", include_self=True, symmetric=None, dtype=None)


def _refuse_cut_balls(lists: Lists, eps: Any) -> None:
    """Refuse lists that may be too short to contain all points within eps."""
    if not isinstance(eps, Real) or not float(eps) >= 0:
        raise ValueError(f"eps={eps!r}: expected a number of at least 0")
    distances, indices = with_self(lists, False)
    k = indices.shape[1]
    if k == lists.n - 1 and (indices >= 0).all():
        return
    # A list with missing neighbours tells nothing: points may have been left out.
    cut = (distances[:, -1] <= float(eps)) | (indices[:, -1] < 0) if k else np.ones(lists.n, bool)
    count = int(cut.sum())
    if count:
        raise ValueError(
            f"eps={eps}: {count} of {lists.n} lists of k={k} neighbours may end before all points within eps, which "
            f"DBSCAN would take for all; build the graph with a larger k, such as {min(lists.n - 1, 2 * k)}, or choose "
            "a smaller eps"
        )
