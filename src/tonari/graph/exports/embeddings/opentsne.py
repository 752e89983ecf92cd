"""Export a graph as the ``knn_index`` of openTSNE's affinities (openTSNE 1.0)."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from tonari.core.results.neighbors import Neighbors
from tonari.graph.exports.common import HasLists, refuse_missing, refuse_similarities, refuse_squares, with_self
from tonari.graph.exports.embeddings.searcher import searcher_of


def to_opentsne(graph: HasLists, perplexity: float = 30, index: Any = None) -> Any:
    """Export the graph as the ``knn_index`` of openTSNE.

    ``PerplexityBasedNN(knn_index=graph.to_opentsne(30), perplexity=30)`` makes the affinities for
    ``openTSNE.TSNE().fit(affinities=...)``.

    Parameters
    ----------
    perplexity : float
        The perplexity of the affinities; the largest one, if they have several.
    index : tonari.Index, optional
        An index of the graph's points with the same metric. ``embedding.transform`` uses it to find the exact
        neighbours of new points; without it, openTSNE raises RuntimeError there.

    Returns
    -------
    openTSNE.nearest_neighbors.PrecomputedNeighbors
        The min(n - 1, int(3 * perplexity)) nearest neighbours of each point, without the point itself. If lists
        contained it, openTSNE would put half of the probability on the diagonal without a warning.

    Raises
    ------
    ValueError
        The graph has too few neighbours or missing ones (which would crash openTSNE), squared distances or
        similarities; or the index has another number of points or another metric.
    ImportError
        openTSNE is not installed.
    """
    try:
        from openTSNE.nearest_neighbors import PrecomputedNeighbors
    except ImportError as error:
        raise ImportError("to_opentsne needs openTSNE 0.6 or later: pip install openTSNE") from error
    lists = graph.lists
    refuse_similarities(lists, "openTSNE")
    refuse_squares(lists, "openTSNE")
    distances, indices = with_self(lists, False)
    wanted = min(lists.n - 1, int(3 * _checked(perplexity)))
    if indices.shape[1] < wanted:
        raise ValueError(
            f"perplexity={perplexity}: openTSNE takes int(3 * perplexity) = {wanted} neighbours of each point, and the "
            f"graph has {indices.shape[1]}; build it with k={wanted} or more, or lower the perplexity"
        )
    found = Neighbors(np.ascontiguousarray(distances[:, :wanted]), np.ascontiguousarray(indices[:, :wanted]))
    refuse_missing(found, "openTSNE")  # missing neighbours would crash the process
    if index is None:
        return PrecomputedNeighbors(found.indices, found.distances)
    from tonari.graph.exports.embeddings.opentsne_index import OpenTsneIndex

    return OpenTsneIndex(found, searcher_of(lists, index))


def _checked(perplexity: Any) -> float:
    if not isinstance(perplexity, Real) or not 1 <= float(perplexity) < np.inf:
        raise ValueError(f"perplexity={perplexity!r}: expected a number of at least 1")
    return float(perplexity)
