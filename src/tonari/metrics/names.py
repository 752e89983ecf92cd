"""Names of metrics: aliases in other libraries, names that contain a number, and names of users' functions."""

from __future__ import annotations

import math
from typing import Any

from tonari.core.errors import Unsupported

# Names in scikit-learn, SciPy, cuVS and other libraries, accepted in upper or lower case. As in these libraries, "l2"
# is the euclidean distance, not its square.
ALIASES = {
    "l2": "euclidean",
    "manhattan": "l1",
    "cityblock": "l1",
    "taxicab": "l1",
    "chebyshev": "linf",
    "dot": "inner_product",
    "ip": "inner_product",
    "angular": "cosine",
    "pearson": "correlation",
    "bitwise_hamming": "hamming",
    "tanimoto": "jaccard",
}

# Well-known metrics that are not supported, with the reason and an alternative.
UNSUPPORTED = {
    "dice": "it is j / (2 - j) of the Jaccard distance j, which orders rows alike; use metric='jaccard'",
}

# The names of the Minkowski distances (S |q - x|^p)^(1/p), by p. Other libraries write "minkowski" with p=3 for
# "minkowski:3".
MINKOWSKI = {
    0.5: "minkowski:0.5",
    1.0: "l1",
    1.5: "minkowski:1.5",
    2.0: "euclidean",
    3.0: "minkowski:3",
    4.0: "minkowski:4",
    math.inf: "linf",
}

PRECOMPUTED = "precomputed"  # name of the metric of a matrix of distances
FUNCTION = "function:"  # prefix in the name of a metric that is a Python function
OWN = "triton:"  # prefix in the name of a metric that is a user's Triton function

# the functions that accept the caller's own distances, for messages
GIVEN_VERBS = (
    "which tonari.search, knn_graph, kth_distance, radius_search, radius_count, radius_graph, pairs and verify take on "
    "the CPU, where nothing can be prepared for it; use one of them, or a name in tonari.metrics.METRICS"
)


def is_function(metric: Any) -> bool:
    """Return whether a metric is a function of rows, and not a Triton function."""
    return callable(metric) and not type(metric).__module__.startswith("triton.")


def name_of_function(function: Any) -> str:
    """Return the name of a metric that is a Python function, for graphs and messages.

    >>> name_of_function(len)
    'function:len'
    """
    return FUNCTION + str(getattr(function, "__name__", type(function).__name__))


def is_own(metric: str) -> bool:
    """Return whether a metric's name is that of a user's Triton function."""
    return metric.startswith(OWN)


def powers(least: float = 0.0) -> str:
    """Return as text, for messages, the supported exponents p of Minkowski distances of at least `least`.

    >>> powers(1)
    '1, 1.5, 2, 3, 4 or inf'
    """
    *others, last = [f"{p:g}" for p in MINKOWSKI if p >= least]
    return f"{', '.join(others)} or {last}"


def of_minkowski(metric: str) -> str:
    """Return the name of the metric that "minkowski:p" denotes, such as "l1" for p = 1."""
    if ":" not in metric:
        raise Unsupported(
            f"metric {metric!r} is not supported: p is part of the name here, as in metric='minkowski:3'; expected "
            f"'minkowski:p' with p = {powers()}"
        )
    try:
        p = float(metric.partition(":")[2])
    except ValueError:
        p = math.nan
    if p not in MINKOWSKI:
        raise Unsupported(
            f"metric {metric!r} is not supported: expected 'minkowski:p' with p = {powers()}; tonari.search and "
            "knn_graph take another p as a function, lambda a, B: (abs(B - a)**p).sum(axis=1)**(1 / p)"
        )
    return MINKOWSKI[p]
