"""Points in host memory whose codes are on the device: the bits of the reference, for every kind of attempt.

Without a GPU, Triton's interpreter runs the kernels on the CPU.
"""

from __future__ import annotations

import contextlib
import re
import types
from typing import Any

import numpy as np
import pytest

from tests.exact.cuda.attempts.test_contracted import METRICS, large, near_a_plane
from tests.exact.cuda.routes.test_host_contracted import Quiet, big, costs
from tests.helpers.checks import HOSTILE, assert_same_neighbors, duplicates, gaussian
from tests.helpers.devices import HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import DEVICE, check, check_stops, on_host, plan_of, rows_of, search, tensors
from tonari.core.errors import BudgetExceeded
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import Within
from tonari.exact.cuda import tuning
from tonari.exact.cuda.plan import CudaPlan
from tonari.metrics.reference import brute

# NumPy, which replaces the device, warns where a device computes silently.
pytestmark = [
    needs_torch,
    pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning"),
]
if HAS_TORCH:
    import torch

    from tests.helpers.launches import launched
    from tonari.cuda.compiling.ahead import card_of
    from tonari.cuda.compiling.rehearsal import Card, rehearsing
    from tonari.cuda.host_rows import HostRows
    from tonari.exact.cuda import dispatch as run
    from tonari.exact.cuda.routes.codes import points as held_points
    from tonari.exact.cuda.routes.codes import search as codes
    from tonari.exact.cuda.rows.part import Place, plan_for_part
    from tonari.exact.cuda.screens import coded
    from tonari.exact.cuda.screens.sampling import Sample

HERE: dict[str, Any] = {"route": "codes", "point_slab": 128, "devices": (DEVICE,)}
N, M, D, K = 140, 3, 19, 3  # two slabs and two tiles of points, the second one short
# Of the metrics, dtypes and hostile data, what the thin suite takes.
THIN = [("float32", "euclidean"), ("float32", "correlation"), ("uint8", "cosine"), ("duplicates", "euclidean")]


def in_thin(name: str, metric: str) -> Any:
    return pytest.param(name, metric, marks=() if (name, metric) in THIN else pytest.mark.full)


@pytest.mark.parametrize(("dtype", "metric"), [in_thin("float32", metric) for metric in METRICS])
def test_every_metric(dtype: str, metric: str) -> None:
    points = near_a_plane(N, D).astype(dtype)
    report = check(points[:M] + np.float32(1e-3), points, K, metric, width=16, form_dim=4, **HERE)
    assert report.rows_by_precision == {"codes in 4 dimensions": M}


DTYPES = ("float16", "bfloat16", "float64", "uint8", "int8")


@pytest.mark.parametrize(("dtype", "metric"), [in_thin(dtype, metric) for dtype in DTYPES for metric in METRICS])
def test_every_dtype(dtype: str, metric: str) -> None:
    check(rows_of(2, 8, dtype, metric, 1), rows_of(20, 8, "float32", metric), K, metric, form_dim=5, **HERE)
    check(rows_of(2, 8, "float32", metric, 1), rows_of(20, 8, dtype, metric), K, metric, form_dim=5, **HERE)


@pytest.mark.parametrize(("name", "metric"), [in_thin(name, metric) for name in HOSTILE for metric in METRICS])
def test_hostile_data(name: str, metric: str) -> None:
    points = HOSTILE[name](40, 6, 0)
    check(points[[5, 20]], points, K, metric, group=8, width=2, form_dim=3, **HERE)


@pytest.mark.parametrize(
    ("n", "k"), [(7, 7), *(pytest.param(n, k, marks=pytest.mark.full) for n, k in [(1, 1), (129, 1), (128, 128)])]
)
def test_few_points_and_all_of_them(n: int, k: int) -> None:
    check(gaussian(2, 5, 1), gaussian(n, 5), k, form_dim=3, **HERE)


