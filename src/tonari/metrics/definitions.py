"""The definition of every metric's value in plain float64 NumPy; the compiled kernels reproduce it bit for bit.

S denotes the sum over the d columns. It is computed in a fixed order, in :data:`LANES` lanes, so that every machine
computes the same bits::

    lane j  =  0.0 + t[j] + t[j + 16] + t[j + 32] + ...      one lane per column number modulo 16, left to right
    sum     =  lanes folded in halves: 8 + 8, 4 + 4, 2 + 2, 1 + 1

Products are rounded before they are added (no fused multiply-add). Each function takes q of shape (d, m, 1) and x of
shape (d, 1, n) or (d, m, n), columns first, and returns the value of each pair. Squares must not overflow, so float64
input has to be at most 1e150 in magnitude; values of the other dtypes always are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tonari.metrics.transforms.roots import cube_root, two_thirds
from tonari.metrics.transforms.trigonometry import arcsin, sin_cos

LANES = 16
# The number of set bits in each byte value from 0 to 255.
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1).astype(np.float64)

Float64: TypeAlias = npt.NDArray[np.float64]


def sqeuclidean(q: Float64, x: Float64) -> Float64:
    """Return S((q - x) * (q - x))."""
    return lane_sum(lambda i: np.square(q[i] - x[i]), len(q))


def euclidean(q: Float64, x: Float64) -> Float64:
    """Return the square root of sqeuclidean."""
    return np.sqrt(sqeuclidean(q, x))


def nan_euclidean(q: Float64, x: Float64) -> Float64:
    """Return sqrt(N * (d / C)), where N = S((q - x) * (q - x)) over the C columns that both rows have; NaN if C = 0."""

    def square(i: int) -> Float64:
        apart = np.square(q[i] - x[i])
        return np.where(np.isnan(apart), 0.0, apart)

    count = sum((~np.isnan(q[i] - x[i]) for i in range(len(q))), start=np.zeros((), np.int64))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt(lane_sum(square, len(q)) * (len(q) / count)))


def inner_product(q: Float64, x: Float64) -> Float64:
    """Return S(q * x)."""
    return lane_sum(lambda i: q[i] * x[i], len(q))


def cosine(q: Float64, x: Float64) -> Float64:
    """Return 1 - c, where c = S(q * x) / (|q| * |x|) is the cosine similarity and |q| = sqrt(S(q * q)).

    If a row is zero, the value is 1. If c is at most 1 / 2, the value is 1 - c, but at most 2. For larger c it is
    s / 2, but at most 1 / 2, where s = S((q * (1 / |q|) - x * (1 / |x|)) ** 2) is the squared chord of the rows scaled
    to length 1: this is 0 for equal rows, and small values keep the digits that 1 - c would lose. The value is 0 if s
    is at most ((d + 192) * 2**-57) ** 2, an upper bound of the rounding errors for parallel rows.
    """
    dot = lane_sum(lambda i: q[i] * x[i], len(q))
    qq = lane_sum(lambda i: q[i] * q[i], len(q))
    xx = lane_sum(lambda i: x[i] * x[i], len(x))
    zero = (qq == 0) | (xx == 0)
    q_norm, x_norm = (np.sqrt(np.where(square == 0, 1.0, square)) for square in (qq, xx))
    c = np.where(zero, 0.0, dot / (q_norm * x_norm))
    far = np.minimum(1.0 - c, 2.0)
    if not (c > 0.5).any():
        return far
    q_inverse, x_inverse = 1.0 / q_norm, 1.0 / x_norm
    chord = lane_sum(lambda i: np.square(q[i] * q_inverse - x[i] * x_inverse), len(q))
    shortest = (len(q) + 192) * 2.0**-57
    near = np.where(chord <= shortest * shortest, 0.0, np.minimum(chord / 2.0, 0.5))
    return np.where(c > 0.5, near, far)


def correlation(q: Float64, x: Float64) -> Float64:
    """Return cosine of the rows after their means S(q) / d are subtracted; a constant row becomes zeros."""
    return cosine(less_mean(q), less_mean(x))


def l1(q: Float64, x: Float64) -> Float64:
    """Return S(abs(q - x))."""
    return lane_sum(lambda i: np.abs(q[i] - x[i]), len(q))


def linf(q: Float64, x: Float64) -> Float64:
    """Return max(abs(q - x))."""
    largest: Float64 = np.abs(q[0] - x[0])
    for i in range(1, len(q)):
        largest = np.maximum(largest, np.abs(q[i] - x[i]))
    return largest


def chi2(q: Float64, x: Float64) -> Float64:
    """Return S((q - x) * (q - x) / (q + x)), where a term with q + x == 0 is 0."""

    def term(i: int) -> Float64:
        total = q[i] + x[i]
        difference = q[i] - x[i]
        return np.where(total == 0, 0.0, difference * difference / np.where(total == 0, 1.0, total))

    return lane_sum(term, len(q))


def canberra(q: Float64, x: Float64) -> Float64:
    """Return S(abs(q - x) / (abs(q) + abs(x))), where a term with abs(q) + abs(x) == 0 is 0."""

    def term(i: int) -> Float64:
        total = np.abs(q[i]) + np.abs(x[i])
        ratio: Float64 = np.abs(q[i] - x[i]) / np.where(total == 0, 1.0, total)
        return ratio

    return lane_sum(term, len(q))


def power_half(q: Float64, x: Float64) -> Float64:
    """Return S(sqrt(abs(q - x)))."""
    return _powers(np.sqrt, q, x)


def power_three_halves(q: Float64, x: Float64) -> Float64:
    """Return S(t * sqrt(t)), where t = abs(q - x)."""
    return _powers(lambda t: t * np.sqrt(t), q, x)


def power_three(q: Float64, x: Float64) -> Float64:
    """Return S((t * t) * t), where t = abs(q - x)."""
    return _powers(lambda t: (t * t) * t, q, x)


def power_four(q: Float64, x: Float64) -> Float64:
    """Return S((t * t) * (t * t)), where t = abs(q - x)."""
    return _powers(lambda t: (t * t) * (t * t), q, x)


def minkowski_half(q: Float64, x: Float64) -> Float64:
    """Return the square of power_half."""
    return root_half(power_half(q, x))


def minkowski_three_halves(q: Float64, x: Float64) -> Float64:
    """Return power_three_halves to the power of 2 / 3."""
    return root_three_halves(power_three_halves(q, x))


def minkowski_three(q: Float64, x: Float64) -> Float64:
    """Return the cube root of power_three."""
    return root_three(power_three(q, x))


def minkowski_four(q: Float64, x: Float64) -> Float64:
    """Return the square root of the square root of power_four."""
    return root_four(power_four(q, x))


def haversine(q: Float64, x: Float64) -> Float64:
    """Return 2 * arcsin(min(1, c / 2)), where c is euclidean of the rows' unit vectors; rows are in radians."""
    return great_circle(euclidean(unit_vectors(*q), unit_vectors(*x)))


