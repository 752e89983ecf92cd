"""`tonari.verify`: compare neighbours that any program found with the exact neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.api.searching import search
from tonari.api.user_metrics.call import GivenCall, is_given
from tonari.api.wrappers.copies import bytes_of_copies
from tonari.core.errors import Unsupported
from tonari.core.process.floats import in_default_floats
from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.draws import Purpose, generator
from tonari.methods.options import MetricOptions, Options, columns_of, shares
from tonari.metrics import get_metric
from tonari.metrics.reference import returned, values_at
from tonari.metrics.transforms.change import change_for
from tonari.metrics.verification import Verification, verified
from tonari.missing.cpu.values import pair_values
from tonari.user_metrics.cpu.nearest import nearest
from tonari.user_metrics.plan import plan_given
from tonari.user_metrics.values import MatrixValues

if TYPE_CHECKING:
    from typing_extensions import Unpack


@in_default_floats
@inputs.without_gradients("pass rows without gradients, as by rows.detach()")
@shares(MetricOptions)
def verify(
    queries: Any,
    points: Any,
    indices: Any,
    distances: Any = None,
    *,
    metric: str | Callable[..., Any] = "euclidean",
    sample: int = 1000,
    seed: int = 0,
    **shared: Unpack[MetricOptions],
) -> Verification:
    """Compare neighbours that any program found with the exact neighbours, on a random sample of rows.

    Parameters
    ----------
    queries : array of shape (m, d), or None
        As for :func:`search`. None means that the lists are a graph of the points (m = n), in which a point is not its
        own neighbour.
    points : array of shape (n, d)
        As for :func:`search`. For "precomputed", pass the (m, n) distances as `queries` and None as `points`, or for a
        graph None as `queries` and the (n, n) distances as `points`.
    indices : integers of shape (m, k)
        The row numbers of the points that were found for each query, in any order; -1 for missing neighbours.
    distances : array of shape (m, k), optional
        The distances that were found, which are compared with the exact distances of the listed points.
    metric, weights, VI, covariance, V, transform
        As for :func:`search`.
    sample : int
        Number of rows to compare, drawn without replacement; if it exceeds m, all rows are compared.
    seed : int
        Seed of the sample: the same seed compares the same rows.
    device, threads, memory, progress
        As for :func:`search`, which finds the exact neighbours of the sample.

    Returns
    -------
    Verification
        ``print`` shows it as a report. Its ``exact`` is True if every compared row lists k nearest points; of several
        points that tie at the k-th distance, any may be listed.

    Raises
    ------
    TypeError, ValueError
        As for :func:`search`; also if indices are not integers, the shapes differ, or the lists are empty.

    Notes
    -----
    The distances of the listed points are computed in float64 and rounded once, as in a result of :func:`search`. A
    point counts as a true neighbour if its distance exceeds the true k-th distance by at most four roundings.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> points = np.array([[0.0], [1.0], [3.0], [7.0]], dtype=np.float32)
    >>> report = tonari.verify(None, points, indices=[[1], [0], [3], [2]], distances=[[1.0], [1.0], [16.0], [4.0]])
    >>> report.exact, report.recall.by_distance
    (False, 0.75)
    >>> print(report)
    recall by distance  0.75, 95 % interval 0.75 to 0.75; 4 of 4 rows, k=1, euclidean
    recall by index     0.75
    entries             1 farther than the true k-th neighbour
    distances           1 of 4 differ from the exact value by more than 4 roundings of float32; the largest difference \
