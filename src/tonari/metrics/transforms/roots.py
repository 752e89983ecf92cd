"""Cube roots computed only by additions, multiplications and divisions, in float64.

The last bit of NumPy's cube root depends on the C library. IEEE 754 defines the results of the operations used here, so
the bits are the same everywhere. Let x = 2^(3 k) m, with m from 1/2 to 4. Newton's method begins with a linear guess of
the cube root of m, and ends with a y within a few units in the last place:

    y  <-  y - (y - m / y^2) / 3            the relative error e becomes about e^2: 2^-4, 2^-8, ... 2^-64

One more step computes the residual m - y^3 by exact products (Dekker, "A floating-point technique for extending the
available precision", Numerische Mathematik 18, 1971), so that

    root  =  y + (m - y^3) / (3 y^2)        rounded once, from a number within 2^-90 of the cube root of m

The cube roots of adjacent floating-point numbers differ by a relative 2^-55 or more, which exceeds 2^-90. So the
numbers before rounding ascend with x, and so do the rounded roots, whose errors are at most 0.5 + 2^-37 units in the
last place.

x^(2/3) is computed as 2^(2 k) times the cube root of the rounded m^2. As long as k stays the same, this ascends with m.
When k grows by one, m^2 falls from 16 to 1/4, so its root falls by a factor of 4, while 2^(2 k) grows by a factor of 4.
Rounding m^2 changes the root by at most a third of a unit in the last place, so the error of the result is at most 0.84
units.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]

_STEPS = 4
_SPLIT = 134217729.0  # 2^27 + 1, Dekker's factor for splitting a float64 number into two halves
_GUESS = 0.72, 0.24  # the line 0.72 + 0.24 m is within a relative 1/16 of the cube root of m, from 1/2 to 4


def cube_root(x: Float64) -> Float64:
    """Return the cube root of numbers from 0 to inf.

    >>> import numpy as np
    >>> cube_root(np.array([0.0, 8.0, 0.001]))
    array([0. , 2. , 0.1])
    """
    usual, m, third = _parts(x)
    return np.where(usual, np.ldexp(_root(m), third), x)


def two_thirds(x: Float64) -> Float64:
    """Return x**(2/3) of numbers from 0 to inf.

    >>> import numpy as np
    >>> two_thirds(np.array([0.0, 8.0, 0.001]))
    array([0.  , 4.  , 0.01])
    """
    usual, m, third = _parts(x)
    _, square, more = _parts(m * m)
    return np.where(usual, np.ldexp(_root(square), 2 * third + more), x)


def _parts(x: Float64) -> tuple[npt.NDArray[np.bool_], Float64, npt.NDArray[np.int32]]:
    """Decompose numbers x as 2^(3 k) m with m from 1/2 to 4.

    Return a mask of the x that are neither 0 nor inf, m, and k; for the other x, m and k are those of 1.
    """
    usual = (x > 0) & (x < np.inf)
    fraction, exponent = np.frexp(np.where(usual, x, 1.0))  # frexp is exact, and so is ldexp in the callers
    third = exponent // 3
    return usual, np.ldexp(fraction, exponent - 3 * third), third


def _root(m: Float64) -> Float64:
    """Return the cube root of numbers from 1/2 to 4."""
    y = _GUESS[0] + _GUESS[1] * m
    for _ in range(_STEPS):
        y = y - (y - m / (y * y)) / 3.0
    square, square_low = _product(y, y)
    cube, cube_low = _product(square, y)
    residual = ((m - cube) - cube_low) - square_low * y  # m - cube is exact, because m and cube are close
    root: Float64 = y + residual / (3.0 * square)
    return root


def _product(a: Float64, b: Float64) -> tuple[Float64, Float64]:
    """Return the rounded product a * b and its exact rounding error, for numbers that are neither huge nor tiny."""
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(a: Float64) -> tuple[Float64, Float64]:
    """Split numbers exactly into sums of two numbers with 26 significant bits."""
    scaled = _SPLIT * a
    high = scaled - (scaled - a)
    return high, a - high
