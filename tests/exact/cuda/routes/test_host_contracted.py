"""Points in host memory whose contracted rows are on the device: the bits of the reference, for every kind of attempt.

Without a GPU, Triton's interpreter runs the kernels on the CPU.
"""

from __future__ import annotations

import dataclasses
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.exact.cuda.attempts.test_contracted import METRICS, large, near_a_plane
from tests.helpers import checks
from tests.helpers.checks import HOSTILE, Array, assert_same_neighbors, duplicates, gaussian
from tests.helpers.devices import HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import (
    DEVICE,
    OUT_OF_MEMORY,
    check,
    check_stops,
    on_host,
    plan_of,
    rows_of,
    search,
    tensors,
)
from tonari.core import _native
from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import Within
from tonari.exact.cuda import tuning
from tonari.metrics.reference import brute

# NumPy, which replaces the device, warns where a device computes silently.
pytestmark = [
    needs_torch,
    pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning"),
]
if HAS_TORCH:
    import torch

    from tonari.exact.cuda import dispatch as run
    from tonari.exact.cuda.refine.group_lists import AllMinima
    from tonari.exact.cuda.routes import host_contracted, host_refine, host_search
    from tonari.exact.cuda.routes import multi_gpu as several
    from tonari.exact.cuda.rows.contraction import contract
    from tonari.exact.cuda.rows.pack import new_flags
    from tonari.exact.cuda.rows.part import Place, plan_for_part
    from tonari.exact.cuda.screens import contracted as contracted_screen
    from tonari.exact.cuda.screens import screener
    from tonari.exact.cuda.screens.sampling import Sample

HERE = {"route": "host_refine", "point_slab": 128, "devices": (DEVICE,)}
N, M, D, K = 140, 3, 19, 3  # two slabs and two tiles of points, the second one short
# Of the dtypes and hostile data, what the thin suite takes.
THIN = [("float16", "euclidean"), ("bfloat16", "correlation"), ("float64", "euclidean"), ("uint8", "cosine")]
THIN += [("tight_far_clusters", "euclidean"), ("duplicates", "euclidean"), ("zero_rows", "cosine")]


class Quiet:
    """A progress that nobody observes."""

    def add(self, amount: int) -> None:
        pass


def in_thin(name: str, metric: str) -> Any:
    return pytest.param(name, metric, marks=() if (name, metric) in THIN else pytest.mark.full)


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric(metric: str) -> None:
    points = near_a_plane(N, D)
    report = check(points[:M] + np.float32(1e-3), points, K, metric, width=16, form_dim=4, **HERE)
    assert report.rows_by_precision == {"float16 in 4 dimensions": M}
    nearest = K + max(K, tuning.NEAREST)  # in few dimensions
    assert report.refined >= M * (nearest + K)  # these, and the ones that they leave unproved


DTYPES = ("float16", "bfloat16", "float64", "uint8", "int8")


@pytest.mark.parametrize(("dtype", "metric"), [in_thin(dtype, metric) for dtype in DTYPES for metric in METRICS])
def test_every_dtype(dtype: str, metric: str) -> None:
    check(rows_of(2, 8, "float32", metric, 1), rows_of(20, 8, dtype, metric), K, metric, form_dim=5, **HERE)
    check(rows_of(2, 8, dtype, metric, 1), rows_of(20, 8, "float32", metric), K, metric, form_dim=5, **HERE)


@pytest.mark.parametrize(("name", "metric"), [in_thin(name, metric) for name in HOSTILE for metric in METRICS])
def test_hostile_data(name: str, metric: str) -> None:
    points = HOSTILE[name](40, 6, 0)
    check(points[[5, 20]], points, K, metric, group=8, width=2, form_dim=3, **HERE)


@pytest.mark.parametrize(
    ("n", "k"),
    [
        (1, 1),
        (7, 7),
        (129, 1),
        *(pytest.param(n, k, marks=pytest.mark.full) for n, k in [(127, 3), (128, 128), (256, 2), (257, 10)]),
    ],
)
def test_few_points_and_all_of_them(n: int, k: int) -> None:
    check(gaussian(2, 5, 1), gaussian(n, 5), k, form_dim=3, **HERE)


