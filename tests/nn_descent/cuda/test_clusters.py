"""k-means on a sample: points in the order of their clusters, and nearby clusters."""

from __future__ import annotations

import numpy as np

from tests.helpers import checks
from tests.helpers.devices import HAS_TORCH, needs_torch

if HAS_TORCH:
    import torch

    from tests.helpers.descent_on_cuda import DEVICE, plan_for
    from tonari.nn_descent.cuda.clusters import find_clusters, training_rows
    from tonari.nn_descent.cuda.form import form_of

pytestmark = [needs_torch]


def test_points_are_in_the_order_of_their_clusters_and_then_of_their_numbers() -> None:
    points = np.concatenate([checks.gaussian(20, 3), checks.gaussian(20, 3, 1) + 50]).astype(np.float32)
    points = points[np.random.default_rng(0).permutation(40)]
    plan = plan_for(points, 2, n_clusters=2, n_probe=2, train_per_cluster=20, kmeans_iters=3)
    found = find_clusters(form_of(torch.from_numpy(points).to(DEVICE), "euclidean"), plan)
    order, bounds, near = (part.cpu().numpy() for part in (found.order, found.bounds, found.near))
    assert bounds.tolist() == [0, 20, 40]
    far = points[:, 0] > 25
    for begin, end in ((0, 20), (20, 40)):
        members = order[begin:end]
        assert (np.diff(members) > 0).all()
        assert len(set(far[members])) == 1
        assert (near[members, 0] == begin // 20).all()
        assert (near[members, 1] == 1 - begin // 20).all()


def test_training_rows_depend_on_the_seed_alone() -> None:
    points = checks.gaussian(60, 3)
    plan, other = (plan_for(points, 2, n_clusters=3, train_per_cluster=8, seed=seed) for seed in (1, 2))
    drawn = training_rows(60, plan, "cpu").tolist()
    assert len(set(drawn)) == len(drawn) == 24
    assert drawn == training_rows(60, plan, "cpu").tolist() != training_rows(60, other, "cpu").tolist()
    assert len(training_rows(10, plan, "cpu")) == 10
