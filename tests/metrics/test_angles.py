"""Cosine and correlation of rows that are close: copies, multiples, and values compared with 80-digit arithmetic."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers import checks
from tonari.metrics.definitions import less_mean
from tonari.metrics.reference import pairwise

Array = npt.NDArray[Any]
W = 2.0**-53
DTYPES = ["float16", "float32", "float64", "bfloat16", "uint8"]


def exact_distance(q: Array, x: Array) -> Decimal:
    """Compute 1 - cosine to 60 digits."""
    with localcontext() as context:
        context.prec = 80
        a, b = ([Decimal(float(v)) for v in row] for row in (q, x))
        dot, qq, xx = (sum(s * t for s, t in zip(*both, strict=True)) for both in ((a, b), (a, a), (b, b)))
        return 1 - Decimal(dot) / (Decimal(qq) * Decimal(xx)).sqrt()


def allowed(value: float, d: int) -> float:
    """Return the bound of docs/exactness.md on the error of a value below 1/2."""
    return float((d / 8 + 17) * W * value + 2 * W * np.sqrt(2 * value) + ((d / 16 + 12) * W) ** 2)


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [1, 3, 16, 128, 768])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_copies_are_at_0(metric: str, dtype: str, d: int, offset: float) -> None:
    rows = np.random.default_rng(d).normal(offset, 20, (64, d))
    rows = (np.clip(np.abs(rows), 1, 255) if dtype == "uint8" else rows).astype(dtype)
    values = np.diagonal(pairwise(rows, rows.copy(), metric))
    constant = metric == "correlation" and d == 1
    assert (values == (1.0 if constant else 0.0)).all()


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
@pytest.mark.parametrize("factor", [2.0**-40, 0.5, 4.0, 2.0**60])
def test_rows_times_powers_of_two_are_at_0(metric: str, factor: float) -> None:
    rows = checks.gaussian(64, 48, 1)
    assert not np.diagonal(pairwise(rows, rows * np.float32(factor), metric)).any()


@pytest.mark.parametrize("factor", [3, 7, 1000])
@pytest.mark.parametrize("d", [1, 3, 16, 128, 768])
def test_parallel_rows_are_at_0(factor: int, d: int) -> None:
    rows = np.random.default_rng(d).integers(-50, 50, (64, d)) + 100.0
    assert not np.diagonal(pairwise(rows, factor * rows, "cosine")).any()
    assert (np.diagonal(pairwise(rows, -factor * rows, "cosine")) > 2 - 1e-15).all()


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
@pytest.mark.parametrize("apart", [1e-13, 1e-7, 1e-4, 1e-2, 0.5])
@pytest.mark.parametrize("d", [3, 48, 768])
def test_near_copies_keep_their_digits(metric: str, apart: float, d: int) -> None:
    rng = np.random.default_rng(d)
    q = rng.standard_normal((1, d))
    x = q * (1 + apart * rng.standard_normal((12, d)))
    values = pairwise(q, x, metric)[0]
    if metric == "correlation":
        q, x = less_mean(q.T).T, less_mean(x.T).T
    for value, row in zip(values, x, strict=True):
        truth = exact_distance(q[0], row)
        error = abs(float(Decimal(float(value)) - truth))
        assert value < 0.5, "the data does not try the bound"
        assert error <= allowed(float(truth), d)
        if apart == 1e-7:  # the bound in terms of returned values
            assert error <= 2e-8 * float(truth)


@pytest.mark.parametrize("d", [2, 17, 128])
def test_values_about_one_half_agree_with_real_ones(d: int) -> None:
    rng = np.random.default_rng(d)
    unit = np.linalg.qr(rng.standard_normal((d, 2)))[0].T
    angles = np.pi / 3 + np.arange(-40, 41) * 2.0**-53
    rows = np.cos(angles)[:, None] * unit[0] + np.sin(angles)[:, None] * unit[1]
    values = pairwise(unit[:1], rows, "cosine")[0]
    epsilon = (d / 8 + 16) * W
    assert len({value for value in values if value < 0.5}) > 1 < len({value for value in values if value > 0.5})
    for value, row in zip(values, rows, strict=True):
        assert abs(float(Decimal(float(value)) - exact_distance(unit[0], row))) <= epsilon


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [2, 19, 130])
def test_a_value_is_the_same_from_both_sides(metric: str, dtype: npt.DTypeLike, d: int) -> None:
    rows = checks.angles(80, d, 1, dtype)
    values = pairwise(rows, rows, metric)
    assert values.tobytes() == values.T.copy().tobytes()
    assert values.min() == 0.0
    assert (values < 0.5).mean() > 0.05 < (values > 1).mean()


def test_squares_that_underflow_leave_copies_at_0() -> None:
    rows = checks.gaussian(40, 12, 1).astype(np.float64) * 1e-160  # sums of squares of some hundred subnormal units
    assert not np.diagonal(pairwise(rows, rows, "cosine")).any()
    beside = pairwise(rows, rows * 1e160, "cosine")
    assert (np.diagonal(beside) <= 0.5).all()
    assert beside.max() <= 2.0
