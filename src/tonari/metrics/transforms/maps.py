"""Linear maps of rows, computed in float64 and in a fixed order, so that every machine computes the same bits.

    transform=T          row x becomes x T            T of shape (d, p)
    VI                   VI = T Tᵀ                    T by Cholesky's method with the largest pivot first
    covariance           its inverse is T Tᵀ          T = (L⁻¹)ᵀ, where covariance = L Lᵀ by Cholesky's method

The euclidean distance of mapped rows, |(q - x) T|, is then the square root of (q - x) VI (q - x)ᵀ. BLAS and LAPACK add
in a different order on each processor. The products here therefore add in the fixed order of all metrics
(``definitions.py``), and T is computed by elementwise operations of NumPy, each rounded once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core import _native
from tonari.core.process.workers import Workers, default_threads
from tonari.core.rows.slices import cut
from tonari.metrics import tuning
from tonari.metrics.definitions import Float64

_ASYMMETRY = 2.0**-20  # largest accepted asymmetry, as a share of the largest element: more than rounding can cause
_ROUNDING = 2.0**-50  # bound on the relative rounding error of a pivot, per eliminated column


def check_transform(transform: Any) -> Float64 | None:
    """Check the argument `transform`, a matrix that multiplies rows, and return a read-only float64 copy.

    >>> check_transform([[1.0], [2]]).shape
    (2, 1)
    """
    if transform is None:
        return None
    result = _matrix(transform, "transform", "(d, p): a row for each column of the points")
    if not result.any():
        raise ValueError("transform: all numbers are 0, which would make all distances 0; pass another matrix")
    result.setflags(write=False)
    return result


def product(rows: npt.NDArray[Any], matrix: Float64, threads: int | None = None) -> Float64:
    """Multiply rows by a matrix of shape (d, p): element j is the "inner_product" of the row and column j, in float64.

    >>> product(np.array([[1, 2]], np.int8), np.array([[1.0, 0.5], [10.0, 0.25]])).tolist()
    [[21.0, 1.0]]
    """
    (n, d), p = rows.shape, matrix.shape[1]
    result, columns = np.empty((n, p)), np.ascontiguousarray(matrix.T)

    def multiply(part: slice) -> None:
        wide = np.ascontiguousarray(inputs.as_floats(rows[part]), np.float64)
        every = np.tile(np.arange(p), (len(wide), 1))
        _native.exact_values("inner_product", wide, columns, every, result[part])

    parts = cut(n, max(1, tuning.MAPPED_ELEMENTS // max(d, p)))
    Workers(threads or default_threads(tuning.MAPPED_SECONDS * n * d * p)).map(multiply, parts)
    return result


def root_of_inverse(matrix: Any) -> Float64:
    """Return T of shape (d, r) such that T Tᵀ = VI, for a symmetric positive semi-definite VI of rank r.

    Cholesky's method with complete pivoting: step r takes the largest remaining diagonal element (the first of equal
    ones), writes its column, divided by the root of that element, as column r of T, and subtracts the outer product of
    this column. It ends where no element exceeds d 2**-50 times the largest one of VI.

    Raises
    ------
    TypeError, ValueError
        VI is not a square matrix of finite numbers, not symmetric, not positive semi-definite, or 0.

    Examples
    --------
    >>> root_of_inverse([[4.0, 2.0], [2.0, 1.0]]).tolist()
    [[2.0], [1.0]]
    """
    symmetric = _symmetric(matrix, "VI")
    d = len(symmetric)
    left, order, root = symmetric.copy(), np.arange(d), np.zeros((d, d))
    limit = d * _ROUNDING * float(symmetric.diagonal().max())
    rank = d
    for step in range(d):
        pivot = step + int(left.diagonal()[step:].argmax())
        if not left[pivot, pivot] > limit:
            rank = step
            break
        if pivot != step:
            for each in (left, left.T, order, root):
                each[[step, pivot]] = each[[pivot, step]]
        root[step:, step] = left[step:, step] / np.sqrt(left[step, step])
        column = root[step + 1 :, step]
        left[step + 1 :, step + 1 :] -= column[:, None] * column
    rest = left[rank:, rank:]
    if rest.size and max(float(rest.max()), -float(rest.min())) > 16 * max(limit, 0.0):
        raise ValueError(
            f"VI: is not positive semi-definite (its smallest eigenvalue is {np.linalg.eigvalsh(symmetric)[0]:.3g}), "
            "so some squared distances would be negative; pass the inverse of a covariance, or covariance= itself"
        )
    if not rank:
        raise ValueError("VI: all numbers are 0, which would make all distances 0; pass the inverse of a covariance")
    result = np.empty((d, rank))
    result[order] = root[:, :rank]
    result.setflags(write=False)
    return result


def root_of_covariance(matrix: Any) -> Float64:
    """Return T of shape (d, d) such that T Tᵀ is the inverse of a symmetric positive definite covariance matrix.

    Cholesky's method, in the order of the columns, computes the lower triangle L of the covariance L Lᵀ. Forward
    substitution computes its inverse.

    Raises
    ------
    TypeError, ValueError
        The covariance is not a square matrix of finite numbers, not symmetric, or not positive definite.

    Examples
    --------
    >>> root_of_covariance([[4.0, 0.0], [0.0, 0.25]]).tolist()
    [[0.5, 0.0], [0.0, 2.0]]
    """
    symmetric = _symmetric(matrix, "covariance")
    d = len(symmetric)
    left, inverse = symmetric.copy(), np.eye(d)
    for i in range(d):
        if not left[i, i] > d * _ROUNDING * symmetric[i, i]:
            raise ValueError(
                f"covariance: is not positive definite (column {i} is constant, or a combination of others; the "
                f"smallest eigenvalue is {np.linalg.eigvalsh(symmetric)[0]:.3g}), so it has no inverse; drop such "
                "columns, or pass VI=numpy.linalg.pinv(covariance)"
            )
        root = np.sqrt(left[i, i])
        column = left[i + 1 :, i] / root
        left[i + 1 :, i + 1 :] -= column[:, None] * column
        inverse[i, : i + 1] /= root
        inverse[i + 1 :, : i + 1] -= column[:, None] * inverse[i, : i + 1]
    result = np.ascontiguousarray(inverse.T)
    result.setflags(write=False)
    return result


def weights_of_variances(variances: Any) -> tuple[float, ...]:
    """Return the column weights 1 / V, which turn the euclidean distance into the standardized one.

    >>> weights_of_variances([4, 0.5])
    (0.25, 2.0)
    """
    inputs.refuse_masked(variances, "V")
    array = _numbers(variances, "V")
    if array.ndim != 1 or not len(array):
        raise ValueError(f"V: has shape {array.shape}, expected (d,): the variance of each column")
    with np.errstate(divide="ignore", over="ignore"):
        inverse = 1 / array
    bad = ~(np.isfinite(array) & np.isfinite(inverse) & (array > 0))
    if bad.any():
        column = int(bad.argmax())
        raise ValueError(
            f"V: got {array[column]} for column {column}, expected a variance above 0; drop columns that are constant"
        )
    return tuple(inverse.tolist())


def _symmetric(matrix: Any, name: str) -> Float64:
    """Check that a matrix is square and symmetric up to rounding, and return its symmetric part."""
    result = _matrix(matrix, name, "(d, d)")
    if result.shape[0] != result.shape[1]:
        raise ValueError(f"{name}: has shape {result.shape}, expected (d, d): a row and a column for each column")
    apart = np.abs(result - result.T)
    if apart.max() > _ASYMMETRY * np.abs(result).max():
        row, column = (int(at) for at in np.unravel_index(apart.argmax(), apart.shape))
        raise ValueError(
            f"{name}: is not symmetric: {result[row, column]:.6g} in row {row}, column {column}, but "
            f"{result[column, row]:.6g} in row {column}, column {row}; pass ({name} + {name}.T) / 2 if that is meant"
        )
    return np.asarray(result / 2 + result.T / 2)


def _matrix(matrix: Any, name: str, shape: str) -> Float64:
    inputs.refuse_masked(matrix, name)
    array = _numbers(matrix, name)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"{name}: has shape {array.shape}, expected {shape}")
    if not np.isfinite(array).all():
        row, column = (int(at) for at in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name}: got {array[row, column]} in row {row}, column {column}, expected finite numbers")
    return array


def _numbers(given: Any, name: str) -> Float64:
    """Return a C-contiguous float64 copy of an array of numbers in any library."""
    try:
        array = np.asarray(inputs.as_floats(inputs.held(inputs.to_host(given))))
    except ValueError as error:
        raise ValueError(f"{name}: expected an array of numbers ({error})") from error
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name}: expected numbers, got {type(given).__name__} of {array.dtype}")
    return np.array(array, np.float64, order="C")
