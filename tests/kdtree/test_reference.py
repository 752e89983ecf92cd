"""The recursion of the reference, and its thresholds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers import checks
from tests.helpers.trees import tree_of
from tonari.kdtree.plan import TREE_METRICS
from tonari.kdtree.reference import reach_reference, visits_reference
from tonari.metrics import get_metric
from tonari.metrics.reference import brute, pairwise, returned

METRICS = list(TREE_METRICS)


def test_the_recursion_finds_the_neighbours_and_skips_leaves() -> None:
    points = checks.gaussian(2000, 3)
    tree = tree_of(points, leaf=8)
    for query in checks.gaussian(20, 3, 1):
        leaves, nodes = visits_reference(tree, query, 4, "euclidean")
        assert len(set(leaves)) == len(leaves) < tree.leaves // 4
        assert 1 <= nodes <= sum(len(level) for level in tree.boxes)
        seen = np.concatenate([tree.ids[tree.begins[leaf] : tree.begins[leaf + 1]] for leaf in leaves])
        assert np.isin(brute(query[None], points, 4).indices, seen).all()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_threshold_covers_every_tie(metric: str, dtype: npt.DTypeLike) -> None:
    # Every returned value of at most r has a sum within reach(r), with any rounding of the comparison.
    rng = np.random.default_rng(7)
    for d in (1, 3, 16, 40):
        for scale in (1e-30, 1e-20, 1.0, 1e12):
            q = (rng.standard_normal(d) * scale).astype(dtype)
            x = (rng.standard_normal((3000, d)) * scale).astype(dtype)
            values = returned(pairwise(q[None], x, metric)[0], dtype)
            value = get_metric(metric).before_root.value
            assert value is not None
            for columns in (range(d), reversed(range(d))):
                sums = np.zeros(len(x), dtype)
                for i in columns:
                    term = value(q[i : i + 1, None], x[:, i][None])  # in their dtype
                    with np.errstate(over="ignore"):
                        sums = np.maximum(sums, term) if metric == "linf" else sums + term
                limits = np.array([reach_reference(value, d, metric) for value in values])
                assert (sums <= limits).all()
                if scale >= 1:
                    assert (limits <= sums * dtype(1 + 1e-4)).all()  # and only slightly more
