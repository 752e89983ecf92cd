"""Searches that screen contracted rows: the bits of the reference, for any data and number of coordinates.

Without a GPU, Triton's interpreter runs the kernels on the CPU.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import HOSTILE, Array, assert_same_neighbors, gaussian
from tests.helpers.devices import HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import DEVICE, check, on_host, plan_of, rows_of, search, tensors
from tonari import exact, inputs
from tonari.core.errors import Unsupported
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import recording
from tonari.exact.cuda import tuning
from tonari.metrics.reference import brute

# NumPy, which replaces the device, warns where a device computes silently.
pytestmark = [
    needs_torch,
    pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning"),
]
if HAS_TORCH:
    import torch

    from tonari.exact.cuda.attempts import contracted as contracted_search
    from tonari.exact.cuda.attempts import first
    from tonari.exact.cuda.attempts import ladder as engine
    from tonari.exact.cuda.rows import contraction
    from tonari.exact.cuda.screens import screener, widths
    from tonari.exact.cuda.screens.sampling import Sample

HERE = {"devices": (DEVICE,)}
METRICS = ("euclidean", "sqeuclidean", "cosine", "correlation")
# The hostile data and dtypes of the thin suite.
THIN = [("tight_far_clusters", "euclidean"), ("duplicates", "euclidean"), ("zero_rows", "cosine")]
THIN += [("bfloat16", "correlation"), ("float64", "euclidean")]
N, M, D, K = 140, 3, 19, 3  # two tiles of points, the second one short


def near_a_plane(n: int, d: int, seed: int = 0, noise: float = 1e-2) -> Array:
    """Make rows near a three-dimensional plane, with some noise in all other dimensions."""
    rows = gaussian(n, 3, seed, np.float64) @ gaussian(3, d, 1000, np.float64)
    return (rows + noise * gaussian(n, d, seed + 1, np.float64)).astype(np.float32)


@pytest.mark.parametrize("p", [2, 4, D - 1])
@pytest.mark.parametrize("metric", METRICS)
def test_every_metric(metric: str, p: int) -> None:
    points = near_a_plane(N, D)
    report = check(points[:M] + np.float32(1e-3), points, K, metric, width=16, form_dim=p, **HERE)
    if p >= 4:
        assert report.rows_by_precision == {f"float16 in {p} dimensions": M}


@pytest.mark.parametrize(
    ("dtype", "metric"),
    [
        pytest.param(dtype, metric, marks=() if (dtype, metric) in THIN else pytest.mark.full)
        for dtype in ("float16", "bfloat16", "float64", "uint8", "int8")
        for metric in METRICS
    ],
)
def test_every_dtype(dtype: str, metric: str) -> None:
    check(rows_of(2, 8, dtype, metric, 1), rows_of(20, 8, dtype, metric), K, metric, form_dim=5, **HERE)


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        pytest.param(name, metric, marks=() if (name, metric) in THIN else pytest.mark.full)
        for name in HOSTILE
        for metric in ("euclidean", "cosine")
    ],
)
def test_hostile_data(name: str, metric: str) -> None:
    points = HOSTILE[name](40, 6, 0)
    check(points[[5]], points, K, metric, group=8, width=2, form_dim=3, **HERE)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (7, 7), (129, 1), pytest.param(33, 33, marks=pytest.mark.full)])
def test_few_points_and_all_of_them(n: int, k: int) -> None:
    check(gaussian(2, 5, 1), gaussian(n, 5), k, form_dim=3, **HERE)


def test_more_groups_are_looked_at_only_where_rows_are_contracted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pilot rows may choose all dimensions; the search then costs as much as without pilot rows."""
    from tonari.exact.cuda.rows import form_dim

    points = near_a_plane(N, D)
    queries, there = tensors(DEVICE, points[:2], points)
    plan = plan_of(points[:2], points, K, group=8, form_dim=4, **HERE)
    assert (plan.width, plan.contracted_width) == (9, 32)  # all groups that exist
    plan = dataclasses.replace(plan, form_dim="pilot")
    monkeypatch.setattr(tuning, "FORM_DIMS", (4,))
    for p, width in ((0, 9), (4, 32)):
        monkeypatch.setattr(form_dim, "cheapest", lambda *_, p=p: p)
        prepared = contracted_search.prepare_points(there, plan)
        assert prepared.begin(queries, plan).width == width


