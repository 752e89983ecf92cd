"""Radius searches by brute force on CUDA: the bits of the reference, for any data, limits and route.

Without a GPU, Triton's interpreter runs the kernels on the CPU, so shapes are tiny.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import DTYPES, HOSTILE, Array, accepted, duplicates, gaussian
from tests.helpers.devices import HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import DEVICE, plan_of, rows_of, tensors
from tests.helpers.radius_checks import assert_same_within
from tests.helpers.radius_on_cuda import check_within, limits_at, on_host
from tonari.core.errors import Unsupported
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within, later_points
from tonari.exact.cuda import tuning
from tonari.metrics import METRICS
from tonari.metrics.reference import brute_within, returned
from tonari.select import tuning as select_tuning

pytestmark = [
    needs_torch,
    pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning"),
]
if HAS_TORCH:
    import torch

    from tests.helpers.launches import launched
    from tonari.exact.cuda.attempts import within as engine
    from tonari.exact.cuda.method import ExactOnCuda
    from tonari.exact.cuda.refine import candidate_parts
    from tonari.exact.cuda.rows import tiles
    from tonari.exact.cuda.rows.part import Place

N, M, D = 140, 2, 11  # two tiles of points, the second one short
HERE = {"devices": (DEVICE,)}
ALL = ("float16", "split", "values")
ROUTES: dict[str, dict[str, Any]] = {
    "streamed": {"route": "streamed", "point_slab": 128, "query_slab": 2, **HERE},
    "host_refine": {"route": "host_refine", "point_slab": 128, **HERE},
    "points": {"shard": "points", "devices": (DEVICE, DEVICE)},
    "queries": {"shard": "queries", "devices": (DEVICE, DEVICE)},
    "batches": {"query_batch": 2, **HERE},
    "contracted": {"form_dim": 4, **HERE},
}


def check(
    queries: Array, points: Array, metric: str = "euclidean", limits: Any = 0.3, **choices: Any
) -> RadiusNeighbors:
    """Compare a search with the reference; `limits` may be the share of the points that is within them."""
    if isinstance(limits, float):
        limits = limits_at(queries, points, metric, limits)
    given = {name: choices.pop(name) for name in ("counted", "self_join", "as_searched") if name in choices}
    asked, rows = given.get("as_searched", (queries, points))
    in_bytes = choices.pop("in_bytes", False)
    overrides = {**HERE, **choices}
    plan = plan_of(asked, rows, 1, metric, self_join=given.get("self_join", False), **overrides)
    plan = dataclasses.replace(plan, bytes_first=in_bytes, bytes_later=in_bytes)
    return check_within(ExactOnCuda(), plan, queries, points, limits, **given)


# ---------------------------------------------------------------- requests


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("counted", [False, True])
def test_every_metric_and_dtype(metric: str, dtype: str, counted: bool) -> None:
    check(rows_of(M, D, dtype, metric, 1), rows_of(N, D, dtype, metric), metric, 0.1, counted=counted)


@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_limits_of_every_kind(metric: str) -> None:
    points = duplicates(40, 5)
    queries = points[:1].repeat(8, axis=0)
    at = limits_at(queries[:1], points, metric, 0.4)[0]
    beside = np.nextafter(at, np.float32(-np.inf)), np.nextafter(at, np.float32(np.inf))
    limits = np.array([-np.inf, np.inf, 0.0, -0.0, -1e-30, at, *beside], np.float32)
    truth = check(queries, points, metric, limits)
    counts = np.diff(truth.indptr)
    assert {counts[0], counts[1]} == {0, 40}
    assert counts[6] != counts[5] or counts[7] != counts[5]


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "linf"])
@pytest.mark.parametrize("share", [0.0, 1.0])
@pytest.mark.parametrize("self_join", [False, True])
def test_one_point_and_all_points(metric: str, share: float, self_join: bool) -> None:
    points = np.abs(duplicates(9, 5))
    check(points if self_join else points[:M], points, metric, share, self_join=self_join)


@pytest.mark.parametrize("n", [1, 7, 127, 128, 129])
def test_few_points(n: int) -> None:
    points = gaussian(n, 3)
    check(points[:1], points, limits=0.5)


@on_gpu
@pytest.mark.parametrize("m", [1, 16, 17, 64, 65, 128, 129, 257])
@pytest.mark.parametrize("d", [1, 17, 96, 128, 130])
def test_every_tile(m: int, d: int) -> None:
    check(gaussian(m, d, 1), gaussian(700, d), limits=0.05)


def test_nothing_is_found() -> None:
    truth = check(gaussian(3, 4), 100 + gaussian(N, 4), limits=np.array([1, -1, 2], np.float32))
    assert len(truth.indices) == 0


@pytest.mark.parametrize("name", ["huge", "offset_1e4", "offset_float64", "subnormal", "tight_far_clusters", "widest"])
@pytest.mark.parametrize("metric", ["cosine", "euclidean", "inner_product", "l1"])
@pytest.mark.parametrize("share", [0.03, 0.9])
def test_hostile_data(name: str, metric: str, share: float) -> None:
    points = accepted((HOSTILE | {"widest": checks.widest})[name](N, 6, 0), metric)
    check(points[5::90], points, metric, share)
    if METRICS[metric].form == "gemm":
        check(points[5::90], points, metric, share, precisions=ALL)


@pytest.mark.parametrize("name", ["all_equal", "zero_rows"])
def test_ties(name: str) -> None:
    points = HOSTILE[name](N, 6, 0)
    check(points[5::90], points, limits=0.5)


def test_values_that_overflow() -> None:
    points = np.array([[1e30], [2e30], [-1e30], [0]], np.float32)
    found = check(points[:2], points, "sqeuclidean", np.array([np.inf, np.finfo(np.float32).max], np.float32))
    assert np.isinf(found.distances[: found.indptr[1]]).any()


@pytest.mark.parametrize(
    ("route", "metric"),
    # Inner products are not contracted.
    [
        (route, metric)
        for route in ROUTES
        for metric in ("euclidean", "cosine" if route == "contracted" else "inner_product")
    ],
)
@pytest.mark.parametrize("counted", [False, True])
def test_every_route(route: str, metric: str, counted: bool) -> None:
    check(gaussian(3, D, 1), gaussian(150, D), metric, 0.1, counted=counted, **ROUTES[route])


@pytest.mark.parametrize("route", ["streamed", "queries"])
def test_a_point_is_not_found_by_itself(route: str) -> None:
    points = duplicates(9, 4)
    small = {"point_slab": 9, "query_slab": 5} if route == "streamed" else {}
    check(points, points, limits=0.2, self_join=True, **ROUTES[route] | small)


def test_tensors_with_strides() -> None:
    queries, points = gaussian(M, 6, 1), gaussian(N, 6)
    rows, asked = tensors(DEVICE, np.repeat(points, 2, axis=0), queries)
    found = check(queries, points, as_searched=(asked, rows[::2]))
    assert len(found.indices)


# ---------------------------------------------------------------- pairs, and bytes


def check_pairs(points: Array, rows: slice, metric: str = "euclidean", limit: float = 1.0, **choices: Any) -> Any:
    """Compare the pairs of some rows with the reference; return the method's plan."""
    limits = np.full(len(points), limit, points.dtype if points.dtype == np.float64 else np.float32)
    truth = later_points(brute_within(points[rows], points, limits[rows], metric), rows.start)
    there = points if choices.pop("host", False) else tensors(DEVICE, points)[0]
    in_bytes = choices.pop("in_bytes", False)
    plan = plan_of(there, there, 1, metric, **HERE | choices)
    plan = dataclasses.replace(plan, bytes_first=in_bytes, bytes_later=in_bytes)
    method = ExactOnCuda()
    request = Within(there[rows], limits[rows], range(rows.start, rows.stop), later=True)
    found = method.find_within(request, method.prepare(there, plan, False), plan, False)
    assert_same_within(on_host(found), truth)
    return plan


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "l1", "cosine"])
@pytest.mark.parametrize("rows", [slice(0, 5), slice(136, 140), slice(127, 131)])
def test_pairs_are_those_with_later_points(metric: str, rows: slice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each tile of rows is compared with the points from the tile of its first row on."""
    monkeypatch.setattr(engine.WithinSearch, "_ALIGNED", 128)
    monkeypatch.setattr(tuning, "WITHIN_FIRST_ROWS", 1)
    screened: list[int] = []
    real = engine.WithinSearch._packed
    monkeypatch.setattr(
        engine.WithinSearch,
        "_packed",
        lambda self, *rest: screened.append((made := real(self, *rest)).n) or made,
    )
    points = np.abs(duplicates(N, 4))
    check_pairs(points, rows, metric, {"inner_product": 0.5, "cosine": 0.1}.get(metric, 1.0), query_batch=2)
    assert set(screened) == ({N} if rows.start == 0 else {N - 128} if rows.start == 136 else {N, N - 128})


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("rows", [slice(126, 131), slice(136, 140)])
def test_pairs_by_every_route(route: str, rows: slice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.WithinSearch, "_ALIGNED", 128)
    choices = ROUTES[route] | ({"form_dim": 2} if route == "contracted" else {})
    check_pairs(duplicates(N, 4), rows, host=route != "batches", **choices)


def test_the_last_row_has_no_pairs() -> None:
    check_pairs(duplicates(3, 2), slice(2, 3))
    check_pairs(duplicates(3, 2), slice(2, 3), "l1")


def byte_rows(n: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 3, (n, 20)).astype(np.float32) * 100


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_bytes_are_screened_and_refined_as_int8(dtype: str, metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, refined = counting_lists(monkeypatch), []
    real = engine.refine_within
    monkeypatch.setattr(
        engine,
        "refine_within",
        lambda rows, points, *rest, **given: (
            refined.append((rows.dtype, points.dtype)) or real(rows, points, *rest, **given)
        ),
    )
    points = byte_rows(N).astype(dtype)
    limit = float(limits_at(points[:1], points, metric, 0.1)[0])
    check_pairs(points, slice(4, 8), metric, limit, in_bytes=True)
    assert seen == [(4, "int8")]
    assert refined == [(torch.int8, torch.int8)]
    limits = limits_at(points, points, metric, 0.05)[:9]
    few = points[:9]
    check(few, few, metric, np.minimum(limits, 300), self_join=True, in_bytes=True)
    assert {precision for _, precision in seen} == {"int8"}
    check(byte_rows(2, 1).astype(dtype), points, metric, 0.1, in_bytes=True)
    assert refined[-1][0] is not torch.int8


@pytest.mark.parametrize("odd", ["points", "queries"])
@pytest.mark.parametrize("value", [0.5, 1e6])
def test_rows_that_a_look_for_bytes_overlooks(odd: str, value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "BYTES_SAMPLE", 4)
    seen = counting_lists(monkeypatch)
    rows = {"points": byte_rows(N), "queries": byte_rows(9, 1)}
    rows[odd][7, 3] = value
    check(rows["queries"], rows["points"], limits=0.2, in_bytes=True)
    assert {precision for _, precision in seen} == ({"int8"} if odd == "queries" else {"float16"})


# ---------------------------------------------------------------- rows that are screened again


def spread(n: int) -> tuple[Array, Array]:
    """Make points on a line, queries in its middle, and limits that contain more and more points, from 1 to all."""
    points = np.zeros((n, 3), np.float32)
    points[:, 0] = np.arange(n) / 8
    return points[n // 2 : n // 2 + 6], points


def counting_lists(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """Record the rows and the precision of each screen."""
    seen: list[tuple[int, str]] = []
    real = engine.WithinSearch._lists

    def lists(self: Any, rows: Any, precision: str, *rest: Any) -> Any:
        made = real(self, rows, precision, *rest)
        seen.append((len(made.counts), precision))
        return made

    monkeypatch.setattr(engine.WithinSearch, "_lists", lists)
    return seen


def test_lists_that_are_too_short_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "WITHIN_FIRST_ROWS", 2)
    monkeypatch.setattr(tuning, "UNEVEN", 0)
    seen = counting_lists(monkeypatch)
    queries, points = spread(600)
    limits = np.array([0, 1, 1, 40, 1, 2], np.float32)
    check(queries, points, limits=limits, precisions=("float16", "values"))
    assert seen == [(2, "float16"), (4, "float16"), (1, "float16")]


@pytest.mark.parametrize("apart", [1e-2, 0])
def test_a_higher_precision_is_taken_where_it_pays(apart: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "WITHIN_FEWEST_HARD", 2)
    seen = counting_lists(monkeypatch)
    points = np.zeros((300, 4), np.float32)
    points[:150, 0] = 8
    points[:150, 1] = apart * np.arange(150)
    points[150:] = -8 + gaussian(150, 4)
    queries = points[[75, 20, 200]]
    check(queries, points, limits=np.array([0.015, 0.015, 1e-3], np.float32), query_batch=128, precisions=ALL)
    assert seen[:2] == [(3, "float16"), (2, "split")]


def test_a_higher_precision_is_given_up_where_it_does_not_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "WITHIN_FEWEST_HARD", 2)
    seen = counting_lists(monkeypatch)
    points = duplicates(N, 3)
    check(points[:3], points, limits=1.0, query_batch=1, precisions=ALL)
    assert seen == [(1, "float16"), (1, "split"), (1, "float16"), (1, "float16")]


def test_short_lists_make_long_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches stay within the memory that the plan reserves for minima: 4 bytes for each group of 32 points of 10,000
    queries.
    """
    monkeypatch.setattr(engine, "slots_of", lambda m, n, length, capacity, device: min(31_250, capacity))
    points, queries = torch.zeros((1024, 3)), torch.zeros((5, 3))
    points, queries = points.to(DEVICE), queries.to(DEVICE)
    plan = plan_of(queries, points, 1, **HERE)
    made = ExactOnCuda().prepare(points, plan, False)
    search = engine.WithinSearch(queries, made, plan, torch.ones(5, device=DEVICE), listed=True, place=Place())
    search.plan, search.list_bytes = dataclasses.replace(plan, query_batch=10_000), 10_000 * 4 * 31_250
    search.all_listed = 31_250
    at_once = []
    for capacity in (31_250, 20_000, 2_000, 100, 1):
        search.capacity = capacity
        at_once.append(search.rows_at_once())
    assert at_once[0] == at_once[1] == 5_000
    assert 10_000 < at_once[2] < at_once[3] == at_once[4] == tuning.WITHIN_ROWS
    search.list_bytes = 1
    assert search.rows_at_once() == 1


def test_parts_of_lists_and_of_minima() -> None:
    """Entries after the end of a segment are not read; consecutive parts of a row are in separate blocks."""
    entries = np.array([[16 * 5 + 9, 16 * 2 + 2, 16 * 1 + 15, 16 * 3 + 15], [16 * 7 + 15] * 4], np.int32)
    counts = np.array([[2, 1], [0, 0]], np.int32)
    lists = tiles.Lists(*tensors(DEVICE, np.zeros((2, 4), np.float32), entries, counts))
    blocks = candidate_parts.blocks_of_lists(lists, 4)
    # Part b of group g of 32 points is number 16 (g // 4) + 4 b + g % 4 of groups of eight.
    assert blocks.parts.tolist() == [[17, 29, 6, 1], [5, 9, 13, -1]]
    assert [blocks.begins.tolist(), blocks.rows.tolist()] == [[0, 2, 2], [0, 0]]
    minima, thresholds = tensors(
        DEVICE, np.array([[1, 5, 2], [9, 9, 9], [0, 3, 3]], np.float32), np.array([2, 2, 3], np.float32)
    )
    blocks = candidate_parts.blocks_of_minima(minima, thresholds, 2)
    assert blocks.parts.tolist() == [[0, 2], [0, 1], [2, -1]]
    assert [blocks.begins.tolist(), blocks.rows.tolist()] == [[0, 1, 1, 3], [0, 2, 2]]


def test_candidates_in_several_slices_and_long_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "WITHIN_SCRATCH_BYTES", 64 * 8)
    monkeypatch.setattr(select_tuning, "LIST_LENGTHS", (16,))
    check(gaussian(M, 4, 1), gaussian(N, 4), limits=0.8)


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "chi2", "l1"])
@pytest.mark.parametrize("most", [0, 1 << 30])
@pytest.mark.parametrize("where", ["host", "device"])
def test_counts_of_a_few_rows_by_all_values(
    metric: str, most: int, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "OF_ATTEMPT", most)
    queries, points = rows_of(3, D, "float32", metric, 1), rows_of(N, D, "float32", metric)
    limits = limits_at(queries, points, metric, 0.3)
    asked, rows = (queries, points) if where == "host" else tensors(DEVICE, queries, points)
    with launched() as kernels:
        counts = ExactOnCuda().count_once(Within(asked, limits), rows, plan_of(asked, rows, 1, metric, **HERE))
    assert counts.tolist() == np.diff(brute_within(queries, points, limits, metric).indptr).tolist()
    assert type(counts) is type(asked)
    if most:
        assert [kernel[0].__name__ for kernel in kernels] == ["widen_kernel", "within_kernel"]
    else:
        assert len(kernels) > 4


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("where", ["points", "queries"])
def test_rows_that_no_search_takes(where: str) -> None:
    rows = {"points": gaussian(N, 4), "queries": gaussian(M, 4)}
    rows[where][1, 2] = np.nan
    points, queries = tensors(DEVICE, rows["points"], rows["queries"])
    method, plan = ExactOnCuda(), plan_of(queries, points, 1, query_batch=1, **HERE)
    prepared = method.prepare(points, plan, False)
    with pytest.raises(ValueError, match=rf"{where}.*row 1"):
        method.find_within(Within(queries, np.ones(M, np.float32)), prepared, plan, False)


