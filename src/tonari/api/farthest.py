"""`tonari.farthest`: the k points with the largest distances from each query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tonari import inputs
from tonari.api.sparse.answers import are_sparse
from tonari.api.user_metrics.call import is_given
from tonari.core.errors import Unsupported
from tonari.core.process.floats import in_default_floats
from tonari.core.results.neighbors import Neighbors, no_neighbors
from tonari.core.trail import recording
from tonari.exact.cpu import farthest as by_force
from tonari.methods.answer import on_side_of
from tonari.methods.call import Call
from tonari.methods.options import Options, ThreadOptions, shares
from tonari.methods.places.value_range import check_range
from tonari.metrics import get_metric

if TYPE_CHECKING:
    from typing_extensions import Unpack

METRICS = ("euclidean", "sqeuclidean")


@in_default_floats
@inputs.without_gradients("compute the distances of the pairs that are found in torch")
@shares(ThreadOptions)
def farthest(
    queries: Any,
    points: Any,
    k: int,
    *,
    metric: str = "euclidean",
    **shared: Unpack[ThreadOptions],
) -> Neighbors:
    """Find the k farthest points of every query, exactly, on the CPU.

    Parameters
    ----------
    queries, points : arrays of shape (m, d) and (n, d)
        As for :func:`search`, in host memory, and not sparse.
    k : int
        Points per query, 1 to n.
    metric : str
        "euclidean" or "sqeuclidean". For other metrics: by "cosine", "correlation" and "inner_product", the farthest
        points of q are the nearest points of -q, which :func:`search` finds. For weighted distances, multiply the
        columns by the square roots of the weights.
    threads, progress
        As for :func:`search`.

    Returns
    -------
    Neighbors(distances, indices)
        Two arrays of shape (m, k), as for :func:`search`, but in descending order of distance. Ties are in ascending
        order of row number.

    Raises
    ------
    TypeError, ValueError
        As for :func:`search`; also for any other metric, and for sparse rows.

    Notes
    -----
    A search by inner product selects candidates, and a bound on all rounding errors proves that no point is farther
    (``tonari.exact.cpu.farthest``). For queries whose candidates the bound cannot prove complete, as with many points
    at nearly the same distance, all distances are computed, which takes far longer than :func:`search`. Memory holds
    float64 copies of the rows.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> line = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
    >>> tonari.farthest(line[:1], line, k=2)
    Neighbors(distances=array([[3., 1.]], dtype=float32), indices=array([[2, 1]], dtype=int32))
    """
    if is_given(metric):
        raise Unsupported(
            "metric: is a function or 'precomputed', whose farthest points are the nearest by its negative: use "
            "tonari.search by lambda a, B: -f(a, B), or of -distances"
        )
    name = get_metric(metric).name
    if name not in METRICS:
        raise Unsupported(
            f"metric={name!r}: the farthest points are found by {' and '.join(map(repr, METRICS))}; by 'cosine', "
            "'correlation' and 'inner_product' they are the nearest of the negated queries, tonari.search(-queries, …)"
        )
    for argument, rows in (("queries", queries), ("points", points)):
        if are_sparse(rows):
            raise Unsupported(f"{argument}: sparse rows are not supported here; use .toarray() if they fit in memory")
        if inputs.place_of(rows, argument) is not None:
            raise Unsupported(
                f"{argument}: on {inputs.place_of(rows, argument)}, but this search runs on the CPU; copy"
            )
    options = Options(name, device="cpu", **shared)
    call = Call.of({"queries": queries, "points": points}, options)
    rows, base = call.both(queries, points)
    problem = call.problem(base, rows, k)
    if not len(rows):
        return on_side_of(queries, no_neighbors(problem.k, problem.n, problem.value_dtype))
    rows, base = (np.ascontiguousarray(each) for each in (rows, base))
    with recording("farthest", len(rows)):
        found = by_force.farthest(rows, base, problem.k, name, threads=call.threads, progress=call.progress)
    check_range(found.distances, found.indices, None, rows, base, call.metric)
    return on_side_of(queries, found)
