"""The routes other than the resident one: streamed points, points only on the host, points on several devices.

Each returns the bits of the reference. Without a GPU, the CPU acts as one or several devices in Triton's interpreter.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import (
    DTYPES,
    Array,
    all_equal,
    assert_same_neighbors,
    duplicates,
    gaussian,
    offset_float64,
    tight_far_clusters,
)
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import (
    DEVICE,
    OUT_OF_MEMORY,
    check,
    check_stops,
    clusters_for_each_precision,
    interrupt,
    numpy_of,
    on_host,
    plan_of,
    rows_of,
    search,
    tensors,
)
from tonari import exact
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import Neighbors
from tonari.cuda import tuning as cuda_tuning
from tonari.exact.cuda import tuning
from tonari.inputs import held
from tonari.metrics import METRICS
from tonari.metrics.reference import brute

pytestmark = [
    needs_torch,
    pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning"),
]
if HAS_TORCH:
    import torch

    from tonari.core.rows.slices import cut
    from tonari.cuda import devices as places
    from tonari.cuda.copying import staging
    from tonari.cuda.copying.prefetch import Feeder, bring, slabs
    from tonari.exact.cuda import dispatch as run
    from tonari.exact.cuda.routes import host_refine as screened
    from tonari.exact.cuda.routes import multi_gpu as several
    from tonari.exact.cuda.routes import resident, streamed
    from tonari.exact.cuda.rows.form import make_form
    from tonari.exact.cuda.rows.pack import new_flags, pack_points
    from tonari.exact.cuda.rows.part import Place, plan_for_part
    from tonari.exact.cuda.screens import screener
    from tonari.exact.cuda.screens.sampling import Sample
    from tonari.select.cuda.ordering.merge import merge_into, no_lists

STREAMED = {"route": "streamed", "point_slab": 128, "width": 4, "devices": (DEVICE,)}
SCREENED = {"route": "host_refine", "point_slab": 128, "width": 4, "devices": (DEVICE,)}
BY_POINTS = {"shard": "points", "width": 4, "devices": (DEVICE, DEVICE)}
BY_QUERIES = {"shard": "queries", "width": 4, "devices": (DEVICE, DEVICE)}
ROUTES = {"streamed": STREAMED, "host_refine": SCREENED, "points": BY_POINTS, "queries": BY_QUERIES}
SOME = ("euclidean", "inner_product", "linf")
each_route = pytest.mark.parametrize("route", ROUTES)
N, M, D, K = 200, 2, 9, 3  # two slabs, and two parts


class Quiet:
    """A progress that nobody observes."""

    def add(self, amount: int) -> None:
        pass


# ---------------------------------------------------------------- every route


@pytest.mark.parametrize(
    ("route", "metric"),
    [(route, metric) for route in ROUTES for metric in METRICS if route == "host_refine" or metric in SOME],
)
def test_every_metric(route: str, metric: str) -> None:
    check(rows_of(M, D, metric=metric, seed=1), rows_of(N, D, metric=metric), K, metric, **ROUTES[route])


@each_route
@pytest.mark.parametrize(
    ("dtype", "other"), [("float64", "uint8"), ("float16", "int8"), ("bfloat16", "float32"), ("int8", "bfloat16")]
)
def test_dtypes_and_mixtures(route: str, dtype: str, other: str) -> None:
    check(rows_of(M, D, dtype, seed=1), rows_of(N, D, other), K, **ROUTES[route])


def test_bfloat16_queries_that_are_there_of_points_that_are_not() -> None:
    queries, points = rows_of(M, D, "bfloat16", seed=1), rows_of(N, D, "bfloat16")
    check(tensors(DEVICE, queries)[0], points, K, **SCREENED)


@each_route
@pytest.mark.parametrize(("metric", "make"), [("euclidean", duplicates), ("inner_product", all_equal)])
def test_ties_across_parts(route: str, metric: str, make: Any) -> None:
    points = make(N, 3)
    check(points[[7, 160]], points, 12, metric, **ROUTES[route])


@pytest.mark.parametrize("route", ["streamed", "host_refine"])
@pytest.mark.parametrize("make", [offset_float64, tight_far_clusters])
def test_hard_data(route: str, make: Any) -> None:
    points = make(N, 5, 0)
    check(points[[1, 199]], points, K, **ROUTES[route])


@each_route
def test_more_neighbours_than_a_part_has_points(route: str) -> None:
    check(gaussian(1, 4, 1), gaussian(N, 4), 150, **{**ROUTES[route], "width": 250})
    check(
        gaussian(1, 4, 1), gaussian(N, 4), N, **{**ROUTES[route], "width": 1}
    )  # lists are short, and rows are retried


@each_route
def test_memory_maps(route: str, tmp_path: Path) -> None:
    queries, points = gaussian(M, D, 1), gaussian(N, D)
    np.save(tmp_path / "x.npy", points)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    queries.flags.writeable = False
    check(queries, mapped, K, **ROUTES[route])


@each_route
def test_tensors_as_queries(route: str) -> None:
    points = gaussian(N, D)
    (queries,) = tensors(DEVICE, gaussian(M, D, 1))
    check(queries, points, K, **ROUTES[route])


@pytest.mark.parametrize("route", ["streamed", "points", "queries"])
def test_tensors_as_points(route: str) -> None:
    queries, points = tensors(DEVICE, gaussian(M, D, 1), gaussian(N, D))
    check(queries, points, K, **ROUTES[route])


@each_route
def test_a_graph(route: str) -> None:
    points = duplicates(7, 4)
    check(points, points, 4, self_join=True, **{**ROUTES[route], "point_slab": 7})


@each_route
def test_progress_reaches_the_total(route: str) -> None:
    seen: list[tuple[int, int]] = []
    search(
        gaussian(3, 4, 1),
        gaussian(N, 4),
        1,
        query_batch=1,
        progress=lambda *pair: seen.append(pair),
        **ROUTES[route],
    )
    assert seen == sorted(seen)
    assert seen[-1] == (3 * N, 3 * N)
    assert len(seen) >= 3


@each_route
def test_stopping_on_the_way(route: str) -> None:
    check_stops(queries=gaussian(3, 4, 1), points=gaussian(N, 4), k=1, query_batch=1, **ROUTES[route])


@pytest.mark.full
@each_route
@pytest.mark.parametrize(
    ("name", "row", "value", "metric"),
    [("points", 190, np.nan, "euclidean"), ("points", 130, -1.0, "chi2"), ("queries", 2, np.inf, "cosine")],
)
def test_bad_values_have_the_host_s_words(route: str, name: str, row: int, value: float, metric: str) -> None:
    given = {"queries": rows_of(4, 4, metric=metric, seed=1), "points": rows_of(N, 4, metric=metric)}
    given[name][row, 1] = value
    with pytest.raises(ValueError, match=f"^{name}: row {row} ") as expected:
        tonari.search(**given, k=K, metric=metric)
    before = set(threading.enumerate())
    with pytest.raises(ValueError, match=f"^{name}: row {row} ") as refused:
        search(**given, k=K, metric=metric, query_batch=1, **ROUTES[route])
    assert str(refused.value) == str(expected.value)
    assert set(threading.enumerate()) == before


@each_route
def test_an_index_answers_again_and_again(route: str) -> None:
    queries, points = gaussian(M, D, 1), gaussian(N, D)
    plan = plan_of(queries, points, K, **ROUTES[route])
    prepared = run.prepare(points, plan)
    for k in (1, 5):
        found = run.search(queries, prepared, plan_of(queries, points, k, **ROUTES[route]))
        assert_same_neighbors(on_host(found), brute(queries, points, k))


# ---------------------------------------------------------------- streamed


def test_points_pass_forth_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slab at which the direction changes is not transferred again for the next block of queries."""
    orders: list[list[int]] = []

    def noted(rows: Any, order: Any, device: Any) -> Any:
        orders.append([here.start for here in order])
        return slabs(rows, order, device)

    monkeypatch.setattr(streamed, "slabs", noted)
    queries, points = gaussian(3, 4, 1), gaussian(300, 4)
    check(queries, points, 1, query_slab=1, **STREAMED)
    check(queries, points, 1, query_slab=1, **{**STREAMED, "point_slab": 300})
    assert orders == [[0, 128, 256, 128, 0, 128, 256], [0]]


