"""Drop-ins for ``faiss.knn`` and ``faiss.normalize_L2``; the number of threads, by OpenMP's names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.api.searching import search
from tonari.compat import tuning
from tonari.compat.arguments import leave_out
from tonari.compat.faiss.arguments import METRIC_L2, filled, metric_of, padded, rows_of
from tonari.core.process.compiling import not_compiled
from tonari.core.process.workers import default_threads
from tonari.core.rows.slices import cut


class _Setting:
    """The number of threads set by the last call of :func:`omp_set_num_threads`; None before the first call."""

    threads: int | None = None


@not_compiled
def omp_set_num_threads(num_threads: int) -> None:
    """Set the number of threads of all later searches of :mod:`tonari.compat.faiss`.

    Before the first call, tonari chooses the number for each search by its amount of work. Answers do not depend on it.

    Examples
    --------
    >>> from tonari.compat import faiss
    >>> faiss.omp_set_num_threads(faiss.omp_get_max_threads())
    """
    _Setting.threads = inputs.check_count(num_threads, "num_threads")


@not_compiled
def omp_get_max_threads() -> int:
    """Return the number of threads that was set, or else the number of processors that the process may use."""
    return _Setting.threads or default_threads(math.inf)


def threads() -> int | None:
    """Return the argument `threads` of tonari's searches: the number of threads that was set, or None."""
    return _Setting.threads


@not_compiled
def knn(
    xq: Any, xb: Any, k: int, metric: int = METRIC_L2, metric_arg: float = 0.0
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Find the k nearest rows of xb for each row of xq, with the arguments and results of ``faiss.knn``.

    Parameters
    ----------
    xq, xb : arrays of shape (nq, d) and (nb, d)
        Arrays of numbers, which are converted to float32.
    k : int
        Neighbours per row; it may exceed nb.
    metric : int
        One of the numbers in :mod:`tonari.compat.faiss`.
    metric_arg : 0

    Returns
    -------
    D : float32 array of shape (nq, k)
        Distances in ascending order, squared for ``METRIC_L2``; inner products in descending order. Missing entries
        have the largest float32 (the lowest for inner products).
    I : int64 array of shape (nq, k)
        Row numbers of xb; -1 for missing neighbours.

    Examples
    --------
    >>> from tonari.compat import faiss
    >>> D, I = faiss.knn([[0.0, 0.0]], [[3.0, 4.0], [0.0, 1.0]], k=2)
    >>> D.tolist(), I.tolist()
    ([[1.0, 25.0]], [[1, 0]])
    """
    name = metric_of(metric)
    leave_out(metric_arg, 0.0, "metric_arg", "no metric here takes one")
    points, k = rows_of(xb, "xb"), inputs.check_count(k, "k")
    queries = rows_of(xq, "xq", width=points.shape[1])
    if not len(queries) or not len(points):
        return filled(len(queries), k, name)
    return padded(search(queries, points, min(k, len(points)), metric=name, threads=threads()), k, name)


@not_compiled
def normalize_L2(x: npt.NDArray[np.float32]) -> None:
    """Divide rows by their Euclidean lengths, in place.

    Rows of zeros stay as they are. Quotients are computed in float64 and rounded once.

    Parameters
    ----------
    x : float32 array of shape (n, d), writable

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.compat import faiss
    >>> x = np.array([[3.0, 4.0]], dtype=np.float32)
    >>> faiss.normalize_L2(x)
    >>> x
    array([[0.6, 0.8]], dtype=float32)
    """
    if not isinstance(x, np.ndarray) or x.dtype != np.float32 or not x.flags.writeable:
        what = f"{'a read-only ' if isinstance(x, np.ndarray) and not x.flags.writeable else ''}{type(x).__name__}"
        raise TypeError(f"x: expected a writable float32 array, which is changed in place, got {what}; pass a copy")
    rows_of(x, "x")
    for part in cut(len(x), max(1, tuning.NORMALIZED // max(1, x.shape[1]))):
        wide = x[part].astype(np.float64)
        lengths = np.sqrt(np.square(wide).sum(axis=1, keepdims=True))
        x[part] = wide / np.where(lengths > 0, lengths, 1.0)
