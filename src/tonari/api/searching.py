"""`tonari.search`: the k nearest points of every query."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, overload

from tonari.api.sparse.answers import are_sparse, refuse_for_sparse, sparse_search
from tonari.api.sparse.mixed import in_one_layout
from tonari.api.user_metrics.answers import search_given
from tonari.api.user_metrics.call import on_given_values
from tonari.api.wrappers.changed import on_changed_rows
from tonari.api.wrappers.copies import counting_copies
from tonari.api.wrappers.differentiable import carries
from tonari.api.wrappers.filtered import refuse_plan, search_allowed, search_ties
from tonari.core.plan import Plan
from tonari.core.process.floats import in_default_floats
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.filters.arguments import Given
from tonari.filters.searches.asking import are_all
from tonari.methods import repeated
from tonari.methods.answer import answer, check_plan, on_side_of
from tonari.methods.call import Call
from tonari.methods.decision import Decision
from tonari.methods.options import FilteredOptions, Options, shares
from tonari.methods.places.points import Points, none_nearest

if TYPE_CHECKING:
    from typing_extensions import Unpack


@overload
def search(
    queries: Any,
    points: Any,
    k: int,
    *,
    metric: str | Callable[..., Any] = "euclidean",
    ties: Literal["first"] = "first",
    differentiable: bool = False,
    plan: Plan | None = None,
    **shared: Unpack[FilteredOptions],
) -> Neighbors: ...


@overload
def search(
    queries: Any,
    points: Any,
    k: int,
    *,
    metric: str | Callable[..., Any] = "euclidean",
    ties: Literal["all"],
    differentiable: bool = False,
    plan: Plan | None = None,
    **shared: Unpack[FilteredOptions],
) -> RadiusNeighbors: ...


@repeated.repeating
@in_default_floats
@on_given_values(search_given)
@counting_copies
@on_changed_rows
@in_one_layout
@shares(FilteredOptions)
def search(
    queries: Any,
    points: Any,
    k: int,
    *,
    metric: str | Callable[..., Any] = "euclidean",
    ties: str = "first",
    differentiable: bool = False,
    plan: Plan | None = None,
    **shared: Unpack[FilteredOptions],
) -> Neighbors | RadiusNeighbors:
    """Find the k nearest points of every query, exactly.

    Parameters
    ----------
    queries : array of shape (m, d)
        float32, float16, bfloat16, float64, uint8 or int8. In host memory: NumPy arrays (bfloat16 from ml_dtypes),
        memory maps, torch tensors and JAX arrays. On CUDA: torch tensors, CuPy and JAX arrays, and other arrays with
        DLPack. Strided and read-only arrays are accepted. For metrics of bits: uint8 with packed bits
        (``numpy.packbits``; any bit order, as long as queries and points have the same), or bool with any number of
        columns, the same in queries and points. For all other metrics whole numbers of 16 to 64 bits are converted to
        float32, and values beyond 2**24 in magnitude are refused, since float32 may not represent them.

        Or sparse rows: ``csr_array`` or ``csr_matrix`` of SciPy, for queries, points or both, with values of float32,
        float64 or whole numbers. They are supported on the CPU, without `transform` and gradients, for "euclidean",
        "sqeuclidean", "cosine" and "inner_product", and for "jaccard", which compares the sets of their columns. If
        only one side is sparse, the side with fewer rows is converted to the layout of the other.
    points : array of shape (n, d)
        The points to search, as for `queries` and in the same memory. Their dtype may differ. If `device` names CUDA,
        arrays in host memory are copied to the device.
    k : int
        Neighbours per query, 1 to n.
    metric : str or function
        A name in ``tonari.metrics.METRICS``: "euclidean", "cosine", "correlation", "inner_product", "l1" and others; or
        one of ``tonari.metrics.ALIASES``, such as "manhattan", "chebyshev" or "dot"; or one of the following. Case
        does not matter.

        "minkowski:p" with p = 0.5, 1.5, 3 or 4 is sum(abs(q - x)**p)**(1/p), in float64; p = 1, 2 and inf are "l1",
        "euclidean" and "linf". "power:p", for the same four values of p, is the sum without the root. "haversine" takes
        rows of (latitude, longitude) in radians and returns float64 angles on the sphere. Pass float64 rows: rounding
        to float32 moves a coordinate by up to 0.05 arcseconds, and a warning says so. "hellinger", sqrt(sum((sqrt(q) -
        sqrt(x))**2) / 2), takes rows without negative numbers. "braycurtis", sum(abs(q - x)) / sum(q + x), takes rows
        without negative numbers that each sum to one. "mahalanobis" needs `VI` or `covariance`, "seuclidean" `V`.

        For rows of bits: "hamming", the number of differing bits (as in FAISS and cuVS; SciPy and scikit-learn divide
        it by the number of bits), and "jaccard", 1 - abs(q & x) / abs(q | x), which is 0 if both rows have no bit set.
        "nan_euclidean" takes rows with missing values (NaN), on the CPU: sqrt(N * d / C), where N is the sum of the
        squared differences in the C columns that both rows have. Rows without a common column have no distance, and
        never find each other.

        Or a function ``f(a, B)`` of NumPy arrays that returns the distances of one row a, of shape (d,), to a block of
        rows B, of shape (c, d): c numbers, possibly negative or inf, but not NaN. Or "precomputed": `queries` is the
        (m, n) array of all distances, possibly a memory map, and `points` is None. Both run on the CPU and support
        filters and `ties`, but no weights, matrix, plan or gradients. They compute or read every distance, so a
        function is far slower than a named metric. A function returns float64 distances; a matrix keeps its float32 or
        float64.
    weights : array of shape (d,), optional
        A weight >= 0 for each column, for "euclidean", "sqeuclidean", "l1" and "linf", with the meaning of SciPy's `w`:
        each term of the sum is multiplied by the weight of its column. For "linf", weights only select columns: a
        column counts if its weight is not 0. Weighted distances are float64. Weights that are all 1 have no effect.
    VI, covariance : array of shape (d, d), optional
        For "mahalanobis", sqrt((q - x) @ VI @ (q - x)): the inverse of the covariance of the columns, symmetric and
        positive semi-definite; or the covariance itself, which is then inverted.
    V : array of shape (d,), optional
        For "seuclidean", sqrt(sum((q - x)**2 / V)): the variance of each column, above 0.
    transform : array of shape (d, p), optional
        The rows of queries and points are multiplied by this matrix, in float64, before "euclidean" or another
        metric in ``tonari.metrics.METRICS`` compares them. Distances are float64.
    method : str
        "exact": brute force. "kdtree": a k-d tree, for "euclidean", "sqeuclidean", "l1", "linf", "power:p",
        "minkowski:p" and "haversine"; useful for many points and queries in up to about 30 dimensions. "bits": the only
        method for "hamming" and "jaccard". "missing": the only one for "nan_euclidean". "auto": the method with the
        least expected time, estimated from the sizes and, if a tree may be faster, from the number of tree nodes that a
        few queries visit. All methods give the same answer, bit for bit.
    where : bool array of shape (n,) or (m, n), or uint8 of shape (m, ceil(n / 8)), optional
        Mask of the points that may be found, one for all queries or a row for each query. In uint8 masks, bit j % 8 of
        byte j // 8, counted from the lowest bit, stands for point j (``numpy.packbits(mask, axis=1,
        bitorder="little")``); bits beyond n are ignored.
    exclude : list of lists of int, or pair (indptr, indices), optional
        For each query the row numbers of the points that it must not find. In a pair of arrays, those of query i are
        ``indices[indptr[i]:indptr[i + 1]]`` (compressed rows). Repeated numbers are allowed.
    query_groups, point_groups : int arrays of shape (m,) and (n,), optional
        The group of each query and of each point, as whole numbers in any order.
    groups : str, optional
        "same" (default): a query finds only points of its own group. "other": only points of other groups.
    exclude_within : int, optional
        Width w of the Theiler window of a time series: query i stands for point i, and does not find the points i - w
        to i + w. There must be as many queries as points; w = 0 excludes only the point itself. A wider window takes no
        more memory.
    ties : str
        "first" (default): k neighbours; among points at the k-th distance, the smallest row numbers are returned.
        "all": also all other points at the k-th returned distance; the result is then :class:`RadiusNeighbors`. If
        filters leave a query fewer than k points, its list contains all of these.
    differentiable : bool
        Let gradients flow from the distances to queries and points, which must be torch tensors. Only first derivatives
        exist. They are computed in float64, and are 0 where a distance has no derivative, as between equal rows.
        Indices have no gradients. If this is False and rows require gradients, a warning says that they are dropped.
    device : str or list of str
        The device that searches. "auto": the device of the arrays. "cpu": the CPU. "cuda": the device of the arrays, or
        torch's current device for arrays in host memory. "cuda:1": this device. ["cuda:0", "cuda:1"]: these devices,
        among which the points or the queries are divided. "cuda:all": the number of devices with the shortest expected
        time; :func:`tonari.explain` reports their number and the reason.
    threads : int, optional
        Threads on the CPU. Default: TONARI_NUM_THREADS if it is set, else the processors that this process may use, but
        fewer for short work: a search of one or two milliseconds uses one thread.
    memory : int or str, optional
        Limit on the memory beyond the input, in bytes or as a string such as "2GB"; a search that would need more
        handles one slice of the rows after another. It includes copies of rows: of arrays that must be converted, such
        as int64, Fortran-ordered arrays and DataFrames, and of rows that are transformed, as for "haversine",
        "minkowski:p" and weights. On CUDA it is a limit for each device, and does not include copies in host memory;
        default: the device's free memory.
    progress : None, bool or callable(done, total)
        True shows a progress bar, False shows none, and a function is called with the finished and the total work. None
        shows a bar on a terminal if the work takes more than about two seconds.
    plan : Plan, optional
        A plan that :func:`tonari.plan` made for this problem, method and device, possibly with overrides.

    Returns
    -------
    Neighbors(distances, indices), or with ``ties="all"`` RadiusNeighbors(indptr, indices, distances)
        Two arrays of shape (m, k), in the library and on the device of the queries. On CUDA, results are computed in
        the caller's current stream and do not pass through host memory.

        distances: float32; float64 if queries or points are float64, with `weights` or `transform`, and for
        "haversine", "minkowski:p", "hellinger", "braycurtis", "mahalanobis" and "seuclidean". Not squared for
        "euclidean". For "inner_product", similarities in descending order.

        indices: int32, or int64 from 2**31 points on.

        Each row is ordered by (returned distance, index): ties go to the smaller index. Four metrics instead order by
        the value from which the returned distance is computed in a last step: "haversine" by (chord, index),
        "minkowski:p" by (sum of powers, index), "hellinger" and "braycurtis" by (distance before the division, index).
        If filters leave a query fewer than k points, its last entries are -1 at distance inf (-inf for
        "inner_product").

    Raises
    ------
    TypeError, ValueError
        A dtype or number of axes is not supported, a row contains NaN or infinity (the message names the first such
        row), the numbers of columns differ, k is out of range, a metric, method or device does not exist, the method
        does not support the metric, queries and points are on different devices, or the budget is too small.
    ImportError
        CUDA was requested, but torch or Triton is not installed.

    Notes
    -----
    Matrix products at low precision select candidates, exact float64 values order them, and bounds on all rounding
    errors prove that no neighbour was lost (docs/exactness.md). The answer does not depend on method, threads, batches,
    instruction set or device.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> points = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]], dtype=np.float32)
    >>> distances, indices = tonari.search(points[:1], points, k=2)
    >>> distances.tolist(), indices.tolist()
    ([[0.0, 5.0]], [[0, 1]])
    >>> tonari.search(points[:1], points, k=2, where=np.array([False, True, True])).indices.tolist()
    [[1, 2]]
    >>> tonari.search(points[:1], points, k=3, metric="minkowski:3").distances.round(3).tolist()
    [[0.0, 4.498, 8.996]]
    """
    options = Options.of(metric, shared)
    limits = Given.of(shared)
    filtered, tied = bool(limits), are_all(ties)
    if are_sparse(queries, points):
        refuse_for_sparse(differentiable=differentiable, plan=plan)
        return sparse_search(queries, points, k, limits, options, ties=tied)
    call = Call.of({"queries": queries, "points": points}, options)
    check_plan(plan, graph=False)
    carry = carries(differentiable, queries, points, call.metric.name)
    if filtered or tied:
        refuse_plan(plan)
        if tied:
            return carry(on_side_of(queries, search_ties(call, queries, points, k, limits)))
        return carry(on_side_of(queries, search_allowed(call, queries, points, k, limits)))
    if plan is None:
        again = Points(points, call).replayed(queries, k, call.progress)
        if again is not None:
            return carry(again)
    rows, base = call.both(queries, points)
    those = Points(base, call)
    if not len(rows):
        return carry(on_side_of(queries, none_nearest(those.problem(rows, k), options.method)))
    decision = those.decided(rows, k, call.progress, plan=plan)
    if differentiable is False and options.threads is options.memory is plan is None and not call.place.devices:
        _keep(call, decision, rows, base)
    return carry(on_side_of(queries, answer(rows, base, decision, call.metric, call.progress)))


def _keep(call: Call, decision: Decision, queries: Any, points: Any) -> None:
    """Cache functions that repeat a call, unless its decision has prepared points: an equal call may have others."""
    if decision.prepared is None:
        quick = repeated.quick_search(call, decision, queries, points)
        repeated.keep(decision, (queries, points), quick, repeated.answered(call, decision))
