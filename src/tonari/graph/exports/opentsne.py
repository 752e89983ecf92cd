"""Export a graph as the ``knn_index`` of openTSNE's affinities (openTSNE 1.0)."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from tonari.core.neighbors import Neighbors
from tonari.graph.exports.common import refuse_missing, refuse_similarities, refuse_squares, with_self
from tonari.graph.exports.searcher import Searcher, searcher_of
from tonari.graph.lists import Lists


def to_opentsne(lists: Lists, perplexity: Any, index: Searcher | None = None) -> Any:
    """Export lists; see :meth:`tonari.KNNGraph.to_opentsne`."""
    try:
        from openTSNE.nearest_neighbors import PrecomputedNeighbors
    except ImportError as error:
        raise ImportError("to_opentsne needs openTSNE 0.6 or later: pip install openTSNE") from error
    refuse_similarities(lists, "openTSNE")
    refuse_squares(lists, "openTSNE")
    if not isinstance(perplexity, Real) or not 1 <= float(perplexity) < np.inf:
        raise ValueError(f"perplexity={perplexity!r}: expected a number of at least 1")
    distances, indices = with_self(lists, False)
    wanted = min(lists.n - 1, int(3 * float(perplexity)))
    if indices.shape[1] < wanted:
        raise ValueError(
            f"perplexity={perplexity}: openTSNE takes int(3 * perplexity) = {wanted} neighbours of each point, and the "
            f"graph has {indices.shape[1]}; build it with k={wanted} or more, or lower the perplexity"
        )
    found = Neighbors(np.ascontiguousarray(distances[:, :wanted]), np.ascontiguousarray(indices[:, :wanted]))
    refuse_missing(found, "openTSNE")  # it would end the process
    if index is None:
        return PrecomputedNeighbors(found.indices, found.distances)
    from tonari.graph.exports.opentsne_index import OpenTsneIndex

    return OpenTsneIndex(found, searcher_of(lists, index))
