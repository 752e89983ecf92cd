"""The k farthest points by Euclidean distance.

The farthest point x of a query q has the largest |x|² - 2 q·x, which is the inner product of (-2 q, 1) and (x, |x|²).
So an exact search by inner product finds somewhat more than k candidates, whose distances are then computed by the
metric's definition. The mean of the points is subtracted from all rows first, which does not change distances.

Let s be the smallest inner product of a candidate, as computed. Every other point has a squared distance of at most

    (s + |q|² + E) (1 + e),    E = e (|q| + max |x|)² + e 2⁻⁹⁶⁹,    e = (4 d + 64) 2⁻⁵³.

E bounds the rounding errors: at most 4 · 2⁻⁵³ times (|q| + |x|)² by the subtraction, at most (2 d + 12) 2⁻⁵³ times that
by inner products, norms and their sum, and less than 2⁻¹⁰²² for each term that underflows. The last factor bounds the
relative errors of the definition. If the bound, rounded as a distance, is less than the k-th candidate's distance, the
k candidates are the answer. For all other queries, all distances are computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import exact, inputs
from tonari.core._native import exact_values
from tonari.core.process.progress import ProgressLike
from tonari.core.process.workers import Workers, default_threads
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.rows.slices import cut
from tonari.core.trail import current, part
from tonari.exact import tuning
from tonari.metrics import get_metric
from tonari.metrics.reference import returned


def farthest(
    queries: npt.NDArray[Any],
    points: npt.NDArray[Any],
    k: int,
    metric: str,
    *,
    threads: int | None = None,
    progress: ProgressLike = None,
) -> Neighbors:
    """Find the k farthest points of every query.

    Parameters
    ----------
    queries, points : checked rows of shape (m, d) and (n, d)
    k : int
    metric : str
        "euclidean" or "sqeuclidean".
    threads : int, optional
    progress : None, bool or callable(done, total)
        Reports pairs of a query and a point.

    Returns
    -------
    Neighbors of shape (m, k)
        In descending order of distance, ties in ascending order of row number.

    Examples
    --------
    >>> import numpy as np
    >>> line = np.array([[0.0], [1.0], [3.0]], np.float32)
    >>> farthest(line, line, 2, "euclidean").indices.tolist()
    [[2, 1], [2, 0], [0, 1]]
    """
    m, n = len(queries), len(points)
    found = Neighbors.empty(m, k, n, queries.dtype.name, points.dtype.name)
    proved = np.zeros(m, bool)
    candidates = k + max(tuning.FARTHEST_MORE, k // 4)
    if n >= tuning.FARTHEST_SCREENED * candidates:
        proved = _screened(queries, points, metric, candidates, found, threads=threads, progress=progress)
    rest = np.flatnonzero(~proved)
    workers = Workers(threads or default_threads())

    def compute(rows: slice) -> None:
        every = np.broadcast_to(np.arange(n), (len(rest[rows]), n))
        _ordered(queries[rest[rows]], points, metric, np.ascontiguousarray(every), rest[rows], found)

    workers.map(compute, list(cut(len(rest), max(1, tuning.FARTHEST_BLOCK // n))))
    record = current.get()
    if record is not None:
        record.tried("candidates by inner product", m, m - len(rest))
        record.tried("all distances", len(rest), len(rest))
    return found


def _ordered(
    queries: npt.NDArray[Any],
    points: npt.NDArray[Any],
    metric: str,
    ids: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    found: Neighbors,
) -> None:
    """Write, for some rows of the result, the farthest of the points listed in `ids`; each row of `ids` must ascend."""
    values = np.empty(ids.shape)
    exact_values(metric, np.ascontiguousarray(queries), points, ids, values)
    distances = returned(values, found.distances.dtype)
    order = np.argsort(-distances, axis=1, kind="stable")[:, : found.indices.shape[1]]
    found.distances[rows] = np.take_along_axis(distances, order, axis=1)
    found.indices[rows] = np.take_along_axis(ids, order, axis=1).astype(index_dtype(len(points)))


def _screened(
    queries: npt.NDArray[Any],
    points: npt.NDArray[Any],
    metric: str,
    candidates: int,
    found: Neighbors,
    *,
    threads: int | None,
    progress: ProgressLike,
) -> npt.NDArray[np.bool_]:
    """Write the farthest of each query's candidates to the result; return a mask of the rows certified as exact."""
    m, e = len(queries), (4 * queries.shape[1] + 64) * 2.0**-53
    q, x = (inputs.as_floats(rows).astype(np.float64) for rows in (queries, points))
    centre = x.mean(axis=0)
    q, x = q - centre, x - centre
    squares, lengths = np.einsum("ij,ij->i", q, q), np.einsum("ij,ij->i", x, x)
    reach = np.square(np.sqrt(squares) + np.sqrt(lengths.max()))
    if not reach.max() < inputs.LARGEST_FLOAT64:  # inner products may overflow
        return np.zeros(m, bool)
    asked, listed = np.column_stack([-2.0 * q, np.ones(m)]), np.column_stack([x, lengths])
    del q, x
    with part("the largest inner products", m):
        near = exact.neighbors(asked, listed, candidates, metric="inner_product", threads=threads, progress=progress)
    del asked, listed
    ids = np.sort(near.indices.astype(np.int64), axis=1)
    for rows in cut(m, max(1, tuning.FARTHEST_BLOCK // candidates)):
        _ordered(queries[rows], points, metric, np.ascontiguousarray(ids[rows]), np.arange(m)[rows], found)
    bound = np.maximum(0.0, near.distances[:, -1] + squares + (e * reach + e * 2.0**-969)) * (1.0 + e)
    bound = np.sqrt(bound) if get_metric(metric).root else bound
    proved: npt.NDArray[np.bool_] = returned(bound, found.distances.dtype) < found.distances[:, -1]
    return proved