def test_a_graph_of_several_batches() -> None:
    """Each batch excludes its own points, including those that have copies."""
    points = np.vstack([near_a_plane(4, 8), duplicates(6, 8)])
    check(points, points, 3, self_join=True, query_batch=3, form_dim=4, **HERE)


def near_by_less_than_a_step() -> tuple[Any, Any]:
    """Make points nearer to each other than a step of the codes, so that codes do not show their order."""
    points = np.zeros((140, 6), np.float32)
    points[:, :4] = gaussian(140, 4)
    points[40:80] = points[40] + np.float32(1e-2) * gaussian(40, 6, 2)
    return points[40:48] + np.float32(1e-4), points


def test_rows_that_codes_do_not_tell_apart_are_all_refined() -> None:
    queries, points = near_by_less_than_a_step()
    report = check(queries, points, K, width=16, form_dim=4, **HERE)
    assert report.rows_by_precision == {"codes in 4 dimensions": 8}


@pytest.mark.parametrize("part", ["members", "groups"])
def test_without_the_errors_of_codes_a_neighbour_is_lost(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both limits need them: that of the distances between members and their codes, and that of the scores of
    groups."""
    queries, points = near_by_less_than_a_step()
    limits = coded.CodedScreen.limits

    def without(self: Any, look: Any, kth: Any) -> Any:
        squares, scores = limits(self, look, kth)
        before, self.prepared.farthest = self.prepared.farthest, 0 * self.prepared.farthest
        bare = self.limits_with(0 * look.apart, look.shift, kth)
        self.prepared.farthest = before
        return (bare[0], scores) if part == "members" else (squares, bare[1])

    monkeypatch.setattr(coded.CodedScreen, "limits", without)
    with pytest.raises(AssertionError):
        check(queries, points, K, width=16, form_dim=4, **HERE)


@pytest.mark.parametrize("many", [False, True])
def test_points_beyond_the_range_of_codes_are_candidates_of_all_rows(
    many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps are far too short, so most points are beyond range. With too many of these, codes are useless.

    The case is a graph.
    """
    monkeypatch.setattr(tuning, "CODE_MARGIN", 0.4)
    monkeypatch.setattr(tuning, "MOST_BEYOND", 4 if many else 40)
    points = near_a_plane(40, 8)
    queries = points[:3]
    report = check(points, points, K, self_join=True, width=16, form_dim=4, **HERE)
    assert (report.rows_by_precision == {"codes in 4 dimensions": 40}) is not many
    prepared = codes.prepare_codes(points, plan_of(queries, points, K, form_dim=4, **HERE))
    assert 5 < len(prepared.beyond) < 40


def test_sampled_thresholds_and_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coded, "sample_for_codes", lambda n, m, width, group: Sample(stride=2, rank=6, capacity=128))
    points = near_a_plane(300, D)
    report = check(points[:M], points, K, width=12, form_dim=5, query_batch=2, **HERE)
    assert set(report.rows_by_precision) == {"codes in 5 dimensions"}


def test_rows_may_be_gathered_by_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def held(rows: Any, device: Any) -> HostRows:
        made = HostRows(rows, device)
        made._there, made.is_mapped = None, False
        return made

    monkeypatch.setattr(held_points, "HostRows", held)
    points = near_a_plane(N, D)
    check(points[:M] + np.float32(1e-3), points, K, width=16, form_dim=4, **HERE)


def test_blocks_of_rows_that_are_refined_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "REFINE_SCRATCH_BYTES", 1)
    points = near_a_plane(20, 8)
    check(points[:M] + np.float32(1e-3), points, K, width=16, form_dim=4, **HERE)


