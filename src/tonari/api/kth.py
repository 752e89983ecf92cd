"""The verb of values without lists: `tonari.kth_distance`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tonari import inputs
from tonari.api.index import Index
from tonari.core.floats import in_default_floats
from tonari.core.progress import Progress, ProgressLike
from tonari.core.slices import cut

_HELD = 1 << 24  # neighbours that are held at a time


@in_default_floats
@inputs.without_gradients("use the last column of tonari.knn_graph(..., differentiable=True).distances")
def kth_distance(
    points: Any,
    k: int,
    *,
    metric: str = "euclidean",
    weights: Any = None,
    method: str = "auto",
    device: str | Sequence[str] = "auto",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: ProgressLike = None,
) -> Any:
    """Find the distance of every point to its k-th nearest other point, exactly.

    The values are those of the last column of :func:`knn_graph`, but no lists are kept: a k in the tens of thousands
    takes the memory of some blocks of rows, not n k numbers. HDBSCAN calls them core distances, of
    ``min_samples=k + 1`` where the point counts itself (Campello, Moulavi and Sander, Density-based clustering based on
    hierarchical density estimates, PAKDD 2013, definition 5).

    Parameters that are not listed are those of :func:`knn_graph`.

    Parameters
    ----------
    points : array of shape (n, d)
    k : int
        1 to n - 1: a point is not its own neighbour, by row identity.
    progress : None, bool or callable(done, total)
        Counts rows.

    Returns
    -------
    array of shape (n,)
        float32, or float64 for such points; as and where the points are. For "inner_product" the k-th largest
        similarity.

    Raises
    ------
    TypeError, ValueError
        As for :func:`knn_graph`.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> line = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
    >>> tonari.kth_distance(line, k=2)
    array([3., 2., 3.], dtype=float32)
    """
    progress = inputs.check_progress(progress)
    shown = None if callable(progress) else progress
    index = Index(
        points,
        metric=metric,
        weights=weights,
        method=method,
        device=device,
        threads=threads,
        memory=memory,
        progress=shown,
    )
    n = index.n
    k = inputs.check_k(k, n - 1, without_self=True)
    rows, out = index.points, None
    with Progress(progress, total=n, seconds=None, label="k-th neighbours", unit="row") as bar:
        for part in cut(n, max(1, _HELD // (k + 1))):
            values = _kth(index, rows[part], part, k)
            if out is None:
                out = np.empty(n, values.dtype) if isinstance(values, np.ndarray) else values.new_empty(n)
            out[part] = values
            bar.add(part.stop - part.start)
    return inputs.hand_back(out, inputs.side_of(points, "points"))


def _kth(index: Index, rows: Any, part: slice, k: int) -> Any:
    """Return the k-th value of the rows of a part, the row itself left out: one more is found, if it is among them."""
    distances, indices = index.search(rows, k + 1, progress=False)
    own = np.arange(part.start, part.stop)[:, None]
    before = indices[:, :k] == (own if isinstance(indices, np.ndarray) else indices.new_tensor(own))
    values = distances[:, k - 1].copy() if isinstance(distances, np.ndarray) else distances[:, k - 1].clone()
    counted = before.any(1)
    values[counted] = distances[counted, k]
    return values