@pytest.mark.full
def test_the_group_leaves_no_trace() -> None:
    for group in (8, 16, 32):
        check(near_a_plane(2, 9, 1), near_a_plane(N, 9), K, group=group, width=2, form_dim=4, **HERE)


@pytest.mark.parametrize("metric", ["euclidean", pytest.param("correlation", marks=pytest.mark.full)])
def test_a_whole_graph(metric: str) -> None:
    points = np.vstack([near_a_plane(4, 8), checks.duplicates(6, 8)])
    check(points, points, 3, metric, self_join=True, query_batch=7, form_dim=4, **HERE)


@pytest.mark.parametrize("shard", ["points", pytest.param("queries", marks=pytest.mark.full)])
def test_several_devices(shard: str) -> None:
    points = near_a_plane(200, 9)
    check(points[:2], points, K, shard=shard, width=4, form_dim=4, devices=(DEVICE, DEVICE))


@pytest.mark.parametrize("metric", ["euclidean", pytest.param("cosine", marks=pytest.mark.full)])
def test_sampled_thresholds(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "LEAST_ROWS", 1)
    monkeypatch.setattr(screener, "sample_for", lambda n, width, group: Sample(stride=2, rank=6, capacity=128))
    points = near_a_plane(300, D)
    report = check(points[:M], points, K, metric, width=12, form_dim=5, **HERE)
    assert set(report.rows_by_precision) == {"float16 in 5 dimensions"}


