"""The terms of elementwise metrics on CUDA: Triton functions that are passed to kernels as constants.

    term         one term f(q, x) in float64, with the bits of ``definitions.py``: every operation is rounded once
    add_terms    for the screen: adds the terms of four columns to the scores in float32, one after the other. Elements
                 are 0, or from 2^-60 to 2^40 in magnitude. The rounding errors of the terms and of d additions amount
                 to less than (d + 15) u (size(q) + size(x)), with u = 2^-24
    size, difference    functions of float64 elements that bound the error of rounding them: f(q, x) <= size(q) +
                 size(x), and |f(q, x) - f(q, y)| <= stretch * difference(x, y) with the record's `stretch`, where
                 stretch * difference(x, y) >= size(y) - size(x)

If a metric has `prepare`, the screen applies it to the elements, once per tile instead of once per pair. If it has
`complement`, `add_terms` sums the excess of a simpler sum over the score:
score(q, x) = S(q) + S(x) - complement * total.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import triton
import triton.language as tl

from tonari.metrics.kernels.instructions import rsqrt, sqrt


class Terms(NamedTuple):
    """The Triton functions of one metric. The record of a user's function has only `term`."""

    term: Any
    add_terms: Any = None
    prepare: Any = None
    complement: float | None = None
    size: Any = None
    difference: Any = None


@triton.jit
def magnitude(x):
    return tl.abs(x)


@triton.jit
def distance(x, y):
    return tl.abs(x - y)


@triton.jit
def four_of(t):
    """Split a tensor [R, C, TR, TC, 4] in registers into four [R, C, TR, TC], without moving data."""
    shape: tl.constexpr = t.shape
    even, odd = tl.split(t.reshape(shape[0], shape[1], shape[2], shape[3], 2, 2))
    t0, t2 = tl.split(even)
    t1, t3 = tl.split(odd)
    return t0, t1, t2, t3


@triton.jit
def add_four(total, t):
    """Add four terms one after the other, because a separate sum of the four would take more registers."""
    t0, t1, t2, t3 = four_of(t)
    total += t0
    total += t1
    total += t2
    return total + t3


@triton.jit
def add_distances(total, q, x):
    """Add the terms |q - x| of the metric l1 to the total."""
    return add_four(total, tl.abs(q - x))


@triton.jit
def join_distances(total, q, x):
    """Combine the terms of linf, whose maximum replaces the sum."""
    t0, t1, t2, t3 = four_of(tl.abs(q - x))
    total = tl.maximum(tl.maximum(total, t0), t1)
    return tl.maximum(tl.maximum(total, t2), t3)


@triton.jit
def chi2_term(q, x):
    total = q + x
    difference = q - x
    # elements are not negative, so that the difference of elements is zero if their total is
    return difference * difference / tl.where(total == 0, 1.0, total)


@triton.jit
def inverse(v):
    """Return 1 / v within 2 units in the last place; v is at least 2^-60, or 0, which counts as 2^-60."""
    v = tl.maximum(v, 8.673617379884035e-19)  # 2^-60
    root = rsqrt(v)
    guess = root * root
    return tl.fma(guess, tl.fma(-v, guess, 1.0), guess)


@triton.jit
def add_inverse_sums(total, r, s):
    """Add q x / (q + x) for chi2, from r = 1 / q and s = 1 / x; such a term is 1 / (r + s).

    As (q - x)^2 = (q + x)^2 - 4 q x, the score is S((q - x)^2 / (q + x)) = S(q) + S(x) - 4 S(q x / (q + x)). Two terms,
    with a and b for their r + s, share one root:

        1 / a + 1 / b = (a + b) p^2,    p = 1 / sqrt(a b)

    0 counts as 2^-60, which can only lower a score, by at most 2^-58 per term (columns are padded by up to 3 zeros).
    The other rounding errors, in units of u: 2 for r and s, 1 for each of r + s, a + b, a b, (a + b) p and its product
    with p, 4.3 for the square of a root (relative error 2^-22.9), ceil(d / 2) - 1 for the sum, all relative to
    4 q x / (q + x) <= q + x; ceil(d / 4) + 1 for S(q) and S(x); 3 for adding them to low.
    """
    shape: tl.constexpr = (total.shape[0], total.shape[1], total.shape[2], total.shape[3], 2, 2)
    a, b = tl.split((r + s).reshape(shape))
    root = rsqrt(a * b)
    t0, t1 = tl.split((a + b) * root)
    root0, root1 = tl.split(root)
    total += t0 * root0
    return total + t1 * root1


@triton.jit
def canberra_term(q, x):
    total = tl.abs(q) + tl.abs(x)
    return tl.abs(q - x) / tl.where(total == 0, 1.0, total)


@triton.jit
def lifted(v):
    """Return 2^20 v, so that products of two sums or differences neither overflow nor underflow in float32.

    The result is 0 or from 2^-40 to 2^60.
    """
    return v * 1048576.0


