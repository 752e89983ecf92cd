"""How far points are at least from all other components, without a search: by projections onto lines between centres.

For a unit vector u, |i - j| >= u·j - u·i. With u from the centre of i's clump A to that of another one, B,

    min over j in B of |i - j|  >=  min over j in B of u·j  -  u·i,

and the least over all B outside of i's component bounds what is nearest to i there. Far apart, that excludes all points
but those that face another component, for n d operations per clump instead of n |A| d. Clumps are the components of the
first call: a line from the centre of several clumps together would point to none of the others.

Rounding: a product u·x of d terms in float64 is off by at most (d + 2) eps |u| |x|, in any order of summation, and |u|
is 1 but for (d + 4) eps; four times (d + 8) eps max |x| are subtracted, for both products. A millionth is taken off for
the length of u and for what returned distances lack to those in exact arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.slices import cut
from tonari.spanning import tuning
from tonari.spanning.pool import Ids

_VALUE_BYTES = 32  # of each, with those that are computed from it
_LESS = 1 - 1e-6
_LEAST = 1e-300

Float64 = npt.NDArray[np.float64]


class Projections:
    """Points in host memory, by Euclidean distances.

    Parameters
    ----------
    points : array of shape (n, d)
        Of any real dtype of NumPy's.
    squared : bool
        Distances are squared.
    memory : int, optional
        Bytes for rows and products at a time.
    """

    def __init__(self, points: npt.NDArray[Any], squared: bool, memory: int | None = None) -> None:
        self.points, self.squared = points, squared
        self._values = tuning.VALUES if memory is None else min(tuning.VALUES, memory // _VALUE_BYTES)
        self._blocks = cut(len(points), max(1, self._values // points.shape[1]))
        self._clumps: Ids | None = None

    def bounds(self, labels: Ids, component: int) -> Float64:
        """Return the least distance that each point of a component may have to points outside of it, in order.

        Parameters
        ----------
        labels : integer array of shape (n,)
            From 0; at a later call components that have merged since.
        component : int
        """
        with np.errstate(all="ignore"):
            if self._clumps is None:
                self._measure(labels)
            clumps = self._clumps
            assert clumps is not None
            inside = labels[self._members] == component
            found = np.empty(len(labels))
            for clump in np.flatnonzero(inside):
                own = np.flatnonzero(clumps == clump)
                found[own] = self._gaps(own, int(clump), inside)
            found = (found[labels == component] - self._slack) * _LESS
            found = np.where(found > 0, found, 0.0)  # NaN, of values too large for float64, is no bound
            return found**2 * _LESS if self.squared else found

    def _measure(self, labels: Ids) -> None:
        """Take components for clumps: their centres, and how long rows are."""
        _, self._members, counts = np.unique(labels, return_index=True, return_counts=True)
        sums, longest = np.zeros((len(counts), self.points.shape[1])), 0.0
        for block in self._blocks:
            rows = self._rows(block)
            longest = max(longest, float(np.linalg.norm(rows, axis=1).max()))
            for column in range(rows.shape[1]):
                sums[:, column] += np.bincount(labels[block], rows[:, column], len(counts))
        self._centres = sums / counts[:, None]
        self._slack = 4 * (self.points.shape[1] + 8) * np.finfo(np.float64).eps * longest + _LEAST
        self._clumps = labels

    def _gaps(self, own: Ids, clump: int, inside: npt.NDArray[np.bool_]) -> Float64:
        """Return how far the points of a clump are from all clumps outside, along the line to each."""
        clumps = self._clumps
        assert clumps is not None
        lines = self._centres - self._centres[clump]
        lengths = np.linalg.norm(lines, axis=1, keepdims=True)
        lines = np.divide(lines, lengths, out=np.zeros_like(lines), where=lengths > 0)
        nearest = np.full(len(lines), np.inf)
        for block in self._blocks:
            along = np.einsum("ij,ij->i", self._rows(block), lines[clumps[block]])
            np.minimum.at(nearest, clumps[block], along)
        lines, nearest = lines[~inside], nearest[~inside]
        parts = cut(len(own), max(1, self._values // (len(lines) + self.points.shape[1])))
        return np.concatenate([(nearest - self._rows(own[part]) @ lines.T).min(axis=1) for part in parts])

    def _rows(self, which: Any) -> Float64:
        rows: Float64 = self.points[which].astype(np.float64)
        return rows
