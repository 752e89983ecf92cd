"""Changes of rows: float64 rows for every kind of input, and refusals that name a row."""

from __future__ import annotations

import numpy as np
import pytest

from tonari.metrics.transforms.row_changes import Mapping, Weighting, Widening, roots_of_rows, shares, unit_rows

ROWS = np.array([[0.25, 0.75], [1.0, 0.0]], np.float32)


def test_rows_are_changed_in_float64() -> None:
    weighting, mapping = Weighting(np.array([4.0, 0.0]), np.sqrt), Mapping(np.array([[2.0], [4.0]]), "transform")
    for found, expected in (
        (weighting(ROWS, "points"), [[0.5], [2.0]]),
        (mapping(ROWS, "points"), [[3.5], [2.0]]),
        (roots_of_rows(ROWS, "points"), [[0.5, np.sqrt(0.75)], [1.0, 0.0]]),
        (shares(ROWS, "points"), [[0.25, 0.75], [1.0, 0.0]]),
        (Widening("minkowski:3", 1.0)(ROWS, "points"), [[0.25, 0.75], [1.0, 0.0]]),
        (unit_rows(np.array([[0.0, 0.0]]), "points"), [[1.0, 0.0, 0.0]]),
    ):
        assert found.dtype == np.float64
        assert found.tolist() == expected


def test_rows_that_a_change_does_not_allow_are_named() -> None:
    for change, rows, words in (
        (Weighting(np.array([1.0]), np.sqrt), ROWS, "weights: has 1 numbers, but points have 2 columns"),
        (Mapping(np.ones((3, 1)), "VI"), ROWS, "VI: is for rows of 3 columns, but points have 2"),
        (roots_of_rows, -ROWS, "points: row 0 has a negative value"),
        (shares, ROWS * 2, "points: row 0 sums to 2"),
        (Widening("minkowski:3", 0.5), ROWS, "points: row 0 has a value whose power overflows"),
        (unit_rows, np.array([[0.0, 0.0], [2.0, 0.0]]), "points: row 1 has the latitude 2"),
    ):
        with pytest.raises(ValueError, match=words):
            change(rows, "points")