@triton.jit
def add_ratios(total, q, x):
    """Add the terms of canberra, two of which share one root: a / s + b / t = (a t + b s) p^2, with p = 1 / sqrt(s t).

    a and b are |q - x| in two columns; they are 0 or at least 2^-63. s and t are |q| + |x|, or 2^-40 if that is 0, in
    which case a or b is 0 too. Rounding errors, in units of u: 1 for each of a, s, s t, b s, a t + b s and the two
    products with p, 4.3 for p^2 (relative error 2^-22.9), ceil(d / 2) - 1 for the sum and 1 for adding it to low,
    relative to terms of at most 1.
    """
    shape: tl.constexpr = (total.shape[0], total.shape[1], total.shape[2], total.shape[3], 2, 2)
    a, b = tl.split(tl.abs(q - x).reshape(shape))
    s, t = tl.split(tl.maximum(tl.abs(q) + tl.abs(x), 9.094947017729282e-13).reshape(shape))  # 2^-40
    root = rsqrt(s * t)
    t0, t1 = tl.split((a * t + b * s) * root)
    root0, root1 = tl.split(root)
    total += t0 * root0
    return total + t1 * root1


@triton.jit
def is_there(x):
    return tl.where(x == 0, 0.0, 1.0).to(x.dtype)


@triton.jit
def half(t):
    return sqrt(t)


@triton.jit
def three_halves(t):
    return t * sqrt(t)


@triton.jit
def cube(t):
    return (t * t) * t


@triton.jit
def fourth(t):
    square = t * t
    return square * square


@triton.jit
def of_distance(t, METRIC: tl.constexpr):
    """Return the term f(q, x) from t = |q - x|, for the metrics that trees support."""
    # There is a single return, because the compiler would compile the code after a return in a constant branch too.
    if METRIC.degree == 0.5:
        term = half(t)
    elif METRIC.degree == 1.5:
        term = three_halves(t)
    elif METRIC.degree == 3:
        term = cube(t)
    elif METRIC.degree == 4:
        term = fourth(t)
    else:
        tl.static_assert(METRIC.degree == 1, "a distance has no term for a metric of this degree")
        term = t
    return term


@triton.jit
def power_half(q, x):
    return half(tl.abs(q - x))


@triton.jit
def power_three_halves(q, x):
    return three_halves(tl.abs(q - x))


@triton.jit
def power_three(q, x):
    return cube(tl.abs(q - x))


@triton.jit
def power_four(q, x):
    return fourth(tl.abs(q - x))


@triton.jit
def add_roots(total, q, x):
    """Add the terms |q - x|**0.5 of the metric power:0.5 to the total.

    Rounding errors, in units of u: 1/2 for the difference, 2 for the root, whose relative error is at most 2^-23.
    """
    return add_four(total, power_half(q, x))


@triton.jit
def add_roots_of_cubes(total, q, x):
    """Add the terms |q - x|**1.5 of the metric power:1.5 to the total.

    Rounding errors, in units of u: 1.5 for the difference, 2 for the root, 1 for the product.
    """
    return add_four(total, power_three_halves(q, x))


@triton.jit
def add_cubes(total, q, x):
    """Add the terms |q - x|**3 of the metric power:3 to the total.

    Rounding errors, in units of u: 3 for the difference, 1 for each product. A cube may also lose 2^-126 to underflow.
    """
    return add_four(total, power_three(q, x))


@triton.jit
def add_fourth_powers(total, q, x):
    """Add the terms |q - x|**4 of the metric power:4 to the total.

    Rounding errors, in units of u: 4 for the difference, 2 for its square, 1 for the product.
    """
    return add_four(total, power_four(q, x))


# For p > 1, and elements of at most the record's `largest`, the size of x is 2^(p - 1) |x|^p, rounded up.
@triton.jit
def size_half(x):
    return half(tl.abs(x))


@triton.jit
def size_three_halves(x):
    return three_halves(tl.abs(x)) * 1.414214


@triton.jit
def size_three(x):
    return cube(tl.abs(x)) * 4.0


@triton.jit
def size_four(x):
    return fourth(tl.abs(x)) * 8.0


NONE = Terms(None)
TERMS = {
    "l1": Terms(distance, add_distances, size=magnitude, difference=distance),
    "linf": Terms(distance, join_distances, size=magnitude, difference=distance),
    "chi2": Terms(chi2_term, add_inverse_sums, inverse, 4.0, magnitude, distance),
    "canberra": Terms(canberra_term, add_ratios, lifted, size=is_there, difference=canberra_term),
    "power:0.5": Terms(power_half, add_roots, size=size_half, difference=power_half),
    "power:1.5": Terms(power_three_halves, add_roots_of_cubes, size=size_three_halves, difference=distance),
    "power:3": Terms(power_three, add_cubes, size=size_three, difference=distance),
    "power:4": Terms(power_four, add_fourth_powers, size=size_four, difference=distance),
}
