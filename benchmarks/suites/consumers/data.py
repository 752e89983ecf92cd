"""Points for estimators and layouts.

===========  ========================================================================================================
``mixture``  overlapping affine clusters (``datasets.clusters``)
``blobs``    round clusters of 50 random centres in a cube: some overlap
``gaps``     N(0, 1) per entry; a fifth of the entries are NaN
``sift``     the strongest principal components of real SIFT descriptors
===========  ========================================================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...harness.case import Case
from ...harness.datasets import clusters, photographs
from ...harness.run import Run

CLASSES = 5
# data "blobs": the number of clusters, the side of the cube that contains them, and their spread
CENTRES, SIDE, WIDTH = 50, 10.0, 0.3
GAPS = 0.2  # share of entries that are NaN
NOISE = 0.1  # share of the labels that are random; the other labels follow from the point


def points_of(run: Run, case: Case) -> Any:
    """Return one NumPy array with the points of a case, followed by its queries; successive cases share it."""
    shape = (case.data, case.n + case.queries, case.d, case.dtype)
    if case.data == "sift":
        return run.keep(shape, lambda: components(photographs.sift_photo(case.n + case.queries).points, case.d))
    if case.data == "blobs":
        return run.keep(shape, lambda: blobs(case.n + case.queries, case.d))
    if case.data == "gaps":
        return run.keep(shape, lambda: gaps(case.n + case.queries, case.d))
    return run.keep(shape, lambda: clusters.make(*shape, "cpu").numpy())


def blobs(n: int, d: int) -> Any:
    """Return round clusters, float64: centres in a cube of side 10, and N(0, 0.3) per entry around them."""
    rng = np.random.default_rng(0)
    centres = SIDE * rng.random((CENTRES, d))
    return centres[rng.integers(CENTRES, size=n)] + WIDTH * rng.standard_normal((n, d))


def gaps(n: int, d: int) -> Any:
    """Return rows of N(0, 1) entries, float64, in which some entries are NaN."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((n, d))
    rows[rng.random(rows.shape) < GAPS] = np.nan
    return rows


def components(rows: Any, d: int) -> Any:
    """Return the d strongest principal components of rows, float32."""
    centred = rows - rows.mean(axis=0, dtype=np.float64)
    _, directions = np.linalg.eigh(np.cov(centred.T))
    return np.ascontiguousarray(centred @ directions[:, : -d - 1 : -1], dtype=np.float32)


def labels_of(points: Any) -> Any:
    """Return a class for each point.

    It is the one of several random directions along which the point is farthest; some classes are random.
    """
    rng = np.random.default_rng(0)
    classes = ((points - points.mean(axis=0)) @ rng.standard_normal((points.shape[1], CLASSES))).argmax(axis=1)
    drawn = rng.random(len(points)) < NOISE
    return np.where(drawn, rng.integers(CLASSES, size=len(points)), classes)
