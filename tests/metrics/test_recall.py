"""The recall of found neighbours: ties, tolerance, missing entries, and the interval of a sample."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.helpers import checks
from tonari.core.results.neighbors import Neighbors
from tonari.metrics.recall import SLACK_UNITS, _interval, neighbors_recall
from tonari.metrics.reference import brute


@pytest.mark.parametrize("metric", ["sqeuclidean", "inner_product"])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_the_slack_is_relative(metric: str, scale: float) -> None:
    sign = -1 if metric == "inner_product" else 1
    truth = Neighbors(np.array([[scale]]), np.array([[0]]))
    slack = SLACK_UNITS * np.finfo(np.float64).eps
    for share, counts in ((0.75 * slack, 1.0), (2 * slack, 0.0)):
        found = Neighbors(np.array([[scale * (1 + sign * share)]]), np.array([[1]]))
        assert neighbors_recall(found, truth, metric=metric).by_distance == counts


@pytest.mark.parametrize(
    ("dtypes", "rounding"), [("ff", 2.0**-23), ("fd", 2.0**-23), ("df", 2.0**-23), ("dd", 2.0**-52)]
)
def test_the_slack_is_a_few_roundings_of_the_less_precise_output(dtypes: str, rounding: float) -> None:
    truth = Neighbors(np.array([[1.0]], dtypes[0]), np.array([[0]]))
    for units, counts in ((SLACK_UNITS, 1.0), (SLACK_UNITS + 1, 0.0)):
        found = Neighbors(np.array([[1.0 + units * rounding]], dtypes[1]), np.array([[1]]))
        assert neighbors_recall(found, truth).by_distance == counts


def test_whole_numbers_have_no_slack() -> None:
    truth = Neighbors(np.array([[10**9]], np.int32), np.array([[0]]))
    found = Neighbors(np.array([[10**9 + 1]], np.int32), np.array([[1]]))
    assert neighbors_recall(found, truth).by_distance == 0.0


@pytest.mark.parametrize(("dtype", "offset"), [("float64", 1e3), ("float64", 1e4), ("float32", 100.0)])
def test_a_common_offset_of_similarities_hides_no_wrong_neighbour(dtype: str, offset: float) -> None:
    """Inner products near the square of the offset: ranks 11 to 20 do not count as ranks 1 to 10."""
    points = np.random.default_rng(0).standard_normal((2000, 16)).astype(dtype)
    points[:, 0] = offset
    every = brute(points[:100], points, 20, "inner_product")
    truth, wrong = (Neighbors(*(part[:, ranks] for part in every)) for ranks in (slice(10), slice(10, 20)))
    assert neighbors_recall(wrong, truth, metric="inner_product").by_distance < 0.02
    assert neighbors_recall(truth, truth, metric="inner_product").by_distance == 1.0


def test_slack_of_negative_similarities() -> None:
    truth = Neighbors(np.array([[-1.0]]), np.array([[0]]))
    slack = SLACK_UNITS * np.finfo(np.float64).eps
    for value, counts in ((-1.0 - slack / 2, 1.0), (-1.0 - 2 * slack, 0.0), (-0.5, 1.0)):
        found = Neighbors(np.array([[value]]), np.array([[1]]))
        assert neighbors_recall(found, truth, metric="inner_product").by_distance == counts


def test_a_distance_of_zero_has_no_slack() -> None:
    truth = Neighbors(np.array([[0.0]]), np.array([[0]]))
    assert neighbors_recall(Neighbors(np.array([[1e-30]]), np.array([[1]])), truth).by_distance == 0.0


def test_missing_entries_never_match() -> None:
    nothing = Neighbors(np.array([[1.0, np.inf]]), np.array([[0, -1]]))
    result = neighbors_recall(nothing, nothing)
    assert (result.by_index, result.by_distance) == (0.5, 0.5)
    # A missing entry in the truth of one row does not refer to the last point of the row before.
    truth = Neighbors(np.array([[1.0], [np.inf]]), np.array([[3], [-1]]))
    found = Neighbors(np.array([[2.0], [2.0]]), np.array([[9], [9]]))
    assert neighbors_recall(found, truth).by_index == 0.0


def test_search_results_are_measured_against_a_wider_truth() -> None:
    points = checks.gaussian(60, 5)
    truth = brute(points[:9], points, 10)
    found = Neighbors(truth.distances[:, :4].copy(), truth.indices[:, :4].copy())
    assert neighbors_recall(found, truth).by_index == 1.0
    found.indices[2, 3], found.distances[2, 3] = truth.indices[2, 4], truth.distances[2, 4]
    result = neighbors_recall(found, truth)
    assert result.by_index == result.by_distance == 1 - 1 / 36
    assert result.low < result.by_distance < result.high <= 1
    assert (result.rows, result.k) == (9, 4)


POPULATION = 20000
_RNG = np.random.default_rng(1)
KINDS = {
    "independent": _RNG.binomial(15, 0.95, POPULATION) / 15,
    "whole rows lost": (_RNG.random(POPULATION) > 0.05) * 1.0,
    "both": np.where(_RNG.random(POPULATION) < 0.01, 0.0, _RNG.binomial(15, 0.98, POPULATION) / 15),
    "rare": np.where(_RNG.random(POPULATION) < 0.002, 0.0, _RNG.binomial(15, 0.995, POPULATION) / 15),
    "poor": _RNG.binomial(15, _RNG.beta(1, 4, POPULATION)) / 15,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [30, 300, 10000])
def test_the_interval_covers_as_often_as_it_says(kind: str, rows: int) -> None:
    recalls, draws = KINDS[kind], 400
    rng = np.random.default_rng(0)
    true = recalls.mean()
    intervals = [_interval(rng.permutation(recalls)[:rows], POPULATION) for _ in range(draws)]
    covered = np.mean([low <= true <= high for low, high in intervals])
    # 400 draws at 0.95 have a standard error of 0.011.
    assert covered > 0.95 - 0.033
    # The coverage does not come from width: from 300 rows on, the interval is narrower than the normal one plus 2.5
    # rows.
    ideal = 2 * 1.96 * recalls.std() / np.sqrt(rows) * np.sqrt(1 - rows / POPULATION)
    if rows >= 300:
        assert np.mean(np.diff(intervals)) < ideal + 2.5 / rows


def test_the_interval_of_a_sample_without_a_fault() -> None:
    for rows in (1, 10, 1000):
        low, high = _interval(np.ones(rows), None)
        assert high == 1.0
        # Wilson's bound for that many trials, all good: 1 - z^2 / (rows + z^2); the rule of three says 1 - 3 / rows.
        assert 1 - low == pytest.approx(3.8415 / (rows + 3.8415), rel=1e-4)
        assert _interval(np.zeros(rows), None) == pytest.approx((0.0, 1 - low), abs=1e-12)
    assert _interval(np.ones(50), 50) == (1.0, 1.0)
    assert _interval(np.ones(50), 51)[0] > _interval(np.ones(50), 5000)[0] > _interval(np.ones(50), None)[0]


def test_a_sample_with_a_fault_claims_no_more_than_one_without() -> None:
    def lows(size: float) -> list[float]:
        return [_interval(np.repeat([1 - size, 1.0], [faults, 200 - faults]), None)[0] for faults in range(20)]

    assert all(later < earlier for earlier, later in itertools.pairwise(lows(1.0)))
    assert all(later < earlier for earlier, later in itertools.pairwise(lows(1 / 3)))
    # Small observed errors give a little information, but no more than a part of one row.
    small = lows(1 / 15)
    assert max(small) < small[0] + 0.4 / 200


def test_a_sample_of_all_rows_leaves_no_doubt() -> None:
    truth = Neighbors(np.tile(np.arange(1.0, 5.0), (40, 1)), np.tile(np.arange(4), (40, 1)))
    found = Neighbors(truth.distances + (np.arange(40) < 10)[:, None], truth.indices + (np.arange(40) < 10)[:, None])
    unknown, many, all_rows = (neighbors_recall(found, truth, population=count) for count in (None, 400, 40))
    assert unknown.low < many.low < many.by_distance < many.high < unknown.high
    assert all_rows.low == all_rows.high == all_rows.by_distance == unknown.by_distance
    with pytest.raises(ValueError, match="population=39: expected at least the number of rows, 40"):
        neighbors_recall(found, truth, population=39)
