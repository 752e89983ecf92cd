"""Searches among rows of bits equal counts of unpacked bits, bit for bit, with every instruction set."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.helpers.bit_rows import MAKERS, ends, few, noise
from tests.helpers.checks import check_interrupt
from tests.helpers.kernels import ISAS
from tonari.bits import tuning
from tonari.core.errors import BudgetExceeded
from tonari.core.results.radius_neighbors import Within
from tonari.methods.registry import search_method
from tonari.metrics import BIT_METRICS
from tonari.metrics.problem import make_problem
from tonari.metrics.reference import brute, brute_within

Array = npt.NDArray[Any]
KERNELS = [isa for isa in ISAS if isa != "amx"]


def by_hand(queries: Array, points: Array, metric: str) -> Array:
    """Compute returned values from unpacked bits."""
    q, x = (np.unpackbits(rows, axis=1).astype(bool) for rows in (queries, points))
    different = (q[:, None] ^ x[None]).sum(axis=2)
    if metric == "hamming":
        return different.astype(np.float32)
    either = (q[:, None] | x[None]).sum(axis=2)
    return (different / np.maximum(either, 1)).astype(np.float32)


def check(queries: Array, points: Array, k: int, metric: str, *, graph: bool = False, **given: Any) -> None:
    """Check that a search equals a sort of all values."""
    n, d = points.shape
    values = by_hand(queries, points, metric).astype(np.float64)
    if graph:
        np.fill_diagonal(values, np.inf)
    order = np.argsort(values, axis=1, kind="stable")[:, :k]
    plan = tonari.plan(n, len(queries), d, k, dtype="uint8", metric=metric, self_join=graph, **{"threads": 1} | given)
    found = tonari.knn_graph(points, k, metric=metric, plan=plan) if graph else None
    found = tonari.search(queries, points, k, metric=metric, plan=plan) if found is None else found
    np.testing.assert_array_equal(found.indices, order)
    np.testing.assert_array_equal(found.distances, np.take_along_axis(values, order, axis=1))
    assert (found.distances.dtype, found.indices.dtype) == (np.float32, np.int32)


@pytest.mark.parametrize("metric", BIT_METRICS)
@pytest.mark.parametrize("maker", MAKERS)
def test_the_definition_counts_bits(metric: str, maker: str) -> None:
    queries, points = MAKERS[maker](9, 5, 1), MAKERS[maker](40, 5)
    values, k = by_hand(queries, points, metric), 40
    truth = brute(queries, points, k, metric)
    order = np.argsort(values, axis=1, kind="stable")
    np.testing.assert_array_equal(truth.indices, order)
    np.testing.assert_array_equal(truth.distances, np.take_along_axis(values, order, axis=1))


@pytest.mark.parametrize("metric", BIT_METRICS)
def test_values_are_those_of_scipy(metric: str) -> None:
    cdist = pytest.importorskip("scipy.spatial.distance").cdist
    queries, points = ends(7, 9, 1), noise(30, 9)
    q, x = (np.unpackbits(rows, axis=1).astype(bool) for rows in (queries, points))
    values = cdist(q, x, metric) * (72 if metric == "hamming" else 1)  # SciPy returns the share of the bits
    found = tonari.search(queries, points, 30, metric=metric)
    np.testing.assert_array_equal(np.take_along_axis(values, found.indices, 1).astype(np.float32), found.distances)


@pytest.mark.parametrize("isa", KERNELS)
@pytest.mark.parametrize("metric", BIT_METRICS)
@pytest.mark.parametrize("maker", MAKERS)
def test_hostile_rows(isa: str, metric: str, maker: str) -> None:
    for n, m, d in ((1, 1, 1), (7, 9, 3), (15, 8, 4), (16, 17, 5), (17, 7, 64), (200, 20, 125), (203, 3, 128)):
        queries, points = MAKERS[maker](m, d, 1), MAKERS[maker](n, d)
        for k in sorted({1, min(n, 13), n}):
            check(queries, points, k, metric, isa=isa)


@pytest.mark.parametrize("isa", KERNELS)
@pytest.mark.parametrize("d", [123, 124, 125, 248, 249, 1000])
def test_sums_of_bytes_do_not_overflow(isa: str, d: int) -> None:
    """All bits differ, and kernels sum as many words as a byte can count."""
    check(np.zeros((3, d), np.uint8), np.full((20, d), 255, np.uint8), 5, "hamming", isa=isa)
    check(np.full((3, d), 255, np.uint8), np.full((20, d), 255, np.uint8), 5, "jaccard", isa=isa)


@pytest.mark.parametrize("isa", KERNELS)
@pytest.mark.parametrize("metric", BIT_METRICS)
@pytest.mark.parametrize("maker", MAKERS)
def test_a_graph_leaves_out_each_point_but_not_its_duplicates(isa: str, metric: str, maker: str) -> None:
    for n in (2, 33, 150):
        points = MAKERS[maker](n, 6)
        for k in sorted({1, n - 1}):
            check(points, points, k, metric, graph=True, isa=isa)


@pytest.mark.parametrize("metric", BIT_METRICS)
@pytest.mark.parametrize("maker", MAKERS)
def test_no_split_changes_an_answer(metric: str, maker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "SCANNED_WORDS", 64)
    monkeypatch.setattr(tuning, "PACKED_BYTES", 256)
    points = MAKERS[maker](400, 7)
    for m, threads, block in itertools.product((1, 3, 70), (1, 3), (1, 2, 64)):
        check(MAKERS[maker](m, 7, 1), points, 11, metric, threads=threads, query_block=block)
    check(points, points, 5, metric, graph=True, threads=3, query_block=400)


@pytest.mark.parametrize("metric", BIT_METRICS)
@pytest.mark.parametrize("d", [5, 128])
def test_a_search_of_one_block_packs_points_as_it_meets_them(
    d: int, metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    points, queries = noise(2000, d), noise(64, d, 1)
    index = tonari.Index(points, metric=metric)
    monkeypatch.setattr("tonari.bits.cpu.method.PreparedBits", None)  # which would pack all points first
    for m, threads in ((1, 1), (1, 3), (64, 2)):
        found = tonari.search(queries[:m], points, 7, metric=metric, threads=threads)
        truth = index.search(queries[:m], 7)
        np.testing.assert_array_equal(found.indices, truth.indices)
        np.testing.assert_array_equal(found.distances, truth.distances)


@pytest.mark.parametrize("metric", BIT_METRICS)
def test_many_points_condense_their_lists(metric: str) -> None:
    """Far points come first, so every point is nearer than those before it; also points in any order."""
    points = np.packbits(np.tri(1024, dtype=bool)[::-1], axis=1)
    for ordered in (points, np.random.default_rng(0).permutation(points)):
        check(np.zeros((2, 128), np.uint8), ordered, 3, metric)
        check(np.packbits(np.tri(1024, dtype=bool)[[5, 900]], axis=1), ordered, 3, metric)
        check(points[::100], ordered, 30, metric)


@pytest.mark.parametrize("isa", KERNELS)
@pytest.mark.parametrize("metric", BIT_METRICS)
@pytest.mark.parametrize("maker", MAKERS)
def test_all_within_a_radius(isa: str, metric: str, maker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONARI_ISA", isa)
    queries, points = MAKERS[maker](9, 6, 1), MAKERS[maker](300, 6)
    values = np.unique(by_hand(queries, points, metric))
    for radius in (0.0, values[len(values) // 3], values[len(values) // 2] + 0.01, values[-1], 1.0, np.inf):
        for closed, threads in ((True, 1), (False, 3)):
            limit = np.float32(radius) if closed else np.nextafter(np.float32(radius), np.float32(-1))
            limit = np.float32(np.inf) if np.isinf(radius) and closed else limit
            truth = brute_within(queries, points, np.full(9, limit), metric)
            given: dict[str, Any] = {"metric": metric, "closed": closed, "threads": threads}
            found = tonari.radius_search(queries, points, radius, **given)
            for mine, right in zip(found, truth, strict=True):
                np.testing.assert_array_equal(mine, right)
            counts = tonari.radius_count(queries, points, radius, **given)
            np.testing.assert_array_equal(counts, np.diff(truth.indptr))


@pytest.mark.parametrize("metric", BIT_METRICS)
def test_pairs_and_graphs_of_a_radius(metric: str) -> None:
    points = few(60, 4)
    values = by_hand(points, points, metric)
    left, right = np.nonzero(np.triu(values <= 0, 1))
    found = tonari.pairs(points, 0.0, metric=metric)
    np.testing.assert_array_equal([found.left, found.right], [left, right])
    graph = tonari.radius_graph(points, 0.0, metric=metric)
    np.testing.assert_array_equal(np.diff(graph.indptr), (values <= 0).sum(axis=1) - 1)


@pytest.mark.parametrize("metric", BIT_METRICS)
def test_an_index_answers_as_a_search(metric: str, tmp_path: Any) -> None:
    points, queries = noise(90, 6), noise(8, 6, 1)
    truth = tonari.search(queries, points, 4, metric=metric)
    index = tonari.Index(points, metric=metric)
    index.save(tmp_path / "index.npz")
    for one in (index, tonari.Index.load(tmp_path / "index.npz")):
        assert one.method == "bits"
        np.testing.assert_array_equal(one.search(queries, 4).indices, truth.indices)
        assert [len(part.indices) for part in one.search_chunks([queries[:3], queries[3:]], 4)] == [3, 5]


def test_strided_read_only_and_bool_rows() -> None:
    points, queries = noise(50, 6), noise(5, 6, 1)
    truth = tonari.search(queries, points, 9, metric="jaccard")
    wide = np.repeat(points, 2, axis=1)[:, ::2]
    wide.flags.writeable = False
    bools = np.unpackbits(points, axis=1).astype(bool)
    for rows in (wide, np.asfortranarray(points), bools, np.asfortranarray(bools)):
        found = tonari.search(queries, rows, 9, metric="jaccard")
        np.testing.assert_array_equal(found.indices, truth.indices)
        np.testing.assert_array_equal(found.distances, truth.distances)


def test_a_budget_is_kept_or_refused() -> None:
    points = noise(1000, 16)
    whole = tonari.plan(1000, 300, 16, 10, dtype="uint8", metric="hamming", threads=2)
    small = tonari.plan(1000, 300, 16, 10, dtype="uint8", metric="hamming", threads=2, memory=whole.total_bytes - 1)
    assert small.total_bytes < whole.total_bytes
    assert small.query_block < whole.query_block
    with pytest.raises(BudgetExceeded, match="allow at least"):
        tonari.search(points[:3], points, 10, metric="hamming", memory=1000)


def test_pairs_of_later_rows_name_later_points_alone() -> None:
    points = np.repeat(np.arange(6, dtype=np.uint8)[:, None] // 2, 2, axis=1)
    method = search_method("bits", "cpu")
    plan = method.plan(make_problem(6, 6, 2, 1, dtype="uint8", metric="hamming"))
    request = Within(points[2:5], np.full(3, 64, np.float32), range(2, 5), later=True)
    found = method.find_within(request, method.prepare(points, plan), plan)
    assert [sorted(part.tolist()) for part in np.split(found.indices, found.indptr[1:-1])] == [[3, 4, 5], [4, 5], [5]]


def test_progress_counts_all_pairs() -> None:
    seen: list[tuple[int, int]] = []
    points = noise(333, 5)
    tonari.search(points[:100], points, 3, metric="hamming", threads=2, progress=lambda *now: seen.append(now))
    assert seen[-1] == (33_300, 33_300)


CHILD = """
import threading, time
import numpy as np, tonari

points = np.random.default_rng(0).integers(0, 256, (300_000, 256), dtype=np.uint8)
started = threading.Event()
def progress(done, total):
    if not started.is_set():
        started.set()
        print("started", flush=True)
try:
    tonari.search(points, points, 10, metric="hamming", threads={threads}, progress=progress)
except KeyboardInterrupt:
    print("stopped", time.time(), flush=True)
else:
    print("finished", flush=True)
print("threads", threading.active_count(), flush=True)
"""


@pytest.mark.process
@pytest.mark.parametrize("threads", [1, 2])
def test_interrupt_stops_within_a_second(threads: int) -> None:
    check_interrupt(CHILD.format(threads=threads))
