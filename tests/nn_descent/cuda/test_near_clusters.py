"""The nearest centres of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks, plans
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import GB
from tonari.metrics.reference import brute
from tonari.nn_descent.entries import ID
from tonari.nn_descent.plan import DescentPlan
from tonari.nn_descent.planning.planner import MOST_NEAR_ON_CUDA

if HAS_TORCH:
    import torch

    from tonari.core.results.neighbors import Neighbors
    from tonari.nn_descent.cuda import backend as steps
    from tonari.nn_descent.cuda.clusters import _bounds, find_clusters, near_centres
    from tonari.nn_descent.cuda.form import Form, form_of, terms_of
    from tonari.nn_descent.cuda.scan import scan

Array = np.ndarray[Any, Any]
pytestmark = [needs_torch]
DEVICE = "cuda:0" if HAS_CUDA else "cpu"


def plain_nearest(queries: Any, points: Any, k: int, metric: str, memory: int) -> Neighbors:
    assert memory > 0
    found = brute(queries.numpy(), points.numpy(), k, metric)
    return Neighbors(torch.from_numpy(found.distances), torch.from_numpy(found.indices))


@pytest.fixture(autouse=True)
def _plain_stand_in_for_the_exact_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which has tests of its own, and takes the interpreter minutes."""
    if not HAS_CUDA:
        monkeypatch.setattr(steps, "nearest", plain_nearest)


def plan_for(points: Array, k: int, metric: str = "euclidean", **choices: Any) -> DescentPlan:
    n, d = points.shape
    return plans.descent(n, d, k, dtype=points.dtype, metric=metric, devices=(DEVICE,), free_bytes=8 * GB, **choices)


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize(("n", "centres", "d"), [(3, 5, 3), (70, 300, 20), *([(500, 700, 200)] if HAS_CUDA else [])])
def test_the_nearest_centres(n: int, centres: int, d: int, count: int) -> None:
    points, others = checks.gaussian(n, d), checks.gaussian(centres, d, 1)
    form = form_of(torch.from_numpy(np.concatenate([points, others])).to(DEVICE), "sqeuclidean")
    rows, met = (Form(part, *terms_of(part, products=False)) for part in (form.rows[:n], form.rows[n:]))
    near = near_centres(rows, met, count).cpu().numpy()
    assert near.dtype == np.int16
    plain = np.square(rows.rows.cpu().numpy()[:, None].astype(float) - met.rows.cpu().numpy()[None]).sum(2)
    assert all(len(set(row)) == count for row in near.tolist())
    assert (near >= 0).all()
    assert (near < centres).all()
    # Two centres of a column of tiles are kept, and tile numbers take the last bits of a score.
    listed = np.take_along_axis(plain, near.astype(int), 1)
    assert (np.diff(listed, axis=1) >= -1e-5 * plain.max()).all()
    np.testing.assert_allclose(listed[:, 0], plain.min(axis=1), rtol=1e-5)
    true = np.sort(plain, axis=1)[:, :count]
    assert (np.abs(listed - true) <= 1e-5 * true).mean() > 0.95
    some = np.random.default_rng(0).permutation(n)[: n // 2]
    asked = near_centres(rows, met, count, torch.from_numpy(some).to(DEVICE)).cpu().numpy()
    np.testing.assert_array_equal(asked, near[some])


@pytest.mark.full
def test_the_two_nearest_may_share_a_column() -> None:
    """For centres, and for members of a cluster, that are one whole tile apart."""
    points = 100 * checks.gaussian(200, 3)
    points[[5, 5 + 64, 5 + 128]] = points[0] + np.array([[1, 0, 0], [0, 2, 0], [0, 0, 3]], np.float32)
    form = form_of(torch.from_numpy(points).to(DEVICE), "euclidean")
    near = near_centres(form, form, 3).cpu().numpy()
    assert near[0].tolist() == [0, 5, 69]
    assert near[5 + 128].tolist() == [133, 0, 5]  # 5 and 133 are 128 apart
    found = find_clusters(form, plan_for(points, 1, n_clusters=1, train_per_cluster=8, kmeans_iters=1))
    assert found.order.tolist() == list(range(200))
    assert {5, 69} <= set((scan(form, found, 4, 200)[0].cpu().numpy() & ID).tolist())


@pytest.mark.parametrize(("clusters", "dtype"), [(32_767, np.int16), (32_768, np.int32)])
def test_numbers_of_many_clusters(clusters: int, dtype: type) -> None:
    rows = torch.arange(clusters, dtype=torch.float32, device=DEVICE)[:, None] / 1024 % 8
    form = form_of(torch.cat([rows, rows]), "sqeuclidean")
    centres = Form(form.rows[:clusters], *terms_of(form.rows[:clusters], products=False))
    asked = torch.tensor([5, clusters - 1], device=DEVICE)
    near = near_centres(form, centres, 1, asked).cpu().numpy()
    assert near.dtype == dtype
    np.testing.assert_array_equal(form.rows[near[:, 0]].cpu().numpy(), form.rows[asked].cpu().numpy())
    ends = _bounds(torch.tensor([0, clusters - 1], device=DEVICE).to(getattr(torch, near.dtype.name)), clusters)
    assert ends[[0, 1, clusters - 1, clusters]].tolist() == [0, 1, 1, 2]


def test_centres_by_inner_product_and_as_many_as_there_are() -> None:
    rows = torch.from_numpy(checks.gaussian(40, 6)).to(DEVICE)
    form = form_of(rows, "inner_product")
    centres = Form(form.rows[:7], *terms_of(form.rows[:7], products=True))
    near = near_centres(form, centres, 7).cpu().numpy()
    products = (form.rows.float() @ form.rows[:7].float().T).cpu().numpy()
    np.testing.assert_array_equal(near, np.argsort(-products, axis=1, kind="stable"))


def test_more_centres_than_a_row_can_be_told() -> None:
    with pytest.raises(ValueError, match="n_probe=257: at most 256, since CUDA keeps no more clusters per point"):
        plan_for(checks.gaussian(300, 2), 1, n_clusters=300, n_probe=257)
    assert plan_for(checks.gaussian(300, 2), 1, n_clusters=300, n_probe=256).n_probe == MOST_NEAR_ON_CUDA