@pytest.mark.parametrize("cpu", [True, False], ids=["on the CPU", "streamed"])
def test_unproved_rows_are_searched_in_all_dimensions(cpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries have little room. In a graph, the streamed attempt has to exclude the right points."""
    for name, value in {"WIDER": 1, "ROOMY": 1, "NEAR_KEPT": 1}.items():
        monkeypatch.setattr(tuning, name, value)
    costs(monkeypatch, cpu)
    points = np.repeat(gaussian(4, 6), 2, axis=0)  # pairs, and four equal points
    points = np.vstack([points + np.float32(1e-4) * gaussian(8, 6, 1), np.full((4, 6), 8, np.float32)])
    levels = check(points, points, 1, self_join=True, group=8, width=2, form_dim=3, **HERE).rows_by_precision
    assert levels == {"codes in 3 dimensions": 8, "values" if cpu else "split": 4}


def test_a_part_of_a_graph() -> None:
    """Rows 38 to 40 of a graph are compared with the points from 40 on."""
    points, first = duplicates(N, 6), 40
    ids, part = np.arange(38, 41), duplicates(N, 6)[first:]
    apart, inside = brute(points[38:40], part, 6), brute(points[40:41], part, 6, self_ids=np.array([0]))
    truth = Neighbors(*(np.vstack(pair) for pair in zip(apart, inside, strict=True)))
    plan = plan_for_part(plan_of(points[ids], points, 6, width=16, form_dim=4, **HERE), len(part), len(ids), DEVICE)
    found, _ = codes.search_part(points[ids], codes.prepare_codes(part, plan), plan, Place(first, 38, True), Quiet())
    assert_same_neighbors(on_host(found), truth)


@pytest.mark.parametrize("self_join", [False, pytest.param(True, marks=pytest.mark.full)])
def test_several_devices_have_codes_of_a_part_of_the_points_each(self_join: bool) -> None:
    points = near_a_plane(300, 8)
    queries = points if self_join else points[::60] + np.float32(1e-3)
    given: dict[str, Any] = HERE | {"devices": (DEVICE,) * 2, "width": 16, "form_dim": 4}
    plan = plan_of(queries[:1], points, K, **given)
    assert (plan.route, plan.shard, plan.packed_bytes) == ("codes", "points", 256 * 32)
    if self_join:
        points = queries = points[:140]
    check(queries, points, K, self_join=self_join, **given)


def test_parts_of_an_array_share_its_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page can be locked once, and parts of an array share pages. Only one device sees the memory as a tensor."""
    locked: list[tuple[int, int]] = []
    runtime = types.SimpleNamespace(
        cudaHostRegister=lambda begin, size, flags: (locked.append((begin, size)), 0)[1],
        cudaHostUnregister=lambda begin: locked.remove(next(lock for lock in locked if lock[0] == begin)),
    )
    monkeypatch.setattr(torch.cuda, "cudart", lambda: runtime)
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(HostRows, "_seen", lambda self: (self._locked_by, self._device))
    rows = np.zeros((100, 16), np.uint8)
    whole = HostRows(rows, "cuda:0")
    parts = [HostRows(rows[begin : begin + 50], f"cuda:{at}") for at, begin in enumerate((0, 50))]
    del whole
    assert locked == [(rows.ctypes.data, rows.nbytes)]
    assert [part._locked_by.index for part in parts] == [0, 0]
    parts.clear()
    assert not locked


def test_an_index_answers_again_and_again_and_widens(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, points = gaussian(M, D, 1), gaussian(N, D)
    plan = plan_of(queries, points, K, form_dim=4, width=2, group=8, **HERE)
    prepared = run.prepare(points, plan)
    for k in (1, 5):
        later = plan_of(queries, points, k, form_dim=4, width=2, group=8, **HERE)
        assert_same_neighbors(on_host(run.search(queries, prepared, later)), brute(queries, points, k))
    assert prepared.fitted[5].width == 4
    limits = np.full(M, 4, np.float32)
    counts = run.count_within(Within(queries, limits), prepared, plan_of(queries, points, 1, form_dim=4, **HERE))
    assert counts.tolist() == [int((brute(queries, points, N).distances[row] <= 4).sum()) for row in range(M)]


def test_rows_with_many_near_groups_but_few_near_points_are_proved_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of two codes rule out less than the distance of a code from the query itself."""
    monkeypatch.setattr(tuning, "CODE_MARGIN", 25.0)  # long steps: eight groups of the first query are near
    points = gaussian(N, 6)
    queries, given = points[:M] + np.float32(1e-3), {"width": 2, "group": 8, "form_dim": 5, **HERE}
    passes: list[int] = []
    usual = codes._Search._pass

    def passed(self: Any, numbers: Any, width: int, **rest: Any) -> Any:
        passes.append(len(numbers))
        return usual(self, numbers, width, **rest)

    monkeypatch.setattr(codes._Search, "_pass", passed)
    check(queries, points, 1, **given)
    assert passes == [M]
    monkeypatch.setattr(coded.CodedScreen, "groups_per_point", 1)
    check(queries, points, 1, **given)
    assert passes[:2] == [M, M]
    assert len(passes) > 2


@pytest.mark.parametrize("choices", [{"self_join": True}, {"query_batch": 4, "metric": "cosine"}], ids=str)
def test_what_is_compiled_ahead_is_what_is_launched(choices: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "CODED_LEFT", ())  # no row is left
    points = near_a_plane(40, D)
    queries = points if "self_join" in choices else (points[:7] + np.float32(1e-3)).astype(np.float64)
    plan = plan_of(queries, points, K, form_dim=4, width=64, **choices, **HERE)
    self_join = plan.m == len(points)
    with launched() as seen:
        run.search_once(queries, points, plan, self_join=self_join)
    with rehearsing(card_of(DEVICE) if DEVICE != "cpu" else Card((0, 0), 1)) as rehearsal:
        codes.rehearse_coding(plan)
        codes.rehearse_codes(plan, queries.dtype.name, self_join=self_join)
    assert {variant[0].__name__ for variant in set(seen) - set(rehearsal.calls)} == set()
    assert {variant[0].__name__ for variant in set(rehearsal.calls) - set(seen)} <= {"products_kernel"}


def test_few_rows_that_are_left_are_filled_to_sizes_whose_kernels_are_compiled() -> None:
    plan = plan_of(gaussian(40, D), gaussian(N, D), K, form_dim=4, width=2, group=8, query_batch=40, **HERE)
    width = tuning.WIDER * plan.contracted_width
    assert [codes.filled(rows, plan, width) for rows in (1, 16, 17, 40)] == [16, 16, 40, 40]
    assert codes.filled(3, plan, 2 * tuning.CODED_WIDEST * width) == 3  # it reads very many points


def test_the_width_is_fitted_to_long_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "FITTED_ROWS", 2)
    points = gaussian(70, 6)
    check(points[:2] + np.float32(0.1), points, 2, group=8, width=2, form_dim=4, **HERE)


def test_values_that_are_refused_are_named() -> None:
    points = near_a_plane(N, D)
    points[130, 2] = np.nan
    with pytest.raises(ValueError, match="points: row 130"):
        search(points[:2], points, 1, form_dim=4, **HERE)
    with pytest.raises(ValueError, match="queries: row 1"):
        search(points[[3, 130]], points[:100], 1, form_dim=4, **HERE)


def test_progress_and_stopping() -> None:
    seen: list[tuple[int, int]] = []
    given: dict[str, Any] = {"queries": near_a_plane(3, D, 1), "points": near_a_plane(N, D), "k": 1}
    given |= {"query_batch": 1, "form_dim": 4, **HERE}
    search(**given, progress=lambda *pair: seen.append(pair))
    assert seen == [(row * N, 3 * N) for row in range(1, 4)]
    check_stops(**given)


# ---------------------------------------------------------------- plans


def planned(n: int = 500 * 10**6, **choices: Any) -> CudaPlan:
    facts: dict[str, Any] = {"n": n, "m": 2048, "d": 128, "dtype": "uint8", "query_dtype": "uint8", "route": "codes"}
    return big(**facts | choices)


def test_what_a_device_holds_of_500_million_rows() -> None:
    plan = planned(free_bytes=72 * 10**9)
    assert (plan.route, plan.form_dim, plan.precisions) == ("codes", 123, ("int8", "values"))
    assert plan.packed_bytes == pytest.approx(500e6 * 128, rel=1e-6)
    assert plan.query_batch == 2048
    assert plan.total_bytes < 70 * 10**9
    plan = planned(free_bytes=60 * 10**9)  # as many coordinates as fit
    assert (plan.form_dim, plan.query_batch) == (61, 2048)
    assert plan.packed_bytes == pytest.approx(500e6 * 64, rel=1e-6)
    few = planned(m=200, free_bytes=72 * 10**9)  # all minima of few queries would take gigabytes as well
    assert few.total_bytes < 66 * 10**9
    assert planned(m=8192, free_bytes=80 * 10**9).query_batch == 4096, "two equal batches"
    later = planned(prepared_by=plan, free_bytes=72 * 10**9 - plan.packed_bytes)
    assert (later.route, later.form_dim, later.point_slab) == ("codes", 61, plan.point_slab)
    assert later.contracted_width == plan.contracted_width == tuning.CODED_WIDTH
    with pytest.raises(BudgetExceeded, match=r"allow at least \d+") as refused:
        planned(memory=20 * 10**9)
    (least,) = map(int, re.findall(r"allow at least (\d+)", str(refused.value)))
    assert planned(memory=least).total_bytes <= least


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"host_points": False}, "reads rows from host memory, but the points are on a device"),
        ({"devices": ("cuda:0", "cuda:1"), "shard": "queries"}, "does not hold all points on each device"),
        ({"precisions": ("float16", "values")}, "screens in int8 only"),
        ({"form_dim": "pilot"}, "pilot rows choose for route='resident' only, got route='codes'"),
        ({"form_dim": 600, "d": 960}, "form_dim=600: route='codes' takes at most 247 coordinates"),
        ({"metric": "inner_product"}, "there is no contraction for metric='inner_product'"),
        ({"query_slab": 10}, "query_slab=10: only route='streamed' takes queries slab by slab"),
    ],
    ids=str,
)
def test_what_cannot_work_is_refused(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        planned(10**6, **choices)


# ---------------------------------------------------------------- on a GPU


@on_gpu
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_the_bits_of_the_resident_route(metric: str, dtype: str) -> None:
    # The spread is large compared with the rounding of whole numbers, which is the same in all directions.
    rows = 40 * np.random.default_rng(2).standard_normal((200_000 + 5000, 96)) * np.arange(1, 97) ** -0.8 + 100
    points, queries = (part.clip(0, 255).astype(dtype) for part in (rows[:200_000], rows[200_000:]))
    given: dict[str, Any] = {"devices": (DEVICE,), "query_batch": 1024}
    found, report = search(queries, points, 10, metric, route="codes", point_slab=65_536, form_dim=32, **given)
    assert_same_neighbors(found, search(*tensors(DEVICE, queries, points), 10, metric, **given)[0], metric=metric)
    assert sum(count for level, count in report.rows_by_precision.items() if "in 32 dimensions" in level) > 4000


@on_gpu
def test_the_planned_memory_suffices() -> None:
    points = np.tile(large("euclidean")[1], (10, 1))
    points += np.float32(1e-3) * np.random.default_rng(3).standard_normal(points.shape, np.float32)
    queries = points[::200] + np.float32(1e-3)
    given: dict[str, Any] = {"route": "codes", "form_dim": 32, "devices": (DEVICE,)}
    search(queries[:10], points[:4000], 10, **given)  # all one-time allocations are made
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    plan = plan_of(queries, points, 10, **given)
    found, _ = search(queries, points, 10, **given)
    peak = torch.cuda.max_memory_allocated() - before
    assert 0.5 * plan.packed_bytes < peak <= plan.total_bytes
    (there,) = tensors(DEVICE, points)
    assert_same_neighbors(found, search(*tensors(DEVICE, queries), there, 10, devices=(DEVICE,))[0])