def test_slabs_of_queries_of_a_graph_leave_themselves_out() -> None:
    points = duplicates(7, 4)
    check(points, points, 4, self_join=True, query_slab=3, **{**STREAMED, "point_slab": 7})


def test_query_slabs_of_tensors_stay_on_the_device() -> None:
    queries, points = tensors(DEVICE, gaussian(3, 4, 1), gaussian(N, 4))
    plan = plan_of(queries, points, 1, query_slab=2, **STREAMED)
    found, _ = streamed.search_streamed(queries, points, plan)
    assert {str(part.device) for part in found} == {DEVICE}
    assert_same_neighbors(on_host(found), brute(gaussian(3, 4, 1), gaussian(N, 4), 1))


def test_rows_climb_in_each_slab() -> None:
    queries, points = clusters_for_each_precision()
    report = check(queries, points, K, group=8, **{**STREAMED, "width": 1, "point_slab": 256})
    assert sum(report.rows_by_precision.values()) == 4 * 3
    assert report.rows_by_precision["values"] >= 1


@pytest.mark.parametrize(
    ("search_part", "route", "slab"),
    [("streamed", "streamed", 128), ("resident", "resident", N), ("host_refine", "host_refine", 128)],
)
def test_a_part_of_a_graph(search_part: str, route: str, slab: int) -> None:
    """Rows 38 to 40 of a graph are compared with the points from 40 on."""
    points = duplicates(N, 4)
    ids, first = np.arange(38, 41), 40
    part = points[first:]
    plan = plan_of(points[ids], points, 6, route=route, devices=(DEVICE,), width=4, point_slab=slab)
    plan = plan_for_part(plan, len(part), len(ids), DEVICE)
    module = {"streamed": streamed, "resident": resident, "host_refine": screened}[search_part]
    prepared = getattr(module, f"prepare_{route}")(part, plan)
    found, _ = module.search_part(points[ids], prepared, plan, Place(first, int(ids[0]), True), Quiet())
    apart, inside = brute(points[38:40], part, 6), brute(points[40:41], part, 6, self_ids=np.array([0]))
    assert_same_neighbors(on_host(found), Neighbors(*(np.vstack(pair) for pair in zip(apart, inside, strict=True))))


