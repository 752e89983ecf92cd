"""Conversion of embeddings to arrays or tensors, and of score functions to metrics."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tonari import inputs
from tonari.core.errors import Unsupported
from tonari.metrics import get_metric


class Score(NamedTuple):
    """A score function of sentence_transformers, expressed by one of tonari's metrics.

    Attributes
    ----------
    metric : str
        The metric by which tonari searches.
    most : float
        The largest possible score: a score is this number minus the distance. Without effect for inner products,
        which are scores themselves.
    """

    metric: str
    most: float

    def of(self, distances: Any) -> Any:
        """Convert the distances of a search to scores, as a float64 array in host memory."""
        values = np.asarray(inputs.to_host(distances), np.float64)
        return values if get_metric(self.metric).descending else self.most - values


_SCORES = {
    "cos_sim": Score("cosine", 1.0),
    "pytorch_cos_sim": Score("cosine", 1.0),
    "dot_score": Score("inner_product", 0.0),
    "euclidean_sim": Score("euclidean", 0.0),
    "manhattan_sim": Score("l1", 0.0),
}


def score_of(function: Any) -> Score:
    """Return the Score for a function of ``sentence_transformers.util``, passed as the function or as its name."""
    name = function
    if callable(function) and str(getattr(function, "__module__", "")).startswith("sentence_transformers."):
        name = getattr(function, "__name__", None)
    if not isinstance(name, str) or name not in _SCORES:
        shown = getattr(function, "__name__", function)
        raise Unsupported(
            f"score_function={shown!r}: expected one of {', '.join(_SCORES)}, of sentence_transformers.util or by "
            "its name; for others use sentence_transformers.util"
        )
    return _SCORES[name]


def embeddings_of(given: Any, name: str) -> Any:
    """Check embeddings, which may be empty, and return them as an array or a tensor of two dimensions.

    Parameters
    ----------
    given : tensor or array of shape (n, d) or (d,), or list of tensors or arrays of shape (d,)
    name : str
        The name of the argument, for error messages.
    """
    if isinstance(given, list | tuple) and given and all(inputs.kind_of(each) == "torch" for each in given):
        import torch

        try:
            given = torch.stack(list(given))
        except RuntimeError as error:
            raise ValueError(f"{name}: expected embeddings of the same length, got tensors that differ") from error
    if inputs.kind_of(given) == "torch":
        rows = given.detach()
    else:
        inputs.refuse_masked(given, name)
        try:
            rows = np.asarray(given)
        except ValueError as error:  # NumPy refuses rows of unequal lengths
            raise ValueError(f"{name}: expected embeddings of the same length ({error})") from error
    if rows.ndim == 0:
        raise TypeError(f"{name}: expected embeddings of shape (n, d), got {type(given).__name__}")
    if rows.ndim == 1 and len(rows):
        rows = rows[None]
    if len(rows):
        (inputs.as_rows if inputs.place_of(rows, name) is None else inputs.as_device_rows)(rows, name)
    return rows


def beside(queries: Any, corpus: Any) -> Any:
    """Return the queries on the device of the corpus; they are copied if they are on another device."""
    if inputs.place_of(corpus, "corpus_embeddings") == inputs.place_of(queries, "query_embeddings"):
        return queries
    import torch

    device = corpus.device if inputs.kind_of(corpus) == "torch" else "cpu"
    return torch.as_tensor(queries).to(device)
