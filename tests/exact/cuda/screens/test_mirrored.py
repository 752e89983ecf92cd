"""Graphs that compute each product once for both rows: the same answers with half of the products.

Without a GPU, the kernels run in Triton's interpreter.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.ahead import run
from tests.helpers.checks import HOSTILE, Array, assert_same_neighbors, gaussian
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch, on_device, on_gpu
from tests.helpers.gpu_checks import DEVICE, GB, on_host, plan_of
from tests.helpers.plans import exact_cuda
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import Record, recording
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows import tiles
from tonari.exact.cuda.rows.groups import POINT_TILE, members
from tonari.exact.cuda.screens import mirrored, wide_rows
from tonari.exact.cuda.screens.sampling import Sample, sample_for
from tonari.exact.report import Report
from tonari.metrics.reference import brute

if HAS_TORCH:
    import torch

    from tonari.exact.cuda import dispatch
    from tonari.exact.cuda.attempts import first
    from tonari.exact.cuda.refine.group_lists import parts_of
    from tonari.exact.cuda.rows.pack import PackedPoints
    from tonari.exact.cuda.screens import screener

# NumPy, which replaces the device, warns where a device computes silently.
pytestmark = [
    needs_torch,
    pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning"),
]

D, K = 130, 3  # one column more than the fewest that are streamed
N, BATCH = 3 * POINT_TILE + 5, POINT_TILE
GRID = 1 / 8  # values on it and their sums are exact in float16 and float32


# ---------------------------------------------------------------- the screen


class Packed:
    """Rows as points and as queries, of numbers with exact scores, and thresholds; elements have `size` bytes."""

    def __init__(self, n: int, device: str, seed: int = 0, size: int = 2) -> None:
        rng = np.random.default_rng(seed)
        tiles, width = -(-n // POINT_TILE), 384 // size
        self.element = torch.float16 if size == 2 else torch.int8
        unit = 1 if size == 2 else 1 / GRID  # elements of int8 are whole

        def grid(*shape: int, least: int = -8) -> Array:
            return rng.integers(least, 9, shape) * GRID

        self.n, self.device = n, device
        self.values = np.zeros((tiles * POINT_TILE, width))
        self.values[:n, :D] = unit * grid(n, D)
        self.low = np.full(tiles * POINT_TILE, np.inf)
        self.low[:n] = grid(n)
        self.e1, self.e2 = grid(tiles, least=0), grid(tiles, least=0)
        self.norm, self.rest = grid(n, least=0), grid(n, least=0)
        self.shift = np.zeros(n)
        scores = self.scores(slice(0, n))
        self.thresholds = np.sort(scores, axis=1)[:, n // 20]

    def scores(self, rows: slice) -> Array:
        """Compute certified scores of all points, with the bound of each point's own tile."""
        exact = -2 * self.values[rows] @ self.values[: self.n].T + self.low[: self.n]
        tile = np.arange(self.n) // POINT_TILE
        return exact - self.norm[rows, None] * self.e1[tile] - self.rest[rows, None] * self.e2[tile]

    def put(self, array: Array, dtype: Any = None) -> Any:
        return torch.from_numpy(np.ascontiguousarray(array)).to(dtype or torch.float32).to(self.device)

    def mirror(self, slots: int, batch: int = BATCH, capacity: int = 10**6) -> mirrored.Mirror:
        points = PackedPoints(
            *(
                self.put(x, t)
                for x, t in ((self.values, self.element), (self.low, None), (self.e1, None), (self.e2, None))
            ),
            self.n,
        )
        sample = Sample(stride=2, rank=1, capacity=capacity)
        return mirrored.Mirror(
            points, sample, slots, batch, self.queries, lambda some: self.put(self.thresholds[some.at])
        )

    def queries(self, rows: slice) -> Any:
        times = -2 if self.element == torch.float16 else 1
        return SimpleNamespace(
            values=self.put(times * self.values[: self.n][rows], self.element),
            norm=self.put(self.norm[rows]),
            rest=self.put(self.rest[rows]),
            shift=self.put(self.shift[rows], torch.float64),
            at=rows,
        )


def noted_of(noted: Any, row: int) -> dict[int, float]:
    """Return the points that are noted for a row, and their values."""
    count = int(noted.counts[row])
    points, values = noted.points[row, :count].tolist(), noted.values[row, :count].tolist()
    assert len(set(points)) == len(points) == count
    assert torch.isinf(noted.values[row, count:]).all()
    return dict(zip(points, values, strict=True))


