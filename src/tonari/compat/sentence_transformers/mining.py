"""Drop-in for ``sentence_transformers.util.paraphrase_mining_embeddings``."""

from __future__ import annotations

from typing import Any

import numpy as np

from tonari import inputs
from tonari.api import graphs
from tonari.compat.sentence_transformers.arguments import embeddings_of, score_of
from tonari.core.process.compiling import not_compiled


@not_compiled
def paraphrase_mining_embeddings(
    embeddings: Any,
    query_chunk_size: int = 5000,
    corpus_chunk_size: int = 100000,
    max_pairs: int = 500000,
    top_k: int = 100,
    score_function: Any = "cos_sim",
) -> list[list[float | int]]:
    """Find the pairs of embeddings with the highest scores, where each embedding is paired with its `top_k` nearest.

    Parameters
    ----------
    embeddings : tensor or array of shape (n, d), or list of tensors or arrays of shape (d,)
    query_chunk_size, corpus_chunk_size : int
        Checked, but without effect.
    max_pairs : int
        The largest number of pairs to return; if there are more, the pairs with the highest scores are returned.
    top_k : int
        The number of nearest other embeddings with which each embedding is paired.
    score_function : function or str
        See :mod:`tonari.compat.sentence_transformers`.

    Returns
    -------
    list of [score, i, j]
        Each pair once, with i < j, in descending order of score; pairs with equal scores are in order of i, then j.

    Examples
    --------
    >>> from tonari.compat.sentence_transformers import paraphrase_mining_embeddings
    >>> paraphrase_mining_embeddings([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]], max_pairs=1)
    [[1.0, 0, 2]]
    """
    inputs.check_count(query_chunk_size, "query_chunk_size")
    inputs.check_count(corpus_chunk_size, "corpus_chunk_size")
    most, k = inputs.check_count(max_pairs, "max_pairs"), inputs.check_count(top_k, "top_k")
    score, rows = score_of(score_function), embeddings_of(embeddings, "embeddings")
    n = len(rows)
    if n < 2:
        return []
    graph = graphs.knn_graph(rows, min(k, n - 1), metric=score.metric)
    scores = score.of(graph.distances).ravel()
    neighbours = np.asarray(inputs.to_host(graph.indices)).ravel().astype(np.int64)
    centres = np.repeat(np.arange(n), min(k, n - 1))
    low, high = np.minimum(centres, neighbours), np.maximum(centres, neighbours)
    _, first = np.unique(low * n + high, return_index=True)
    order = first[np.lexsort((high[first], low[first], -scores[first]))][:most]
    columns = (part[order].tolist() for part in (scores, low, high))
    return [[value, i, j] for value, i, j in zip(*columns, strict=True)]
