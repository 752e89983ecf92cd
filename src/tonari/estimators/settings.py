"""Conversion of scikit-learn's parameters to tonari's; unsupported ones are refused with the nearest alternative."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from tonari import inputs
from tonari.core.process.workers import default_threads
from tonari.metrics import CHANGED, METRICS, get_metric
from tonari.metrics.names import MINKOWSKI, is_function, name_of_function, powers

# Dtypes of dense rows that are searched without a conversion; rows of other dtypes are converted to float64.
DTYPES = (np.float64, np.float32, np.float16, np.uint8, np.int8)
SPARSE_DTYPES = (np.float64, np.float32)  # accepted dtypes of the values of sparse rows
_METHODS = {"auto": "auto", "brute": "exact", "kd_tree": "kdtree"}
_LEAF_SIZE = 30  # scikit-learn's default of `leaf_size`, the only accepted value
_MOST_JOBS = 2**31

# Keys of `metric_params` in scikit-learn, and the names of the corresponding arguments of tonari.
_WEIGHTS = {"w": "weights"}
_PARAMETERS = {"mahalanobis": {"VI": "VI", "V": "covariance"}, "seuclidean": {"V": "V"}}


def columns_of(metric: Any, metric_params: dict[str, Any] | None) -> dict[str, Any]:
    """Return tonari's search arguments for `metric_params`; {} for a function, which gets them in its calls instead.

    >>> columns_of("mahalanobis", {"V": [[2.0]]}), columns_of("euclidean", None)
    ({'covariance': [[2.0]]}, {})
    """
    if is_function(metric):
        return {}
    named = _PARAMETERS.get(metric, _WEIGHTS)
    return {named[name]: value for name, value in (metric_params or {}).items()}


class OfTwoRows:
    """Convert a function of two rows, such as scikit-learn's metrics, to a function of a row and a block of rows.

    >>> import numpy as np
    >>> OfTwoRows(lambda a, b, scale: scale * abs(a - b).max(), {"scale": 2})(np.zeros(2), np.array([[1, 3], [2, 0]]))
    array([6., 4.])
    """

    def __init__(self, function: Any, parameters: dict[str, Any] | None) -> None:
        self.function, self.parameters = function, parameters or {}
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __call__(self, row: Any, block: Any) -> Any:
        return np.array([self.function(row, other, **self.parameters) for other in block], np.float64)


def searched_by(metric: Any, metric_params: dict[str, Any] | None) -> Any:
    """Return the metric as tonari's searches accept it, with a function of two rows wrapped by :class:`OfTwoRows`."""
    return OfTwoRows(metric, metric_params) if is_function(metric) else metric


def metric_of(metric: Any, p: Any, metric_params: Any, *, sets: bool = False) -> Any:
    """Return tonari's name for a metric of scikit-learn; a function is returned unchanged.

    `sets` is True for sparse rows, which "jaccard" compares as sets.

    Raises
    ------
    ValueError
        The metric has no counterpart in tonari or is a similarity; or `metric_params` has a key that it does not use.

    Examples
    --------
    >>> from tonari.estimators.settings import metric_of
    >>> metric_of("minkowski", 1, None), metric_of("cityblock", 2, None), metric_of("cosine", 2, None)
    ('l1', 'l1', 'cosine')
    >>> metric_of("minkowski", 3, None)
    'minkowski:3'
    >>> metric_of("minkowski", 5, None)
    Traceback (most recent call last):
    ValueError: p=5: expected 0.5, 1, 1.5, 2, 3, 4 or inf; for another p use scikit-learn's class of the same \
name
    """
    if isinstance(metric_params, dict) and "p" in metric_params:
        raise ValueError(f"metric_params={metric_params!r}: p is an argument of its own; pass p={metric_params['p']!r}")
    known = _PARAMETERS.get(metric, _WEIGHTS) if isinstance(metric, str) else _WEIGHTS
    if is_function(metric) and (metric_params is None or isinstance(metric_params, dict)):
        return metric
    if metric_params is not None and not (isinstance(metric_params, dict) and metric_params.keys() <= known.keys()):
        raise ValueError(
            f"metric_params={metric_params!r}: expected None or {{{', '.join(map(repr, known))}: ...}}, as "
            f"metric={name_of_function(metric) if is_function(metric) else metric!r} takes no other parameters; change "
            "the columns of X instead"
        )
    if metric in ("minkowski", "p"):
        named = MINKOWSKI.get(2.0 if p is None else float(p)) if p is None or isinstance(p, Real) else None
        if named is None:
            raise ValueError(f"p={p!r}: expected {powers()}; for another p use scikit-learn's class of the same name")
        return named
    record = get_metric(metric)
    if record.descending:
        raise ValueError(
            f"metric={metric!r} is a similarity, where scikit-learn expects a distance; use metric='cosine', or "
            "tonari.search, which returns similarities"
        )
    if record.bits and not (sets and record.name == "jaccard"):
        raise ValueError(
            f"metric={metric!r}: compares rows of bits, which these classes do not take; use "
            f"tonari.Index(bits, metric={metric!r}), tonari.search or tonari.knn_graph"
            + ("" if metric != "jaccard" else ", or sparse rows of sets")
        )
    if record.own:
        raise ValueError(f"metric={metric!r}: expected one of {', '.join([*METRICS, *CHANGED])}")
    return record.name


