"""The start by clusters: each point is compared with the members of nearby clusters."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch

if HAS_TORCH:
    import torch

    from tests.helpers.descent_on_cuda import DEVICE, check_lists, plan_for, recall_of
    from tonari.nn_descent.cuda.clusters import find_clusters
    from tonari.nn_descent.cuda.form import form_of
    from tonari.nn_descent.cuda.scan import scan, scan_block
pytestmark = [needs_torch, pytest.mark.usefixtures("plain_exact_neighbors")]


@pytest.mark.full
@pytest.mark.parametrize(
    ("n", "clusters"), [(2, 1), (65, 1), (65, 65), *([(700, 1), (700, 700), (3000, 2)] if HAS_CUDA else [])]
)
def test_the_start_of_any_number_of_clusters(n: int, clusters: int) -> None:
    points = checks.gaussian(n, 4)
    form = form_of(torch.from_numpy(points).to(DEVICE), "euclidean")
    found = find_clusters(form, plan_for(points, 1, n_clusters=clusters, train_per_cluster=8, kmeans_iters=1))
    assert sorted(found.order.cpu().tolist()) == list(range(n))
    bounds = found.bounds.cpu().tolist()
    assert (bounds[0], bounds[-1]) == (0, n)
    ids = check_lists(scan(form, found, 8, 500).cpu().numpy(), n)
    if clusters == 1 and n <= 700:  # all pairs of points are compared
        k = min(n - 1, 8)
        assert recall_of(ids[:, :k], points, k, "euclidean") > 0.95


def test_of_a_large_cluster_those_around_a_tile_are_compared() -> None:
    n, tile = 900, 64
    points = np.arange(n, dtype=np.float32)[:, None]  # one cluster, in the order of its values
    form = form_of(torch.from_numpy(points).to(DEVICE), "euclidean")
    found = find_clusters(form, plan_for(points, 1, n_clusters=1, train_per_cluster=8, kmeans_iters=1))
    assert found.order.tolist() == list(range(n))
    ids = scan_block(form, found.order, found.bounds, found.near[found.order], 0, 16, 256)[1].cpu().numpy()
    assert ids.shape == (n, 16)
    # the tile's first row is compared with this number of points around it, or at an end
    first = np.arange(n) // tile * tile
    begin = np.clip(first - 128, 0, n - 256)
    for row in range(n):
        near = [other for other in (row - 1, row + 1) if begin[row] <= other < begin[row] + 256]
        assert set(near) <= set(ids[row].tolist())
        listed = ids[row][ids[row] >= 0]
        assert ((listed >= begin[row]) & (listed < begin[row] + 256)).all()
