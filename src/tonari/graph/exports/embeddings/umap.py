"""Export a graph as UMAP's ``precomputed_knn`` (umap-learn 0.5)."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from tonari import inputs
from tonari.core.results.neighbors import index_dtype
from tonari.graph.exports.common import HasLists, refuse_similarities, refuse_squares, with_self
from tonari.graph.exports.embeddings.searcher import Searcher, searcher_of
from tonari.graph.lists import Lists


def to_umap(graph: HasLists, index: Any = None, *, n_neighbors: int | None = None) -> tuple[Any, ...]:
    """Export the graph as the ``precomputed_knn`` of umap-learn.

    For a graph with k=14, call ``UMAP(n_neighbors=15, precomputed_knn=graph.to_umap()).fit(points)``, since UMAP counts
    the point itself.

    Parameters
    ----------
    index : tonari.Index, optional
        An index of the graph's points with the same metric. ``UMAP.transform`` uses it to find the exact neighbours
        of new points; without it, UMAP refuses to embed new points.
    n_neighbors : int, optional
        The n_neighbors of UMAP. Default: the number of columns of the graph, counting the point itself.

    Returns
    -------
    indices : int32 of shape (n, n_neighbors)
        The point itself first, then its neighbours, nearest first. UMAP does not check this order, and computes
        wrong weights for any other.
    distances : float32 of shape (n, n_neighbors)
        0 for the point itself. Both arrays are copies, since UMAP writes into them.
    search_index : pynndescent.NNDescent
        Returned only with `index`. It can be pickled with the fitted UMAP; ``UMAP.update`` is refused.

    Raises
    ------
    ValueError
        The graph has fewer columns than n_neighbors (UMAP would then compute its own neighbours, with a warning),
        or contains squared distances or similarities; or the index has another number of points or another metric.
    ImportError
        index is given, but pynndescent is not installed.

    Notes
    -----
    Missing neighbours stay -1 at an infinite distance, which UMAP supports. If UMAP's own neighbours are exact, its
    weights are the same as with this graph (pynndescent may miss some neighbours).

    Examples
    --------
    >>> import numpy as np, tonari
    >>> graph = tonari.knn_graph(np.array([[0.0], [1.0], [3.0]], dtype=np.float32), k=1)
    >>> indices, distances = graph.to_umap()
    >>> indices.tolist(), distances.tolist()
    ([[0, 1], [1, 0], [2, 1]], [[0.0, 1.0], [0.0, 1.0], [0.0, 2.0]])
    """
    lists = graph.lists
    refuse_similarities(lists, "UMAP")
    refuse_squares(lists, "UMAP")
    columns = lists.k + (not lists.include_self)
    wanted = columns if n_neighbors is None else inputs.check_count(n_neighbors, "n_neighbors", least=2)
    if wanted > columns:
        raise ValueError(
            f"n_neighbors={wanted}: UMAP counts the point itself, and the graph has {columns} columns with it; build "
            f"it with k={wanted - 1} or more"
        )
    found = with_self(lists, True)
    # Copies, because UMAP writes into both. Below 4,096 points it would also use columns beyond n_neighbors, silently.
    indices = np.array(found.indices[:, :wanted], index_dtype(lists.n), order="C")
    distances = np.array(found.distances[:, :wanted], np.float32, order="C")
    return (indices, distances) if index is None else (indices, distances, _searching(lists, index))


def _searching(lists: Lists, index: Searcher) -> Any:
    """Return the object with which UMAP finds the neighbours of new points."""
    searcher = searcher_of(lists, index)
    if importlib.util.find_spec("pynndescent") is None:
        raise ImportError("to_umap(index) needs pynndescent, as umap-learn does: pip install umap-learn")
    from tonari.graph.exports.embeddings.umap_index import UmapIndex

    return UmapIndex(searcher)