@pytest.mark.usefixtures("attempts")
def test_rows_climb_as_far_as_they_have_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row is separable in float16, one is not, one loses too much in the contraction, and one is among equal
    points.
    """
    monkeypatch.setattr(tuning, "ROOMY", tuning.WIDER)
    rng = np.random.default_rng(0)
    easy, close, other, same = (np.zeros((n, 20), np.float32) for n in (140, 300, 140, 140))
    easy[:, :3] = rng.standard_normal((140, 3))
    close[:, 0] = 40 + 5e-3 * np.arange(300)
    other[:] = rng.standard_normal((140, 20))
    other[:, 1] += 40
    same[:, 2] = 40
    points = np.vstack([easy, close, other, same])
    queries = np.stack([part[70] + np.float32(1e-4) for part in (easy, close, other, same)])
    report = check(queries, points, K, group=8, width=4, form_dim=4, **HERE)
    levels = report.rows_by_precision
    assert levels["float16 in 4 dimensions"] == 1
    assert levels["split in 4 dimensions"] == 1
    assert levels["float16"] == 1
    assert levels["values"] == 1


@pytest.mark.usefixtures("attempts")
def test_the_last_retry_in_few_dimensions_has_room_for_nearly_all() -> None:
    """Rows near hundreds of points, where the first search has room for eight."""
    points = np.zeros((400, 20), np.float32)
    points[:, :3] = 1e-3 * gaussian(400, 3)
    points[:, 3:] = gaussian(400, 17, 1)
    report = check(points[:M] + np.float32(1e-4), points, K, group=8, width=4, form_dim=4, **HERE)
    assert report.rows_by_precision == {"split in 4 dimensions": M}


def test_the_width_is_fitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "FITTED_ROWS", 2)
    fitted: list[int] = []
    fit = first.Search.fit_width
    monkeypatch.setattr(first.Search, "fit_width", lambda self, own: (fit(self, own), fitted.append(self.width))[0])
    points = gaussian(70, 6)
    plan = plan_of(points[:2], points, 2, group=8, width=2, form_dim=4, **HERE)
    queries, rows = tensors(DEVICE, points[:2], points)
    prepared = contracted_search.prepare_points(rows, plan)
    with recording("search", 4) as record:
        for _ in range(2):
            found, _ = engine.search_on_device(queries, prepared, plan)
    (choice,) = record.choices
    assert choice.what == "width"
    assert choice.why.startswith(f"{prepared.fitted[2].width} groups of a row are refined")
    assert fitted == [prepared.fitted[2].width]
    assert fitted[0] > 2
    assert found.indices[:, 0].tolist() == [0, 1]


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, Array]]:
    """Search with the width of two groups, and search a number of rows again before the unproved ones are known.

    Returns the prepared search, and which rows its first attempt proves: some of them.
    """
    monkeypatch.setattr(tuning, "FEW_UNPROVED", 1.0)

    def begin(queries: Array, points: Array, stragglers: int) -> tuple[Any, Array]:
        monkeypatch.setattr(contracted_search.ContractedSearch, "stragglers", stragglers)
        plan = plan_of(queries, points, K, group=8, form_dim=4, **HERE)
        there, rows = tensors(DEVICE, queries, points)
        prepared = contracted_search.prepare_points(rows, plan)
        prepared.fitted[K] = widths.Fitted(2, 0.5)
        proved = prepared.begin(there, plan).first_batch(there, None)[1].cpu().numpy() == 1
        return lambda: engine.search_on_device(there, prepared, plan), proved

    return begin


def test_how_many_rows_are_searched_ahead() -> None:
    points = near_a_plane(400, D)
    plan = plan_of(points, points, K, group=8, form_dim=4, **HERE)
    queries, rows = tensors(DEVICE, points, points)
    prepared = contracted_search.prepare_points(rows, plan)
    assert prepared.begin(queries, plan).stragglers == 0  # nothing is known about them
    for unproved, rows_ahead in ((0.0, 0), (0.002, 0), (0.0025, 128), (0.16, 128), (0.165, 0)):
        prepared.fitted[K] = widths.Fitted(2, unproved)
        assert prepared.begin(queries, plan).stragglers == rows_ahead


@pytest.mark.parametrize("stragglers", [2, 5, 128])
def test_rows_that_are_not_proved_are_searched_ahead(
    stragglers: int, ahead: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many rows as requested are searched at once; the other unproved rows are searched after they are known."""
    queries, points = near_a_plane(12, 20, 5), near_a_plane(300, 20)
    search, proved = ahead(queries, points, stragglers)
    left = np.count_nonzero(~proved)
    assert 5 < left < 12
    later: list[int] = []
    make_attempts = engine.make_attempts

    def noted(left: Any, attempts: Any) -> None:
        if attempts is not engine.BEFORE_WAITING:
            later.append(int((left.proved == 0).sum()))
        make_attempts(left, attempts)

    monkeypatch.setattr(engine, "make_attempts", noted)
    with recording("search", 12) as record:
        found, report = search()
    assert ("ahead" in [choice.what for choice in record.choices], record.proved) == (True, 12)
    rest = max(0, left - stragglers)
    assert later == ([rest] if rest else [])
    assert_same_neighbors(on_host(found), brute(queries, points, K))
    assert report.rows_by_precision["float16 in 4 dimensions"] == 12 - rest


