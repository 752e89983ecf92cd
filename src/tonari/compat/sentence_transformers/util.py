"""Drop-ins for functions of ``sentence_transformers.util``: search, paraphrase mining and communities."""

from __future__ import annotations

from typing import Any

import numpy as np

from tonari import inputs
from tonari.api import graphs, radius, searching
from tonari.compat.arguments import number_of
from tonari.compat.sentence_transformers.arguments import beside, embeddings_of, score_of
from tonari.core.process.compiling import not_compiled


@not_compiled
def semantic_search(
    query_embeddings: Any,
    corpus_embeddings: Any,
    query_chunk_size: int = 100,
    corpus_chunk_size: int = 500000,
    top_k: int = 10,
    score_function: Any = "cos_sim",
) -> list[list[dict[str, int | float]]]:
    """Find the embeddings of a corpus with the highest scores for each query.

    Parameters
    ----------
    query_embeddings, corpus_embeddings : tensors or arrays of shape (m, d) and (n, d), or lists of rows of shape (d,)
        A single query may have shape (d,).
    query_chunk_size, corpus_chunk_size : int
        Checked, but without effect.
    top_k : int
        The number of results for each query; fewer are returned if the corpus is smaller.
    score_function : function or str
        See :mod:`tonari.compat.sentence_transformers`.

    Returns
    -------
    list of m lists of dict
        For each query a list of {"corpus_id", "score"} in descending order of score; equal scores are in ascending
        order of "corpus_id".

    Examples
    --------
    >>> from tonari.compat.sentence_transformers import semantic_search
    >>> semantic_search([[1.0, 0.0]], [[0.0, 1.0], [2.0, 0.0]], top_k=1)
    [[{'corpus_id': 1, 'score': 1.0}]]
    """
    inputs.check_count(query_chunk_size, "query_chunk_size")
    inputs.check_count(corpus_chunk_size, "corpus_chunk_size")
    k, score = inputs.check_count(top_k, "top_k"), score_of(score_function)
    corpus = embeddings_of(corpus_embeddings, "corpus_embeddings")
    queries = embeddings_of(query_embeddings, "query_embeddings")
    if not len(queries) or not len(corpus):
        return [[] for _ in range(len(queries))]
    if queries.shape[1] != corpus.shape[1]:
        shapes = tuple(queries.shape), tuple(corpus.shape)
        raise ValueError(
            "query_embeddings of shape {} and corpus_embeddings of shape {} differ in width".format(*shapes)
        )
    found = searching.search(beside(queries, corpus), corpus, min(k, len(corpus)), metric=score.metric)
    scores, ids = score.of(found.distances).tolist(), inputs.to_host(found.indices).tolist()
    return [
        [{"corpus_id": i, "score": value} for i, value in zip(row, values, strict=True)]
        for row, values in zip(ids, scores, strict=True)
    ]


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


@not_compiled
def community_detection(
    embeddings: Any,
    threshold: float = 0.75,
    min_community_size: int = 10,
    batch_size: int = 1024,
    show_progress_bar: bool = False,
) -> list[list[int]]:
    """Find communities: groups of embeddings that are all near one member, the centre.

    Each embedding proposes a community: itself and all embeddings whose cosine similarity to it reaches the threshold.
    Communities of sufficient size are accepted in descending order of size. Embeddings of an accepted community are
    removed from all later ones; a later community is dropped if it is then too small, or if it has lost its centre.

    Parameters
    ----------
    embeddings : tensor or array of shape (n, d), or list of tensors or arrays of shape (d,)
    threshold : float
        The smallest cosine similarity to the centre.
    min_community_size : int
        The smallest number of embeddings in a community, the centre included.
    batch_size : int
        Checked, but without effect.
    show_progress_bar : bool

    Returns
    -------
    list of lists of int
        The row numbers of each community's embeddings; the largest community is first. A community starts with its
        centre, followed by the other embeddings in ascending order of distance to it.

    Examples
    --------
    >>> from tonari.compat.sentence_transformers import community_detection
    >>> community_detection([[1.0, 0.0], [0.0, 1.0], [2.0, 0.1]], min_community_size=2)
    [[0, 2]]
    """
    least = inputs.check_count(min_community_size, "min_community_size")
    inputs.check_count(batch_size, "batch_size")
    progress = inputs.check_flag(show_progress_bar, "show_progress_bar")
    similarity = number_of(threshold, "threshold")
    if not np.isfinite(similarity):
        raise ValueError(f"threshold={threshold!r}: expected a finite number")
    rows = embeddings_of(embeddings, "embeddings")
    if len(rows) < least:
        return []
    within: dict[str, Any] = {"min_similarity": similarity, "metric": "cosine"}
    large = np.flatnonzero(np.asarray(inputs.to_host(radius.radius_count(rows, rows, **within))) >= least)
    if not len(large):
        return []
    found = radius.radius_search(rows[large], rows, **within, progress=progress)
    indptr, indices = (np.asarray(inputs.to_host(part)) for part in (found.indptr, found.indices))
    taken, kept = np.zeros(len(rows), bool), []
    for at in np.argsort(-np.diff(indptr), kind="stable"):
        centre, near = int(large[at]), indices[indptr[at] : indptr[at + 1]]
        free = near[~taken[near]]
        if taken[centre] or len(free) < least:
            continue
        kept.append([centre, *free[free != centre].tolist()])
        taken[kept[-1]] = True
    return sorted(kept, key=len, reverse=True)
