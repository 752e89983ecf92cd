"""Write a graph into an AnnData, in the form of scanpy 1.11.

``scanpy.pp.neighbors`` itself writes the neighbours: it receives a transformer that returns this graph, so it computes
connectivities and parameters as usual.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tonari import inputs
from tonari.core.results.neighbors import Neighbors, value_dtype
from tonari.graph import tuning
from tonari.graph.exports.common import HasLists, refuse_missing, refuse_similarities, refuse_squares, with_self
from tonari.graph.exports.csr import matrix_of
from tonari.graph.lists import Lists
from tonari.graph.reshaping import trim
from tonari.metrics.reference import values_at
from tonari.metrics.transforms.change import change_of

if TYPE_CHECKING:
    import scipy.sparse

# tolerated difference between two distances, as a share of the largest distance in the row; covers float32 rounding
_TOLERANCE = 1e-3


def to_scanpy(
    graph: HasLists,
    adata: Any,
    *,
    n_neighbors: int | None = None,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    key_added: str | None = None,
) -> None:
    """Write the graph into an AnnData through ``scanpy.pp.neighbors``, which computes the connectivities.

    Parameters
    ----------
    adata : anndata.AnnData
        The data whose observations are the points of the graph, in the same order.
    n_neighbors : int, optional
        As for scanpy, which counts the observation itself. Default: the number of columns of the graph, counting
        self.
    use_rep : str, optional
        The representation from which the graph was built, such as "X_pca". scanpy records it for later steps.
        Default: scanpy's choice, which is "X_pca" for more than 50 variables.
    n_pcs : int, optional
        The number of columns of "X_pca" from which the graph was built.
    key_added : str, optional
        As for scanpy: the key for the results, instead of ``obsp["distances"]``, ``obsp["connectivities"]`` and
        ``uns["neighbors"]``.

    Raises
    ------
    ValueError
        The observations are not the points of the graph (their number and the distances of 64 rows are compared);
        or the graph has fewer columns than n_neighbors, missing neighbours, squared distances or similarities.
    ImportError
        scanpy is not installed.

    Notes
    -----
    Each row of ``obsp["distances"]`` has n_neighbors - 1 entries, nearest first, without self. As an alternative,
    ``scanpy.pp.neighbors(transformer=tonari.estimators.KNeighborsTransformer(n_neighbors=15))`` searches with
    tonari; its ``obsp["distances"]`` includes self.
    """
    try:
        import scanpy
    except ImportError as error:
        raise ImportError("to_scanpy needs scanpy 1.10 or later: pip install scanpy") from error
    lists = graph.lists
    refuse_similarities(lists, "scanpy")
    refuse_squares(lists, "scanpy")
    if adata.n_obs != lists.n:
        raise ValueError(f"adata has {adata.n_obs} observations, the graph {lists.n} points: they must be the same")
    found = with_self(lists, False)
    most = found.indices.shape[1] + 1
    wanted = most if n_neighbors is None else inputs.check_count(n_neighbors, "n_neighbors", least=2)
    if wanted > most:
        raise ValueError(
            f"n_neighbors={wanted}: scanpy counts the observation itself, and the graph has {most - 1} neighbours "
            f"without it; build it with k={wanted - 1} or more"
        )
    short = trim(lists, wanted - 1 + lists.include_self)
    refuse_missing(with_self(short, False), "scanpy")
    scanpy.pp.neighbors(
        adata, transformer=_Ready(short, wanted), metric=lists.metric, use_rep=use_rep, n_pcs=n_pcs, key_added=key_added
    )


class _Ready:
    """A transformer for ``scanpy.pp.neighbors`` that returns a finished graph instead of searching."""

    def __init__(self, lists: Lists, n_neighbors: int) -> None:
        self._lists = lists
        self._n_neighbors = n_neighbors

    def get_params(self, *, deep: bool = True) -> dict[str, Any]:
        """Return the parameters that scanpy reads."""
        return {"n_neighbors": self._n_neighbors, "metric": self._lists.metric}

    def set_params(self, **_: Any) -> _Ready:
        """Return self."""
        return self

    def fit(self, X: Any, y: Any = None) -> _Ready:
        """Refuse rows that are not the points of the graph."""
        _check_points(self._lists, X)
        return self

    def transform(self, X: Any) -> scipy.sparse.csr_matrix:
        """Return the graph, nearest first, without self: scanpy adds it."""
        return matrix_of(self._lists)

    def fit_transform(self, X: Any, y: Any = None) -> scipy.sparse.csr_matrix:
        """Return the graph."""
        return self.fit(X).transform(X)


def _check_points(lists: Lists, points: Any) -> None:
    """Refuse a representation whose distances differ from the graph's, judging by a sample of rows."""
    distances, indices = with_self(lists, False)
    rows = np.unique(np.linspace(0, lists.n - 1, tuning.CHECKED_BY_SCANPY, dtype=np.int64))
    x = points.toarray() if hasattr(points, "toarray") else np.asarray(points)
    found = Neighbors(distances[rows], indices[rows])
    x = np.ascontiguousarray(x, value_dtype(x.dtype))
    change = change_of(lists.metric, lists.weights, lists.transform)
    if change is None:
        values = values_at(x[rows], x, found.indices, lists.metric)
    else:
        x = change.rows(x, "the representation")
        values = change.values(values_at(x[rows], x, found.indices, change.base))
    far = np.abs(values - found.distances) > _TOLERANCE * found.distances[:, -1:]
    if far.any():
        row, column = np.argwhere(far)[0]
        raise ValueError(
            f"observations {rows[row]} and {found.indices[row, column]} have {lists.metric} {values[row, column]:g} in "
            f"the representation that scanpy chose, and {found.distances[row, column]:g} in the graph: name what the "
            "graph was built from, as in use_rep='X_pca', and keep the order of the observations"
        )