def test_rows_that_are_proved_keep_what_they_have(ahead: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """They complete the number of rows that are searched at once, where another attempt may prove fewer of them."""
    queries, points = near_a_plane(12, 20, 5), near_a_plane(300, 20)
    search, proved = ahead(queries, points, 128)
    again = contracted_search.ContractedSearch.again

    def nothing(self: Any, precision: str, width: int) -> Any:
        def search_again(queries: Any, own: Any) -> Any:
            found, done = again(self, precision, width)(queries, own)
            return Neighbors(found.distances.fill_(-7), found.indices.fill_(-7)), torch.zeros_like(done)

        return search_again

    seen: list[Any] = []
    make_attempts = engine.make_attempts

    def only_ahead(left: Any, attempts: Any) -> None:
        if attempts is engine.BEFORE_WAITING:
            make_attempts(left, attempts)
        else:
            seen.append((left.found, left.proved))

    monkeypatch.setattr(engine, "make_attempts", only_ahead)
    with monkeypatch.context() as patch:
        patch.setattr(contracted_search.ContractedSearch, "again", nothing)
        search()
    (found, still), truth = seen[0], brute(queries, points, K)
    assert (still.cpu().numpy() == proved).all()
    kept = Neighbors(*(part[proved] for part in on_host(found)))
    assert_same_neighbors(kept, Neighbors(*(part[proved] for part in truth)))


@pytest.mark.usefixtures("attempts")
def test_rows_that_cannot_be_contracted_are_screened_in_all_dimensions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "FITTED_ROWS", 2)
    monkeypatch.setattr(tuning, "WIDEST", 1)
    points = gaussian(N, 30)
    plan = plan_of(points[:3], points, 2, group=8, width=2, form_dim=2, **HERE)
    queries, rows = tensors(DEVICE, points[:3] + np.float32(0.3), points)
    prepared = contracted_search.prepare_points(rows, plan)
    with recording("search", 3) as record:
        _, report = engine.search_on_device(queries, prepared, plan)
    assert "columns: all 30: few of the first rows were proved in 2" in map(str, record.choices)
    assert record.proved == 3
    assert prepared.fitted == {2: (2, 1.0)}
    assert not isinstance(prepared.begin(queries, plan), contracted_search.ContractedSearch)
    assert set(report.rows_by_precision) == {"float16"}


# ---------------------------------------------------------------- every term of the bound


def test_rounding_to_float32_counts() -> None:
    """Two far clusters in few dimensions: the rounding of rows exceeds the differences of their distances."""
    points = np.zeros((160, 12))
    points[:, :3] = 1e-4 * gaussian(160, 3, 0, np.float64)
    points[:80, 0] -= 1
    points[80:, 0] += 1
    rotation = np.linalg.qr(gaussian(12, 12, 5, np.float64))[0]
    points = points @ rotation
    queries = points[[10, 40, 100, 120]] + 1e-9
    report = check(queries, points, 6, group=8, width=20, form_dim=4, **HERE)
    assert sum(count for level, count in report.rows_by_precision.items() if "in 4 dimensions" in level) == 4


