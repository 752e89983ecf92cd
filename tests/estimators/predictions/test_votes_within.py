"""Votes in lists of different lengths: winners, and invalid weights."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.estimators import tuning
from tonari.estimators.predictions.votes import means_within, shares_within, weights_within, winners_within


def _lists(m: int, n: int, seed: int = 0) -> RadiusNeighbors:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(7, size=m)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    return RadiusNeighbors(ends, rng.integers(n, size=ends[-1]), rng.random(ends[-1]))


@pytest.mark.parametrize("weights", [None, "positive", "equal", "negative", "some zero"])
@pytest.mark.parametrize("classes", [2, 9, 5_000])
@pytest.mark.parametrize("entries", [1 << 18, 20_000])
def test_the_winner_has_most_votes(
    weights: str | None, classes: int, entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "ENTRIES", entries)
    rng = np.random.default_rng(0)
    labels, found = rng.integers(classes, size=400), _lists(333, 400)
    random = rng.random(len(found.indices))
    own = {"positive": random, "equal": np.full(len(random), 0.1), "negative": random - 0.5}
    own["some zero"] = np.where(random < 0.7, 0.0, 1.0)
    given = None if weights is None else own[weights]
    votes = shares_within(labels, found, given, classes)
    expected = np.where((votes == 0).all(axis=1), -1, votes.argmax(axis=1))
    np.testing.assert_array_equal(winners_within(labels, found, given, classes), expected)
    assert (expected == -1).any()


def test_means_are_those_of_each_list() -> None:
    found, values = _lists(50, 40), np.random.default_rng(1).standard_normal((40, 2))
    weights = np.random.default_rng(2).random(len(found.indices))
    for given in (None, weights):
        made = means_within(values, found, given)
        for row, (begin, end) in enumerate(zip(found.indptr, found.indptr[1:], strict=False)):
            if begin == end:
                assert np.isnan(made[row]).all()
                continue
            own = None if given is None else given[begin:end]
            expected = np.average(values[found.indices[begin:end]], axis=0, weights=own)
            np.testing.assert_allclose(made[row], expected, rtol=1e-12)


def test_weights_are_those_of_each_distance() -> None:
    found = RadiusNeighbors(np.array([0, 2, 2, 3]), np.array([0, 1, 1]), np.array([0.0, 4.0, 2.0], np.float32))
    assert weights_within(found, "uniform") is weights_within(found, None) is None
    assert weights_within(found, "distance").tolist() == [1.0, 0.0, 0.5]  # type: ignore[union-attr]
    seen = []

    def twice(lists: np.ndarray) -> list[np.ndarray]:
        seen.extend(lists)
        return [2 * each for each in lists]

    assert weights_within(found, twice).tolist() == [0.0, 8.0, 4.0]  # type: ignore[union-attr]
    assert [each.tolist() for each in seen] == [[0.0, 4.0], [], [2.0]]
    assert all(each.dtype == np.float64 for each in seen)
    with pytest.raises(ValueError, match="the function gave 2 weights in 2 lists for 3 distances in 3"):
        weights_within(found, lambda _: [np.ones(1), np.ones(1)])