def unit_vectors(latitude: Float64, longitude: Float64) -> Float64:
    """Return x, y and z of the points of the unit sphere at latitudes and longitudes in radians, of shape (3, ...)."""
    (height, radius), (sine, cosine) = sin_cos(latitude), sin_cos(longitude)
    return np.stack([radius * cosine, radius * sine, height])


def great_circle(chord: Float64) -> Float64:
    """Convert distances between unit vectors to angles in radians; inf, for a missing neighbour, stays inf."""
    angle = 2.0 * arcsin(np.minimum(1.0, chord / 2.0))
    return np.where(np.isinf(chord), np.inf, angle)


def root_half(total: Float64) -> Float64:
    """Return total ** 2, which may overflow to inf."""
    with np.errstate(over="ignore"):
        return total * total


def root_three_halves(total: Float64) -> Float64:
    """Return total ** (2 / 3)."""
    return two_thirds(total)


def root_three(total: Float64) -> Float64:
    """Return total ** (1 / 3)."""
    return cube_root(total)


def root_four(total: Float64) -> Float64:
    """Return total ** (1 / 4)."""
    root: Float64 = np.sqrt(np.sqrt(total))
    return root


def hellinger(q: Float64, x: Float64) -> Float64:
    """Return euclidean of the square roots of the rows, divided by sqrt(2)."""
    return over_root_two(euclidean(np.sqrt(q), np.sqrt(x)))


def over_root_two(distance: Float64) -> Float64:
    """Return distance / r, where r is the float64 number nearest to sqrt(2)."""
    return distance / math.sqrt(2)


def braycurtis(q: Float64, x: Float64) -> Float64:
    """Return half of l1, which equals S(abs(q - x)) / S(q + x) for rows that each sum to one."""
    return half(l1(q, x))


def half(distance: Float64) -> Float64:
    """Return distance / 2, which is exact."""
    return distance / 2


def hamming(q: Float64, x: Float64) -> Float64:
    """Return the number of bits in which rows of bytes differ."""
    return _bit_sum(lambda i: _bytes(q[i]) ^ _bytes(x[i]), len(q))


def jaccard(q: Float64, x: Float64) -> Float64:
    """Return 1 - |q & x| / |q | x| for the bits of rows, computed as |q ^ x| / |q | x|; 0 if no bit is set."""
    either = _bit_sum(lambda i: _bytes(q[i]) | _bytes(x[i]), len(q))
    return hamming(q, x) / np.maximum(either, 1.0)


def _powers(power: Callable[[Float64], Float64], q: Float64, x: Float64) -> Float64:
    """Return S(power(abs(q - x))); values that overflow are inf."""
    with np.errstate(over="ignore"):
        return lane_sum(lambda i: power(np.abs(q[i] - x[i])), len(q))


def _bytes(numbers: Float64) -> npt.NDArray[np.uint8]:
    return numbers.astype(np.uint8)


def _bit_sum(term: Callable[[int], npt.NDArray[np.uint8]], d: int) -> Float64:
    """Return the number of bits that are set in term(0) ... term(d - 1), a sum that is exact in float64."""
    return lane_sum(lambda i: _BITS[term(i)], d)


def lane_sum(term: Callable[[int], Float64], d: int) -> Float64:
    """Return S, the sum of term(0) ... term(d - 1), in the fixed order of this module."""
    first = term(0)
    lanes = np.zeros((LANES, *first.shape), first.dtype)
    for i in range(d):
        lanes[i % LANES] += term(i)
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = lanes[:half] + lanes[half:]
    return np.asarray(lanes[0])


def less_mean(x: Float64) -> Float64:
    # A constant row becomes zeros. Subtracting the rounded mean would leave rounding errors with an arbitrary
    # direction.
    constant = x.min(axis=0) == x.max(axis=0)
    mean = lane_sum(lambda i: x[i], len(x)) / len(x)
    return np.where(constant, 0.0, x - mean)