def test_directions_that_are_not_orthonormal_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A direction that is too long makes a point seem farther than another one that is not nearer."""
    principal = contraction.principal

    def too_long(*given: Any) -> Any:
        found = principal(*given).clone()
        axis = torch.zeros(len(found), dtype=found.dtype, device=found.device)
        axis[0] = 1
        found += 0.05 * axis[:, None] * (found.mT @ axis)  # along the first axis, all rows become longer
        return found

    monkeypatch.setattr(contraction, "principal", too_long)
    points = np.zeros((60, 8), np.float32)
    points[:, :3] = 20 * gaussian(60, 3)
    points[:2] = 0
    points[0, 0], points[1, 1] = 1, 1.01
    check(np.zeros((1, 8), np.float32), points, 1, width=16, form_dim=4, **HERE)


# ---------------------------------------------------------------- refused


def test_bad_values_have_the_host_s_words() -> None:
    queries, points = gaussian(3, 6, 1).astype(np.float64), gaussian(40, 6).astype(np.float64)
    points[31, 2] = np.inf
    with pytest.raises(ValueError, match=r"^points: row 31 "):
        search(queries, points, K, form_dim=3, **HERE)
    points[31, 2], queries[1, 0] = 0, 1e151
    with pytest.raises(ValueError, match=r"^queries: row 1 "):
        search(queries, points, K, form_dim=3, query_batch=1, **HERE)


def test_points_beyond_range_are_screened_in_all_dimensions() -> None:
    points = near_a_plane(N, 6).astype(np.float64)
    points[7] *= 1e-150
    with recording("search", 2) as record:
        report = check(points[[3, 7]], points, K, "cosine", form_dim=3, **HERE)
    assert [str(choice) for choice in record.choices] == ["columns: all 6: a row has no contraction"]
    assert not any("dimensions" in level for level in report.rows_by_precision)


@pytest.mark.parametrize("given", [1, D, 0, -3, True, 2.5, "many"])
def test_numbers_of_coordinates_that_cannot_be(given: Any) -> None:
    with pytest.raises(
        ValueError, match=r"^form_dim=.*: expected 'full', 'pilot' or a whole number from 2 to d - 1 = 18$"
    ):
        plan_of(gaussian(2, D), gaussian(9, D), 1, form_dim=given, **HERE)


def test_what_has_no_contraction() -> None:
    with pytest.raises(Unsupported, match="there is no contraction for metric='inner_product'"):
        plan_of(gaussian(2, D), gaussian(9, D), 1, "inner_product", form_dim=4, **HERE)
    with pytest.raises(Unsupported, match="route='streamed' screens all dimensions"):
        plan_of(gaussian(2, D), gaussian(9, D), 1, form_dim=4, route="streamed", **HERE)


def test_the_plan_says_it() -> None:
    queries, points = gaussian(2, D), gaussian(9, D)
    plan = plan_of(queries, points, 1, form_dim="7", **HERE)
    assert (plan.form_dim, plan.route, plan.cuda_graph) == (7, "resident", False)
    assert plan_of(queries, points, 1, **HERE).form_dim == "full"


# ---------------------------------------------------------------- on a GPU


def large(metric: str, d: int = 200) -> tuple[Array, Array]:
    rows = np.random.default_rng(2).standard_normal((60_000 + 3000, d)) * np.arange(1, d + 1) ** -0.8
    return rows[60_000:].astype(np.float32), rows[:60_000].astype(np.float32)


@on_gpu
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("p", [16, 32, 64, 128])
def test_the_cpu_s_bits(metric: str, p: int) -> None:
    queries, points = large(metric)
    found, _ = search(*tensors(DEVICE, queries, points), 10, metric, form_dim=p, **HERE)
    truth = exact.neighbors(inputs.held(queries), inputs.held(points), 10, metric=metric)
    assert_same_neighbors(found, truth, metric=metric)


@on_gpu
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("k", [1, 100])
def test_the_cpu_s_bits_on_hostile_data(name: str, k: int) -> None:
    points = HOSTILE[name](30_000, 24, 0)
    found, _ = search(*tensors(DEVICE, points[::50].copy(), points), k, form_dim=9, **HERE)
    truth = exact.neighbors(points[::50].copy(), points, k, metric="euclidean")
    assert_same_neighbors(found, truth)


@on_gpu
def test_a_large_graph() -> None:
    points = large("euclidean")[1][:40_000]
    (rows,) = tensors(DEVICE, points)
    found, _ = search(rows, rows, 15, self_join=True, form_dim=32, **HERE)
    assert_same_neighbors(found, exact.neighbors(points, points, 15, metric="euclidean", self_ids=np.arange(40_000)))


@on_gpu
@pytest.mark.parametrize("p", [32, 100])
def test_the_planned_memory_suffices(p: int) -> None:
    queries, points = large("euclidean")
    queries, points = tensors(DEVICE, queries, points)
    search(queries[:10], points[:2000], 10, form_dim=p, **HERE)  # all one-time allocations are made
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    plan = plan_of(queries, points, 10, form_dim=p, **HERE)
    search(queries, points, 10, form_dim=p, **HERE)
    assert torch.cuda.max_memory_allocated() - before <= plan.total_bytes
