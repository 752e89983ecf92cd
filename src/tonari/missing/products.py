"""Transformed rows whose inner product shows whether the distance of two rows with missing values is within a limit.

Let x and y be a query and a point, with 0 for missing values. Let m and m' be 1 in the columns that the query and the
point have, and 0 elsewhere. Let t be a limit on the mean squared difference N / C. With sums S over the columns,

    t C - N  =  S (t - x^2) m m'  -  S m y^2  +  S 2 x y

is the inner product of the rows [(t - x^2) m / b, -m b, 2 x] and [m' b, y^2 / b, y], where b is a power of two that
gives their numbers similar sizes. The order of distances does not change if the same vector is subtracted from all
rows, or if all rows are multiplied by a power of two. Rows are therefore centred, and points are scaled to at most 1 in
magnitude. A query that is larger than this by a factor g is divided by g; t and the terms of points are divided by g or
g^2.

Rounding. A number of a row is rounded once, when it is centred, with a relative error of at most u = 2^-53. With the
rounding of squares, products and the sum of 3 d + 1 terms, the computed inner product differs from its exact value by
less than

    kappa (2 |x|^2 + 2 |y|^2 + t c),    kappa = (3 d + 60) 2^-52,

where c is the number of columns of the query; underflow adds less than 2^-1000. The part of this bound that depends on
y is added to the product by one more column, and the part that depends on x is subtracted from the limit.

The limit is part of the row of the query, so a product decides for this query alone, and a graph compares each pair
twice. One product for both rows would need N and C apart: two sums, and another screen.

Pairs without a common column have the product 0. The limit t is therefore increased by some eta that exceeds the
rounding errors. Pairs within the limit then have a product of at least eta C, so that pairs without a common column are
found only if the point is far larger than other points. Such pairs have no distance, and are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.rows.slices import cut
from tonari.missing import tuning

Float64 = npt.NDArray[np.float64]

ALL = 5.0  # a limit that includes all points: mean squared differences of values from -1 to 1 are at most 4
_UNDERFLOW = 2.0**-1000


@dataclass(frozen=True)
class Form:
    """The centring and scaling of all rows, which depend on the points.

    Attributes
    ----------
    centre : float64 array of shape (d,)
        The vector that is subtracted from all rows.
    exponent : int
        Rows are multiplied by 2**exponent.
    square : float
        The mean squared length of the scaled points.
    balance : float
        The b of this module, a power of two near the root mean square of the numbers in the scaled points.
    """

    centre: Float64
    exponent: int
    square: float
    balance: float

    @property
    def kappa(self) -> float:
        """The kappa of this module, a bound on rounding errors relative to squared lengths."""
        return (3 * len(self.centre) + 60) * 2.0**-52


def centre_of(points: npt.NDArray[Any]) -> Float64:
    """Return the mean of the values in each column that are not missing; 0 for a column without values.

    >>> centre_of(np.array([[1.0, np.nan], [2.0, np.nan]])).tolist()
    [1.5, 0.0]
    """
    sums, counts = np.zeros(points.shape[1]), np.zeros(points.shape[1], np.int64)
    for part in _blocks(points):
        wide = _wide(points[part])
        there = ~np.isnan(wide)
        sums += np.where(there, wide, 0.0).sum(axis=0)
        counts += there.sum(axis=0)
    return np.asarray(sums / np.maximum(counts, 1))


def point_rows(points: npt.NDArray[Any]) -> tuple[Form, Float64]:
    """Return the Form for the points, and the transformed points [m' b, y^2 / b, y, rounding bound].

    Points are transformed in blocks, so that little memory is used in addition to the result.
    """
    (n, d), centre, blocks = points.shape, centre_of(points), _blocks(points)
    exponent, filled = 0, 0
    for part in blocks:
        _, there, exponents = _moved(points[part], centre)
        exponent = max(exponent, int(exponents.max(initial=0, where=there.any(axis=1))))
        filled += int(np.count_nonzero(there))
    rows, lengths = np.empty((n, 3 * d + 1)), np.empty(n)
    for part in blocks:
        moved, there, _ = _moved(points[part], centre)
        y = np.ldexp(moved, -exponent)
        square = np.square(y)
        lengths[part] = square.sum(axis=1)
        rows[part, :d], rows[part, d : 2 * d], rows[part, 2 * d : -1] = there, square, y
    _, size = np.frexp(np.sqrt(lengths.sum() / max(1, filled)))
    form = Form(centre, -exponent, float(lengths.mean()), float(np.ldexp(1.0, int(size))))
    rows[:, :d] *= form.balance
    rows[:, d : 2 * d] /= form.balance
    rows[:, -1] = 2 * form.kappa * lengths
    return form, rows


def query_rows(queries: npt.NDArray[Any], form: Form) -> QueryRows:
    """Return the queries, centred and scaled as the points and further divided by a power of two if they are larger."""
    moved, there, exponents = _moved(queries, form.centre)
    larger = np.maximum(exponents + form.exponent, 0)  # g = 2**larger
    return QueryRows(np.ldexp(moved, (form.exponent - larger)[:, None]), there, larger, form)


@dataclass(frozen=True)
class QueryRows:
    """Centred and scaled queries.

    Attributes
    ----------
    x : float64 array of shape (m, d)
        The queries, with 0 for missing values.
    there : bool array of shape (m, d)
        False for missing values.
    larger : int array of shape (m,)
        Query i has been divided by 2**larger[i], in addition to the scaling of the points.
    form : Form
    """

    x: Float64
    there: npt.NDArray[np.bool_]
    larger: npt.NDArray[Any]
    form: Form

    def some(self, rows: npt.NDArray[Any]) -> QueryRows:
        """Return the queries that an index array or a mask selects."""
        return QueryRows(self.x[rows], self.there[rows], self.larger[rows], self.form)

    def means_of(self, limits: npt.NDArray[Any]) -> Float64:
        """Convert limits on returned distances to limits on the mean squared differences of scaled rows.

        Parameters
        ----------
        limits : array of shape (m,), of the dtype of returned distances
            Negative limits count as 0.
        """
        d, positive = self.x.shape[1], np.maximum(limits, 0)
        with np.errstate(over="ignore", under="ignore"):
            above = np.nextafter(positive, np.asarray(np.inf, positive.dtype)).astype(np.float64)
            means = np.square(above) / d * (1 + (d + 40) * 2.0**-52) + 2.0**-1074
            return np.asarray(np.ldexp(means, 2 * (self.form.exponent - self.larger)))

    def with_means(self, means: Float64) -> tuple[Float64, Float64]:
        """Return the transformed queries, and for each query the smallest inner product of points within its limit.

        Parameters
        ----------
        means : float64 array of shape (m,)
            Limits on the mean squared differences of scaled rows; inf includes all pairs with a common column.

        Returns
        -------
        rows : float64 array of shape (m, 3 d + 1)
            [(t - x^2) m / b, -m b, 2 x, 1], where 1 / g or 1 / g^2 multiplies all parts but the first.
        least : float64 array of shape (m,)
        """
        form = self.form
        square, factor = np.square(self.x), np.ldexp(1.0, -self.larger)
        lengths, count = square.sum(axis=1), self.there.sum(axis=1)
        t = np.minimum(means, ALL)
        t = t + (2.0**-20 * t + 8 * form.kappa * (2 * lengths + 2 * factor**2 * form.square + t * count) + _UNDERFLOW)
        eta = t - np.minimum(means, ALL)
        m, d = self.x.shape
        rows = np.empty((m, 3 * d + 1))
        np.subtract(t[:, None], square, out=rows[:, :d])
        rows[:, :d] *= self.there / form.balance
        np.multiply(self.there, -(factor**2 * form.balance)[:, None], out=rows[:, d : 2 * d])
        np.multiply(self.x, (2 * factor)[:, None], out=rows[:, 2 * d : -1])
        rows[:, -1] = factor**2
        return rows, eta * (1 - 2.0**-20) - form.kappa * (2 * lengths + t * count) - _UNDERFLOW

    def means(self, points: Float64) -> npt.NDArray[np.float32]:
        """Estimate the mean squared difference between each query and each of the transformed points `points`.

        The estimate is inf for rows without a common column. Estimates are matrix products, whose rounding depends on
        the machine, so no answer may depend on them.
        """
        d, factor = self.x.shape[1], np.ldexp(1.0, -self.larger)[:, None]
        there, square, y = (points[:, begin : begin + d].T.astype(np.float32) for begin in (0, d, 2 * d))
        x = self.x.astype(np.float32)
        there, square = there / np.float32(self.form.balance), square * np.float32(self.form.balance)
        sums = np.square(x) @ there
        sums += (factor**2 * self.there).astype(np.float32) @ square
        sums -= (2 * factor * self.x).astype(np.float32) @ y
        count = self.there.astype(np.float32) @ there
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(count > 0, np.maximum(sums, 0) / count, np.inf)


def _blocks(points: npt.NDArray[Any]) -> list[slice]:
    return cut(len(points), max(1, tuning.MOVED_ELEMENTS // points.shape[1]))


def _wide(rows: npt.NDArray[Any]) -> Float64:
    return inputs.as_floats(rows).astype(np.float64)


def _moved(rows: npt.NDArray[Any], centre: Float64) -> tuple[Float64, npt.NDArray[np.bool_], npt.NDArray[Any]]:
    """Return rows centred with 0 for missing values, a mask of the other values, and each row's largest exponent."""
    moved = _wide(rows) - centre
    there = ~np.isnan(moved)
    moved[~there] = 0.0
    _, exponents = np.frexp(np.abs(moved).max(axis=1))
    return moved, there, np.where((moved != 0).any(axis=1), exponents, -(1 << 14))
