"""Angles between positions on the sphere in float64, accurate to a few units in the last place at every angle.

With longitudes a, latitudes b and differences da and db, the angle t between two positions has

    sin^2(t / 2) = sin^2(db / 2)          + cos b1 cos b2 sin^2(da / 2)
    cos^2(t / 2) = sin^2((b1 + b2) / 2)   + cos b1 cos b2 cos^2(da / 2)

Both are sums of non-negative terms, so nothing cancels. If the first sum is the smaller one, t is twice the arcsine of
its square root; otherwise t is pi minus twice the arcsine of the square root of the second sum. The terms themselves
are computed so that they lose no digits either:

- differences are taken in the unit of the coordinates: between close positions they are exact in degrees, but not
  after a conversion to radians;
- whole turns are subtracted from a difference of longitudes, and the rounding error of the difference is added
  afterwards, so the difference between 359.9999 and 0.0001 degrees is as accurate as any other;
- the cosine of a latitude near a pole is the sine of 90 degrees minus the latitude, which is exact.

``metric="haversine"`` is less accurate: it computes angles from chords between rounded unit vectors, whose lengths have
an absolute error of about 1e-15. That is a relative error of 1e-4 at an angle of one micro-arcsecond, and an error of
1e-8 radians near 180 degrees.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core.rows.slices import cut
from tonari.metrics import tuning
from tonari.metrics.definitions import unit_vectors
from tonari.metrics.transforms.trigonometry import arcsin, sin_cos

Float64 = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


class Unit(NamedTuple):
    """A unit of angles.

    Attributes
    ----------
    half_turn : tuple of two floats
        180 degrees in this unit, as the sum of a float64 number and a correction.
    radians : float
        The size of the unit in radians.
    """

    half_turn: tuple[float, float]
    radians: float


DEGREES = Unit((180.0, 0.0), math.pi / 180)
RADIANS = Unit((math.pi, 1.2246467991473532e-16), 1.0)


class Positions(NamedTuple):
    """Positions on the sphere, as longitudes and latitudes.

    Attributes
    ----------
    longitude, latitude : float64 arrays of shape (n,)
    unit : Unit
        The unit of both angles.
    """

    longitude: Float64
    latitude: Float64
    unit: Unit

    def at(self, rows: Ids | slice) -> Positions:
        """Return the positions at these row numbers."""
        return Positions(self.longitude[rows], self.latitude[rows], self.unit)

    def vectors(self) -> Float64:
        """Return the positions as unit vectors, of shape (n, 3)."""
        rows = np.empty((len(self.latitude), 3))
        for part in cut(len(rows), tuning.CHANGED_ELEMENTS):
            latitude, longitude = self.latitude[part], self.longitude[part]
            rows[part] = unit_vectors(latitude * self.unit.radians, longitude * self.unit.radians).T
        return rows


def separations(left: Positions, right: Positions) -> Float64:
    """Return the angle between the two positions of each pair, in degrees from 0 to 180, of shape (pairs,).

    >>> import numpy as np
    >>> here, there = (Positions(np.array([ra]), np.array([0.0]), DEGREES) for ra in (359.75, 0.25))
    >>> separations(here, there)
    array([0.5])
    """
    found = np.empty(len(left.latitude))
    for part in cut(len(found), tuning.CHANGED_ELEMENTS):
        found[part] = _degrees(left.at(part), right.at(part))
    return found


def _degrees(left: Positions, right: Positions) -> Float64:
    unit = left.unit
    half = unit.radians / 2
    sine, cosine = sin_cos(_less(left.longitude, right.longitude, unit) * half)
    radii = _cosine(left.latitude, unit) * _cosine(right.latitude, unit)
    between, _ = sin_cos((left.latitude - right.latitude) * half)
    beyond, _ = sin_cos((left.latitude + right.latitude) * half)
    near, far = between * between + radii * (sine * sine), beyond * beyond + radii * (cosine * cosine)
    angle = 2 * np.degrees(arcsin(np.sqrt(np.minimum(near, far))))
    return np.where(near <= far, angle, 180.0 - angle)


def _less(left: Float64, right: Float64, unit: Unit) -> Float64:
    """Return the differences of two arrays of longitudes, minus whole turns: at most 180 degrees in magnitude."""
    half, correction = unit.half_turn
    difference = left - right
    backwards = difference - left
    error = (left - (difference - backwards)) - (right + backwards)  # exact rounding error of `difference`
    turns = np.rint(difference / (2 * half))
    return (difference - turns * (2 * half)) + (error - turns * (2 * correction))


def _cosine(latitude: Float64, unit: Unit) -> Float64:
    """Return the cosines of latitudes, which are at least 0; they are accurate at the poles too."""
    if unit is RADIANS:
        return np.maximum(sin_cos(latitude)[1], 0.0)
    size = np.abs(latitude)
    quarter = unit.half_turn[0] / 2
    polar = size > quarter / 2
    sine, cosine = sin_cos(np.where(polar, quarter - size, size) * unit.radians)
    return np.where(polar, sine, cosine)
