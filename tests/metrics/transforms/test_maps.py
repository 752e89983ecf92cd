"""Linear maps: accepted matrices, and roots and products in the order of operations of their definition."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tonari.metrics import tuning
from tonari.metrics.reference import pairwise
from tonari.metrics.transforms import maps
from tonari.metrics.transforms.change import change_for
from tonari.metrics.transforms.maps import (
    check_transform,
    product,
    root_of_covariance,
    root_of_inverse,
    weights_of_variances,
)


def covariance(d: int, condition: float = 10.0, seed: int = 0) -> Any:
    """Make a symmetric positive definite matrix with this condition number."""
    directions, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))
    made = directions * np.geomspace(1, 1 / condition, d) @ directions.T
    return (made + made.T) / 2


def root_by_hand(matrix: Any) -> list[list[float]]:
    """Compute Cholesky's method with complete pivoting, number by number."""
    d = len(matrix)
    left = [[float(value) for value in row] for row in matrix]
    rows, made, done = range(d), [], set()
    limit = d * 2.0**-50 * max(left[i][i] for i in rows)
    order = list(rows)
    while len(done) < d:
        here = [i for i in order if i not in done]
        pivot = max(here, key=lambda i: left[i][i])
        if left[pivot][pivot] <= limit:
            break
        root = float(np.sqrt(left[pivot][pivot]))
        at = len(done)
        other = order.index(pivot)
        order[at], order[other] = pivot, order[at]
        done.add(pivot)
        column = [0.0] * d
        for i in order[at:]:
            column[i] = left[i][pivot] / root
        for i in order[at + 1 :]:
            for j in order[at + 1 :]:
                left[i][j] -= column[i] * column[j]
        made.append(column)
    return [list(row) for row in zip(*made, strict=True)]


@pytest.mark.parametrize("d", [1, 2, 5, 17])
def test_roots_have_the_bits_of_their_definition(d: int) -> None:
    given = covariance(d)
    assert root_of_inverse(given).tolist() == root_by_hand(given)
    singular = np.ones((d, d)) * 3
    assert root_of_inverse(singular).shape == (d, 1)
    assert root_of_inverse(singular).tolist() == root_by_hand(singular)


@pytest.mark.parametrize("condition", [1.0, 1e4, 1e10])
@pytest.mark.parametrize("d", [1, 3, 40])
def test_roots_are_those_of_the_matrices(d: int, condition: float) -> None:
    given = covariance(d, condition)
    root = root_of_inverse(given)
    np.testing.assert_allclose(root @ root.T, given, atol=1e-14)
    inverse = root_of_covariance(given)
    np.testing.assert_allclose(inverse.T @ given @ inverse, np.eye(d), atol=1e-15 * condition * d)
    for each in (root, inverse):
        assert each.flags.c_contiguous
        assert not each.flags.writeable


def test_a_matrix_of_lower_rank_has_fewer_columns() -> None:
    tall = np.random.default_rng(0).integers(-4, 5, (9, 3)).astype(float)
    root = root_of_inverse(tall @ tall.T)
    assert root.shape == (9, 3)
    np.testing.assert_allclose(root @ root.T, tall @ tall.T, atol=1e-12)


def test_rounding_may_break_symmetry_but_nothing_else_may() -> None:
    given = covariance(6)
    rounded = given + 1e-9 * np.triu(np.ones((6, 6)), 1)
    middle = rounded / 2 + rounded.T / 2
    assert root_of_inverse(rounded).tobytes() == root_of_inverse(middle).tobytes()
    given[0, 1] += 0.1
    for name, root in (("VI", root_of_inverse), ("covariance", root_of_covariance)):
        with pytest.raises(ValueError, match=rf"{name}: is not symmetric: .* pass \({name} \+ {name}.T\) / 2"):
            root(given)


