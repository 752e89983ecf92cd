"""Sine, cosine and arcsine of plain IEEE operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.checks import Array
from tonari.metrics.transforms.trigonometry import LARGEST_ANGLE, arcsin, sin_cos

RNG = np.random.default_rng(0)


def ulps(found: Array, function: Any, x: Array) -> Any:
    """Return the largest error in units in the last place, compared with NumPy's function in extended precision."""
    expected = function(x.astype(np.longdouble))
    return (np.abs(found - expected) / np.spacing(np.abs(expected).astype(np.float64))).max()


@pytest.mark.parametrize("largest", [1e-300, 0.5, np.pi, 100.0, LARGEST_ANGLE])
def test_sines_and_cosines_are_within_a_unit(largest: float) -> None:
    x = RNG.uniform(-largest, largest, 50_000)
    sines, cosines = sin_cos(x)
    assert ulps(sines, np.sin, x) < 0.8
    assert ulps(cosines, np.cos, x) < 0.8


def test_quarter_turns() -> None:
    x = np.pi / 2 * np.arange(-8, 9)
    sines, cosines = sin_cos(x)
    np.testing.assert_allclose(sines, np.sin(x.astype(np.longdouble)), rtol=1e-15)
    np.testing.assert_allclose(cosines, np.cos(x.astype(np.longdouble)), rtol=1e-15)


def test_arcsines_are_within_a_unit() -> None:
    x = np.concatenate([RNG.uniform(0, 1, 50_000), 1 - RNG.uniform(0, 1, 50_000) ** 8, RNG.uniform(0, 1, 1000) ** 30])
    assert ulps(arcsin(x), np.arcsin, x[x > 0]) < 1
    assert arcsin(np.array([0.0, 1.0])).tolist() == [0.0, np.pi / 2]


@pytest.mark.parametrize("middle", [0.5, 0.975, 0.25, 0.7, 1.0, 2.0**-27])
def test_arcsines_ascend_where_their_formula_changes(middle: float) -> None:
    bits = np.float64(middle).view(np.int64) + np.arange(-50_000, 50_000)
    x = bits.view(np.float64)
    assert (np.diff(arcsin(x[x <= 1])) >= 0).all()


def test_arcsines_of_neighbouring_numbers_ascend() -> None:
    x = RNG.uniform(0, 1, 200_000)
    assert (arcsin(np.nextafter(x, 0)) <= arcsin(x)).all()
