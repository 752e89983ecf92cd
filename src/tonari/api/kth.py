"""`tonari.kth_distance`: the distance of the k-th neighbour, without lists of neighbours."""

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

    The values equal the last column of ``knn_graph(points, k).distances``, but no lists are stored: even for a k in the
    tens of thousands, memory holds a few blocks of rows, not n k numbers. In HDBSCAN these are the core distances for
    ``min_samples=k + 1``, where a point counts itself (Campello, Moulavi and Sander, Density-based clustering based on
    hierarchical density estimates, PAKDD 2013, definition 5).

    Parameters that are not listed are those of :func:`knn_graph`.

    Parameters
    ----------
    points : array of shape (n, d)
    k : int
        1 to n - 1. A point is not its own neighbour: its row number is excluded.
    progress : None, bool or callable(done, total)
        Counts rows.

    Returns
    -------
    array of shape (n,)
        float32, or float64 if the points are float64, in the library and on the device of the points. For
        "inner_product" the k-th largest similarity.

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
    options: dict[str, Any] = {"metric": metric, "weights": weights, "method": method, "device": device}
    index = Index(points, **options, threads=threads, memory=memory, progress=shown)
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
    """Return the k-th value of each row of a block without the row itself, which the search may find in addition."""
    distances, indices = index.search(rows, k + 1, progress=False)
    own = np.arange(part.start, part.stop)[:, None]
    before = indices[:, :k] == (own if isinstance(indices, np.ndarray) else indices.new_tensor(own))
    values = distances[:, k - 1].copy() if isinstance(distances, np.ndarray) else distances[:, k - 1].clone()
    counted = before.any(1)
    values[counted] = distances[counted, k]
    return values
