"""The reference against arithmetic that shares nothing with it: whole fractions, fsum, SciPy and answers by hand."""

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
from tonari.metrics.reference import brute, pairwise, returned, values_at

EPS = np.finfo(np.float64).eps


def _sum_by_hand(terms: list[float]) -> float:
    """The fixed order, one Python float at a time."""
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
    if METRICS[metric].form == "elementwise":  # of one column SciPy says the term
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
    # 1e16 swallows a 1 that is added to it alone; which ones survive tells the order.
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
            # Each of at most d/16 + 4 additions, and each term up to 7 times, rounds by half an eps of what is summed.
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
    # With subnormal rows of norm 0 after underflow of the squares, too: the square of 1e-200 is 0.
    assert pairwise(np.full((1, 3), 1e-200), rows.astype(np.float64), "cosine").tolist() == [[1, 1, 1]]


def test_constant_rows_have_correlation_distance_one() -> None:
    rows = np.array([[0.1] * 6, [1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1]])
    assert pairwise(rows[:1], np.ones((1, 6)), "inner_product") / 6 != 0.1, "the mean of this row is exact"
    # Less its mean the first row would be a direction made of rounding errors, in perfect correlation with itself.
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


def test_huge_values_overflow_to_inf_and_tie_by_index() -> None:
    points = checks.huge(6, 4)
    found = brute(points, points, 5, "sqeuclidean", self_ids=np.arange(6))
    assert np.isinf(found.distances).all()
    assert found.indices[2].tolist() == [0, 1, 3, 4, 5]
    true = brute(points, points, 5, "euclidean", self_ids=np.arange(6))
    assert np.isfinite(true.distances).all()
    np.testing.assert_allclose(
        true.distances / 1e30,
        brute(points / np.float32(1e30), points / np.float32(1e30), 6).distances[:, 1:],
        rtol=1e-6,
    )


def test_subnormal_values_are_told_apart() -> None:
    step = np.finfo(np.float32).smallest_subnormal
    points = np.array([[0], [3], [1], [7]], np.float32) * step
    found = brute(points[:1], points, 4)
    assert found.indices.tolist() == [[0, 2, 1, 3]]
    assert (found.distances / step).tolist() == [[0, 1, 3, 7]]


def test_negative_zero_is_never_returned() -> None:
    minus = np.array([[-0.0, -0.0], [-1.0, 0.0]], np.float32)
    plus = np.array([[0.0, 1.0]], np.float32)
    for metric in ("inner_product", "l1", "linf", "euclidean", "cosine"):
        distances = brute(minus, plus, 1, metric).distances
        assert not np.signbit(distances).any(), metric
    assert returned(np.array([-0.0, -1e-60]), np.float32).tobytes() == np.zeros(2, np.float32).tobytes()


def test_ties_go_to_the_smaller_index() -> None:
    points = np.array([[2], [0], [-2], [2], [0]], np.float32)
    assert brute(points[1:2], points, 5).indices.tolist() == [[1, 4, 0, 2, 3]]
    assert brute(points[:1], points, 5, "inner_product").indices.tolist() == [[0, 3, 1, 4, 2]]


def test_ties_are_those_of_the_returned_value() -> None:
    # Apart in float64, equal once rounded to float32: the smaller index comes first, not the smaller distance.
    points = np.array([[1 + 2.0**-23, 2.0**-12], [1 + 2.0**-23, 0]], np.float32)
    query = np.zeros((1, 2), np.float32)
    values = pairwise(query, points)[0]
    assert values[0] > values[1]
    assert brute(query, points, 2).indices.tolist() == [[0, 1]]
    assert brute(query.astype(np.float64), points, 2).indices.tolist() == [[1, 0]]


def test_self_is_left_out_by_number_among_equal_points() -> None:
    points = checks.all_equal(5, 3)
    found = brute(points, points, 4, self_ids=np.arange(5))
    assert found.indices.tolist() == [[j for j in range(5) if j != i] for i in range(5)]
    assert not found.distances.any()
    assert brute(points[3:4], points, 2, self_ids=np.array([0])).indices.tolist() == [[1, 2]]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", checks.HOSTILE)
