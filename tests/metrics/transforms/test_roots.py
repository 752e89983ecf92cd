"""Cube roots of plain IEEE operations, compared with whole numbers and fractions."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from tests.helpers.checks import Array
from tonari.metrics.transforms.roots import cube_root, two_thirds

RNG = np.random.default_rng(0)
INFINITY = int(np.array(np.inf).view(np.int64))


def ulps(x: Array) -> float:
    """Return the largest error in units in the last place; the root y is off by (y^3 - x) / 3 y^2."""
    errors = []
    for number, root in zip(x.tolist(), cube_root(x).tolist(), strict=True):
        y = Fraction(root)
        errors.append(abs(float((y**3 - Fraction(number)) / (3 * y * y * Fraction(float(np.spacing(root)))))))
    return max(errors)


def numbers(low: int, high: int, n: int) -> Array:
    """Make numbers of all sizes between two powers of 2."""
    return np.ldexp(RNG.uniform(0.5, 1, n), RNG.integers(low, high, n))


@pytest.mark.parametrize(("low", "high"), [(-2, 4), (-1021, 1025), (-1070, -1020)])
def test_roots_are_rounded_to_the_nearest_but_for_a_millionth(low: int, high: int) -> None:
    x = numbers(low, high, 3000)
    assert ulps(x[x > 0]) < 0.500001


def test_the_ends() -> None:
    assert ulps(np.array([5e-324, 2.0**-1022, np.nextafter(2.0**-1022, 0), np.finfo(np.float64).max])) < 0.500001
    assert cube_root(np.array([0.0, np.inf])).tolist() == [0, np.inf]
    assert cube_root(np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize(("low", "high"), [(-2, 4), (-1021, 1025), (-1070, -1020)])
def test_powers_of_two_thirds_are_within_a_unit(low: int, high: int) -> None:
    """The root y of x^2 is off by (y^3 - x^2) / 3 y^2."""
    x = numbers(low, high, 3000)
    for number, power in zip(x.tolist(), two_thirds(x).tolist(), strict=True):
        y = Fraction(power)
        assert abs(y**3 - Fraction(number) ** 2) <= 3 * y * y * Fraction(float(np.spacing(power))) * Fraction(84, 100)


def test_powers_of_two_thirds_at_the_ends() -> None:
    assert two_thirds(np.array([0.0, np.inf, 1.0, 8.0, 2.0**-900, 2.0**900])).tolist() == [
        0,
        np.inf,
        1,
        4,
        2.0**-600,
        2.0**600,
    ]
    whole = np.arange(1.0, 2.0**13)
    assert (two_thirds(whole**3) == whole**2).all()


def test_roots_of_cubes_are_exact() -> None:
    whole = np.arange(1.0, 2.0**17)
    assert (cube_root(whole**3) == whole).all()
    shifted = np.ldexp(whole[:1000], RNG.integers(-300, 300, 1000))
    assert (cube_root(shifted * shifted * shifted) == shifted).all()


@pytest.mark.parametrize("root", [cube_root, two_thirds])
def test_roots_of_neighbouring_numbers_ascend(root: Callable[[Array], Array]) -> None:
    """Random numbers, and numbers around the powers of 2, where guesses and exponents change."""
    around = np.ldexp(1.0, np.arange(-300, 300)).view(np.int64)[:, None] + np.arange(-200, 200)
    anywhere = RNG.integers(0, INFINITY, 300_000)
    for bits in (around.ravel(), anywhere):
        assert (root(bits.view(np.float64)) <= root((bits + 1).view(np.float64))).all()
