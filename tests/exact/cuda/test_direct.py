"""Searches by exact values of all points: the reference's bits, and what they refuse, plan and launch.

Without a CUDA device the kernels run in Triton's interpreter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import DTYPES, HOSTILE, Array, all_equal, assert_same_neighbors, duplicates
from tests.helpers.devices import HAS_TORCH, needs_torch, on_device, on_gpu
from tests.helpers.gpu_checks import DEVICE, check, numpy_of, plan_of, rows_of, tensor_of
from tests.helpers.plans import exact_cuda, problem
from tonari.core.errors import Unsupported
from tonari.core.neighbors import Neighbors
from tonari.exact.cuda import direct
from tonari.exact.cuda.direct import CHUNK, Cells, launch_search, parts_of, run_length, scratch_bytes
from tonari.exact.cuda.memory import SMALL_CHANGE
from tonari.exact.cuda.plan import LARGEST_DIRECT_K, CudaPlan
from tonari.metrics import METRICS
from tonari.metrics.reference import brute

# Where NumPy plays the device it warns of what a device computes without a word.
pytestmark = [
    needs_torch,
    pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning"),
]
if HAS_TORCH:
    import torch

    from tests.helpers.launches import launched
    from tonari.cuda import ahead
    from tonari.cuda.rehearsal import Card, rehearsing
    from tonari.exact.cuda import dispatch
    from tonari.exact.cuda.rehearse import rehearse_index, rehearse_search

GB = 10**9
QUERY_REFUSED, POINTS_REFUSED = 1, 2


def searched(
    queries: Any, points: Any, k: int, metric: str = "euclidean", *, checked: bool = False
) -> tuple[Neighbors, list[int]]:
    """What the kernels write of tensors, beyond whose end they leave memory alone, and the marks of the queries."""
    m, double = len(queries), torch.float64 in (queries.dtype, points.dtype)
    dtype = torch.float64 if double else torch.float32
    distances = torch.full((m + 1, k), torch.nan, dtype=dtype, device=points.device)
    indices = torch.full((m + 1, k), -7, dtype=torch.int32, device=points.device)
    cells = Cells(m, points.device)
    cells.aim(queries, distances.data_ptr(), indices.data_ptr())
    launch_search(cells, m, queries.dtype, points, k, metric, checked=checked)
    if points.is_cuda:
        torch.cuda.synchronize()
    assert bool(distances[m].isnan().all())
    assert bool((indices[m] == -7).all())
    return Neighbors(distances[:m].cpu().numpy(), indices[:m].cpu().numpy()), cells.marks()


def compare(
    device: str, queries: Any, points: Any, k: int, metric: str = "euclidean", *, checked: bool = False
) -> None:
    """Compare the kernels with the reference, bit by bit; arrays, or tensors whose strides matter."""
    tensors = (part if not isinstance(part, np.ndarray) else tensor_of(part).to(device) for part in (queries, points))
    found, marks = searched(*tensors, k, metric, checked=checked)
    assert marks == [0] * len(queries)
    assert_same_neighbors(found, brute(numpy_of(queries), numpy_of(points), k, metric), metric=metric)


@pytest.fixture
def few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four programs, so that each takes several tiles of a few hundred points."""
    monkeypatch.setattr(direct, "PROGRAMS", 4)


# ---------------------------------------------------------------- bits


@on_device
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_and_dtype(device: str, metric: str, dtype: str) -> None:
    """Shapes, and the dtype of the queries, take turns."""
    at = list(METRICS).index(metric) + 3 * DTYPES.index(dtype)
    d, k = (17, 100, 3, 35, 16, 15, 1, 80)[at % 8], (1, 10, 33)[at % 3]
    query_dtype = (dtype, "float32", "uint8", "float64")[at % 4]
    queries, points = rows_of(2, d, query_dtype, metric, 1), rows_of(70, d, dtype, metric, 2)
    points[5::11] = 0
    points[2::7] = points[2::7, :1]
    compare(device, queries, points, k, metric, checked=at % 2 == 1)


@on_device
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation", "l1", "inner_product"])
@pytest.mark.parametrize("d", [1, 3, 16, 17, 63, 64, 100, 128, 960])
def test_ends_of_rows(device: str, d: int, metric: str) -> None:
    """No whole step, several at once, and every rest; in float64, where the order of additions shows."""
    rows = np.random.default_rng(d).normal(size=(24, d))
    compare(device, rows[:4], rows[4:], 12, metric)


