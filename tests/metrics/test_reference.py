"""The reference: overflow, ties, the point itself, blocks, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from tests.helpers import checks
from tonari.metrics import METRICS
from tonari.metrics.reference import brute, pairwise, returned, values_at


def _input(name: str, n: int, d: int, metric: str, seed: int = 0) -> Any:
    data = checks.HOSTILE[name](n, d, seed)
    return np.abs(data) if METRICS[metric].nonnegative else data


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
    # Different in float64, equal once rounded to float32: the smaller index comes first, not the smaller distance.
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
    monkeypatch.setattr("tonari.metrics.tuning.REFERENCE_PAIRS", 1)
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
        (lambda x: pairwise(x, x, "mahalanobis"), "metric 'mahalanobis' has no reference definition"),
        (lambda x: values_at(x, x, np.full((4, 1), 4)), "from -1 to 3"),
        (lambda x: values_at(x, x, np.full((4, 1), -2)), "from -1 to 3"),
        (lambda x: values_at(x, x, np.zeros((3, 1), int)), "one row per query"),
    ],
)
def test_refuses(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(checks.gaussian(4, 2))
