"""Drop-in for ``sentence_transformers.util.community_detection``."""

from __future__ import annotations

from typing import Any

import numpy as np

from tonari import inputs
from tonari.api import radius
from tonari.compat.arguments import number_of
from tonari.compat.sentence_transformers.arguments import embeddings_of
from tonari.core.process.compiling import not_compiled


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
