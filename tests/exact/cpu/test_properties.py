"""Properties that hold for any data: agreement with the definition on random problems, and metamorphic relations."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors, assert_valid_neighbors
from tonari.core import _native
from tonari.core.results.neighbors import Neighbors
from tonari.exact import PreparedPoints, search_prepared
from tonari.metrics import METRICS
from tonari.metrics.reference import brute
from tonari.select.merge import merge_neighbors

Array = npt.NDArray[Any]
Search = Callable[..., Neighbors]

modest = settings(
    max_examples=120, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

# A few values each, so that rows of them tie, cancel and span the whole range of the dtype.
float32_values = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=5)
# Squares of smaller values underflow; test_exact_values covers those.
float64_magnitudes = st.one_of(st.just(0.0), st.floats(1e-100, 1e150))
float64_values = st.lists(
    st.tuples(float64_magnitudes, st.sampled_from([1.0, -1.0])).map(lambda pair: pair[0] * pair[1]),
    min_size=1,
    max_size=5,
)
int8_values = st.lists(st.integers(-128, 127), min_size=1, max_size=5)
VALUES = {"float32": float32_values, "float64": float64_values, "int8": int8_values}


@st.composite
def problems(draw: Any) -> tuple[Array, Array, int, str]:
    metric = draw(st.sampled_from(sorted(METRICS)))
    seed = draw(st.integers(0, 2**32 - 1))
    d = draw(st.integers(1, 40))

    def rows(count: int, dtype: str) -> Array:
        values = np.array(draw(VALUES[dtype])).astype(dtype)
        if METRICS[metric].nonnegative:
            values = np.abs(np.maximum(values, -127) if dtype == "int8" else values)
        return values[np.random.default_rng(seed + count).integers(len(values), size=(count, d))]

    queries = rows(draw(st.integers(1, 40)), draw(st.sampled_from(sorted(VALUES))))
    points = rows(draw(st.integers(1, 300)), draw(st.sampled_from(sorted(VALUES))))
    return queries, points, draw(st.integers(1, len(points))), metric


@modest
@given(problem=problems())
def test_drawn_problems(problem: tuple[Array, Array, int, str]) -> None:
    queries, points, k, metric = problem
    truth = brute(queries, points, k, metric)
    assert_same_neighbors(tonari.search(queries, points, k, metric=metric), truth, metric=metric)


@modest
@given(problem=problems(), choice=st.data())
def test_drawn_plans(problem: tuple[Array, Array, int, str], choice: st.DataObject, by_plan: Search) -> None:
    queries, points, k, metric = problem
    stride = choice.draw(st.integers(1, 6))
    choices: dict[str, Any] = {
        "isa": choice.draw(st.sampled_from(_native.supported_isas())),
        "threads": choice.draw(st.integers(1, 3)),
        "query_block": choice.draw(st.integers(1, 50)),
        "point_chunk": 96 * choice.draw(st.integers(1, 4)),
        "capacity": choice.draw(st.sampled_from([1, 60, 4096])),
        "resident": choice.draw(st.booleans()),
    }
    if choice.draw(st.booleans()):
        choices |= {"point_splits": 1, "sample_stride": stride, "sample_rank": choice.draw(st.integers(1, 2 * k))}
    else:
        choices |= {"point_splits": choice.draw(st.integers(1, 3)), "sample_stride": 0, "sample_rank": 0}
    found = by_plan(queries, points, k, metric, **choices)
    assert_same_neighbors(found, brute(queries, points, k, metric), metric=metric)


@modest
@given(
    metric=st.sampled_from(sorted(METRICS)),
    shift=st.sampled_from([0.0, 1.0, -3.0, 1e3, 1e8]),
    power=st.integers(-60, 60),
    seed=st.integers(0, 10),
)
def test_any_centre_and_scale_is_right(metric: str, shift: float, power: int, seed: int) -> None:
    # A bad form only loosens the bounds: it costs time, but never changes an answer.
    points = np.abs(checks.tight_far_clusters(200, 6, seed)) if seed % 2 else np.abs(checks.gaussian(200, 6, seed))
    plan = tonari.plan(200, 20, 6, 7, metric=metric, resident=False, threads=1)
    prepared = PreparedPoints(points, plan)
    moves = metric in ("euclidean", "sqeuclidean", "inner_product")
    step = 2 if METRICS[metric].degree % 1 else 1
    prepared.form = _native.Form(metric, [shift if moves else 0.0] * 6, 2.0 ** (power * step))
    found, _ = search_prepared(points[:20], prepared, plan)
    assert_same_neighbors(found, brute(points[:20], points, 7, metric), metric=metric)


@modest
@given(problem=problems(), cuts=st.lists(st.integers(0, 300), max_size=4))
def test_parts_merge_into_the_whole(problem: tuple[Array, Array, int, str], cuts: list[int]) -> None:
    queries, points, k, metric = problem
    n = len(points)
    edges = sorted({0, n, *(cut for cut in cuts if cut < n)})
    parts = [tonari.search(queries, points[a:b], min(k, b - a), metric=metric) for a, b in itertools.pairwise(edges)]
    # The dtypes of parts follow the inputs, like that of the whole.
    merged = merge_neighbors(parts, edges[:-1], k=k, metric=metric)
    assert_same_neighbors(merged, tonari.search(queries, points, k, metric=metric), metric=metric)


@pytest.fixture(params=["gaussian", "duplicates", "tight_far_clusters", "zero_rows"])
def rows(request: pytest.FixtureRequest) -> Array:
    return np.abs(checks.HOSTILE[request.param](500, 11, 7))


@pytest.mark.parametrize("metric", METRICS)
def test_permuted_points(metric: str, rows: Array) -> None:
    order = np.random.default_rng(0).permutation(len(rows))
    plain = tonari.search(rows[:30], rows, 20, metric=metric)
    moved = tonari.search(rows[:30], rows[order], 20, metric=metric)
    np.testing.assert_array_equal(moved.distances, plain.distances)
    # Among equal values the new row numbers decide the order and, at the k-th value, the members; all others must map
    # back.
    inside = plain.distances != plain.distances[:, -1:]
    back = order[moved.indices]
    for row in range(30):
        here = inside[row]
        ties = np.lexsort((back[row, here], plain.distances[row, here] * (-1 if metric == "inner_product" else 1)))
        np.testing.assert_array_equal(back[row, here][ties], plain.indices[row, here])
    assert inside.any()


@pytest.mark.parametrize("metric", METRICS)
def test_permuted_queries_and_batches(metric: str, rows: Array) -> None:
    whole = tonari.search(rows[:40], rows, 9, metric=metric)
    order = np.random.default_rng(1).permutation(40)
    permuted = tonari.search(rows[:40][order], rows, 9, metric=metric)
    assert_same_neighbors(permuted, Neighbors(*(part[order] for part in whole)), metric=metric)
    index = tonari.Index(rows, metric=metric)
    for size in (1, 7):
        parts = [index.search(rows[at : min(at + size, 40)], 9) for at in range(0, 40, size)]
        assert_same_neighbors(Neighbors(*map(np.vstack, zip(*parts, strict=True))), whole, metric=metric)


@pytest.mark.parametrize("metric", METRICS)
def test_a_shorter_list_is_the_start_of_a_longer_one(metric: str, rows: Array) -> None:
    longest = tonari.search(rows[:10], rows, 300, metric=metric)
    for k in (1, 5, 64, 100, 299):
        start = Neighbors(*(np.ascontiguousarray(part[:, :k]) for part in longest))
        assert_same_neighbors(tonari.search(rows[:10], rows, k, metric=metric), start, metric=metric)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "l1", "linf"])
@pytest.mark.parametrize("shift", [2.0**4, -(2.0**10), 2.0**16])
def test_translation_by_a_power_of_two(metric: str, shift: float) -> None:
    # Whole numbers of up to 24 bits are shifted without rounding, so every difference stays the same.
    points = np.random.default_rng(2).integers(-40, 40, (500, 6)).astype(np.float32)
    plain = tonari.search(points[:30], points, 15, metric=metric)
    moved = tonari.search(points[:30] + np.float32(shift), points + np.float32(shift), 15, metric=metric)
    assert_same_neighbors(moved, plain, metric=metric)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("power", [-30, -1, 1, 30])
def test_scaling_by_a_power_of_two(metric: str, power: int, rows: Array) -> None:
    record = METRICS[metric]
    exponent = {"sqeuclidean": 2, "inner_product": 2}.get(metric, 0 if record.angular else record.degree)
    power = power * 2 if exponent % 1 else power // 3 if exponent > 2 else power  # whole, and within float32
    factor = np.float32(2.0**power)
    plain = tonari.search(rows[:30], rows, 15, metric=metric)
    scaled = tonari.search(rows[:30] * factor, rows * factor, 15, metric=metric)
    expected = Neighbors(plain.distances * np.float32(2.0 ** (power * exponent)), plain.indices)
    assert_same_neighbors(scaled, expected, metric=metric)


@pytest.mark.parametrize("metric", sorted(set(METRICS) - {"correlation"}))  # metrics with a mean over all columns
@pytest.mark.parametrize("extra", [1, 5, 16, 53])
def test_zero_columns_at_the_end(metric: str, extra: int, rows: Array) -> None:
    # A column's lane is its number modulo 16, and adding 0.0 to a lane changes nothing.
    padded = np.hstack([rows, np.zeros((len(rows), extra), rows.dtype)])
    plain = tonari.search(rows[:30], rows, 15, metric=metric)
    assert_same_neighbors(tonari.search(padded[:30], padded, 15, metric=metric), plain, metric=metric)


@pytest.mark.parametrize("metric", METRICS)
def test_the_same_numbers_in_other_dtypes(metric: str) -> None:
    whole = np.random.default_rng(3).integers(0, 100, (400, 13))
    plain = tonari.search(whole[:20].astype(np.float32), whole.astype(np.float32), 30, metric=metric)
    for dtype in (np.uint8, np.int8, np.float16, "bfloat16"):
        found = tonari.search(whole[:20].astype(dtype), whole.astype(dtype), 30, metric=metric)
        assert_same_neighbors(found, plain, metric=metric)


@pytest.mark.parametrize("metric", METRICS)
def test_answers_are_well_formed(metric: str, rows: Array) -> None:
    found = tonari.search(rows[:25], rows, 33, metric=metric)
    assert_valid_neighbors(found, m=25, n=500, k=33, metric=metric)