@pytest.mark.parametrize(
    ("root", "matrix", "message"),
    [
        (root_of_inverse, [[1.0, 2.0], [2.0, 1.0]], "VI: is not positive semi-definite .* eigenvalue is -1"),
        (root_of_inverse, [[0.0, 1.0], [1.0, 0.0]], "VI: is not positive semi-definite"),
        (root_of_inverse, [[-1.0]], "VI: is not positive semi-definite"),
        (root_of_inverse, [[1.0, 0.0], [0.0, -1e-9]], "VI: is not positive semi-definite"),
        (root_of_inverse, np.zeros((2, 2)), "VI: all numbers are 0"),
        (root_of_inverse, np.ones(3), r"VI: has shape \(3,\), expected \(d, d\)"),
        (root_of_inverse, np.ones((2, 3)), r"VI: has shape \(2, 3\), expected \(d, d\)"),
        (root_of_inverse, [[1.0, np.nan], [0.0, 1.0]], "VI: got nan in row 0, column 1, expected finite"),
        (root_of_inverse, np.array([["a"]]), "VI: expected numbers"),
        (root_of_inverse, [[1.0], [1.0, 2.0]], "VI: expected an array of numbers"),
        (root_of_covariance, np.ones((3, 3)), "covariance: is not positive definite .*column 1 .*numpy.linalg.pinv"),
        (root_of_covariance, [[0.0]], "covariance: is not positive definite"),
        (root_of_covariance, [[5e-324, 0.0], [0.0, 1.0]], "covariance: is not positive definite"),
        (check_transform, np.zeros((3, 2)), "transform: all numbers are 0"),
        (check_transform, np.ones(3), r"transform: has shape \(3,\), expected \(d, p\)"),
        (check_transform, np.ones((3, 0)), r"transform: has shape \(3, 0\)"),
        (check_transform, [[np.inf]], "transform: got inf"),
        (weights_of_variances, [1.0, 0.0], "V: got 0.0 for column 1, expected a variance above 0; drop columns"),
        (weights_of_variances, [-1.0], "V: got -1.0 for column 0"),
        (weights_of_variances, [np.inf], "V: got inf"),
        (weights_of_variances, [1e-320], "V: got 1e-320"),
        (weights_of_variances, [[1.0]], r"V: has shape \(1, 1\), expected \(d,\)"),
    ],
)
def test_refuses(root: Any, matrix: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        root(matrix)


@pytest.mark.parametrize(
    ("metric", "given", "message"),
    [
        ("mahalanobis", {}, "pass VI=, the inverse of the covariance of the columns, or covariance="),
        ("seuclidean", {}, "pass V=, such as points.var"),
        ("euclidean", {"VI": np.eye(2)}, "VI: is of metric='mahalanobis', got metric='euclidean'"),
        ("euclidean", {"V": [1.0]}, "V: holds the variances of metric='seuclidean'"),
        ("mahalanobis", {"V": [1.0]}, "V: .* pass covariance="),
        ("mahalanobis", {"VI": np.eye(2), "covariance": np.eye(2)}, "VI and covariance: expected one of them"),
        ("euclidean", {"weights": [2.0], "transform": [[2.0]]}, "weights and transform: expected one of them"),
        ("haversine", {"transform": [[2.0]]}, "transform: metric='haversine' has none, only euclidean, "),
        ("jaccard", {"transform": [[2.0]]}, "transform: metric='jaccard' has none"),
        ("seuclidean", {"transform": [[2.0]]}, "transform: metric='seuclidean' has none"),
        ("mahalanobis", {"weights": [2.0]}, "weights: metric='mahalanobis' has none, only euclidean, sqeuclidean, l1"),
    ],
)
def test_arguments_that_do_not_go_together(metric: str, given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        change_for(metric, **given)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "uint8", "bfloat16"])
def test_products_are_inner_products_in_float64(dtype: str) -> None:
    rows = (checks.gaussian(40, 37) ** 2 * 20).astype("float64")
    if dtype == "bfloat16":
        rows = rows.astype("float32").view(np.uint32) >> 16 << 16
        rows = rows.astype(np.uint32).view(np.float32).astype("float64")
    given: Any = rows.astype(dtype) if dtype != "bfloat16" else np.array(rows, "float32").view(np.uint16)[:, 1::2]
    matrix = checks.gaussian(37, 5, 1, np.float64)
    if dtype == "bfloat16":
        from tonari.inputs import BFLOAT16

        given = np.ascontiguousarray(given).view(BFLOAT16)
    else:
        rows = given.astype("float64")
    assert product(given, matrix).tobytes() == pairwise(rows, matrix.T, "inner_product").tobytes()


def test_the_error_of_a_product_is_that_of_its_sum() -> None:
    rows, matrix = checks.gaussian(3, 50, dtype=np.float64) * 1e8, checks.gaussian(50, 2, 1, np.float64)
    made = product(rows, matrix)
    for i, j in np.ndindex(made.shape):
        terms = [Fraction(x) * Fraction(t) for x, t in zip(rows[i].tolist(), matrix[:, j].tolist(), strict=True)]
        assert abs(Fraction(made[i, j]) - sum(terms)) <= Fraction(2.0**-53) * 9 * sum(map(abs, terms))


def test_blocks_and_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, matrix = checks.gaussian(100, 7), checks.gaussian(7, 9, 1, np.float64)
    whole = product(rows, matrix)
    monkeypatch.setattr(tuning, "MAPPED_ELEMENTS", 30)
    monkeypatch.setattr(maps, "default_threads", lambda seconds: 3)
    for threads in (None, 1, 2):
        assert product(rows, matrix, threads).tobytes() == whole.tobytes()
    assert product(rows[:0], matrix).shape == (0, 9)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "uint8"])
def test_shares_may_be_rounded_but_not_more(dtype: str) -> None:
    rows = np.random.default_rng(0).random((200, 30))
    shares = (rows / rows.sum(axis=1, keepdims=True)).astype(dtype) if dtype != "uint8" else np.eye(30, dtype=dtype)
    change = change_for("braycurtis")
    assert change is not None
    assert change.rows(shares, "points").tobytes() == shares.astype(np.float64).tobytes()
    off = shares.astype(np.float64) if dtype == "uint8" else shares.copy()
    off[7] *= 1.5
    with pytest.raises(ValueError, match=r"queries: row 7 sums to 1\.(5|49).*divide each row by its sum"):
        change.rows(off, "queries")
    off[7] = -off[7]
    with pytest.raises(ValueError, match="queries: row 7 has a negative value"):
        change.rows(off, "queries")


def test_rows_of_zeros_have_no_shares_but_roots() -> None:
    rows = np.eye(3)
    rows[1] = 0
    made, refused = change_for("hellinger"), change_for("braycurtis")
    assert made is not None
    assert refused is not None
    assert made.rows(rows, "points").tobytes() == rows.tobytes()
    with pytest.raises(ValueError, match="points: row 1 sums to 0"):
        refused.rows(rows, "points")
    with pytest.raises(ValueError, match="points: row 0 has a negative value"):
        made.rows(-rows, "points")
