"""Checks of the caller's radius: a largest distance or a smallest similarity, for all queries or for each query."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.results.radius_neighbors import limits_for
from tonari.metrics import Metric


def limits_of(
    record: Metric, m: int, dtype: npt.DTypeLike, *, radius: Any, min_similarity: Any, closed: Any
) -> npt.NDArray[Any]:
    """Check the radius that a caller passes, and convert it to a limit on returned distances for each query.

    Parameters
    ----------
    record : Metric
    m : int
        Number of queries.
    dtype : dtype
        The dtype of returned distances.
    radius : float or array of shape (m,), or None
        At least 0; squared for "sqeuclidean".
    min_similarity : float or array of shape (m,), or None
        For "inner_product"; also for "cosine" and "correlation", where it means the radius 1 - min_similarity, computed
        in float64.
    closed : bool
        Whether points at exactly the radius are found.

    Returns
    -------
    array of shape (m,) of the dtype
        See :func:`tonari.core.results.radius_neighbors.limits_for`.

    Examples
    --------
    >>> from tonari.metrics import get_metric
    >>> limits_of(get_metric("cosine"), 1, "float32", radius=None, min_similarity=0.75, closed=True)
    array([0.25], dtype=float32)
    >>> limits_of(get_metric("inner_product"), 1, "float32", radius=2, min_similarity=None, closed=True)
    Traceback (most recent call last):
    ValueError: radius: metric='inner_product' has similarities, which have no radius; pass min_similarity=
    """
    if type(radius) is float and min_similarity is None and closed is True and radius >= 0 and not record.descending:
        return limits_for(radius, m, dtype, closed=True, descending=False)
    closed = inputs.check_flag(closed, "closed")
    metric = record.name
    if radius is not None and min_similarity is not None:
        raise ValueError("got both radius and min_similarity: pass only one of them")
    if record.descending and radius is not None:
        raise ValueError(f"radius: metric={metric!r} has similarities, which have no radius; pass min_similarity=")
    similar = record.descending or record.angular
    if min_similarity is not None and not similar:
        raise ValueError(
            f"min_similarity: metric={metric!r} has distances; pass radius=, or use 'cosine', 'correlation' or "
            "'inner_product'"
        )
    if radius is None and min_similarity is None:
        wanted = "min_similarity" if record.descending else "radius or min_similarity" if similar else "radius"
        raise ValueError(f"{wanted}: is missing, metric={metric!r} needs it")
    if min_similarity is not None:
        bounds = _numbers(min_similarity, m, "min_similarity")
        if not np.isfinite(bounds).all():
            raise ValueError(f"min_similarity: got {_first(bounds, ~np.isfinite(bounds))}, expected a finite number")
        bounds = bounds if record.descending else 1.0 - bounds
    else:
        bounds = _numbers(radius, m, "radius")
        if (bounds < 0).any():
            raise ValueError(f"radius: got {_first(bounds, bounds < 0)}; a radius must not be negative")
    return limits_for(bounds, m, dtype, closed=closed, descending=record.descending)


def _numbers(given: Any, m: int, name: str) -> npt.NDArray[np.float64]:
    """Check an argument that is one number or a number for each query, and return it as a float64 array."""
    if type(given) is float and given == given:
        return np.asarray(given)
    inputs.refuse_masked(given, name)
    try:
        array = given if type(given) is np.ndarray else np.asarray(inputs.to_host(given))
    except ValueError as error:  # NumPy refuses lists of unequal lengths
        raise ValueError(f"{name}: expected a number or an array of numbers ({error})") from error
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name}: expected a number or an array of numbers, got {type(given).__name__}")
    if array.shape not in ((), (m,)):
        raise ValueError(f"{name}: has shape {array.shape}, expected one number or one for each of {m} queries")
    numbers = array.astype(np.float64)
    if np.isnan(numbers).any():
        raise ValueError(f"{name}: got {_first(numbers, np.isnan(numbers))}, expected a number")
    return numbers


def _first(numbers: npt.NDArray[np.float64], bad: npt.NDArray[np.bool_]) -> str:
    if numbers.ndim == 0:
        return f"{numbers}"
    row = int(bad.argmax())
    return f"{numbers[row]} for query {row}"