def test_numbers_beyond_int32() -> None:
    truth = brute(gaussian(M, 4, 1), gaussian(50, 4), 4)
    lists = Neighbors(*tensors(DEVICE, *truth))
    for first, dtype in ((2**31 + 5, torch.int64), (5, torch.int32)):
        best = no_lists(M, 3, first + 50, "euclidean", double=False, device=DEVICE)
        merge_into(best, lists, first, "euclidean", torch.device(DEVICE))
        assert best.indices.dtype == dtype
        assert best.indices.tolist() == (truth.indices[:, :3].astype(np.int64) + first).tolist()
        assert best.distances.tolist() == truth.distances[:, :3].tolist()


@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lists_are_merged_some_rows_at_a_time(metric: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tonari.select.cuda.ordering import merge as merging

    monkeypatch.setattr(merging, "MERGE_BYTES", 3 * (5 + 4) * merging.ENTRY_BYTES)  # three rows
    queries, points = gaussian(7, 3, 1).astype(dtype), duplicates(60, 3).astype(dtype)
    parts = [brute(queries, points[here], 4, metric) for here in cut(60, 20)]
    best = no_lists(7, 5, 60, metric, double=dtype == "float64", device="cpu")
    for at in (2, 0, 1):
        merge_into(best, Neighbors(*tensors(DEVICE, *parts[at])), 20 * at, metric, torch.device(DEVICE))
    # Of the four best points of each part, four are certainly right.
    four = [
        Neighbors(*(part[:, :4].copy() for part in lists))
        for lists in (on_host(best), brute(queries, points, 4, metric))
    ]
    assert_same_neighbors(*four, metric=metric)


# ---------------------------------------------------------------- transfers


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_tuning, "PIECE_BYTES", 64)


@pytest.mark.parametrize("dtype", DTYPES)
def test_pieces_make_the_whole(dtype: str, small_pieces: None) -> None:
    rows = rows_of(77, 5, dtype)
    assert np.array_equal(numpy_of(bring(held(rows), DEVICE)), rows)
    order = [slice(70, 77), slice(0, 30), slice(0, 30), slice(40, 50)]
    for here, slab in zip(order, slabs(held(rows), order, DEVICE), strict=True):
        assert np.array_equal(numpy_of(slab), rows[here])


def test_the_next_slab_is_on_its_way_while_one_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[float] = []
    send = Feeder.send

    def noted(feeder: Any, rows: Array, out: Any) -> None:
        sent.append(float(rows[0, 0]))
        send(feeder, rows, out)

    monkeypatch.setattr(Feeder, "send", noted)
    rows = np.repeat(np.arange(6.0), 2).reshape(6, 2)
    arriving = slabs(rows, cut(6, 2), DEVICE)
    seen = []
    for slab in arriving:
        seen.append((float(slab[0, 0]), list(sent)))
    assert seen == [(0.0, [0.0, 2.0]), (2.0, [0.0, 2.0, 4.0]), (4.0, [0.0, 2.0, 4.0])]