@on_device
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 7, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5])
def test_any_number_of_points_and_neighbours(device: str, n: int, dtype: str) -> None:
    """The last tile is a short one, and there may be fewer points than a program keeps."""
    points = rows_of(n, 5, dtype, seed=n)
    for m, k in ((1, 1), (3, min(n, 10)), (1, min(n, LARGEST_DIRECT_K))):
        compare(device, rows_of(m, 5, dtype, seed=m), points, k)


@on_device
@pytest.mark.parametrize("k", [1, 16, 17, 32, 64])
@pytest.mark.parametrize("double", [False, True])
def test_several_tiles_of_several_parts(device: str, double: bool, k: int, few_programs: None) -> None:
    """The nearest are in any parts; in the first or the last alone, of but one point; and one in each."""
    n, dtype = 6 * CHUNK + 1, "float64" if double else "float32"
    assert parts_of(n, 1) == (4, 2)
    line = np.arange(n, dtype=dtype)[:, None]
    shuffled = line[np.random.default_rng(0).permutation(n)]
    for points in (line, line[::-1].copy(), shuffled):
        compare(device, np.array([[-1.0], [n / 2]], dtype), points, k)
    ends = line.copy()
    ends[:: 2 * CHUNK] = -line[:: 2 * CHUNK] / n  # the first point of each part
    compare(device, np.array([[-1.0]], dtype), ends, k)


@on_device
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_ties_go_to_the_smaller_index(device: str, metric: str, dtype: str, few_programs: None) -> None:
    """Across tiles and parts, of one value, of two, and of values that round to one float32."""
    n = 5 * CHUNK + 9
    same = all_equal(n, 3).astype(dtype)
    compare(device, same[:1], same, 20, metric)
    two = same.copy()
    two[1::2] += 1
    compare(device, two[:2], two, 64, metric)
    compare(device, duplicates(1, 2, 1).astype(dtype), duplicates(n, 2, 2).astype(dtype), 40, metric)
    close = same.astype(np.float32)
    close += np.random.default_rng(1).integers(0, 3, close.shape) * np.float32(1e-6)
    compare(device, np.full((1, 3), 4e3, dtype), close.astype(dtype), 30, metric)


@on_device
@pytest.mark.parametrize("maker", HOSTILE)
def test_values_made_to_hurt(device: str, maker: str) -> None:
    """Huge offsets, subnormal values, those that overflow float32, ties."""
    rows = HOSTILE[maker](150, 18, 3)
    for metric in ("sqeuclidean", "inner_product", "cosine", "linf"):
        compare(device, rows[77:79], rows, 15, metric)


@on_device
def test_float32_values_beyond_its_range(device: str) -> None:
    """Some neighbours are infinitely far and yet no missing ones; others round to zero from below."""
    points = np.array([[1e-30], [-1e-30], [3e38], [-3e38], [2.0], [-3e38]], np.float32)
    for metric in ("sqeuclidean", "inner_product"):
        compare(device, points[[2, 1]], points, 6, metric, checked=True)


@on_device
def test_rows_of_one_value_have_no_direction(device: str) -> None:
    points = rows_of(60, 19, "float64")
    points[3] += 1e8
    points[::4] = 0.1
    points[1::4] = 0.7
    for queries in (points[:2], points[2:4]):
        compare(device, queries, points, 60, "correlation")


@on_device
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("stride", "begin", "d"), [(37, 0, 17), (40, 1, 16), (40, 4, 20), (36, 2, 34)])
def test_rows_at_any_distance(device: str, stride: int, begin: int, d: int, dtype: str) -> None:
    """Rows that no wide load is aligned with, or only some, or all; others lie between them."""
    wide = tensor_of(rows_of(2 * 70, stride, dtype)).to(device)
    points, queries = wide[::2, begin : begin + d], wide[1:40:13, begin : begin + d]
    compare(device, queries, points, 5)
    compare(device, queries, points, 5, "cosine")


# ---------------------------------------------------------------- values that are refused


@on_device
@pytest.mark.parametrize("checked", [False, True])
def test_values_to_refuse_are_marked(device: str, checked: bool, few_programs: None) -> None:
    """In a query, in any column, and in a point, of any part; other queries are right all the same."""
    points, queries = rows_of(5 * CHUNK, 20, "float64"), rows_of(3, 20, "float64", seed=1)
    truth = brute(queries, points, 4)
    for bad, column in ((np.nan, 0), (np.inf, 15), (-np.inf, 16), (1e151, 19), (-1e151, 7)):
        spoiled = queries.copy()
        spoiled[1, column] = bad
        found, marks = searched(tensor_of(spoiled).to(device), tensor_of(points).to(device), 4, checked=checked)
        assert marks == [0, QUERY_REFUSED, 0]
        assert found.indices[::2].tolist() == truth.indices[::2].tolist()
        assert ((found.indices >= -1) & (found.indices < len(points))).all()
    for row, bad, metric in ((0, np.nan, "linf"), (3 * CHUNK, 1e151, "inner_product"), (5 * CHUNK - 1, np.nan, "linf")):
        spoiled = points.copy()
        spoiled[row, 17] = bad
        _, marks = searched(tensor_of(queries).to(device), tensor_of(spoiled).to(device), 4, metric, checked=checked)
        assert marks == [POINTS_REFUSED * checked] * 3


