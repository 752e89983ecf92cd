"""The comparison of lists with the truth counts every kind of error separately."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tonari.core.results.neighbors import Neighbors
from tonari.metrics.verification import Verification, verified

VALUES = np.arange(1, 7, dtype=np.float32)  # of points 0 to 5, for every row
TRUTH = np.array([[0, 1, 2]] * 4)
ROWS = np.array([3, 10, 11, 40])


def compared(listed: Any, given: Any = None, *, metric: str = "euclidean", own: bool = False) -> Verification:
    """Compare lists of four rows; the value of point j is j + 1 in each row."""
    listed = np.asarray(listed, np.int64)
    sign = -1 if metric == "inner_product" else 1
    values = sign * VALUES[np.clip(listed, 0, 5)]
    truth = Neighbors(sign * VALUES[TRUTH], TRUTH)
    return verified(Neighbors(given, listed), values, truth, ROWS, n=6, of_rows=50, metric=metric, own=own)


def counts(report: Verification) -> tuple[int, ...]:
    return report.farther, report.missing, report.invalid, report.repeated, report.itself, report.unsorted_rows


@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_faults_are_counted_by_kind(metric: str) -> None:
    report = compared([[0, 1, 5], [2, 1, 0], [-1, 1, 1], [7, -5, 0]], metric=metric)
    assert counts(report) == (1, 1, 2, 1, 0, 1)  # entries that are not points have no order
    assert not report.exact
    assert report.recall.by_distance == pytest.approx((2 + 3 + 1 + 1) / 12)
    assert [(w.row, w.missed) for w in report.worst] == [(11, 2), (40, 2), (3, 1)]
    sign = -1 if metric == "inner_product" else 1
    assert (report.worst[2].listed, report.worst[2].true) == (sign * 6.0, sign * 3.0)


def test_a_right_answer_has_no_fault() -> None:
    report = compared(TRUTH, VALUES[TRUTH])
    assert counts(report) == (0,) * 6
    assert report.exact
    assert report.worst == ()
    assert report.distances is not None
    assert (report.distances.wrong, report.distances.compared) == (0, 12)
    assert "every listed point is one of the k nearest" in str(report)


def test_a_row_is_not_its_own_neighbour_in_a_graph() -> None:
    listed = [[3, 0, 1], [0, 1, 2], [0, 1, 2], [0, 1, 2]]  # the first compared row is point 3
    assert compared(listed, own=True).itself == 1
    assert not compared(listed, own=True).exact
    assert compared(listed).itself == 0


def test_ties_are_no_errors() -> None:
    listed = np.array([[0, 1, 4], [0, 1, 2]])
    values = np.array([[1, 1, 1], [1, 1, 1]], np.float32)
    truth = Neighbors(values, np.array([[0, 1, 2], [0, 1, 2]]))
    report = verified(
        Neighbors(None, listed), values, truth, np.arange(2), n=6, of_rows=2, metric="euclidean", own=False
    )
    assert (report.tied, report.farther, report.exact) == (1, 0, True)
    assert report.recall.by_index == pytest.approx(5 / 6)
    assert "1 entries are ties" in str(report)


@pytest.mark.parametrize(
    ("metric", "convert", "described"),
    [
        ("euclidean", np.square, "sqeuclidean"),
        ("sqeuclidean", np.sqrt, "square roots"),
        ("cosine", lambda v: 1 - v, "similarities"),
        ("inner_product", np.negative, "negated"),
        ("haversine", np.degrees, "degrees"),
        ("l1", np.square, ""),
    ],
)
def test_other_quantities_are_recognised(metric: str, convert: Any, described: str) -> None:
    sign = -1 if metric == "inner_product" else 1
    given = convert(sign * VALUES[TRUTH])
    errors = compared(TRUTH, given, metric=metric).distances
    assert errors is not None
    assert errors.wrong > 0
    assert (described in errors.looks_like) if described else errors.looks_like == ""


@pytest.mark.parametrize("wrong", [4.5, np.nan, np.inf])
def test_the_largest_error_is_named(wrong: float) -> None:
    given = VALUES[TRUTH].copy()
    given[1, 2] = wrong
    given[2, 0] += 1e-6
    errors = compared(TRUTH, given).distances
    assert errors is not None
    assert (errors.wrong, errors.row, errors.point, errors.exact) == (2, 10, 2, 3.0)
    assert errors.largest == (1.5 if wrong == 4.5 else np.inf)
    assert "row 10, point 2" in str(errors)


def test_roundings_are_those_of_the_less_precise_dtype() -> None:
    off = (VALUES[TRUTH] * np.float32(1 + 3e-7)).astype(np.float32)  # within 4 roundings of float32
    errors = compared(TRUTH, off.astype(np.float64)).distances
    assert errors is not None
    assert (errors.wrong, errors.dtype) == (0, "float32")
    far = compared(TRUTH, VALUES[TRUTH] * (1 + 6e-7)).distances
    assert far is not None
    assert far.wrong == 12


def test_distances_of_missing_entries_are_not_compared() -> None:
    given = np.full((4, 3), 9.0)
    errors = compared(np.full((4, 3), -1), given).distances
    assert errors is not None
    assert (errors.compared, errors.wrong) == (0, 0)