def test_more_points_than_lists_have_places_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_POINTS", 139)
    with pytest.raises(Unsupported, match=r"at most 139 points at once.*got 140: pass route='streamed'"):
        check(gaussian(1, 3, 1), gaussian(N, 3))
    check(gaussian(1, 3, 1), gaussian(N, 3), "linf")


# ---------------------------------------------------------------- on a GPU


@on_gpu
@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "cosine", "l1", "canberra"])
@pytest.mark.parametrize("d", [3, 96, 128, 200])
def test_twenty_thousand_points(metric: str, d: int) -> None:
    points = rows_of(20_000, d, "float32", metric)
    check(points[:40], points, metric, 0.01)
    check(points[:40], points, metric, 0.3)


@on_gpu
@pytest.mark.parametrize("d", [96, 128])
def test_a_graph_of_twenty_thousand_points(d: int) -> None:
    """Clusters of very different density: lists are too short for many rows, and some lists are long."""
    rng = np.random.default_rng(0)
    widths = 10.0 ** rng.uniform(-3, 0, (40, 1))
    points = (rng.standard_normal((40, d)) * 3)[np.arange(20_000) % 40]
    points = (points + widths[np.arange(20_000) % 40] * rng.standard_normal((20_000, d))).astype(np.float32)
    rows = torch.from_numpy(points).to(DEVICE)
    method, plan = ExactOnCuda(), plan_of(rows, rows, 1, self_join=True, **HERE)
    limits = np.full(20_000, 2.0, np.float32)
    prepared, request = method.prepare(rows, plan, False), Within(rows, limits, range(20_000))
    found = method.find_within(request, prepared, plan, False)
    counts = method.count_within(request, prepared, plan, False)
    assert torch.equal(found.indptr.diff(), counts)
    some = np.arange(0, 20_000, 67)
    truth = returned_within(points, some, limits)
    indptr, indices, distances = (part.cpu().numpy() for part in found)
    for row, (ids, values) in zip(some, truth, strict=True):
        here = slice(indptr[row], indptr[row + 1])
        assert indices[here].tolist() == ids.tolist()
        assert distances[here].tobytes() == values.tobytes()


def returned_within(points: Array, rows: Array, limits: Array) -> list[tuple[Array, Array]]:
    """Return the points within the limits of some points, by the reference."""
    from tonari.metrics.reference import pairwise

    found = []
    for row in rows:
        values = returned(pairwise(points[row : row + 1], points, "euclidean")[0], np.float32)
        inside = values <= limits[row]
        inside[row] = False
        ids = np.flatnonzero(inside)
        order = np.lexsort((ids, values[ids]))
        found.append((ids[order], values[ids][order]))
    return found