@on_device
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_negative_values_are_marked_where_the_metric_refuses_them(device: str, dtype: str) -> None:
    rows = np.ones((9, 3), dtype)
    rows[5, 2] = -1
    at = tensor_of(rows).to(device)
    assert searched(at[4:6], at[:5], 2, "chi2", checked=True)[1] == [0, QUERY_REFUSED]
    assert searched(at[:1], at, 2, "chi2", checked=True)[1] == [POINTS_REFUSED]
    assert searched(at, at, 2, "l1", checked=True)[1] == [0] * 9


@on_device
@pytest.mark.parametrize("prepared", [False, True])
def test_values_are_refused_as_ever(device: str, prepared: bool) -> None:
    """Points before queries, with the row and the column."""
    points, queries = rows_of(70, 6), rows_of(3, 6, seed=1)
    plan = plan_of(queries, points, 4, devices=(DEVICE,), direct=True)

    def run(rows: Array, base: Array) -> Neighbors:
        if prepared:
            return dispatch.search(rows, dispatch.prepare(base, plan), plan)
        return dispatch.search_once(rows, base, plan)

    assert_same_neighbors(run(queries, points), brute(queries, points, 4))
    bad, worse = queries.copy(), points.copy()
    bad[2, 1], worse[69, 5] = np.inf, np.nan
    with pytest.raises(ValueError, match=r"queries: row 2 has a value that is not finite \(inf in column 1\)"):
        run(bad, points)
    with pytest.raises(ValueError, match=r"points: row 69 has a value that is not finite \(nan in column 5\)"):
        run(bad, worse)


# ---------------------------------------------------------------- searches by a plan


