"""Drop-in for ``sentence_transformers.util.semantic_search``."""

from __future__ import annotations

from typing import Any

from tonari import inputs
from tonari.api import searching
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
