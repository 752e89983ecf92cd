"""Lower bounds of the distances from points to other components, by projections onto lines between centres.

For a unit vector u, |i - j| >= u·j - u·i. If u points from the centre of i's clump A to the centre of another clump B,

    min over j in B of |i - j|  >=  min over j in B of u·j  -  u·i,

and the minimum over all B outside of i's component bounds the distance from i to the nearest point outside. If clusters
are far apart, only points that face another component then still have to search. The bound takes n d operations per
clump instead of n |A| d. Clumps are the components at the time of the first call. They stay the same when components
merge, because a line from the common centre of several clumps would not point to any other clump.

Rounding: the error of a product u·x of d terms in float64 is at most (d + 2) eps |u| |x|, in any order of summation,
and |u| differs from 1 by at most (d + 4) eps. To cover both products, 4 (d + 8) eps max |x| is subtracted. The bound is
also reduced by a factor of 1e-6, for the length of u and the rounding of returned distances.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.rows.slices import cut
from tonari.spanning import tuning
from tonari.spanning.boruvka import Ids

_VALUE_BYTES = 32  # peak memory of a block of rows, in bytes per coordinate, including temporary values
_LESS = 1 - 1e-6
_LEAST = 1e-300

Float64 = npt.NDArray[np.float64]


class Projections:
    """Lower bounds of Euclidean distances to other components, for points in host memory.

    Parameters
    ----------
    points : array of shape (n, d)
        Points of any real dtype of NumPy.
    squared : bool
        Whether distances are squared.
    memory : int, optional
        Bytes for the rows and products of one block.
    """

    def __init__(self, points: npt.NDArray[Any], squared: bool, memory: int | None = None) -> None:
        self.points, self.squared = points, squared
        self._values = tuning.VALUES if memory is None else min(tuning.VALUES, memory // _VALUE_BYTES)
        self._blocks = cut(len(points), max(1, self._values // points.shape[1]))
        self._clumps: Ids | None = None

    def bounds(self, labels: Ids, component: int) -> Float64:
        """Return for each point of a component, in row order, a lower bound of its distance to all points outside.

        Parameters
        ----------
        labels : integer array of shape (n,)
            The component of each point, from 0. Later calls may only merge components.
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
            found = np.where(found > 0, found, 0.0)  # NaN, the result of an overflow, becomes 0, which bounds nothing
            return found**2 * _LESS if self.squared else found

    def _measure(self, labels: Ids) -> None:
        """Store the components as clumps, with their centres and the largest norm of a row."""
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
        """Return each point's smallest gap to the clumps outside of its component.

        Gaps are measured along the lines between the clumps' centres.
        """
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
