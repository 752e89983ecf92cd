"""Metrics that are computed as another metric of transformed rows: haversine, Minkowski, weights and linear maps.

    haversine(q, x)               = 2 arcsin(min(1, c / 2)),  c = euclidean(u(q), u(x))
    u(lat, lon)                   = (cos lat cos lon, cos lat sin lon, sin lat)

    minkowski:p                   S(|q - x|^p)^(1/p)          rows in float64, compared by power:p, S(|q - x|^p)

    hellinger                     |sqrt(q) - sqrt(x)| / sqrt(2)      roots of rows without negative numbers
    braycurtis                    S|q - x| / 2                rows without negative numbers that each sum to one

    mahalanobis                   |q T - x T|                 rows times T, where VI = T T^t (maps.py)
    transform=T                   any metric of q T and x T
    seuclidean                    S((q - x)^2 / V), its root  euclidean with the weights 1 / V
    sqeuclidean, euclidean        S(w (q - x)^2), its root    rows times sqrt(w)
    l1                            S(w |q - x|)                rows times w
    linf                          max |q - x| where w > 0     rows without the columns of weight 0

The transformed rows are float64. Each of their numbers is rounded once (a product with a weight, a root), has an error
below 2^-52 (a unit vector), or is a sum in a fixed order (a product with a matrix). The search is exact for the
transformed rows, and orders points by the float64 values of the base metric. The function ``finish``, which converts
these values to values of the requested metric, is monotone, so that it keeps the order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tonari import inputs
from tonari.core.errors import Unsupported
from tonari.core.rows.slices import cut
from tonari.metrics import MAPPED, METRICS, get_metric, tuning
from tonari.metrics.definitions import (
    Float64,
    great_circle,
    half,
    over_root_two,
    root_four,
    root_half,
    root_three,
    root_three_halves,
)
from tonari.metrics.names import GIVEN_VERBS
from tonari.metrics.radius import limits_of
from tonari.metrics.transforms import maps
from tonari.metrics.transforms.row_changes import (
    Mapping,
    Prepare,
    Weighting,
    Widening,
    roots_of_rows,
    shares,
    unit_rows,
)

Weights = tuple[float, ...]


# For each metric that supports weights, the function that turns column weights into the factors of the columns.
_FACTORS: dict[str, Callable[[Float64], Float64]] = {
    "euclidean": np.sqrt,
    "sqeuclidean": np.sqrt,
    "l1": lambda weights: weights,
    "linf": np.ones_like,
    "seuclidean": np.sqrt,
}
_WEIGHTED = ", ".join(name for name in _FACTORS if name in METRICS)
# For messages of functions that do not transform rows: the transformed rows that the caller has to pass instead.
_MAPPED_ROWS = {
    "mahalanobis": "rows @ T as float64, of a T with VI = T @ T.T such as numpy.linalg.cholesky(VI)",
    "seuclidean": "rows / numpy.sqrt(V) as float64",
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
    transform : float64 array of shape (d, p), optional
        The matrix by which rows are multiplied.
    base : str
        The metric that compares the transformed rows.
    prepare : callable(rows, name, threads) -> float64 rows
        Checks and transforms rows: an array in host memory, of any supported dtype, or a torch tensor on CUDA.
    finish : callable(values) -> values, optional
        A monotone function from float64 values of `base` to values of this metric; None if they are equal.
    instead : str
        The transformed rows in words, for messages of functions that do not transform rows: the caller has to pass
        them, with the metric `base`. "" for weights and matrices.
    """

    metric: str
    weights: Weights | None
    base: str
    prepare: Prepare
    finish: Callable[[Float64], Float64] | None = None
    instead: str = ""
    transform: Float64 | None = field(default=None, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return change_of, (self.metric, self.weights, self.transform)

    @property
    def columns(self) -> dict[str, Any]:
        """The weights and the matrix of the transformation, as graphs and indexes store them."""
        return {"weights": self.weights, "transform": self.transform}

    def rows(self, x: Any, name: str, threads: int | None = None) -> Any:
        """Check an array, and return the transformed rows, a NumPy array or a tensor on CUDA, in float64."""
        if inputs.place_of(x, name) is None:
            return self.prepare(inputs.as_rows(x, name, threads=threads), name, threads)
        rows = inputs.as_device_rows(x, name)
        if not bool(rows.isfinite().all()):
            inputs.check_values(rows, name, first=0, nonnegative=False)
        return self.prepare(rows, name, threads)

    def copied_bytes(self, shape: tuple[int, int], dtype: str) -> int:
        """Return the bytes of the transformed rows of an array of this shape and dtype; 0 if they are the array."""
        if dtype == "float64" and (isinstance(self.prepare, Widening) or self.prepare is shares):
            return 0
        width = 3 if self.prepare is unit_rows else shape[1]  # x, y and z
        if isinstance(self.prepare, Weighting):
            width = int(np.count_nonzero(self.prepare.weights))
        elif self.transform is not None:
            width = self.transform.shape[1]
        return 8 * shape[0] * width

    def values(self, values: Any) -> Any:
        """Convert values of `base` to values of this metric, as a NumPy array or a tensor."""
        if self.finish is None:
            return values
        converted = _in_blocks(self.finish, values if isinstance(values, np.ndarray) else values.cpu().numpy())
        return converted if isinstance(values, np.ndarray) else values.new_tensor(converted)

    def within(self, m: int, *, radius: Any, min_similarity: Any, closed: Any) -> dict[str, Any]:
        """Convert a radius by this metric to the radius by `base` within which the same points are found.

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
        radii: dict[str, Any] = {"radius": radius, "min_similarity": min_similarity, "closed": closed}
        many = hasattr(radius, "__len__") and getattr(radius, "shape", None) != ()
        outside = first_outside(self.finish, limits_of(get_metric(self.metric), m if many else 1, np.float64, **radii))
        return {"radius": outside if many else outside.item(), "min_similarity": None, "closed": False}


def first_outside(finish: Callable[[Float64], Float64], limits: Float64) -> Float64:
    """Return for each limit the smallest float64 number x >= 0 with finish(x) above the limit, found by bisection.

    Parameters
    ----------
    finish : callable
        A monotone function that maps inf to inf.
    limits : array of shape (m,)
        Limits on values of `finish`. For a limit of inf the result is inf.

    Examples
    --------
    >>> import numpy as np
    >>> first_outside(np.sqrt, np.array([2.0, -1.0, np.inf]))
    array([ 4.,  0., inf])
    """
    low = np.full(limits.shape, -1, np.int64)  # bits of the largest x that is known to be within the limit
    high = np.full(limits.shape, _INFINITY)  # bits of the smallest x that is known to be beyond the limit, or of inf
    for _ in range(64):
        middle = low + ((high - low) >> 1)
        open_ = middle > low
        inside = finish(np.maximum(middle, 0).view(np.float64)) <= limits
        low, high = np.where(open_ & inside, middle, low), np.where(open_ & ~inside, middle, high)
    return high.view(np.float64)


def change_of(metric: Any, weights: Any = None, transform: Any = None) -> Change | None:
    """Return the transformation of rows for a metric with optional weights or a matrix; None if rows stay unchanged.

    Weights that are all 1 have no effect, except for "seuclidean", whose weights are 1 / V. "mahalanobis" needs a
    matrix T with T Tᵀ = VI.

    Raises
    ------
    TypeError, ValueError
        The metric is unknown; weights are not numbers, negative, not finite or all 0; a matrix has values that are not
        finite, or only zeros; or a metric lacks its matrix or weights.
    Unsupported
        The metric does not support weights or a matrix.

    Examples
    --------
    >>> change_of("haversine").base, change_of("l1", [1.0, 1.0])
    ('euclidean', None)
    """
    record = get_metric(metric)
    if record.given:
        raise Unsupported(f"metric={record.name!r} stands for distances of the caller, {GIVEN_VERBS}")
    numbers, matrix = check_weights(record.name, weights), maps.check_transform(transform)
    if matrix is not None:
        if record.name not in METRICS and record.name != "mahalanobis":
            raise Unsupported(
                f"transform: metric={record.name!r} has none, only {', '.join(METRICS)}; leave transform out, or pass "
                "the changed rows"
            )
        if numbers is not None:
            raise ValueError(
                "weights: not with transform=; multiply the rows of the matrix by them, and leave weights out"
            )
        base, called = record.name, "transform"
        if record.name == "mahalanobis":
            base, called = "euclidean", "VI or covariance"
        return Change(record.name, None, base, Mapping(matrix, called), transform=matrix)
    if record.name in MAPPED and numbers is None:
        raise ValueError(f"metric={record.name!r} {_NEEDS[record.name]}")
    if record.changed and record.name not in MAPPED:
        return _CHANGES[record.name]
    if numbers is None:
        return None
    base = "euclidean" if record.name == "seuclidean" else record.name
    return Change(record.name, numbers, base, Weighting(np.array(numbers), _FACTORS[record.name]))


_NEEDS = {
    "mahalanobis": "compares rows by a matrix: pass VI=, the inverse of the covariance of the columns, or covariance=, "
    "such as numpy.cov(points.T)",
    "seuclidean": "divides columns by their variances: pass V=, such as points.var(axis=0, ddof=1)",
}


def change_for(
    metric: Any, *, weights: Any = None, VI: Any = None, covariance: Any = None, V: Any = None, transform: Any = None
) -> Change | None:
    """Return the transformation of rows for the arguments of a public function; None if rows stay unchanged.

    Raises
    ------
    TypeError, ValueError
        As for :func:`change_of`; also if several of these arguments are set, or if one is set that belongs to another
        metric.

    Examples
    --------
    >>> change_for("mahalanobis", covariance=[[4.0, 0.0], [0.0, 1.0]]).rows(np.array([[2.0, 3.0]]), "points").tolist()
    [[1.0, 3.0]]
    >>> change_for("seuclidean", V=[4.0, 1.0]).weights
    (0.25, 1.0)
    """
    named = {"weights": weights, "VI": VI, "covariance": covariance, "V": V, "transform": transform}
    present = [name for name, value in named.items() if value is not None]
    if present:
        _refuse_parameters(get_metric(metric).name, present)
        if VI is not None:
            transform = maps.root_of_inverse(VI)
        elif covariance is not None:
            transform = maps.root_of_covariance(covariance)
        elif V is not None:
            weights = maps.weights_of_variances(V)
    return change_of(metric, weights, transform)


def _refuse_parameters(metric: str, given: list[str]) -> None:
    """Raise ValueError if several arguments about columns are set, or if one is set that belongs to another metric."""
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)}: expected one of them; each of them says how columns count")
    (name,) = given
    if name in ("VI", "covariance") and metric != "mahalanobis":
        raise ValueError(
            f"{name}: is of metric='mahalanobis', got metric={metric!r}; leave it out, or name that metric"
        )
    if name == "V" and metric != "seuclidean":
        other = "covariance=" if metric == "mahalanobis" else "metric='seuclidean', or weights= of 1 / V"
        raise ValueError(f"V: holds the variances of metric='seuclidean', got metric={metric!r}; pass {other}")


def instead_of(metric: str) -> tuple[str, str]:
    """Return, for a function that does not transform rows, a description of the rows and the metric to pass to it.

    >>> instead_of("seuclidean")
    ('rows / numpy.sqrt(V) as float64', 'euclidean')
    """
    if metric in MAPPED:
        return _MAPPED_ROWS[metric], "euclidean"
    return _CHANGES[metric].instead, _CHANGES[metric].base


def check_weights(metric: str, weights: Any) -> Weights | None:
    """Check the weights of the columns, and return them as floats; None if all weights are 1.

    >>> check_weights("l1", [1, 0.5])
    (1.0, 0.5)
    """
    if weights is None:
        return None
    if metric not in _FACTORS:
        raise Unsupported(
            f"weights: metric={metric!r} has none, only {_WEIGHTED}; leave weights out, or change the rows yourself"
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
        raise ValueError("weights: all are 0, which would make all distances 0; give a column a positive weight")
    return None if metric != "seuclidean" and (numbers == 1).all() else tuple(numbers.tolist())


def _in_blocks(function: Callable[[Float64], Float64], values: Float64) -> Float64:
    """Apply an elementwise function block by block, so that its temporary arrays stay in the cache."""
    out = np.empty(values.shape)
    flat, given = out.reshape(-1), values.reshape(-1)
    for part in cut(len(flat), tuning.CHANGED_ELEMENTS):
        flat[part] = function(given[part])
    return out


def _minkowski(metric: str, base: str, largest: float, root: Callable[[Float64], Float64]) -> Change:
    return Change(metric, None, base, Widening(metric, largest), root, "the rows as float64")


_CHANGES = {
    change.metric: change
    for change in (
        Change("haversine", None, "euclidean", unit_rows, great_circle, "the unit vectors as float64 rows"),
        _minkowski("minkowski:0.5", "power:0.5", inputs.LARGEST_FLOAT64, root_half),
        _minkowski("minkowski:1.5", "power:1.5", inputs.LARGEST_FLOAT64, root_three_halves),
        _minkowski("minkowski:3", "power:3", 1e96, root_three),
        _minkowski("minkowski:4", "power:4", 1e72, root_four),
        Change("hellinger", None, "euclidean", roots_of_rows, over_root_two, "the square roots as float64 rows"),
        Change("braycurtis", None, "l1", shares, half, "rows divided by their sums as float64"),
    )
}