def test_a_feeder_that_is_left_early_ends_its_threads(small_pieces: None, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(threading.enumerate())
    rows = gaussian(5000, 8)
    arriving = slabs(rows, cut(5000, 1000), DEVICE)
    next(arriving)
    arriving.close()
    assert set(threading.enumerate()) == before


def test_errors_of_the_threads_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: Any) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(staging.Workers, "map", fails)
    with pytest.raises(OSError, match="the disk is gone"):
        bring(gaussian(10, 2), DEVICE)


# ---------------------------------------------------------------- screened


def test_the_cpu_answers_what_the_screen_cannot_prove() -> None:
    queries, points = clusters_for_each_precision()
    report = check(queries, points, K, group=8, **{**SCREENED, "width": 1})
    assert report.rows_by_precision == {"float16": 1, "values": 2}
    assert report.refined > 3 * 8


def test_a_second_look_takes_more_groups() -> None:
    """Twenty equal points in different groups: two groups prove nothing, eight do."""
    points = gaussian(N, 4)
    points[::15] = 3.0
    report = check(points[[15]], points, K, group=8, query_batch=1, **{**SCREENED, "width": 6})
    assert report.rows_by_precision == {"float16": 1}
    assert report.refined > 6 * 8


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "cosine"])
def test_sampled_thresholds(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "LEAST_ROWS", 1)
    monkeypatch.setattr(screener, "sample_for", lambda n, width, group: Sample(stride=4, rank=3, capacity=128))
    report = check(gaussian(M, D, 1), gaussian(N, D), K, metric, **{**SCREENED, "width": 6})
    assert report.rows_by_precision == {"float16": M}


@pytest.mark.parametrize("n", [1, 100, 129, 700])
@pytest.mark.parametrize("stride", [2, 8, 64])
def test_every_so_many_th_packed_point(n: int, stride: int) -> None:
    """The same values as if those points were packed alone, with errors that are no smaller."""
    points = torch.from_numpy(gaussian(n, 7) * (1 + np.arange(n, dtype=np.float32))[:, None]).to(DEVICE)
    form, flags = make_form(points, "euclidean"), new_flags(points.device)
    found = pack_points(points, form, "float16", flags).every(stride)
    alone = pack_points(points[::stride], form, "float16", flags)
    assert found.n == alone.n
    for name in ("values", "low"):
        ours, theirs = getattr(found, name), getattr(alone, name)
        assert ours.shape == theirs.shape
        assert torch.equal(ours, theirs)
    for name in ("e1", "e2"):
        assert getattr(found, name).shape == getattr(alone, name).shape
        assert (getattr(found, name) >= getattr(alone, name)).all()
    # Not larger than anywhere in the slab from which a tile of the sample comes, either.
    whole = pack_points(points, form, "float16", flags)
    for at in range(len(found.e1)):
        assert found.e1[at] == whole.e1[at * stride : (at + 1) * stride].max()


def test_short_memory_makes_shorter_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    members = screened.list_members

    def short_of_memory(groups: Any, *arguments: Any) -> Any:
        sizes.append(len(groups))
        if len(groups) > 2:
            raise torch.cuda.OutOfMemoryError(OUT_OF_MEMORY)
        return members(groups, *arguments)

    monkeypatch.setattr(screened, "list_members", short_of_memory)
    check(gaussian(7, 4, 1), gaussian(N, 4), 1, **SCREENED)
    assert sizes == [7, 3, 1, 1, 1, 1, 1, 1, 1]


def test_a_certificate_that_finds_no_memory_loses_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    certify = screened.certify

    def once(*arguments: Any, **options: Any) -> None:
        calls.append(len(arguments[2]))
        if len(calls) == 2:
            raise torch.cuda.OutOfMemoryError(OUT_OF_MEMORY)
        certify(*arguments, **options)

    monkeypatch.setattr(screened, "certify", once)
    report = check(gaussian(6, 4, 1), gaussian(N, 4), 1, query_batch=2, **SCREENED)
    assert calls == [2, 2, 2, 1, 1]
    assert sum(report.rows_by_precision.values()) == 6