@on_device
@pytest.mark.parametrize("size", [2, 1], ids=["float16", "int8"])
@pytest.mark.parametrize(("n", "batch"), [(N, BATCH), (2 * POINT_TILE, BATCH), (5 * POINT_TILE - 1, 2 * POINT_TILE)])
def test_what_is_listed_and_noted_is_everything_below_the_threshold(device: str, n: int, batch: int, size: int) -> None:
    packed = Packed(n, device, size=size)
    made = packed.mirror(n, batch)
    many = 0
    for first in range(0, n, batch):
        rows = slice(first, min(first + batch, n))
        assert made.takes(first, rows.stop - first)
        listed, noted = parts_of(made.screened(packed.queries(rows), first))
        scores = packed.scores(rows)
        for row in range(rows.stop - first):
            near = np.flatnonzero(scores[row] <= packed.thresholds[first + row])
            # A value is the lowest of the points of this row that a thread holds; of two bounds of the row's tiles the
            # larger may be used, which admits more points.
            seen = noted_of(noted, row)
            assert set(near[near < first]) <= set(seen)
            assert max(seen, default=-1) < first
            for point, value in seen.items():
                assert value <= scores[row, point]
            found = members_of(listed.lists, row)
            assert set(near[near >= first]) <= found
            assert min(found, default=first) >= first
            many += len(seen)
    assert many > n


