"""Metrics that equal another metric of transformed rows: haversine, Minkowski distances, and weighted columns.

    haversine(q, x)               = 2 arcsin(min(1, c / 2)),  c = euclidean(u(q), u(x))
    u(lat, lon)                   = (cos lat cos lon, cos lat sin lon, sin lat)

    minkowski:p                   S(|q - x|^p)^(1/p)          rows in float64, compared by power:p, S(|q - x|^p)

    sqeuclidean, euclidean        S(w (q - x)^2), its root    rows times sqrt(w)
    l1                            S(w |q - x|)                rows times w
    linf                          max |q - x| where w > 0     rows without the columns of weight 0

The transformed rows are float64. Each of their numbers is rounded once (a product with a weight) or has an error below
2^-52 (a unit vector). The search among the transformed rows is exact for these rows, and orders points by the float64
values of the base metric. The function ``finish``, which converts these values, is monotone, so it keeps the order.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.errors import Unsupported
from tonari.core.process.callers import callers_level
from tonari.core.slices import cut
from tonari.metrics import get_metric, tuning
from tonari.metrics.definitions import (
    Float64,
    great_circle,
    root_four,
    root_half,
    root_three,
    root_three_halves,
    unit_vectors,
)
from tonari.metrics.radius import limits_of
from tonari.metrics.trigonometry import LARGEST_ANGLE

Weights = tuple[float, ...]

# The factor by which a column is multiplied, from its weight.
_FACTORS: dict[str, Callable[[Float64], Float64]] = {
    "euclidean": np.sqrt,
    "sqeuclidean": np.sqrt,
    "l1": lambda weights: weights,
    "linf": np.ones_like,
}
_INFINITY = np.array(np.inf).view(np.int64)


@dataclass(frozen=True)
class Change:
    """A metric, expressed as another metric of transformed rows.

    Attributes
    ----------
    metric : str
        The metric that the caller requested.
    weights : tuple of float, optional
        One for each column.
    base : str
        The metric that compares the transformed rows.
    prepare : callable(rows, name) -> float64 rows
        Checks and transforms rows: an array in host memory, of any supported dtype, or a torch tensor on CUDA.
    finish : callable(values) -> values, optional
        A monotone function from float64 values of `base` to values of this metric; None if they are equal.
    instead : str
        The rows to pass with the metric `base` instead, for messages of functions that do not transform rows; "" for
        weights.
    """

    metric: str
    weights: Weights | None
    base: str
    prepare: Callable[[Any, str], Any]
    finish: Callable[[Float64], Float64] | None = None
    instead: str = ""

    def rows(self, x: Any, name: str) -> Any:
        """Check an array of any supported kind; return the transformed rows, a NumPy array or a tensor on CUDA."""
        if inputs.place_of(x, name) is None:
            return self.prepare(inputs.as_rows(x, name), name)
        rows = inputs.as_device_rows(x, name)
        if not bool(rows.isfinite().all()):
            inputs.check_values(rows, name, first=0, nonnegative=False)
        return self.prepare(rows, name)

    def values(self, values: Any) -> Any:
        """Convert values of `base` to values of this metric, as a NumPy array or a tensor."""
        if self.finish is None:
            return values
        made = _in_blocks(self.finish, values if isinstance(values, np.ndarray) else values.cpu().numpy())
        return made if isinstance(values, np.ndarray) else values.new_tensor(made)

    def within(self, m: int, *, radius: Any, min_similarity: Any, closed: Any) -> dict[str, Any]:
        """Return the radius by `base` that corresponds to a radius by this metric.

        Parameters
        ----------
        m : int
            Number of queries.
        radius, min_similarity, closed
            See :func:`tonari.metrics.radius.limits_of`.

        Returns
        -------
        dict of radius, min_similarity and closed
        """
        if self.finish is None:
            return {"radius": radius, "min_similarity": min_similarity, "closed": closed}
        given: dict[str, Any] = {"radius": radius, "min_similarity": min_similarity, "closed": closed}
        many = hasattr(radius, "__len__") and getattr(radius, "shape", None) != ()
        outside = first_outside(self.finish, limits_of(get_metric(self.metric), m if many else 1, np.float64, **given))
        return {"radius": outside if many else outside.item(), "min_similarity": None, "closed": False}


def first_outside(finish: Callable[[Float64], Float64], limits: Float64) -> Float64:
    """Return for each limit the smallest float64 number, 0 or more, whose finished value exceeds it, by bisection.

    Parameters
    ----------
    finish : callable
        A monotone function that maps inf to inf.
    limits : array of shape (m,)

    Examples
    --------
    >>> import numpy as np
    >>> first_outside(np.sqrt, np.array([2.0, -1.0, np.inf]))
    array([ 4.,  0., inf])
    """
    low = np.full(limits.shape, -1, np.int64)  # bits of the last number known to be inside
    high = np.full(limits.shape, _INFINITY)  # bits of the first number known to be outside, or of inf
    for _ in range(64):
        middle = low + ((high - low) >> 1)
        open_ = middle > low
        inside = finish(np.maximum(middle, 0).view(np.float64)) <= limits
        low, high = np.where(open_ & inside, middle, low), np.where(open_ & ~inside, middle, high)
    return high.view(np.float64)


def change_of(metric: Any, weights: Any = None) -> Change | None:
    """Return the transformation that a metric, possibly with weights, requires; None if it requires none.

    Weights that are all 1 have no effect.

    Raises
    ------
    TypeError, ValueError
        The metric is unknown, or weights are not numbers, negative, not finite or all 0.
    Unsupported
        The metric does not support weights.

    Examples
    --------
    >>> change_of("haversine").base, change_of("l1", [1.0, 1.0])
    ('euclidean', None)
    """
    record = get_metric(metric)
    numbers = check_weights(record.name, weights)
    if record.changed:
        return _CHANGES[record.name]
    if numbers is None:
        return None
    return Change(record.name, numbers, record.name, _Weighting(np.array(numbers), _FACTORS[record.name]))


def check_weights(metric: str, weights: Any) -> Weights | None:
    """Check the weights of the columns, and return them as floats; None if all weights are 1.

    >>> check_weights("l1", [1, 0.5])
    (1.0, 0.5)
    """
    if weights is None:
        return None
    if metric not in _FACTORS:
        raise Unsupported(
            f"weights: metric={metric!r} has none, only {', '.join(_FACTORS)}; leave weights out, or change the rows "
            "yourself"
        )
    inputs.refuse_masked(weights, "weights")
    try:
        array = np.asarray(inputs.to_host(weights))
    except ValueError as error:
        raise ValueError(f"weights: expected a number for each column ({error})") from error
    if array.dtype.kind not in "iuf":
        raise TypeError(f"weights: expected numbers, got {type(weights).__name__} of {array.dtype}")
    if array.ndim != 1 or not len(array):
        raise ValueError(f"weights: has shape {array.shape}, expected (d,): one number for each column")
    numbers = array.astype(np.float64)
    bad = ~(np.isfinite(numbers) & (numbers >= 0))
    if bad.any():
        column = int(bad.argmax())
        raise ValueError(f"weights: got {numbers[column]} for column {column}, expected a finite number of at least 0")
    if not numbers.any():
        raise ValueError("weights: all are 0, so that all distances would be; give a column a positive weight")
    return None if (numbers == 1).all() else tuple(numbers.tolist())


@dataclass(frozen=True)
class _Weighting:
    """Multiply columns by factors from their weights, and drop columns of weight 0."""

    weights: npt.NDArray[np.float64]
    factors: Callable[[Float64], Float64]

    def __call__(self, rows: Any, name: str) -> Any:
        if rows.shape[1] != len(self.weights):
            raise ValueError(
                f"weights: has {len(self.weights)} numbers, but {name} have {rows.shape[1]} columns; give one for each"
            )
        kept = np.flatnonzero(self.weights)
        factors = self.factors(self.weights[kept])
        if isinstance(rows, np.ndarray):
            with np.errstate(over="ignore"):  # the search refuses values that overflow
                return np.ascontiguousarray(inputs.as_floats(rows)[:, kept], np.float64) * factors
        wide = rows.double()
        at = kept.tolist()
        return wide[:, at].contiguous() * wide.new_tensor(factors)


def _unit_rows(rows: Any, name: str) -> Any:
    """Check latitudes and longitudes in radians, and return their unit vectors."""
    if rows.shape[1] != 2:
        raise ValueError(
            f"{name}: has {rows.shape[1]} columns, but metric='haversine' compares (latitude, longitude) in radians; "
            "pass an array of shape (n, 2)"
        )
    dtype = inputs.name_of_dtype(rows)
    if "float" in dtype and dtype != "float64":
        warnings.warn(
            f"{name}: angles in {dtype}, of which metric='haversine' returns float64 distances that are exact for the "
            "rounded angles only: float32 is off by up to 0.05 arcseconds in a coordinate; pass float64 angles",
            stacklevel=callers_level(),
        )
    held = rows if isinstance(rows, np.ndarray) else inputs.held(rows.cpu())
    latitude, longitude = np.ascontiguousarray(inputs.as_floats(held).T, np.float64)
    most = float(np.float32(np.pi / 2)) if dtype == "float32" else np.pi / 2  # rounded up
    _refuse(np.abs(latitude) > most, latitude, name, "latitude", f"-pi/2 to pi/2, for {name} of latitude, longitude")
    _refuse(np.abs(longitude) > LARGEST_ANGLE, longitude, name, "longitude", f"-{LARGEST_ANGLE:g} to {LARGEST_ANGLE:g}")
    made = np.empty((len(latitude), 3))
    for part in cut(len(made), tuning.CHANGED_ELEMENTS):
        made[part] = unit_vectors(latitude[part], longitude[part]).T
    return made if isinstance(rows, np.ndarray) else rows.double().new_tensor(made)


@dataclass(frozen=True)
class _Widening:
    """Convert rows to float64, and refuse elements beyond `largest`, with which sums of powers would overflow."""

    metric: str
    largest: float

    def __call__(self, rows: Any, name: str) -> Any:
        if isinstance(rows, np.ndarray):
            wide = np.ascontiguousarray(inputs.as_floats(rows), np.float64)
        else:
            wide = rows.double()
        if len(wide) and max(float(wide.max()), -float(wide.min())) > self.largest:
            beyond = abs(wide) > self.largest
            row, column = (int(at[0]) for at in np.nonzero(np.asarray(inputs.to_host(beyond))))
            raise ValueError(
                f"{name}: row {row} has a value whose power overflows float64 by metric={self.metric!r} "
                f"({float(wide[row, column])} in column {column}); scale the data to within {self.largest:g}"
            )
        return wide


def _in_blocks(function: Callable[[Float64], Float64], values: Float64) -> Float64:
    """Apply a function of elements to blocks, so that its temporaries stay in the cache."""
    made = np.empty(values.shape)
    flat, given = made.reshape(-1), values.reshape(-1)
    for part in cut(len(flat), tuning.CHANGED_ELEMENTS):
        flat[part] = function(given[part])
    return made


def _refuse(bad: npt.NDArray[np.bool_], values: Float64, name: str, what: str, expected: str) -> None:
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"{name}: row {row} has the {what} {values[row]:g}, expected {expected} in radians; convert degrees by "
            "numpy.radians"
        )


def _minkowski(metric: str, base: str, largest: float, root: Callable[[Float64], Float64]) -> Change:
    return Change(metric, None, base, _Widening(metric, largest), root, "the rows as float64")


_CHANGES = {
    change.metric: change
    for change in (
        Change("haversine", None, "euclidean", _unit_rows, great_circle, "the unit vectors as float64 rows"),
        _minkowski("minkowski:0.5", "power:0.5", inputs.LARGEST_FLOAT64, root_half),
        _minkowski("minkowski:1.5", "power:1.5", inputs.LARGEST_FLOAT64, root_three_halves),
        _minkowski("minkowski:3", "power:3", 1e96, root_three),
        _minkowski("minkowski:4", "power:4", 1e72, root_four),
    )
}