def test_a_part_of_a_graph_refuses_bad_queries() -> None:
    """The CPU's search never sees them, although they are not among the points of its part."""
    points = gaussian(N, 4)
    points[3, 1] = np.nan
    plan = plan_for_part(plan_of(points[:5], points, 2, **SCREENED), N - 100, 5, DEVICE)
    prepared = screened.prepare_host_refine(points[100:], plan)
    with pytest.raises(ValueError, match=r"^points: row 3 has a value that is not finite"):
        screened.search_part(points[:5], prepared, plan, Place(100, 0, True), Quiet())


# ---------------------------------------------------------------- several devices


@pytest.mark.parametrize("route", ["streamed", "host_refine"])
def test_parts_go_by_the_plan_s_route(route: str) -> None:
    report = check(gaussian(M, D, 1), gaussian(400, D), K, route=route, point_slab=128, **BY_POINTS)
    assert sum(report.rows_by_precision.values()) == {"streamed": 4, "host_refine": 2}[route] * M


@pytest.mark.parametrize("shard", ["points", "queries"])
@pytest.mark.parametrize(("self_join", "tensor"), [(False, True), (True, False), (True, True)])
def test_uneven_shares(shard: str, self_join: bool, tensor: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two devices, four rows of which one has three."""
    monkeypatch.setattr(several, "share", lambda count, devices: 3)
    points = duplicates(4, 3)
    rows = tensors(DEVICE, points)[0] if tensor else points
    report = check(rows, rows, 2, self_join=self_join, shard=shard, devices=(DEVICE, DEVICE))
    assert sum(report.rows_by_precision.values()) == 4 * {"points": 2, "queries": 1}[shard]


def test_devices_that_get_nothing() -> None:
    check(gaussian(M, 4, 1), gaussian(100, 4), K, shard="points", devices=(DEVICE,) * 4)
    check(gaussian(M, 4, 1), gaussian(100, 4), K, shard="queries", devices=(DEVICE,) * 4)


def test_an_error_of_one_part_stops_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each device has a thread, and a part ends at its next progress report."""
    meeting = threading.Barrier(2, timeout=10)
    ended: list[str] = []

    def search_part(queries: Any, prepared: Any, plan: Any, place: Any, bar: Any) -> Any:
        meeting.wait()
        if place.first_point == 0:
            raise ZeroDivisionError
        try:
            while True:
                bar.add(1)
        except BaseException as error:
            ended.append(type(error).__name__)
            raise

    monkeypatch.setitem(several._ROUTES, "resident", several._Route(lambda points, plan: points, search_part))
    monkeypatch.setattr(several, "a_thread_each", lambda devices: Workers(2))
    before = set(threading.enumerate())
    with pytest.raises(ZeroDivisionError):
        search(gaussian(M, 4), gaussian(N, 4), 1, progress=lambda done, total: None, **BY_POINTS)
    assert ended == ["Stopped"]
    assert set(threading.enumerate()) == before


# ---------------------------------------------------------------- on a GPU

on_two_gpus = pytest.mark.skipif(not HAS_CUDA or torch.cuda.device_count() < 2, reason="needs two CUDA devices")


def large(metric: str = "euclidean", n: int = 300_000) -> tuple[Array, Array]:
    return rows_of(1500, 64, metric=metric, seed=1), rows_of(n, 64, metric=metric)


def truth_of(queries: Array, points: Array, k: int, metric: str = "euclidean", **own: Any) -> Neighbors:
    return exact.neighbors(queries, points, k, metric=metric, **own)


@on_gpu
@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "correlation", "l1"])
@pytest.mark.parametrize("route", ["streamed", "host_refine"])
@pytest.mark.parametrize("tensor", [False, True])
def test_the_cpu_s_bits(route: str, metric: str, tensor: bool) -> None:
    queries, points = large(metric)
    rows = tensors(DEVICE, queries)[0] if tensor else queries
    slabs_of = {"point_slab": 65_536, "query_slab": 700} if route == "streamed" else {"point_slab": 65_536}
    found, _ = search(rows, points, 10, metric, route=route, devices=(DEVICE,), query_batch=512, **slabs_of)
    assert_same_neighbors(found, truth_of(queries, points, 10, metric), metric=metric)