def method_of(algorithm: Any, leaf_size: Any) -> str:
    """Return tonari's method for scikit-learn's `algorithm`, and check `leaf_size`.

    >>> from tonari.estimators.settings import method_of
    >>> method_of("auto", 30), method_of("brute", 30), method_of("kd_tree", 30)
    ('auto', 'exact', 'kdtree')
    """
    if algorithm not in _METHODS:
        raise ValueError(
            f"algorithm={algorithm!r}: expected one of {', '.join(map(repr, _METHODS))}; 'auto' takes the fastest, and "
            "all give the same answer"
        )
    if leaf_size != _LEAF_SIZE:
        raise ValueError(
            f"leaf_size={leaf_size!r}: expected {_LEAF_SIZE}, the default, since trees choose the size of their leaves "
            "themselves; leave leaf_size out"
        )
    return _METHODS[algorithm]


def threads_of(n_jobs: Any) -> int | None:
    """Translate `n_jobs` into tonari's `threads`; None, like -1, lets the amount of work decide.

    As elsewhere in scikit-learn, -2 means all processors but one, -3 all but two, and so on.

    >>> from tonari.estimators.settings import threads_of
    >>> threads_of(None), threads_of(-1), threads_of(3)
    (None, None, 3)
    """
    if n_jobs is None:
        return None
    jobs = inputs.check_count(n_jobs, "n_jobs", least=-_MOST_JOBS)
    if jobs == 0:
        raise ValueError("n_jobs=0: expected None, -1 for all processors, or a number of threads")
    if jobs == -1:
        return None
    return jobs if jobs > 0 else max(1, default_threads() + 1 + jobs)


def check_radius(radius: Any, name: str = "radius", *, positive: bool = False) -> float:
    """Check that a radius is a number of at least 0, or above 0 with `positive`.

    >>> from tonari.estimators.settings import check_radius
    >>> check_radius(-1.0)
    Traceback (most recent call last):
    ValueError: radius=-1.0: expected a number of at least 0
    """
    least = "above 0" if positive else "of at least 0"
    if not isinstance(radius, Real):
        raise TypeError(f"{name}={radius!r}: expected a number {least}")
    number = float(radius)
    if not (number > 0 or (number == 0 and not positive)):
        raise ValueError(f"{name}={radius!r}: expected a number {least}")
    return number


def check_weights(weights: Any) -> Any:
    """Check the parameter `weights`: "uniform", "distance", a function of distances, or None."""
    if weights in ("uniform", "distance", None) or callable(weights):
        return weights
    raise ValueError(f"weights={weights!r}: expected 'uniform', 'distance' or a function of distances")


def check_n_neighbors(n_neighbors: Any, points: int, *, without_self: bool) -> int:
    """Check a number of neighbours against the number of fitted rows.

    >>> from tonari.estimators.settings import check_n_neighbors
    >>> check_n_neighbors(5, 5, without_self=True)
    Traceback (most recent call last):
    ValueError: n_neighbors=5: at most 4 are there, as n_samples = 5 and a row is not its own neighbour
    """
    count = inputs.check_count(n_neighbors, "n_neighbors")
    if count > points - without_self:
        own = " and a row is not its own neighbour" if without_self else ""
        raise ValueError(
            f"n_neighbors={count}: at most {points - without_self} are there, as n_samples = {points}{own}"
        )
    return count