is 12 (row 2, point 3: 16 given, 4 exact)
    worst rows          row 2 misses 1 of 1: it lists up to 4, the true k-th is 2
    """
    columns, options = columns_of(shared), Options.of(metric, shared)
    own = queries is None
    sample, seed = inputs.check_count(sample, "sample"), inputs.check_count(seed, "seed", least=0)
    if is_given(metric):
        for name, value in columns.items():
            if value is not None:
                raise Unsupported(
                    f"{name}: is not supported if metric is a function or 'precomputed'; leave {name} out"
                )
        arrays = {"points": points} if own else {"points": points, "queries": queries}
        call = GivenCall.of(options, **arrays)
        return _verify_given(call, indices, distances, own=own, sample=sample, seed=seed)
    named, memory, copied = get_metric(metric), inputs.parse_memory(options.memory), 0
    if memory is not None:
        arrays = {"points": points} if own else {"points": points, "queries": queries}
        copied = bytes_of_copies(arrays, named.name, None, options.device)  # search counts those of its own rows
    base = _rows(points, "points", named.bits)
    query_rows = base if own or queries is points else _rows(queries, "queries", named.bits)
    inputs.same_width(query_rows, base)
    if named.bits and not own:
        inputs.same_bits(inputs.bool_columns(queries), inputs.bool_columns(points))
    m, n = len(query_rows), len(base)
    listed = _listed(indices, m, "points" if own else "queries")
    numbers = _given(distances, listed.shape)
    k = inputs.check_k(listed.shape[1], n - own, without_self=own)

    rows = _drawn(m, sample, seed)
    some, listed = _taken(query_rows, rows), listed[rows].astype(np.int64)
    with inputs.after_copies(copied, memory) as left:
        truth = search(
            inputs.rows_at(query_rows, rows),
            base,
            k + own,
            **columns,
            **options._replace(memory=left)._asdict(),
        )
    truth = Neighbors(*(np.asarray(inputs.to_host(part)) for part in truth))
    if own:
        truth = _without_self(truth, rows)
    ids = np.where((listed >= 0) & (listed < n), listed, 0)
    needed, place = np.unique(ids, return_inverse=True)
    near, place = _taken(base, needed), place.reshape(ids.shape)
    change = change_for(metric, **columns)
    if named.missing:
        values = missing_values(some, near, place)
    elif change is None:
        values = values_at(some, near, place, named.name)
    else:
        values = values_at(change.rows(some, "queries"), change.rows(near, "points"), place, change.base)
        values = np.asarray(change.values(values))
    return verified(
        Neighbors(None if numbers is None else numbers[rows], listed),
        returned(values, truth.distances.dtype),
        truth,
        rows,
        n=n,
        of_rows=m,
        metric=named.name,
        own=own,
    )


def _verify_given(call: GivenCall, indices: Any, distances: Any, *, own: bool, sample: int, seed: int) -> Verification:
    """Compare lists with the exact neighbours by distances that the caller defines.

    The distance of a point to itself is never used.
    """
    values = call.values
    listed = _listed(indices, values.m, "points" if own else "queries")
    numbers = _given(distances, listed.shape)
    k = inputs.check_k(listed.shape[1], values.n - own, without_self=own)
    rows = _drawn(values.m, sample, seed)
    some, listed = values.some(rows), listed[rows].astype(np.int64)
    if own and isinstance(some, MatrixValues):
        some.matrix[np.arange(len(rows)), rows] = 0

    def others(at: npt.NDArray[np.int64], ids: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        different: npt.NDArray[np.bool_] = rows[at] != ids
        return different

    plan, allowed = plan_given(some, k, call.memory), others if own else None
    truth = nearest(some, k, plan, allowed=allowed, threads=call.threads, progress=call.progress).found
    return verified(
        Neighbors(None if numbers is None else numbers[rows], listed),
        some.listed(np.where((listed >= 0) & (listed < values.n), listed, 0)),
        truth,
        rows,
        n=values.n,
        of_rows=values.m,
        metric=values.name,
        own=own,
    )


def missing_values(rows: npt.NDArray[Any], points: npt.NDArray[Any], ids: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Compute the "nan_euclidean" distance of each query to its listed points; inf if rows have no common column."""
    of = np.repeat(np.arange(len(rows)), ids.shape[1])
    values = pair_values(rows, points, of, ids.ravel()).reshape(ids.shape)
    values[np.isnan(values)] = np.inf
    return values


def _drawn(m: int, sample: int, seed: int) -> npt.NDArray[np.int64]:
    """Draw the row numbers to compare, in ascending order."""
    return np.sort(generator(seed, Purpose.VERIFIED).choice(m, min(sample, m), replace=False)).astype(np.int64)


def _rows(x: Any, name: str, bits: bool) -> Any:
    """Return rows as an array in host memory or a tensor on CUDA, without a copy; their values are not checked."""
    if inputs.place_of(x, name) is None:
        return inputs.as_bits(x, name) if bits else inputs.as_rows(x, name, check_values=False)
    return inputs.as_device_bits(x, name) if bits else inputs.as_device_rows(x, name)


def _taken(rows: Any, ids: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Copy the rows at the row numbers `ids` to host memory."""
    return inputs.held(inputs.to_host(inputs.rows_at(rows, ids)))


def _listed(indices: Any, m: int, noun: str) -> npt.NDArray[Any]:
    inputs.refuse_masked(indices, "indices")
    listed = np.asarray(inputs.to_host(indices))
    if listed.dtype.kind not in "iu":
        raise TypeError(
            f"indices are {listed.dtype}, expected whole numbers, the row numbers of points; swap the two "
            "arrays if the distances came first"
        )
    if not m:
        raise ValueError(f"{noun}: has no rows, expected at least one to compare")
    if listed.ndim != 2 or len(listed) != m or 0 in listed.shape:
        raise ValueError(f"indices have the shape {listed.shape}, expected ({m}, k): a list for each of the {noun}")
    return listed


def _given(distances: Any, shape: tuple[int, ...]) -> npt.NDArray[Any] | None:
    if distances is None:
        return None
    inputs.refuse_masked(distances, "distances")
    numbers = np.asarray(inputs.as_floats(inputs.held(inputs.to_host(distances))))
    if numbers.dtype.kind in "iu":
        numbers = numbers.astype(np.float64)
    if numbers.dtype.kind != "f":
        raise TypeError(f"distances are {numbers.dtype}, expected floating-point numbers")
    if numbers.shape != shape:
        raise ValueError(f"distances have the shape {numbers.shape}, indices {shape}: they must have one shape")
    return numbers


def _without_self(found: Neighbors, rows: npt.NDArray[np.int64]) -> Neighbors:
    """Drop each row itself from its k + 1 nearest points or, if the row is not among them, the last point."""
    last = np.argsort(found.indices == rows[:, None], axis=1, kind="stable")[:, :-1]
    return Neighbors(*(np.take_along_axis(part, last, axis=1) for part in found))
