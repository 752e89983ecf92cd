"""The k nearest rows of bits on CUDA: the bits of the reference for any data, split and device.

Without a GPU, Triton's interpreter runs the kernels on the CPU, so shapes are tiny.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.bit_rows import MAKERS, few
from tests.helpers.bits_on_cuda import DEVICE, check
from tests.helpers.devices import HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import tensors
from tonari import inputs
from tonari.metrics import BIT_METRICS

if HAS_TORCH:
    import torch


pytestmark = [needs_torch]


@pytest.mark.parametrize("metric", BIT_METRICS)
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("where", ["host", "device"])
def test_hostile_rows(metric: str, maker: str, where: str) -> None:
    for n, m, d in ((1, 1, 1), (7, 3, 3), (17, 2, 16), (40, 5, 17)):
        rows = MAKERS[maker](m, d, 1), MAKERS[maker](n, d)
        queries, points = tensors(DEVICE, *rows) if where == "device" else rows
        for k in sorted({1, min(n, 5), n}):
            check(queries, points, k, metric)


@pytest.mark.parametrize("metric", BIT_METRICS)
@pytest.mark.parametrize("maker", ["few", "ends"])
@pytest.mark.parametrize("point_slab", [8, 15])
def test_a_graph_leaves_out_each_point_but_not_its_duplicates(metric: str, maker: str, point_slab: int) -> None:
    points = MAKERS[maker](15, 3)
    for k in (1, 14):
        check(points, points, k, metric, self_join=True, point_slab=point_slab)


@pytest.mark.parametrize("where", ["host", "device"])
def test_several_devices_share_the_queries(where: str) -> None:
    queries, points = few(5, 4, 1), few(30, 4)
    if where == "device":
        queries, points = tensors(DEVICE, queries, points)
    check(queries, points, 7, "jaccard", devices=(DEVICE, DEVICE))
    check(points, points, 3, "hamming", devices=(DEVICE, DEVICE), self_join=True, query_block=4)


@pytest.mark.usefixtures("cpu_for_cuda")
@pytest.mark.parametrize("metric", BIT_METRICS)
@pytest.mark.parametrize("kind", ["host", "tensors", "bools", "strided"])
def test_every_verb(metric: str, kind: str) -> None:
    queries, points = few(3, 4, 1), few(24, 4)
    q, x = queries, points
    if kind != "host":
        q, x = tensors(DEVICE, queries, points)
    if kind == "bools":
        q, x = tensors(DEVICE, *(np.unpackbits(rows, axis=1).astype(bool) for rows in (queries, points)))
    if kind == "strided":
        x = x.repeat_interleave(2, dim=1)[:, ::2]
    device = "cuda" if kind == "host" else "auto"
    given: dict[str, Any] = {"metric": metric, "device": device}
    truth = tonari.search(queries, points, 5, metric=metric)
    index = tonari.Index(x, **given)
    assert index.method == "bits"
    for found in (tonari.search(q, x, 5, **given), index.search(q, 5)):
        same(found, truth)
    graph = tonari.knn_graph(x, 4, include_self=True, **given)
    whole = tonari.knn_graph(points, 4, metric=metric, include_self=True)
    same((graph.distances, graph.indices), (whole.distances, whole.indices))
    alone = tonari.knn_graph(x, 1, include_self=True, **given)
    assert np.asarray(alone.indices.cpu() if hasattr(alone.indices, "cpu") else alone.indices).tolist() == [
        [i] for i in range(24)
    ]
    radius = float(truth.distances[0, 3])
    same(tonari.radius_search(q, x, radius, **given), tonari.radius_search(queries, points, radius, metric=metric))
    same((tonari.radius_count(q, x, radius, **given),), (tonari.radius_count(queries, points, radius, metric=metric),))
    same(tonari.radius_graph(x, radius, **given), tonari.radius_graph(points, radius, metric=metric))
    same(tonari.pairs(x, radius, **given), tonari.pairs(points, radius, metric=metric))


def same(found: Any, truth: Any) -> None:
    for mine, right in zip(found, truth, strict=True):
        here = mine if isinstance(mine, np.ndarray) else mine.cpu().numpy()
        assert here.dtype == right.dtype
        assert here.tobytes() == right.tobytes()


@pytest.mark.usefixtures("cpu_for_cuda")
def test_bools_are_packed_as_numpy_packs_them() -> None:
    bools = np.random.default_rng(0).random((30, 32)) < 0.5
    wide = torch.from_numpy(bools.repeat(2, axis=1)).to(DEVICE)
    for rows in (torch.from_numpy(bools).to(DEVICE), wide[:, ::2]):
        for columns in (32, 31, 27, 25, 9, 1):
            packed = inputs.as_device_bits(rows[:, :columns], "points")
            assert packed.cpu().numpy().tobytes() == np.packbits(bools[:, :columns], axis=1).tobytes()


@pytest.mark.usefixtures("cpu_for_cuda")
def test_what_tensors_are_refused() -> None:
    for rows, error, words in (
        (torch.zeros((3, 4), device=DEVICE), TypeError, "float32 are no bits"),
        (torch.zeros(8, dtype=torch.bool, device=DEVICE), ValueError, "expected"),
    ):
        with pytest.raises(error, match=words):
            tonari.search(rows, rows, 1, metric="hamming")


@on_gpu
@pytest.mark.parametrize("metric", BIT_METRICS)
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("d", [1, 32, 125, 128, 250])
def test_large_searches_have_the_bits_of_the_cpu(metric: str, maker: str, d: int) -> None:
    queries, points = MAKERS[maker](1_000, d, 1), MAKERS[maker](60_000, d)
    for k, given in ((10, {}), (1, {}), (300, {}), (10, {"memory": "100MB"})):
        found = tonari.search(*tensors(DEVICE, queries, points), k, metric=metric, **given)
        same(found, tonari.search(queries, points, k, metric=metric))
    same(
        tonari.search(queries[:1], points, 10, metric=metric, device="cuda"),
        tonari.search(queries[:1], points, 10, metric=metric),
    )
    graph, truth = (
        tonari.knn_graph(rows, 7, metric=metric) for rows in (*tensors(DEVICE, points[:9_000]), points[:9_000])
    )
    same((graph.distances, graph.indices), (truth.distances, truth.indices))
