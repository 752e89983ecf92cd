"""Definitions of the metrics, compared with independent arithmetic: fractions, fsum, SciPy, and by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.spatial import distance
from scipy.spatial.distance import cdist

from tests.helpers import checks
from tonari.metrics import CHANGED, METRICS
from tonari.metrics.reference import pairwise

EPS = np.finfo(np.float64).eps


def _sum_by_hand(terms: list[float]) -> float:
    """Add in the fixed order, one Python float at a time."""
    lanes = [0.0] * 16
    for i, term in enumerate(terms):
        lanes[i % 16] += term
    for width in (8, 4, 2, 1):
        lanes = [lanes[j] + lanes[j + width] for j in range(width)]
    return lanes[0]


POWERS_BY_HAND: dict[str, Callable[[float], float]] = {
    "power:0.5": math.sqrt,
    "power:1.5": lambda t: t * math.sqrt(t),
    "power:3": lambda t: t * t * t,
    "power:4": lambda t: (t * t) * (t * t),
}


def _value_by_hand(q: list[float], x: list[float], metric: str) -> float:
    pairs = list(zip(q, x, strict=True))
    if metric in ("euclidean", "sqeuclidean"):
        total = _sum_by_hand([(a - b) * (a - b) for a, b in pairs])
        return math.sqrt(total) if metric == "euclidean" else total
    if metric == "inner_product":
        return _sum_by_hand([a * b for a, b in pairs])
    if metric == "l1":
        return _sum_by_hand([abs(a - b) for a, b in pairs])
    if metric == "linf":
        return max(abs(a - b) for a, b in pairs)
    if metric == "chi2":
        return _sum_by_hand([(a - b) * (a - b) / (a + b) if a + b else 0.0 for a, b in pairs])
    if metric in POWERS_BY_HAND:
        return _sum_by_hand([POWERS_BY_HAND[metric](abs(a - b)) for a, b in pairs])
    if METRICS[metric].form == "elementwise":  # for one column SciPy returns the term
        terms = [float(cdist([[a]], [[b]], metric)[0, 0]) for a, b in pairs]  # type: ignore[call-overload]
        return max(terms) if METRICS[metric].maximum else _sum_by_hand(terms)
    if metric == "correlation":
        means = [_sum_by_hand(row) / len(row) for row in (q, x)]
        q, x = ([0.0 if min(r) == max(r) else v - mean for v in r] for r, mean in zip((q, x), means, strict=True))
    dot, qq, xx = (_sum_by_hand([a * b for a, b in zip(*both, strict=True)]) for both in ((q, x), (q, q), (x, x)))
    if qq == 0 or xx == 0:
        return 1.0
    cosine = dot / (math.sqrt(qq) * math.sqrt(xx))
    if cosine <= 0.5:
        return min(1.0 - cosine, 2.0)
    f, g = 1 / math.sqrt(qq), 1 / math.sqrt(xx)
    chord = _sum_by_hand([(a * f - b * g) * (a * f - b * g) for a, b in zip(q, x, strict=True)])
    return 0.0 if chord <= ((len(q) / 16 + 12) * EPS / 2) ** 2 else min(chord / 2, 0.5)


def _input(name: str, n: int, d: int, metric: str, seed: int = 0) -> Any:
    data = checks.HOSTILE[name](n, d, seed)
    return np.abs(data) if METRICS[metric].nonnegative else data


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [1, 2, 15, 16, 17, 33, 100])
def test_every_bit_by_hand(metric: str, d: int) -> None:
    for name in checks.HOSTILE:
        if name == "gps_metres" and d < 3:
            continue
        q, x = _input(name, 3, d, metric), _input(name, 4, d, metric, seed=1)
        values = pairwise(q, x, metric)
        by_hand = np.array([[_value_by_hand(a.tolist(), b.tolist(), metric) for b in x] for a in q])
        assert values.dtype == np.float64
        assert values.tobytes() == by_hand.tobytes(), f"{name}: {values - by_hand}"


def test_lanes_are_summed_in_the_stated_order() -> None:
    # 1e16 absorbs a 1 that is added to it alone; the ones that survive show the order.
    row = np.zeros((1, 33))
    row[0, [0, 16, 32]] = 1e16, 1.0, -1e16  # one lane, left to right: the 1 is lost
    assert pairwise(row, np.ones((1, 33)), "inner_product") == 0.0
    row[:] = 0
    row[0, [0, 1, 16]] = 1e16, 1.0, -1e16  # lane 0 cancels before lane 1 is added
    assert pairwise(row, np.ones((1, 33)), "inner_product") == 1.0
    row[:] = 0
    row[0, [0, 4, 8]] = 1e16, 1.0, -1e16  # 0 + 8 before 0 + 4
    assert pairwise(row, np.ones((1, 33)), "inner_product") == 1.0
    row[:] = 0
    row[0, [0, 8, 4]] = 1e16, 1.0, -1e16
    assert pairwise(row, np.ones((1, 33)), "inner_product") == 0.0


def test_products_are_rounded_before_they_are_added() -> None:
    # (1 + 2^-30)^2 - 1 - 2^-29 is 2^-60 exactly; rounding the product loses it, a fused multiply-add would not.
    a = 1 + 2.0**-30
    q, x = np.zeros((1, 17)), np.zeros((1, 17))
    q[0, [0, 16]] = -(1 + 2.0**-29), a
    x[0, [0, 16]] = 1.0, a
    assert pairwise(q, x, "inner_product") == 0.0


@pytest.mark.parametrize("metric", ["sqeuclidean", "inner_product", "l1", "power:3", "power:4"])
@pytest.mark.parametrize("d", [3, 64, 200])
def test_sums_are_right_to_rounding(metric: str, d: int) -> None:
    q, x = checks.gaussian(6, d, 1), checks.gaussian(7, d, 2)
    term = {
        "sqeuclidean": lambda a, b: (a - b) ** 2,
        "inner_product": lambda a, b: a * b,
        "l1": lambda a, b: abs(a - b),
        "power:3": lambda a, b: abs(a - b) ** 3,
        "power:4": lambda a, b: (a - b) ** 4,
    }[metric]
    for i, row in enumerate(pairwise(q, x, metric)):
        for j, value in enumerate(row):
            exact = [term(Fraction(float(a)), Fraction(float(b))) for a, b in zip(q[i], x[j], strict=True)]
            # Each of at most d/16 + 4 additions, and each term up to 7 times, rounds by half an eps of the summed
            # values.
            bound = EPS / 2 * (d // 16 + 12) * float(sum(map(abs, exact)))
            assert abs(float(Fraction(value) - sum(exact))) <= bound
            assert value == pytest.approx(math.fsum(map(float, exact)), abs=2 * bound, rel=0)


SCIPY = {metric: {"l1": "cityblock", "linf": "chebyshev"}.get(metric, metric) for metric in METRICS}


@pytest.mark.parametrize("metric", [metric for metric in METRICS if hasattr(distance, SCIPY[metric])])
def test_agrees_with_scipy(metric: str) -> None:
    q, x = checks.gaussian(40, 37, 1, np.float64), checks.gaussian(50, 37, 2, np.float64)
    q[:, 3] = x[:20, 3] = 0
    by_scipy = cdist(q, x, SCIPY[metric])  # type: ignore[call-overload]
    np.testing.assert_allclose(pairwise(q, x, metric), by_scipy, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("p", [0.5, 1.5, 3, 4])
def test_powers_and_their_roots_agree_with_scipy(p: float) -> None:
    q, x = checks.gaussian(40, 37, 1, np.float64), checks.gaussian(50, 37, 2, np.float64)
    q[:, 3] = x[:20, 3] = 0
    by_scipy = cdist(q, x, "minkowski", p=p)
    np.testing.assert_allclose(pairwise(q, x, f"power:{p}"), by_scipy**p, rtol=1e-13)
    root = CHANGED[f"minkowski:{p}"].value
    assert root is not None
    np.testing.assert_allclose(root(q.T[:, :, None], x.T[:, None]), by_scipy, rtol=1e-14)


def test_chi2_agrees_with_its_formula() -> None:
    q, x = (np.random.default_rng(s).integers(0, 4, (9, 20)).astype(np.float32) for s in (0, 1))
    for i, j in np.ndindex(9, 9):
        exact = sum(Fraction(int(a - b)) ** 2 / int(a + b) for a, b in zip(q[i], x[j], strict=True) if a + b)
        assert pairwise(q, x, "chi2")[i, j] == pytest.approx(float(exact), rel=4 * EPS)


def test_zero_rows_have_cosine_distance_one() -> None:
    rows = np.array([[0, 0, 0], [-0.0, 0, 0], [1, 2, 2]], np.float32)
    expected = [[1, 1, 1], [1, 1, 1], [1, 1, 0]]
    assert pairwise(rows, rows, "cosine").tolist() == expected
    # Also with subnormal rows whose norm underflows to 0: the square of 1e-200 is 0.
    assert pairwise(np.full((1, 3), 1e-200), rows.astype(np.float64), "cosine").tolist() == [[1, 1, 1]]


def test_constant_rows_have_correlation_distance_one() -> None:
    rows = np.array([[0.1] * 6, [1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1]])
    assert pairwise(rows[:1], np.ones((1, 6)), "inner_product") / 6 != 0.1, "the mean of this row is exact"
    # Minus its mean, the first row would be a direction of rounding errors, perfectly correlated with itself.
    assert pairwise(rows, rows, "correlation")[0].tolist() == [1, 1, 1]
    np.testing.assert_allclose(pairwise(rows, rows, "correlation")[1:, 1:], [[0, 2], [2, 0]], atol=1e-15)


def test_cosine_stays_within_its_range() -> None:
    rows = checks.gaussian(200, 5)
    lines = np.concatenate([rows, -rows, 3 * rows]).astype(np.float64)
    values = pairwise(lines, lines, "cosine")
    assert values.min() == 0.0
    assert values.max() == 2.0
    unclipped = 1 - (lines @ lines.T) / np.outer(*[np.linalg.norm(lines, axis=1)] * 2)
    assert unclipped.min() < 0.0, "the data does not try the bound"
