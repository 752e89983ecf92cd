"""Points that classes and layouts are made of: overlapping affine clusters, as principal components of pictures are."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...harness.case import Case
from ...harness.datasets import clusters
from ...harness.run import Run

CLASSES = 5
NOISE = 0.1  # share of labels that are drawn


def points_of(run: Run, case: Case) -> Any:
    """Points of a case and the queries behind them, NumPy; cases that follow one another share theirs."""
    shape = (case.data, case.n + case.queries, case.d, case.dtype)
    return run.keep(shape, lambda: clusters.make(*shape, "cpu").numpy())


def labels_of(points: Any) -> Any:
    """A class of each point: the one of some random directions that it reaches farthest in, but for some noise."""
    rng = np.random.default_rng(0)
    classes = ((points - points.mean(axis=0)) @ rng.standard_normal((points.shape[1], CLASSES))).argmax(axis=1)
    drawn = rng.random(len(points)) < NOISE
    return np.where(drawn, rng.integers(CLASSES, size=len(points)), classes)