def members_of(lists: Any, row: int) -> set[int]:
    """Return all members of the parts in a row's list."""
    assert (lists.counts <= lists.room).all()
    entries = lists.entries[row][lists.values[row] < float("inf")].cpu().numpy()
    groups, masks = np.divmod(entries.astype(np.int64), 16)
    parts = [16 * (group // 4) + 4 * part + group % 4 for part in range(4) for group in groups[masks >> part & 1 > 0]]
    return set(members(np.array(parts, dtype=np.int64), 8).ravel().tolist())


@on_device
def test_what_is_noted_has_its_score_where_it_is_alone(device: str) -> None:
    packed = Packed(2 * POINT_TILE, device)
    packed.thresholds[:] = np.sort(packed.scores(slice(0, packed.n)), axis=1)[:, 1]  # the lowest is the row's own
    made = packed.mirror(8)
    made.screened(packed.queries(slice(0, BATCH)), 0)
    _, noted = parts_of(made.screened(packed.queries(slice(BATCH, 2 * BATCH)), BATCH))
    scores, alone = packed.scores(slice(BATCH, 2 * BATCH)), 0
    for row in range(BATCH):
        for point, value in noted_of(noted, row).items():
            assert value <= scores[row, point]
            alone += value == scores[row, point]
    assert alone > BATCH // 3


@on_device
def test_a_row_too_large_for_a_query_is_noted_for_all(device: str) -> None:
    """Its packed elements are zeros when it is a query, although points have them."""
    packed = Packed(2 * POINT_TILE, device)
    packed.shift[7] = np.inf
    made = packed.mirror(packed.n)
    made.screened(packed.queries(slice(0, BATCH)), 0)
    _, noted = parts_of(made.screened(packed.queries(slice(BATCH, 2 * BATCH)), BATCH))
    for row in range(BATCH):
        assert noted_of(noted, row)[7] <= -1e30


@on_device
def test_too_few_slots_are_said(device: str) -> None:
    packed = Packed(2 * POINT_TILE, device)
    made = packed.mirror(2)
    made.screened(packed.queries(slice(0, BATCH)), 0)
    _, noted = parts_of(made.screened(packed.queries(slice(BATCH, 2 * BATCH)), BATCH))
    cut = (noted.counts > 2).cpu().numpy()
    assert cut.any()
    _, following = noted.lowest(1)
    np.testing.assert_array_equal(np.isneginf(following.cpu().numpy()), cut)
    near = noted.near(made.thresholds[BATCH:], 2)
    np.testing.assert_array_equal(near.whole.cpu().numpy(), ~cut)


@on_device
def test_the_nearest_of_what_is_noted(device: str) -> None:
    packed = Packed(3 * POINT_TILE, device)
    made = packed.mirror(packed.n)
    for first in range(0, packed.n, BATCH):
        _, noted = parts_of(made.screened(packed.queries(slice(first, first + BATCH)), first))
    chosen, following = (part.cpu().numpy() for part in noted.lowest(5))
    scores = torch.quantile(noted.values.where(noted.values.isfinite(), noted.thresholds[:, None]), 0.1, dim=1)
    near = noted.near(scores, packed.n)
    above = noted.near(noted.thresholds + 1, packed.n)
    assert not above.whole.any()  # nothing above the threshold is known
    for row in range(BATCH):
        seen = noted_of(noted, row)
        values = sorted(seen.values())
        assert sorted(seen[point] for point in chosen[row] if point >= 0) == values[:5]
        assert following[row] == min([*values[5:6], float(noted.thresholds[row])])
        count = int(near.found[row])
        assert set(near.numbers[row, :count].tolist()) == {p for p, v in seen.items() if v <= float(scores[row])}


@on_device
def test_batches_out_of_turn(device: str) -> None:
    packed = Packed(N, device)
    made = packed.mirror(N)
    assert not made.takes(BATCH, BATCH)
    assert not made.takes(0, BATCH - 1)  # no whole tile
    assert made.takes(0, BATCH)
    made.screened(packed.queries(slice(0, BATCH)), 0)
    assert not made.takes(0, BATCH)  # again
    assert made.takes(BATCH, N - BATCH)  # up to the end


# ---------------------------------------------------------------- whole graphs


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let graphs of any size sample thresholds; record the first row of each mirrored batch."""
    monkeypatch.setattr(tuning, "LEAST_ROWS", 1)
    monkeypatch.setattr(screener, "sample_for", lambda n, width, group, cost=0: Sample(stride=2, rank=6, capacity=256))
    monkeypatch.setattr(screener, "sample_within", lambda n, width, group, sample, slots: sample)
    firsts: list[int] = []
    screened = mirrored.Mirror.screened

    def spy(self: Any, queries: Any, first: int) -> Any:
        firsts.append(first)
        return screened(self, queries, first)

    monkeypatch.setattr(mirrored.Mirror, "screened", spy)
    return firsts


def graph(
    points: Array, k: int, metric: str = "euclidean", *, slots: int = 256, **given: Any
) -> tuple[Neighbors, Report]:
    rows = torch.from_numpy(points).to(DEVICE)
    plan = plan_of(rows, rows, k, metric, self_join=True, query_batch=BATCH, devices=(DEVICE,), **given)
    plan = dataclasses.replace(plan, mirrored_slots=slots)
    prepared = dispatch.prepare(rows, plan, False)
    found, report = dispatch.ROUTES["resident"].search(rows, prepared, plan, self_join=True)
    return on_host(found), report


def check_graph(points: Array, k: int, metric: str = "euclidean", **given: Any) -> Report:
    found, report = graph(points, k, metric, **given)
    truth = brute(points, points, k, metric, self_ids=np.arange(len(points)))
    assert_same_neighbors(found, truth, metric=metric)
    return report


def why(record: Record) -> list[str]:
    return [choice.why for choice in record.choices if choice.what == "mirror"]


# number of rows of graphs, which Triton's interpreter searches one after another
SHORT = BATCH + 9 if not HAS_CUDA else N
FIRSTS = list(range(0, SHORT, BATCH))


@pytest.mark.full  # takes ten seconds and more in the interpreter
@pytest.mark.parametrize(
    "metric",
    [
        pytest.param(metric, marks=() if metric in ("euclidean", "correlation") else pytest.mark.full)
        for metric in ("euclidean", "sqeuclidean", "cosine", "correlation", "inner_product")
    ],
)
def test_graphs_by_every_product(metric: str, seen: list[int]) -> None:
    report = check_graph(gaussian(SHORT, D), K, metric, width=12)
    assert seen == FIRSTS
    assert report.rows_by_precision["float16"] > 0.9 * SHORT


@pytest.mark.full  # takes ten seconds and more in the interpreter
@pytest.mark.parametrize(
    "dtype", ["float64", *(pytest.param(name, marks=pytest.mark.full) for name in ("float16", "uint8"))]
)
def test_graphs_of_other_dtypes(dtype: str, seen: list[int]) -> None:
    points = (40 * gaussian(SHORT, D)).clip(-120, 120)
    check_graph((np.abs(points) if dtype == "uint8" else points).astype(dtype), K, width=12)
    assert seen == FIRSTS


@pytest.mark.full  # takes ten seconds and more in the interpreter
@pytest.mark.parametrize(
    "name",
    [name if name in ("duplicates", "offset_1e4") else pytest.param(name, marks=pytest.mark.full) for name in HOSTILE],
)
def test_graphs_of_hostile_data(name: str, seen: list[int]) -> None:
    check_graph(HOSTILE[name](SHORT, D, 0), K, width=8)
    assert seen == FIRSTS


@pytest.mark.full  # takes ten seconds and more in the interpreter
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_contracted_graphs(metric: str, seen: list[int]) -> None:
    basis = gaussian(8, 280, 3)
    points = gaussian(SHORT, 8) @ basis + np.float32(0.05) * gaussian(SHORT, 280, 2)
    with recording("knn_graph", SHORT) as record:
        report = check_graph(points, K, metric, width=16, form_dim=140)
    assert why(record) == ["each product of a row and a point is used for both"]
    assert seen == FIRSTS
    assert report.rows_by_precision["float16 in 140 dimensions"] > 0.9 * SHORT


@pytest.mark.full  # takes ten seconds and more in the interpreter
def test_rows_for_which_too_much_is_noted_are_searched_again(seen: list[int]) -> None:
    report = check_graph(gaussian(SHORT, D), K, width=12, slots=8)
    assert seen == FIRSTS
    assert 0 < report.rows_by_precision["float16"] <= SHORT


@pytest.mark.full  # takes ten seconds and more in the interpreter
def test_neighbours_that_are_all_noted(seen: list[int]) -> None:
    """The neighbours of the last batch are rows of the first, and rows of the last batch are far apart."""
    points = gaussian(SHORT, D)
    points[-5:] = points[:5] + np.float32(0.01)
    found, _ = graph(points, 1, width=12)
    assert found.indices[-5:, 0].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.full  # takes ten seconds and more in the interpreter
@pytest.mark.parametrize("failing", [0, 1])
def test_a_batch_that_runs_out_of_memory_is_not_noted_twice(
    failing: int, seen: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its screen, the batch is halved, and it and all later batches are compared with all points."""
    refine, calls = first.refine_lowest, []

    def short_of_memory(queries: Any, *arguments: Any, **options: Any) -> Any:
        calls.append(len(queries))
        if len(calls) == failing + 1:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")
        return refine(queries, *arguments, **options)

    monkeypatch.setattr(first, "refine_lowest", short_of_memory)
    with recording("knn_graph", SHORT) as record:
        check_graph(checks.duplicates(SHORT, D), K, width=12)
    assert why(record)[-1] == "rows and points are compared twice from here on, as a batch is out of turn"
    assert record.proved == SHORT
    assert seen == FIRSTS[: failing + 1]
    assert calls[failing + 1] == calls[failing] // 2


def test_without_memory_for_what_is_noted_rows_and_points_are_compared_twice(
    seen: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*arguments: Any) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(screener, "Mirror", no_memory)
    with recording("knn_graph", 40) as record:
        check_graph(gaussian(40, D), K, width=8)
    assert seen == []
    assert why(record) == ["rows and points are compared twice: CUDA out of memory."]


@pytest.mark.process
def test_rehearsals_import_nothing_for_it(tmp_path: Path) -> None:
    """Imports by torch for operations on "meta" take seconds and are useless."""
    program = """
import sys
plan = plans.exact_cuda(10**6, 10**6, 768, 10, devices=("cuda:0",), self_join=True, free_bytes=10**11, form_dim="full")
with rehearsing(card) as rehearsal:
    rehearse_search(plan, "float32", self_join=True)
names = {call.kernel.fn.__name__ for call in rehearsal.calls.values()}
mirrored = {"screen_held_kernel", "limits_kernel", "note_kernel", "lowest_noted_kernel"}
print(mirrored <= names, "torch._dynamo" in sys.modules)
"""
    assert run(program, tmp_path).stdout.split() == ["True", "False"]


def test_where_rows_and_points_are_not_the_same_nothing_is_mirrored(seen: list[int]) -> None:
    rows = torch.from_numpy(gaussian(SHORT, D)).to(DEVICE)
    plan = plan_of(rows, rows, K, self_join=True, query_batch=BATCH, devices=(DEVICE,), width=12)
    plan = dataclasses.replace(plan, mirrored_slots=64)
    prepared = first.DevicePoints(rows, plan.metric, plan.precisions[0])
    search = prepared.begin(rows.clone(), plan)
    search.begin_mirror()
    assert search.screener.mirror is None
    short = prepared.begin(rows, dataclasses.replace(plan, mirrored_slots=0))
    short.begin_mirror()
    assert short.screener.mirror is None
    same = prepared.begin(rows, plan)
    same.begin_mirror()
    assert same.screener.mirror is not None


# ---------------------------------------------------------------- plans


def planned(n: int, d: int, free: int, **given: Any) -> Any:
    return exact_cuda(n, n, d, 10, devices=("cuda:0",), self_join=True, free_bytes=free, **given)


@pytest.mark.parametrize(("n", "batch"), [(10**5, 512), (10**6, 4224), (2 * 10**6, 2112)])
def test_what_a_batch_notes_is_planned(n: int, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """For any division among programs: three numbers for each of four threads, row and tile of points."""
    monkeypatch.setattr(tiles, "multiprocessors", lambda device: 144)
    split = wide_rows.tiling_of(256).split(batch, n, 0, None)
    assert split.parts > 1
    kept = mirrored.noted_bytes(n, 0, 0)
    assert mirrored.noted_bytes(n, 0, batch) - kept >= 12 * batch * 4 * split.parts * split.each


def test_plans_have_room_for_the_sample_of_a_graph() -> None:
    """The thresholds of a graph use more points than those of other searches."""
    given: dict[str, Any] = {"devices": ("cuda:0",), "free_bytes": 100 * GB, "query_batch": 4224, "form_dim": "full"}
    made, without = (exact_cuda(10**6, 10**6, 768, 10, self_join=graph, **given) for graph in (True, False))
    assert made.query_batch == 4224  # not longer, as requested
    sample = sample_for(10**6, made.width, made.group, tuning.NOTED_COST)
    noted = mirrored.noted_bytes(10**6, made.mirrored_slots, 4224)
    assert made.working_bytes - without.working_bytes >= noted + 10**6 // sample.stride * 768 * 2


def test_plans_have_room_for_what_is_noted() -> None:
    plan = planned(10**6, 768, 100 * GB)
    assert plan.mirrored_slots >= 512
    without = exact_cuda(10**6, 10**6, 768, 10, devices=("cuda:0",), free_bytes=100 * GB)
    assert without.mirrored_slots == 0
    assert plan.working_bytes - without.working_bytes >= mirrored.noted_bytes(
        10**6, plan.mirrored_slots, plan.query_batch
    )
    less = planned(10**6, 768, 32 * GB)
    assert 0 < less.mirrored_slots < plan.mirrored_slots
    assert less.total_bytes <= 32 * GB
    assert planned(10**6, 768, 16 * GB).mirrored_slots == 0
    assert planned(10**6, 128, 100 * GB).mirrored_slots == 0  # minima would take as long as products
    assert planned(10**4, 768, 100 * GB).mirrored_slots == 0  # there are too few batches


@on_gpu
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize(("d", "form_dim"), [(600, "full"), (600, 256), (1500, "full")])
def test_long_graphs(metric: str, d: int, form_dim: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long graphs by their plans, in batches that are not whole tiles of rows; sorted by cluster, and with copies."""
    firsts: list[int] = []
    screened = mirrored.Mirror.screened

    def spy(self: Any, queries: Any, first: int) -> Any:
        firsts.append(first)
        return screened(self, queries, first)

    monkeypatch.setattr(mirrored.Mirror, "screened", spy)
    rng = torch.Generator(DEVICE).manual_seed(1)
    n = 70_001
    centres = torch.randn((300, d), generator=rng, device=DEVICE)
    rows = centres[torch.arange(n, device=DEVICE) * 300 // n] + 0.3 * torch.randn((n, d), generator=rng, device=DEVICE)
    rows[500:520] = rows[69_000:69_020]
    plan = plan_of(rows, rows, 10, metric, self_join=True, devices=(DEVICE,), query_batch=4224, form_dim=form_dim)
    plan = dataclasses.replace(plan, mirrored_slots=1024)
    found = []
    for each in (plan, dataclasses.replace(plan, mirrored_slots=0)):
        prepared = dispatch.prepare(rows, each, False)
        answer, report = dispatch.ROUTES["resident"].search(rows, prepared, each, self_join=True)
        found.append((answer, report))
    assert len(firsts) == -(-n // 4224)
    assert torch.equal(found[0][0].indices, found[1][0].indices)
    assert torch.equal(found[0][0].distances, found[1][0].distances)
    usual = next(iter(found[1][1].rows_by_precision))
    assert found[0][1].rows_by_precision[usual] >= found[1][1].rows_by_precision[usual] - n // 1000
