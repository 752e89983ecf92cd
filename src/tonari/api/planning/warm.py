"""`tonari.warm`: compilation of the kernels of a search on CUDA before the first search."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from tonari import inputs
from tonari.api.planning.plan import plan
from tonari.core.process.floats import in_default_floats
from tonari.core.process.progress import ProgressLike
from tonari.methods.registry import search_method


@in_default_floats
def warm(
    n: int,
    m: int,
    d: int,
    k: int,
    *,
    dtype: npt.DTypeLike = "float32",
    metric: str = "euclidean",
    device: Any = "cuda",
    self_join: bool = False,
    progress: ProgressLike = None,
) -> int:
    """Compile the kernels of a search on CUDA in parallel, so that the first search does not wait for them.

    Triton stores compiled kernels on disk (``TRITON_CACHE_DIR``, default ``~/.triton/cache``) for all later processes,
    until Triton or tonari changes. Kernels depend on the dtype, d, k, the metric and the GPU model, and only roughly on
    n and m.

    Parameters
    ----------
    n, m, d, k : int
        Points, queries, dimensions, neighbours.
    dtype : dtype or its name
        dtype of points and queries.
    metric : str
    device : str or list of str
        As for :func:`tonari.plan`; nothing is compiled for "cpu".
    self_join : bool
        The queries are the points themselves, as in :func:`tonari.knn_graph`; then m is n and k at most n - 1.
    progress : None, bool or callable(done, total)
        As for :func:`tonari.search`; a callable is not called.

    Returns
    -------
    int
        The number of kernels that were compiled; 0 if all were on disk. A kernel that fails to compile is logged as a
        warning.

    Raises
    ------
    TypeError, ValueError, ImportError
        As for :func:`tonari.plan`.
    Unsupported
        The search does not fit into the device's memory, so that its kernels are compiled during the search.
        Unsupported is a subclass of ValueError.

    Notes
    -----
    The function compiles the kernels of brute force (``method="exact"``), with and without a mask. Other kernels are
    compiled at their first use: kernels that search queries again if the first pass could not certify their neighbours,
    and kernels of radius searches, lists, k-d trees, NN-Descent and rows of bits.

    Examples
    --------
    >>> import tonari
    >>> tonari.warm(10**6, 10**4, 128, 10, device="cpu")
    0
    """
    inputs.check_progress(progress)
    planned = plan(n, m, d, k, dtype=dtype, metric=metric, method="exact", device=device, self_join=self_join)
    return search_method("exact", planned.device).warm(planned, self_join=self_join, progress=progress)
