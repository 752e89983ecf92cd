"""Metrics that are other metrics of changed rows: accepted rows, changed rows, and radii of final values."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.devices import needs_torch
from tonari.core.errors import Unsupported
from tonari.metrics import get_metric, tuning
from tonari.metrics.definitions import great_circle
from tonari.metrics.problem import make_problem
from tonari.metrics.transforms.change import Change, change_of, first_outside

MINKOWSKI = (0.5, 1.5, 3, 4)
EARTH = np.random.default_rng(0).uniform(-1.5, 1.5, (9, 2))


def change(metric: str, weights: Any = None) -> Change:
    found = change_of(metric, weights)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("metric", "factors"),
    [
        ("euclidean", np.sqrt([2.0, 1e-300, 1e300])),
        ("sqeuclidean", np.sqrt([2.0, 1e-300, 1e300])),
        ("Manhattan", np.array([2.0, 1e-300, 1e300])),
        ("linf", np.ones(3)),
    ],
)
def test_columns_are_scaled_in_float64_and_those_of_no_weight_dropped(metric: str, factors: Any) -> None:
    rows = np.arange(1, 9, dtype=np.float32).reshape(2, 4)
    made = change(metric, [2, 1e-300, 0, 1e300]).rows(rows, "points")
    assert made.dtype == np.float64
    assert made.flags.c_contiguous
    assert made.tobytes() == (rows[:, [0, 1, 3]].astype(np.float64) * factors).tobytes()


def test_weights_of_one_are_none() -> None:
    assert change_of("l1", np.ones(4, np.int8)) is None
    assert change_of("cosine") is None


@pytest.mark.parametrize("metric", ["cosine", "chi2", "haversine", "inner_product"])
def test_weights_of_a_metric_that_has_none(metric: str) -> None:
    with pytest.raises(Unsupported, match=f"weights: metric='{metric}' has none, only euclidean"):
        change_of(metric, [1.0, 2.0])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((2, 3)), r"points: has 3 columns, .* pass an array of shape \(n, 2\)"),
        (np.array([[0.0, 0.0], [51.5, -0.1]]), "points: row 1 has the latitude 51.5, .* by numpy.radians"),
        (np.array([[np.nextafter(np.pi / 2, 2), 0.0]]), "row 0 has the latitude"),
        (np.array([[0.0, 1e6]]), r"row 0 has the longitude 1e\+06"),
        (np.array([[0.0, np.nan]]), "row 0 has a value that is not finite"),
    ],
)
def test_rows_that_are_no_positions(rows: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        change("haversine").rows(rows, "points")


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_the_poles_are_positions_in_every_dtype(dtype: str) -> None:
    made = change("haversine").rows(np.array([[np.pi / 2, 3.0], [-np.pi / 2, 1.0]], dtype), "points")
    np.testing.assert_allclose(made, [[0, 0, 1], [0, 0, -1]], atol=1e-3)


def test_unit_vectors_are_those_of_extended_precision() -> None:
    latitude, longitude = EARTH.astype(np.longdouble).T
    expected = np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)
    made = change("haversine").rows(EARTH, "points")
    assert np.abs(made - np.array(expected).T).max() < 2.0**-52


def test_blocks_of_any_size_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    made, values = change("haversine"), np.linspace(0, 2, 21).reshape(7, 3)
    rows, angles = made.rows(EARTH, "points"), made.values(values)
    assert angles.tobytes() == great_circle(values).tobytes()
    monkeypatch.setattr(tuning, "CHANGED_ELEMENTS", 4)
    assert made.rows(EARTH, "points").tobytes() == rows.tobytes()
    assert made.values(values).tobytes() == angles.tobytes()


def test_great_circles_of_missing_and_antipodal_neighbours() -> None:
    assert great_circle(np.array([0.0, 2.0, 2.0000000000000004, np.inf])).tolist() == [0.0, np.pi, np.pi, np.inf]


@pytest.mark.parametrize("limit", [0.0, 1e-300, 0.3, 1.0, 3.0, np.pi, np.nextafter(np.pi, 0), 4.0, -5e-324])
def test_the_first_number_outside(limit: float) -> None:
    (first,) = first_outside(great_circle, np.array([limit]))
    assert great_circle(np.array([first]))[0] > limit
    if first > 0:
        assert great_circle(np.array([np.nextafter(first, 0)]))[0] <= limit


def test_all_is_within_an_infinite_radius() -> None:
    assert first_outside(great_circle, np.array([np.inf])) == [np.inf]


@pytest.mark.parametrize("p", MINKOWSKI)
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "uint8", "bfloat16"])
def test_rows_of_minkowski_are_those_given_in_float64(p: float, dtype: str) -> None:
    given = (EARTH * 50 + 100).astype(dtype)
    made = change(f"minkowski:{p:g}").rows(given, "points")
    assert made.dtype == np.float64
    assert made.tobytes() == given.astype(np.float64).tobytes()


@pytest.mark.parametrize(("p", "largest"), [(3, 1e96), (4, 1e72), (0.5, 1e150), (1.5, 1e150)])
def test_values_whose_powers_would_overflow(p: float, largest: float) -> None:
    made = change(f"minkowski:{p:g}")
    rows = np.array([[1.0, -largest], [largest, 0.0]])
    assert made.rows(rows, "points").tobytes() == rows.tobytes()
    value = get_metric(made.base).value
    assert value is not None
    many = np.full((10_000, 1), largest)
    assert np.isfinite(made.values(value(many[:, None], -many[:, None]))).all()
    rows[1, 0] = -np.nextafter(largest, np.inf)
    with pytest.raises(
        ValueError, match=rf"points: row 1 has a value whose \w+ overflows float64 .*1e\+{np.log10(largest):.0f}$"
    ):
        made.rows(rows, "points")


@pytest.mark.parametrize("p", MINKOWSKI)
@pytest.mark.parametrize("limit", [0.0, 1e-100, 0.3, 1.0, 7.7, 1e70, -5e-324])
def test_the_first_sum_outside(p: float, limit: float) -> None:
    finish = change(f"minkowski:{p:g}").finish
    assert finish is not None
    (first,) = first_outside(finish, np.array([limit]))
    assert finish(np.array([first]))[0] > limit
    if first > 0:
        assert finish(np.array([np.nextafter(first, 0)]))[0] <= limit
    assert first_outside(finish, np.array([np.inf])) == [np.inf]


@pytest.mark.parametrize("p", MINKOWSKI)
def test_roots_ascend_and_undo_powers(p: float) -> None:
    finish = change(f"minkowski:{p:g}").finish
    assert finish is not None
    rng = np.random.default_rng(0)
    bits = rng.integers(0, int(np.array(np.inf).view(np.int64)), 100_000)
    assert (finish(bits.view(np.float64)) <= finish((bits + 1).view(np.float64))).all()
    lengths = np.exp(rng.uniform(-150, 150, 1000)).astype(np.longdouble)
    np.testing.assert_allclose(finish((lengths**p).astype(np.float64)), lengths.astype(np.float64), rtol=5e-16)


@needs_torch
@pytest.mark.parametrize(
    ("metric", "weights"),
    [
        ("haversine", None),
        ("minkowski:3", None),
        ("minkowski:0.5", None),
        ("l1", [0.0, 0.3]),
        ("euclidean", [3.0, 1e-9]),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_tensors_change_as_arrays_do(metric: str, weights: Any, dtype: str) -> None:
    import torch

    rows, made = EARTH.astype(dtype), change(metric, weights)
    values = np.array([0.0, 0.5, 2.0, np.inf])
    assert made.prepare(torch.from_numpy(rows), "points").numpy().tobytes() == made.rows(rows, "points").tobytes()
    assert made.values(torch.from_numpy(values)).numpy().tobytes() == made.values(values).tobytes()


@pytest.mark.parametrize("p", MINKOWSKI)
def test_plans_of_minkowski_name_the_sum_of_powers(p: float) -> None:
    with pytest.raises(Unsupported, match=f"pass the rows as float64, with metric='power:{p:g}'"):
        make_problem(10, 10, 2, 3, dtype="float32", metric=f"minkowski:{p:g}")


def test_plans_and_other_verbs_name_the_way_out() -> None:
    with pytest.raises(Unsupported, match="pass the unit vectors as float64 rows, with metric='euclidean'"):
        make_problem(10, 10, 2, 3, dtype="float32", metric="haversine")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8"])
def test_narrow_angles_are_told(dtype: str) -> None:
    rows = np.array([[0.0, 1.0], [1.0, 3.0]]).astype(dtype)
    for ask in (
        lambda: tonari.search(rows, rows, 1, metric="haversine"),
        lambda: tonari.Index(rows, metric="haversine"),
    ):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            ask()
        assert bool(told) == (dtype in ("float16", "float32"))
        assert all(each.filename == __file__ and "pass float64 angles" in str(each.message) for each in told)
