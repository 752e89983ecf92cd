"""Sine, cosine and arcsine computed only by additions, multiplications, divisions and square roots, in float64.

The last bits of NumPy's functions depend on the processor and the C library. IEEE 754 defines the results of the
operations used here, so the bits are the same everywhere. The polynomials, the reduction by multiples of pi / 2 and the
split of the arcsine are taken from fdlibm, whose files ``k_sin.c``, ``k_cos.c``, ``e_rem_pio2.c`` and ``e_asin.c``
derive their errors (below one unit in the last place) and carry this notice:

    Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved. Permission to use, copy, modify, and distribute
    this software is freely granted, provided that this notice is preserved.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]

# Largest accepted angle. The number of its quarter turns has at most 19 bits, so that multiplying this number by the
# first 33 bits of pi / 2 is exact.
LARGEST_ANGLE = 8e5

_SIN = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
_COS = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)
_ASIN_P = (
    1.66666666666666657415e-01,
    -3.25565818622400915405e-01,
    2.01212532134862925881e-01,
    -4.00555345006794114027e-02,
    7.91534994289814532176e-04,
    3.47933107596021167570e-05,
)
_ASIN_Q = (
    1.0,
    -2.40339491173441421878e00,
    2.02094576023350569471e00,
    -6.88283971605453293030e-01,
    7.70381505559019352791e-02,
)
_HALF_PI_1 = 1.57079632673412561417e00  # the first 33 bits of pi / 2
_HALF_PI_2 = 6.07710050630396597660e-11  # the next 33 bits of pi / 2
_HALF_PI_2_TAIL = 2.02226624879595063154e-21  # the remaining bits of pi / 2
_TWO_OVER_PI = 6.36619772367581382433e-01
_HALF_PI, _HALF_PI_LOW = 1.57079632679489655800e00, 6.12323399573676603587e-17
_QUARTER_PI = 7.85398163397448278999e-01
_NEAR_ONE = 0.975


def sin_cos(x: Float64) -> tuple[Float64, Float64]:
    """Return the sine and the cosine of angles of at most :data:`LARGEST_ANGLE` in magnitude.

    >>> import numpy as np
    >>> sin_cos(np.array([0.0, 0.5]))
    (array([0.        , 0.47942554]), array([1.        , 0.87758256]))
    """
    turns = np.rint(x * _TWO_OVER_PI)
    first = x - turns * _HALF_PI_1
    second = turns * _HALF_PI_2
    rest = first - second
    tail = turns * _HALF_PI_2_TAIL - ((first - rest) - second)
    high = rest - tail
    low = (rest - high) - tail
    sine, cosine = _sin_near_zero(high, low), _cos_near_zero(high, low)
    quadrant = turns.astype(np.int64) & 3
    odd = (quadrant & 1).astype(bool)
    sines, cosines = np.where(odd, cosine, sine), np.where(odd, sine, cosine)
    return np.where(quadrant >= 2, -sines, sines), np.where((quadrant == 1) | (quadrant == 2), -cosines, cosines)


def arcsin(x: Float64) -> Float64:
    """Return the arcsine of numbers from 0 to 1.

    >>> import numpy as np
    >>> arcsin(np.array([0.0, 0.5, 1.0]))
    array([0.        , 0.52359878, 1.57079633])
    """
    small = x < 0.5
    square = np.where(small, x * x, (1.0 - x) * 0.5)
    ratio = square * _polynomial(square, _ASIN_P) / _polynomial(square, _ASIN_Q)
    root = np.sqrt(square)
    # the leading bits of `root`, few enough that head * head is exact
    head = (root.view(np.int64) & ~np.int64(0xFFFFFFFF)).view(np.float64)
    total = root + head
    left = (square - head * head) / np.where(total == 0, 1.0, total)
    correction = 2.0 * root * ratio - (_HALF_PI_LOW - 2.0 * left)
    middle = _QUARTER_PI - (correction - (_QUARTER_PI - 2.0 * head))
    top = _HALF_PI - (2.0 * (root + root * ratio) - _HALF_PI_LOW)
    return np.where(small, x + x * ratio, np.where(x >= _NEAR_ONE, top, middle))


def _sin_near_zero(x: Float64, low: Float64) -> Float64:
    """Return sin(x + low) for abs(x) <= pi / 4, where low is a correction of x."""
    square = x * x
    cube = square * x
    return x - ((square * (0.5 * low - cube * _polynomial(square, _SIN[1:])) - low) - cube * _SIN[0])


def _cos_near_zero(x: Float64, low: Float64) -> Float64:
    """Return cos(x + low) for abs(x) <= pi / 4, where low is a correction of x."""
    square = x * x
    half = 0.5 * square
    most = 1.0 - half
    return most + (((1.0 - most) - half) + (square * (square * _polynomial(square, _COS)) - x * low))


def _polynomial(x: Float64, coefficients: tuple[float, ...]) -> Float64:
    value = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = coefficient + x * value
    return value
