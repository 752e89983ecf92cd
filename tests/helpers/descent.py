"""Helpers for tests of NN-Descent on the CPU: plans, points, and the share of the true neighbours that is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.helpers import plans
from tonari.core import _native
from tonari.core.results.neighbors import Neighbors
from tonari.metrics import METRICS
from tonari.nn_descent.plan import DescentPlan

Array = npt.NDArray[Any]

ISAS = [isa for isa in _native.supported_isas() if isa != "amx"]  # whose rounds are those of AVX-512
SMALL = {"list_size": 9, "n_hubs": 4, "reverse": 3, "neighbors_per_hub": 6, "width": 20, "block": 7}


def plan_for(points: Array, k: int, metric: str = "euclidean", **overrides: Any) -> DescentPlan:
    n, d = points.shape
    return plans.descent(n, d, k, dtype=points.dtype, metric=metric, **{"threads": 1} | overrides)


def as_dtype(points: Array, dtype: str, metric: str) -> Array:
    """Make points within the range of a dtype and a metric."""
    if METRICS[metric].nonnegative or dtype == "uint8":
        points = np.abs(points)
    if dtype in ("uint8", "int8"):
        points = points.astype(np.float64) / (np.abs(points.astype(np.float64)).max() or 1.0) * 127
    if dtype == "float16":
        points = np.clip(points, -6e4, 6e4)
    return np.ascontiguousarray(points.astype(dtype))


def shared(indices: Array, truth: Neighbors) -> float:
    """Return the share of the true neighbours that the lists contain."""
    return float((indices[:, :, None] == truth.indices[:, None, :]).any(axis=1).mean())


def groups(n: int, d: int, seed: int = 0) -> Array:
    """Make 40 overlapping groups of very different sizes, each with four directions."""
    rng = np.random.default_rng(seed)
    sizes = rng.pareto(1.0, 40) + 0.1
    group = rng.choice(40, n, p=sizes / sizes.sum())
    directions = rng.standard_normal((40, 4, d))
    within = np.einsum("ni,nid->nd", rng.standard_normal((n, 4)), directions[group])
    return (rng.standard_normal((40, d))[group] * 2 + 5 + within).astype(np.float32)