@pytest.mark.parametrize("metric", ["euclidean", "chi2", "inner_product"])
def test_a_plan_may_ask_for_it(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of prepared points, in batches, from host memory; the report says that exact values decided."""
    queries, points = rows_of(5, 7, "float32", metric, 1), rows_of(80, 7, "float32", metric)
    monkeypatch.setattr(direct, "MOST_ROWS", 2)
    told: list[tuple[int, int]] = []
    report = check(queries, points, 4, metric, devices=(DEVICE,), direct=True, progress=lambda *at: told.append(at))
    assert report.rows_by_precision == {"values": 5}
    assert told[-1] == (400, 400)


def made(n: int, m: int, d: int = 128, k: int = 10, **given: Any) -> CudaPlan:
    """A plan for rows on a device with plenty of memory."""
    usual = {"devices": ("cuda:0",), "host_points": False, "host_queries": False, "free_bytes": 80 * GB}
    return exact_cuda(n, m, d, k, **usual | given)


def test_few_queries_are_searched_directly() -> None:
    """As long as the points are read sooner than a screen is done; unprepared points are then not packed."""
    prepared = made(100_000, 1)
    assert prepared.direct
    assert prepared.cuda_graph
    assert prepared.precisions == ("float16", "split", "values")  # how points are prepared for others
    for n, m, prepared_by, expected in (
        (100_000, 1, prepared, True),
        (100_000, 100, prepared, False),
        (1_000, 100, made(1_000, 1), True),
        (1_000_000, 1, made(1_000_000, 1), False),
        (1_000_000, 1, None, True),
        (1_000_000, 10_000, None, False),
    ):
        assert made(n, m, prepared_by=prepared_by).direct is expected, (n, m, prepared_by)
    assert made(100_000, 1).seconds < 1e-4 < made(100_000, 1, direct=False).seconds


def test_what_has_no_direct_search_is_screened() -> None:
    assert made(1_000, 1, k=LARGEST_DIRECT_K).direct
    assert not made(1_000, 1, k=LARGEST_DIRECT_K + 1).direct
    assert not made(100, 100, self_join=True).direct
    assert not made(100, 1, devices=("cuda:0", "cuda:1")).direct
    assert not made(100, 1, width=20).direct
    assert not made(100, 1, direct=False).direct


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"k": 65}, Unsupported, "direct=True: registers hold at most 64 neighbours, not k=65; leave it out"),
        ({"self_join": True, "m": 1000}, Unsupported, "direct=True: it does not leave out the point itself"),
        ({"devices": ("cuda:0", "cuda:1")}, Unsupported, "direct=True: it searches on one device, not on cuda:0, cuda"),
        ({"group": 8, "width": 9}, ValueError, "direct=True: there is no screen for which group, width could be set"),
        ({"direct": "yes"}, TypeError, "direct"),
    ],
    ids=str,
)
def test_what_cannot_be_direct_is_refused(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        made(**{"n": 1000, "m": 1, "d": 16} | {"direct": True} | given)


def test_a_direct_plan_is_refused_for_a_graph() -> None:
    """Of as many queries as points, for which it may have been made."""
    points = rows_of(30, 4)
    plan = plan_of(points, points, 3, devices=(DEVICE,), direct=True)
    joined = problem(30, 30, 4, 3, self_join=True, devices=(DEVICE,))
    with pytest.raises(ValueError, match="the plan is direct, and so does not leave out the point itself"):
        plan.for_problem(joined)


@pytest.mark.parametrize("k", [1, 16, 64])
@pytest.mark.parametrize("n", [1, 1000, 10**8])
def test_runs_fit_what_every_plan_has_to_spare(n: int, k: int) -> None:
    for rows in (1, 3, 500, 5000, direct.MOST_ROWS):
        assert scratch_bytes(rows, n, k, double=True) <= SMALL_CHANGE


def test_parts_cover_all_points_and_are_at_work_together() -> None:
    for n, rows in ((1, 1), (65, 1), (100_000, 1), (100_000, 7), (10**8, 2), (50, 10_000)):
        parts, tiles = parts_of(n, rows)
        assert (parts - 1) * tiles * CHUNK < n <= parts * tiles * CHUNK
        assert parts * rows < direct.PROGRAMS + rows
    assert run_length(LARGEST_DIRECT_K) == CHUNK


# ---------------------------------------------------------------- kernels compiled ahead


@pytest.mark.parametrize(
    ("metric", "dtype", "query_dtype"), [("euclidean", "float32", "float32"), ("cosine", "uint8", "float64")]
)
@pytest.mark.parametrize("prepared", [False, True])
def test_a_rehearsal_launches_what_the_search_launches(
    prepared: bool, metric: str, dtype: str, query_dtype: str
) -> None:
    queries, points = rows_of(3, 19, query_dtype, metric, 1), rows_of(140, 19, dtype, metric)
    plan = plan_of(queries, points, 4, metric, devices=(DEVICE,), direct=True)
    held = dispatch.prepare(points, plan) if prepared else None
    card = ahead.card_of(DEVICE) if DEVICE != "cpu" else Card((0, 0), 1)
    with launched() as seen:
        if prepared:
            dispatch.search(queries, held, plan)
        else:
            dispatch.search_once(queries, points, plan)
    with rehearsing(card) as rehearsal:
        rehearse_search(plan, query_dtype, self_join=False, prepared=held)
    assert set(seen) == set(rehearsal.calls)
    with rehearsing(card) as rehearsal:
        rehearse_search(plan, query_dtype, self_join=False)
        rehearse_index(plan, query_dtype)
    assert set(seen) < set(rehearsal.calls)


# ---------------------------------------------------------------- on a card


@on_gpu
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation", "chi2", "inner_product", "linf"])
def test_large_enough_to_fill_a_card(metric: str) -> None:
    """Against the screened search, whose bits these are."""
    source = torch.Generator("cuda").manual_seed(0)
    points = torch.rand(100_003, 100, generator=source, device="cuda")
    points[50_000:50_040] = points[7]
    for m, k in ((1, 10), (3, 64), (40, 1)):
        queries = torch.rand(m, 100, generator=source, device="cuda")
        queries[0] = points[7]
        plans = [tonari.plan(100_003, m, 100, k, metric=metric, device="cuda", direct=way) for way in (True, False)]
        found, truth = (tonari.search(queries, points, k, metric=metric, plan=plan) for plan in plans)
        assert torch.equal(found.distances, truth.distances)
        assert torch.equal(found.indices, truth.indices)


@on_gpu
def test_memory_is_kept() -> None:
    points = torch.randn(1 << 20, 24, device="cuda")
    plan = tonari.plan(1 << 20, 5000, 24, 64, device="cuda", direct=True)
    queries = points[:5000].contiguous()
    tonari.search(queries, points, 64, plan=plan)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    found = tonari.search(queries, points, 64, plan=plan)
    taken = torch.cuda.max_memory_allocated() - before
    assert sum(part.nbytes for part in found) < taken <= SMALL_CHANGE + plan.output_bytes