@on_gpu
@pytest.mark.parametrize("route", ["streamed", "host_refine"])
def test_the_same_call_gives_the_same_bytes(route: str) -> None:
    queries, points = large()
    choices = {"route": route, "devices": (DEVICE,), "point_slab": 65_536}
    first, second = (search(queries, points, 10, **choices)[0] for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert one.tobytes() == other.tobytes()


@on_gpu
@pytest.mark.parametrize("route", ["streamed", "host_refine"])
def test_hard_data_on_a_gpu(route: str) -> None:
    points = tight_far_clusters(40_000, 16)
    found, _ = search(points[::100].copy(), points, 20, route=route, devices=(DEVICE,), point_slab=12_800)
    assert_same_neighbors(found, truth_of(points[::100].copy(), points, 20))


@on_gpu
def test_a_streamed_graph() -> None:
    points = tight_far_clusters(20_000, 16)
    choices = {"route": "streamed", "point_slab": 5120, "query_slab": 3000, "devices": (DEVICE,)}
    found, _ = search(points, points, 10, self_join=True, **choices)
    assert_same_neighbors(found, truth_of(points, points, 10, self_ids=np.arange(20_000)))


@on_gpu
@pytest.mark.parametrize(("route", "memory"), [("streamed", 420 << 20), ("host_refine", 950 << 20)])
@pytest.mark.parametrize("hard", [False, True])
def test_the_memory_budget_is_kept(route: str, memory: int, hard: bool) -> None:
    """Points of 512 MB with a packed copy of 256 MB; hard points have a thousand copies each."""
    points = np.repeat(gaussian(1000, 128), 1000, axis=0) if hard else gaussian(1_000_000, 128)
    queries = points[::5000] + np.float32(0.01)
    choices = {"route": route, "devices": (DEVICE,)}
    search(queries[:10], points[:4000], 10, **choices)  # all one-time allocations are made
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    plan = plan_of(queries, points, 10, memory=memory, **choices)
    assert plan.total_bytes <= memory
    found, _ = search(queries, points, 10, memory=memory, **choices)
    peak = torch.cuda.max_memory_allocated() - before
    assert 0.5 * plan.packed_bytes < peak <= plan.total_bytes
    assert_same_neighbors(found, truth_of(queries, points, 10))


@on_gpu
def test_large_arrays_are_brought_by_threads() -> None:
    rows = rows_of(300_001, 67)
    assert rows.nbytes > cuda_tuning.LARGE_BYTES
    assert np.array_equal(places.to_device(rows, DEVICE).cpu().numpy(), rows)


@on_gpu
def test_slabs_follow_the_current_stream() -> None:
    """A slab is not overwritten before work of the current stream that reads it is finished."""
    rows = np.arange(4, dtype=np.float32).repeat(5_000_000)[:, None]
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        sums = []
        for slab in slabs(rows, cut(len(rows), 5_000_000), DEVICE):
            torch.cuda._sleep(50_000_000)
            sums.append(slab.sum())
    stream.synchronize()
    assert [float(total) for total in sums] == [0, 5e6, 1e7, 1.5e7]


@on_gpu
@pytest.mark.parametrize("route", ["streamed", "host_refine"])
def test_interrupt_stops_within_a_second(route: str) -> None:
    plan = f"plan=tonari.plan(2_000_000, 2_000_000, 64, 10, device='cuda', route='{route}', point_slab=262_144)"
    interrupt("np.random.default_rng(0).random((2_000_000, 64), np.float32)", 10, f"device='cuda', {plan}")


@on_gpu
@on_two_gpus
@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "l1"])
@pytest.mark.parametrize("shard", ["points", "queries"])
@pytest.mark.parametrize("place", ["host", "first", "second"])
def test_two_gpus_give_the_cpu_s_bits(metric: str, shard: str, place: str) -> None:
    queries, points = given = large(metric)
    if place != "host":
        given = tensors({"first": "cuda:0", "second": "cuda:1"}[place], queries, points)  # type: ignore[assignment]
    found, _ = search(*given, 10, metric, shard=shard, devices=("cuda:0", "cuda:1"))
    assert_same_neighbors(found, truth_of(queries, points, 10, metric), metric=metric)


@on_gpu
@on_two_gpus
@pytest.mark.parametrize("choices", [{"route": "streamed", "point_slab": 2560}, {"shard": "queries"}, {}], ids=str)
def test_two_gpus_make_a_graph(choices: dict[str, Any]) -> None:
    points = tight_far_clusters(20_000, 16)
    for rows in (points, *tensors("cuda:0", points)):
        found, _ = search(rows, rows, 10, self_join=True, devices=("cuda:0", "cuda:1"), **choices)
        assert_same_neighbors(found, truth_of(points, points, 10, self_ids=np.arange(20_000)))


@on_gpu
@on_two_gpus
def test_interrupt_stops_two_gpus() -> None:
    interrupt("torch.rand((4_000_000, 128), device='cuda')", 10, "device='cuda:all'")