def test_a_graph_of_several_batches() -> None:
    """Each batch excludes its own points, including those that have copies."""
    points = np.vstack([near_a_plane(4, 8), duplicates(6, 8)])
    check(points, points, 3, self_join=True, query_batch=3, form_dim=4, **HERE)


@pytest.mark.parametrize("way", ["contracted", "on the CPU", "streamed"])
def test_a_part_of_a_graph(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows 38 to 40 of a graph are compared with the points from 40 on."""
    if way != "contracted":
        monkeypatch.setattr(tuning, "HOPELESS", -1.0)
        costs(monkeypatch, way == "on the CPU")
    points, first = duplicates(N, 6), 40
    ids, part = np.arange(38, 41), duplicates(N, 6)[first:]
    apart, inside = brute(points[38:40], part, 6), brute(points[40:41], part, 6, self_ids=np.array([0]))
    truth = Neighbors(*(np.vstack(pair) for pair in zip(apart, inside, strict=True)))
    plan = plan_of(points[ids], points, 6, width=16, form_dim=4, **HERE)
    plan = plan_for_part(plan, len(part), len(ids), DEVICE)
    prepared = host_refine.prepare_host_refine(part, plan)
    found, report = host_refine.search_part(points[ids], prepared, plan, Place(first, 38, True), Quiet())
    assert_same_neighbors(on_host(found), truth)
    assert any("in 4 dimensions" in level for level in report.rows_by_precision) == (way == "contracted")


def test_several_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    points = near_a_plane(200, 9)
    given: dict[str, Any] = {**HERE, "devices": (DEVICE, DEVICE), "width": 8, "form_dim": 4}
    check(points[:2], points, K, **given)
    monkeypatch.setattr(several, "share", lambda count, devices: 7)
    check(points[:12], points[:12], 2, self_join=True, query_batch=5, **given)


def test_memory_maps_and_tensors(tmp_path: Path) -> None:
    queries, points = near_a_plane(M, D, 1), near_a_plane(N, D)
    np.save(tmp_path / "x.npy", points)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    queries.flags.writeable = False
    check(queries, mapped, K, form_dim=4, **HERE)
    check(tensors(DEVICE, gaussian(M, D, 1))[0], mapped, K, form_dim=4, **HERE)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_sampled_thresholds(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "LEAST_ROWS", 1)
    monkeypatch.setattr(screener, "sample_for", lambda n, width, group: Sample(stride=2, rank=6, capacity=128))
    points = near_a_plane(300, D)
    report = check(points[:M], points, K, metric, width=12, form_dim=5, query_batch=2, **HERE)
    assert set(report.rows_by_precision) == {"float16 in 5 dimensions"}


def test_an_index_answers_again_and_again() -> None:
    queries, points = near_a_plane(M, D, 1), near_a_plane(N, D)
    plan = plan_of(queries, points, K, form_dim=4, **HERE)
    prepared = run.prepare(points, plan)
    for k in (1, 5):
        later = plan_of(queries, points, k, form_dim=4, **HERE)
        assert_same_neighbors(on_host(run.search(queries, prepared, later)), brute(queries, points, k))
    limits = np.full(M, 4, np.float32)
    counts = run.count_within(Within(queries, limits), prepared, plan_of(queries, points, 1, form_dim=4, **HERE))
    assert counts.tolist() == [int((brute(queries, points, N).distances[row] <= 4).sum()) for row in range(M)]


def test_progress_and_stopping() -> None:
    seen: list[tuple[int, int]] = []
    given: dict[str, Any] = {"queries": near_a_plane(5, D, 1), "points": near_a_plane(N, D), "k": 1}
    given |= {"query_batch": 1, "form_dim": 4, **HERE}
    search(**given, progress=lambda *pair: seen.append(pair))
    assert seen == [(row * N, 5 * N) for row in range(1, 6)]
    check_stops(**given)


# ---------------------------------------------------------------- batches in progress


def test_batches_keep_to_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one batch is in its first step, the batch before it is in its second, and the one before that is
    finished."""
    steps: list[str] = []
    for name in ("_look", "_list"):
        step = getattr(host_contracted._Search, name)

        def noted(self: Any, *given: Any, name: str = name, step: Any = step) -> Any:
            made = step(self, *given)
            steps.append(f"{name} {made.some.start}")
            return made

        monkeypatch.setattr(host_contracted._Search, name, noted)
    write = host_search.HostSearch.write
    monkeypatch.setattr(
        host_search.HostSearch,
        "write",
        lambda self, numbers, best: (steps.append(f"write {numbers[0]}"), write(self, numbers, best))[1],
    )
    points = near_a_plane(N, D)
    report = check(points[[90, 3, 130, 50]], points, K, width=16, form_dim=4, query_batch=1, **HERE)
    assert report.rows_by_precision == {"float16 in 4 dimensions": 4}
    first = ["_look 0", "_look 1", "_list 0", "_look 2", "_list 1", "write 0", "_look 3", "_list 2", "write 1"]
    assert steps == [*first, "_list 3", "write 2", "write 3"]


@pytest.mark.parametrize("choices", [{"form_dim": 4}, {}], ids=["contracted", "all dimensions"])
def test_batches_share_their_threads(choices: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONARI_NUM_THREADS", "2")
    monkeypatch.setattr(tuning, "HOST_LEAST_MEMBERS", 1)
    monkeypatch.setattr("tonari.core.tuning.IDLE_SECONDS", 60.0)  # the interpreter is slow
    refine, at_work = _native.search_listed, []

    def noted(*given: Any) -> None:
        at_work.append(threading.current_thread())
        refine(*given)

    monkeypatch.setattr(_native, "search_listed", noted)
    points = near_a_plane(N, D)
    check(points[:6], points, K, width=16, query_batch=2, **choices, **HERE)
    assert len(at_work) >= 6
    assert len(set(at_work)) <= 2
    assert not set(at_work).intersection(threading.enumerate())


def test_short_memory_makes_shorter_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    within = contracted_screen.ContractedScreen.within

    def once(self: Any, look: Any, kth: Any, own: Any, width: int) -> Any:
        calls.append(len(kth))
        if len(calls) == 2:
            raise torch.cuda.OutOfMemoryError(OUT_OF_MEMORY)
        return within(self, look, kth, own, width)

    monkeypatch.setattr(contracted_screen.ContractedScreen, "within", once)
    points = near_a_plane(N, D)
    report = check(points[:6], points, 1, width=16, form_dim=4, query_batch=2, **HERE)
    assert calls == [2, 2, 2, 1, 1]
    assert report.rows_by_precision == {"float16 in 4 dimensions": 6}


@pytest.mark.parametrize("room", [1, 5, 16, 40])
def test_the_lowest_groups_tell_what_all_minima_do(room: int) -> None:
    minima = torch.from_numpy(gaussian(6, 16).round(1)).to(DEVICE)
    minima[:, 9:] = float("inf")  # beyond the points
    scores = torch.tensor([-9.0, -0.5, 0.3, 9.0, float("inf"), float("-inf")], device=DEVICE)
    whole = AllMinima(minima, 8)
    kept, expected = whole.kept(room).near(scores, room), whole.near(scores, room)
    assert kept.whole.tolist() == expected.whole.tolist()
    for row, (ours, found) in enumerate(zip(kept.numbers.tolist(), expected.found.tolist(), strict=True)):
        if found <= room:
            assert int(kept.found[row]) == found
            assert sorted(ours[:found]) == sorted(expected.numbers[row, :found].tolist())
    for width in (1, room - 1):
        if 0 < width < 16:
            lowest, bound = whole.kept(room).lowest(width)
            assert torch.equal(lowest, whole.lowest(width)[0])
            assert torch.equal(bound, whole.lowest(width)[1])


# ---------------------------------------------------------------- rows that are hard to prove


def rows_for_each_level() -> tuple[Array, Array]:
    """Make four rows: separable in float16, not separable in float16, losing too much in the contraction, and equal
    points.
    """
    rng = np.random.default_rng(0)
    easy, close, other, same = (np.zeros((n, 20), np.float32) for n in (140, 300, 140, 140))
    easy[:, :3] = rng.standard_normal((140, 3))
    close[:, 0] = 40 + 5e-3 * np.arange(300)
    other[:] = rng.standard_normal((140, 20))
    other[:, 1] += 40
    same[:, 2] = 40
    return np.stack([part[70] + np.float32(1e-4) for part in (easy, close, other, same)]), np.vstack(
        [easy, close, other, same]
    )


@pytest.mark.usefixtures("attempts")
@pytest.mark.parametrize("cpu", [True, False], ids=["on the CPU", "streamed"])
def test_rows_are_retried_as_far_as_they_have_to_be(cpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "ROOMY", tuning.WIDER)
    costs(monkeypatch, cpu)
    queries, points = rows_for_each_level()
    report = check(queries, points, K, group=8, width=4, form_dim=4, **HERE)
    levels = report.rows_by_precision
    assert levels.pop("float16 in 4 dimensions") == 1
    assert levels.pop("split in 4 dimensions") == 1
    assert levels == {"values" if cpu else "float16": 2}


def costs(monkeypatch: pytest.MonkeyPatch, cpu: bool) -> None:
    """Make the CPU seem faster, or slower, than a pass of all points through the device."""
    plan = host_search.plan_on_cpu
    seconds = 0.0 if cpu else 1e9
    monkeypatch.setattr(
        host_search, "plan_on_cpu", lambda *given, **asked: dataclasses.replace(plan(*given, **asked), seconds=seconds)
    )


def test_the_last_retry_in_few_dimensions_has_room_for_nearly_all() -> None:
    points = np.zeros((400, 20), np.float32)
    points[:, :3] = 1e-3 * gaussian(400, 3)
    points[:, 3:] = gaussian(400, 17, 1)
    report = check(points[:M] + np.float32(1e-4), points, K, group=8, width=4, form_dim=4, **HERE)
    assert report.rows_by_precision == {"split in 4 dimensions": M}


@pytest.mark.full  # takes ten seconds and more in the interpreter
@pytest.mark.parametrize("cpu", [True, False], ids=["on the CPU", "streamed"])
def test_the_rest_of_a_graph_leaves_itself_out(cpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """These are scattered rows with copies, so their row numbers are not consecutive."""
    monkeypatch.setattr(tuning, "ROOMY", tuning.WIDER)
    costs(monkeypatch, cpu)
    monkeypatch.setattr(several, "share", lambda count, devices: 23)
    points = gaussian(40, 6)
    points[3::3] = 8.0
    rest: list[int] = []
    answer = host_search.HostSearch.rest
    monkeypatch.setattr(
        host_search.HostSearch,
        "rest",
        lambda self, numbers, **given: (rest.append(len(numbers)), answer(self, numbers, **given))[1],
    )
    for devices in ((DEVICE,), (DEVICE, DEVICE)):
        given: dict[str, Any] = {**HERE, "devices": devices, "group": 8, "width": 1, "form_dim": 3}
        check(points, points, 2, self_join=True, precisions=("float16", "values"), **given)
    assert all(0 < count < 40 for count in rest)
    assert len(rest) == 3


def test_few_bytes_leave_the_rest_to_the_cpu() -> None:
    """The device has no room for a slab of points in addition to its contents."""
    search = host_contracted._Search.__new__(host_contracted._Search)
    queries, points = gaussian(2, 8), gaussian(N, 8)
    search.plan = dataclasses.replace(plan_of(queries, points, K, form_dim=4, **HERE), working_bytes=1 << 20)
    search.points, search.place = points, Place()
    sizes = {"dtype": "float32", "query_dtype": "float32", "metric": "euclidean"}
    assert search._streamed_plan(2, sizes) is None
    search.plan = dataclasses.replace(search.plan, working_bytes=1 << 30)
    made = search._streamed_plan(2, sizes)
    assert made is not None
    assert made.route == "streamed"
    assert made.total_bytes <= 1 << 30


def test_the_width_is_fitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "FITTED_ROWS", 2)
    points = gaussian(70, 6)
    plan = plan_of(points[:2], points, 2, group=8, width=2, form_dim=4, **HERE)
    prepared = host_refine.prepare_host_refine(points, plan)
    passes: list[int] = []
    once = host_contracted._Search._pass
    monkeypatch.setattr(
        host_contracted._Search,
        "_pass",
        lambda self, precision, numbers, width, **rest: (
            passes.append(width),
            once(self, precision, numbers, width, **rest),
        )[1],
    )
    for _ in range(2):
        found, _ = host_refine.search_host_refine(points[:2], prepared, plan)
        assert_same_neighbors(found, brute(points[:2], points, 2))
    fitted = prepared.fitted[2].width
    assert passes[0] == 2 < fitted
    assert passes.count(fitted) == 3  # by the pilot, and by both searches


@pytest.mark.usefixtures("attempts")
@pytest.mark.parametrize("cpu", [True, False], ids=["on the CPU", "streamed"])
def test_rows_that_cannot_be_contracted_are_searched_in_all_dimensions(
    cpu: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "FITTED_ROWS", 2)
    monkeypatch.setattr(tuning, "WIDEST", 1)
    costs(monkeypatch, cpu)
    points = gaussian(N, 30)
    given: dict[str, Any] = {"queries": points[:3] + np.float32(0.3), "points": points, "k": 2, "group": 8, "width": 2}
    seen: list[tuple[int, int]] = []
    _, report = search(**given, form_dim=2, **HERE, progress=lambda *pair: seen.append(pair))
    assert report.rows_by_precision == {"values" if cpu else "float16": 3}
    assert seen[-1] == (3 * N, 3 * N)
    check(**given, form_dim=2, **HERE)
    # Queries that no pass screened, because earlier ones had no use for it.
    plan = plan_of(**given, form_dim=2, **HERE)
    prepared = host_refine.prepare_host_refine(points, plan)
    host_refine.search_host_refine(given["queries"], prepared, plan)
    given["queries"][2, 5] = np.nan
    with pytest.raises(ValueError, match=r"^queries: row 2 has a value that is not finite"):
        host_refine.search_host_refine(given["queries"], prepared, plan)


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize("devices", [1, 2])
def test_bad_values_have_the_host_s_words(devices: int, monkeypatch: pytest.MonkeyPatch) -> None:
    queries, points = gaussian(3, 6, 1).astype(np.float64), gaussian(300, 6).astype(np.float64)
    given: dict[str, Any] = {**HERE, "devices": (DEVICE,) * devices, "form_dim": 3}
    points[290, 2] = np.nan
    with pytest.raises(ValueError, match=r"^points: row 290 has a value that is not finite"):
        search(queries, points, K, **given)
    points[290, 2], queries[1, 0] = 0, 1e151
    with pytest.raises(ValueError, match=r"^queries: row 1 "):
        search(queries, points, K, query_batch=1, **given)
    queries[1, 0], points[290] = 0, 1e9
    monkeypatch.setattr(host_contracted, "sample_rows", lambda d: 9)  # the scale is chosen for the others
    with pytest.raises(Unsupported, match=r"^points: row 290 is too large, .* form_dim=3 .*leave form_dim out$"):
        search(queries, points, K, **given)


def test_angles_of_rows_of_any_length() -> None:
    points = near_a_plane(N, 6).astype(np.float64)
    points[7] *= 1e-100
    points[130] = 0
    check(points[[3, 7, 130]], points, K, "cosine", form_dim=3, **HERE)
    points[7] *= 1e-50
    with pytest.raises(Unsupported, match=r"^points: row 7 "):
        search(points[[3]], points, K, "cosine", form_dim=3, **HERE)


def test_queries_beyond_range_are_answered() -> None:
    """They have no limits, so they are compared with all points."""
    points = near_a_plane(N, D)
    queries = points[:2].copy()
    queries[1] *= 1e9
    report = check(queries, points, K, width=16, form_dim=4, **HERE)
    assert report.rows_by_precision == {"float16 in 4 dimensions": 1, "split in 4 dimensions": 1}
    assert report.refined > N


def test_pilot_rows_do_not_choose_here() -> None:
    with pytest.raises(Unsupported, match=r"^form_dim='pilot': .*got route='host_refine'; .*form_dim=64"):
        plan_of(gaussian(2, D), gaussian(9, D), 1, form_dim="pilot", **HERE)


# ---------------------------------------------------------------- the plan


def test_the_plan_says_it_and_counts_every_byte() -> None:
    points = near_a_plane(300, D)
    plan = plan_of(points[:2], points, 2, form_dim="4", **HERE)
    assert (plan.route, plan.form_dim, plan.precisions) == ("host_refine", 4, ("float16", "split", "values"))
    assert plan.subsets is plan.cuda_graph is False
    prepared = host_refine.prepare_host_refine(points, plan)
    packed = prepared.copies.packed("float16")
    kept = [prepared.rows.values, prepared.rows.errors, packed.values, packed.low, packed.e1, packed.e2]
    assert plan.packed_bytes == sum(tensor.nbytes for tensor in kept)
    assert plan.copied_bytes == plan.output_bytes == 0


def test_slab_by_slab_is_as_at_once() -> None:
    points = near_a_plane(300, D).astype(np.float64)
    points[270] *= 30  # the one with the largest error
    prepared = host_refine.prepare_host_refine(points, plan_of(points[:2], points, 2, form_dim=4, **HERE))
    (there,) = tensors(DEVICE, points)
    whole = contract(there, prepared.by, new_flags(there.device))
    assert torch.equal(prepared.rows.values, whole.values)
    assert torch.equal(prepared.rows.errors, whole.errors)
    assert float(prepared.farthest) == float(whole.errors.max()) == float(whole.errors[270])


BIG = {"n": 60 * 10**6, "m": 1000, "d": 768, "k": 10, "dtype": "float16", "metric": "euclidean"}


def big(**choices: Any) -> Any:
    from tests.helpers import plans

    given = {"devices": ("cuda:0",), "host_points": True, "host_queries": True, "free_bytes": 80 * 10**9}
    return plans.exact_cuda(**BIG | given | choices)


def test_what_does_not_fit_stays_in_host_memory_if_few_coordinates_do() -> None:
    """60 million rows of 768 columns; the device has 64 numbers of each."""
    plan = big(form_dim=64)
    assert plan == big(form_dim=64, route="host_refine")
    assert plan.route == "host_refine"
    assert 60 * 10**6 * (4 * 64 + 8 + 2 * 64) <= plan.packed_bytes < 25 * 10**9
    assert plan.total_bytes < 79 * 10**9
    assert plan.query_batch == 256
    # so that several batches are in progress
    assert big(form_dim=64, n=6 * 10**6, route="host_refine").query_batch == 256
    assert big(form_dim=64, n=6 * 10**6, m=10**4, route="host_refine").query_batch == 1408
    tight = big(form_dim=64, memory=32 * 10**9)  # no room for the second precision
    assert tight.precisions == ("float16", "values")
    assert tight.total_bytes <= 32 * 10**9
    assert big(form_dim=64, n=10**6).route == "resident"
    assert big(form_dim=64, host_points=False, free_bytes=200 * 10**9).route == "resident"
    with pytest.raises(BudgetExceeded, match=r"allow at least \d+") as refused:
        big(form_dim=64, memory=20 * 10**9)
    (least,) = map(int, re.findall(r"allow at least (\d+)", str(refused.value)))
    assert big(form_dim=64, memory=least).total_bytes <= least


def test_what_several_devices_hold() -> None:
    two = big(form_dim=64, devices=("cuda:0", "cuda:1"))
    assert (two.shard, two.route, two.point_slab) == ("points", "host_refine", big(form_dim=64).point_slab)
    assert 2 * two.packed_bytes == pytest.approx(big(form_dim=64).packed_bytes, rel=1e-3)


def test_later_plans_keep_the_coordinates() -> None:
    plan = big(form_dim=64)
    later = big(m=10, prepared_by=plan, free_bytes=80 * 10**9 - plan.packed_bytes)
    assert (later.route, later.form_dim, later.point_slab) == ("host_refine", 64, plan.point_slab)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"route": "streamed"}, "form_dim=64: route='streamed' screens all dimensions"),
        ({"host_points": False, "route": "host_refine"}, "refines from host memory, but the points are on a device"),
        ({"query_slab": 10}, "query_slab=10: only route='streamed' takes queries slab by slab"),
        ({"point_slab": 100}, "point_slab must be a multiple of 128"),
        ({"n": 2**31}, "form_dim=64: a device takes at most 2147483647 points at once"),
        ({"n": 2**31, "route": "host_refine"}, "route='host_refine': a device takes at most 2147483647 points"),
        ({"metric": "inner_product", "route": "host_refine"}, "there is no contraction for metric='inner_product'"),
    ],
    ids=str,
)
def test_what_cannot_work_is_refused(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        big(form_dim=64, **choices)


# ---------------------------------------------------------------- on a GPU


@on_gpu
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_bits_of_the_resident_route(metric: str, dtype: str) -> None:
    rows = np.random.default_rng(2).standard_normal((200_000 + 5000, 96)) * np.arange(1, 97) ** -0.8
    points, queries = (part.astype(dtype) for part in (rows[:200_000], rows[200_000:]))
    given: dict[str, Any] = {"form_dim": 32, "devices": (DEVICE,), "query_batch": 1024}
    found, report = search(queries, points, 10, metric, route="host_refine", point_slab=65_536, **given)
    truth, _ = search(*tensors(DEVICE, queries, points), 10, metric, **given)
    assert_same_neighbors(found, truth, metric=metric)
    assert sum(count for level, count in report.rows_by_precision.items() if "in 32 dimensions" in level) > 4000


@on_gpu
def test_a_large_graph() -> None:
    points = large("euclidean")[1][:40_000]
    given: dict[str, Any] = {"self_join": True, "form_dim": 32, "devices": (DEVICE,)}
    found, _ = search(points, points, 15, route="host_refine", query_batch=3000, point_slab=12_800, **given)
    (rows,) = tensors(DEVICE, points)
    assert_same_neighbors(found, search(rows, rows, 15, **given)[0])


@on_gpu
@pytest.mark.parametrize("hard", [False, True])
def test_the_planned_memory_suffices(hard: bool) -> None:
    """Hard rows have a thousand copies each, and reach the last kind of attempt."""
    points = large("euclidean")[1]
    points = np.repeat(points[:1000], 1000, axis=0) if hard else np.tile(points, (10, 1))
    points += np.float32(1e-3) * np.random.default_rng(3).standard_normal(points.shape, np.float32) * (not hard)
    queries = points[::200] + np.float32(1e-3)
    given: dict[str, Any] = {"route": "host_refine", "form_dim": 32, "devices": (DEVICE,)}
    search(queries[:10], points[:4000], 10, **given)  # all one-time allocations are made
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    least = plan_of(queries, points, 10, **given, query_batch=256, precisions=("float16", "values")).total_bytes
    plan = plan_of(queries, points, 10, memory=least, **given)
    found, _ = search(queries, points, 10, memory=least, **given)
    peak = torch.cuda.max_memory_allocated() - before
    assert 0.5 * plan.packed_bytes < peak <= plan.total_bytes <= least
    (there,) = tensors(DEVICE, points)
    assert_same_neighbors(found, search(*tensors(DEVICE, queries), there, 10, devices=(DEVICE,))[0])


@on_gpu
def test_interrupt_stops_within_a_second() -> None:
    from tests.helpers.gpu_checks import interrupt

    plan = "plan=tonari.plan(2_000_000, 2_000_000, 64, 10, device='cuda', route='host_refine', form_dim=32)"
    points = "np.random.default_rng(0).random((2_000_000, 64), np.float32) / np.arange(1, 65, dtype=np.float32)"
    interrupt(points, 10, f"device='cuda', {plan}")


def test_gaussian_rows_of_many_columns_are_right_all_the_same() -> None:
    check(checks.gaussian(2, 33, 1), checks.gaussian(130, 33), 2, form_dim=17, **HERE)