def test_brute_orders_the_pairwise_values(metric: str, name: str) -> None:
    points = _input(name, 60, 5, metric)
    found = brute(points, points, 59, metric, self_ids=np.arange(60))
    checks.assert_valid_neighbors(
        found, m=60, n=60, k=59, dtype=np.result_type(points, np.float32), metric=metric, self_ids=np.arange(60)
    )
    values = returned(pairwise(points, points, metric), found.distances.dtype)
    for i in range(60):
        sign = -1 if metric == "inner_product" else 1
        ids = sorted((j for j in range(60) if j != i), key=lambda j: (sign * values[i, j], j))
        assert found.indices[i].tolist() == ids
        assert found.distances[i].tobytes() == values[i, ids].tobytes()


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    q, x = checks.duplicates(23, 19), checks.duplicates(31, 19, 1)
    ids = np.arange(40).reshape(-1, 2) % 23
    whole = [*brute(q, x, 9), pairwise(q, x, "cosine"), values_at(x[:20], q, ids, "cosine")]
    monkeypatch.setattr("tonari.metrics.reference._PAIRS", 1)
    blocks = [*brute(q, x, 9), pairwise(q, x, "cosine"), values_at(x[:20], q, ids, "cosine")]
    assert [array.tobytes() for array in whole] == [array.tobytes() for array in blocks]


def test_wide_point_blocks_do_not_show() -> None:
    x = checks.gaussian(5000, 2)
    values = pairwise(x[:3], x)
    assert values[:, 4096:].tobytes() == pairwise(x[:3], x[4096:]).tobytes()


@pytest.mark.parametrize("dtype", [np.float16, "bfloat16", np.uint8, np.int8, np.float64])
def test_other_dtypes_are_taken_at_their_value(dtype: Any) -> None:
    points = np.random.default_rng(0).integers(0, 100, (30, 20)).astype(dtype)
    found = brute(points, points, 5)
    assert found.distances.dtype == (np.float64 if dtype == np.float64 else np.float32)
    expected = np.sort(cdist(points.astype(float), points.astype(float)), axis=1)[:, :5]
    np.testing.assert_allclose(found.distances, expected, rtol=1e-7)
    mixed = brute(points.astype(np.float64), points, 5)
    assert mixed.distances.dtype == np.float64


def test_values_at_are_those_of_pairwise() -> None:
    q, x = checks.gaussian(8, 21), checks.gaussian(15, 21, 1)
    ids = np.random.default_rng(0).integers(0, 15, (8, 6))
    for metric in METRICS:
        q, x = checks.accepted(q, metric), checks.accepted(x, metric)
        listed = np.take_along_axis(pairwise(q, x, metric), ids, axis=1)
        assert values_at(q, x, ids, metric).tobytes() == listed.tobytes()
    missing = values_at(q[:1], x, np.array([[-1, 2]]), "inner_product")
    assert missing[0, 0] == -np.inf
    assert missing[0, 1] == pairwise(q[:1], x, "inner_product")[0, 2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: brute(x, x, 0), "the largest k is 4, the smallest is 1"),
        (lambda x: brute(x, x, 5), "the largest k is 4"),
        (lambda x: brute(x, x, 4, self_ids=np.arange(4)), "the largest k is 3"),
        (lambda x: brute(x, x, 1, self_ids=np.arange(1, 5)), "self_ids must be 4 point numbers from 0 to 3"),
        (lambda x: brute(x, x, 1, self_ids=np.arange(3)), "self_ids must be 4"),
        (lambda x: brute(x, x[:, :1], 1), r"queries \(4, 2\) and points \(4, 1\)"),
        (lambda x: brute(x[0], x, 1), "must be"),
        (lambda x: brute(x, x + np.float32(np.nan), 1), "finite"),
        (lambda x: brute(x, x, 1, "euclid"), "Did you mean 'euclidean'"),
        (lambda x: pairwise(x, x, "mahalanobis"), "metric 'mahalanobis' is not supported: multiply"),
        (lambda x: values_at(x, x, np.full((4, 1), 4)), "from -1 to 3"),
        (lambda x: values_at(x, x, np.full((4, 1), -2)), "from -1 to 3"),
        (lambda x: values_at(x, x, np.zeros((3, 1), int)), "one row per query"),
    ],
)
def test_refuses(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(checks.gaussian(4, 2))
