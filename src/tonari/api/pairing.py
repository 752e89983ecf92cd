"""`tonari.pairs`: all pairs of points within a radius."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.api import tuning
from tonari.api.sparse.answers import SparsePairs, are_sparse
from tonari.api.user_metrics.answers import pairs_given
from tonari.api.user_metrics.call import on_given_values
from tonari.api.within_call import Verb, WithinCall
from tonari.api.wrappers.changed import on_changed_rows
from tonari.api.wrappers.copies import counting_copies
from tonari.core.process.floats import in_default_floats
from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.results.neighbors import index_dtype
from tonari.core.results.pairs import Pairs, pairs_of
from tonari.core.trail import recording
from tonari.filters.arguments import shared_mask, window_of
from tonari.filters.scope import Scope
from tonari.io.neighbors.pairs import SUFFIXES, write_pairs
from tonari.methods import repeated
from tonari.methods.call import Call, Radius
from tonari.methods.options import Options, SearchOptions, shares
from tonari.methods.places.points import DecidedPoints

if TYPE_CHECKING:
    from typing_extensions import Unpack


@repeated.repeating
@in_default_floats
@inputs.without_gradients("use tonari.radius_graph with differentiable=True")
@on_given_values(pairs_given)
@counting_copies
@on_changed_rows
@shares(SearchOptions)
def pairs(
    points: Any,
    radius: Any = None,
    *,
    min_similarity: Any = None,
    closed: bool = True,
    metric: str | Callable[..., Any] = "euclidean",
    where: Any = None,
    exclude_within: int | None = None,
    out: str | os.PathLike[str] | None = None,
    **shared: Unpack[SearchOptions],
) -> Pairs | Path:
    """Find all pairs of points within a radius of each other, exactly and each once.

    Parameters
    ----------
    points : array of shape (n, d)
        Or sparse rows, as for :func:`search`.
    radius, min_similarity : float
        One number, as for :func:`radius_search`.
    closed : bool
        Whether a distance equal to the radius is within it.
    metric : str or function
        As for :func:`search`. A function f(a, B) is called with a row a and a block B of rows with larger numbers, so
        the distance of a pair is that of f(left, right). "precomputed" reads the matrix above its diagonal.
    where : bool array of shape (n,), optional
        Mask of the points that may be in a pair.
    exclude_within : int, optional
        Points whose row numbers differ by at most this number are not a pair, as for :func:`radius_graph`.
    out : path, optional
        Write the pairs to this .npy file, block by block, so that there may be more than fit in memory. The file
        contains records with the fields ``left``, ``right`` and ``distance``; ``numpy.load(out, mmap_mode="r")`` maps
        it. It appears when it is complete, and replaces an older file. Not supported for "haversine" and "minkowski:p".
    memory : int or str, optional
        As for :func:`search`. It does not include pairs that are in memory: the whole result, or with `out` about
        8 million pairs.

    Returns
    -------
    Pairs(left, right, distances), or the Path of the file
        The row numbers of each pair, ``left < right``, and its distance, ordered by (left, distance, right). Dtypes are
        as for :func:`search`. The arrays belong to the library of the points and are on their device.

    Raises
    ------
    TypeError, ValueError
        As for :func:`radius_search`; also if there is a radius for each point instead of one number.
    OSError
        `out` cannot be written, as for :func:`search_to_file`.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> line = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
    >>> left, right, distances = tonari.pairs(line, radius=2.0)
    >>> left.tolist(), right.tolist(), distances.tolist()
    ([0, 1], [1, 2], [1.0, 2.0])
    """
    path = None if out is None else inputs.check_output_path(out, SUFFIXES)
    for name, value in (("radius", radius), ("min_similarity", min_similarity)):
        if hasattr(value, "__len__") and not isinstance(value, str) and getattr(value, "shape", None) != ():
            raise ValueError(f"{name}: expected one number, since a pair has one distance, got {type(value).__name__}")
    options, limit = Options.of(metric, shared), Radius(radius, min_similarity, closed)
    if are_sparse(points):
        sparse = SparsePairs(points, limit, options, where=where, exclude_within=exclude_within)
        return _sparse_pairs(sparse, options.progress, path)
    call = Call.of({"points": points}, options)
    within = WithinCall.of(call, points, points, limit)
    plain = where is exclude_within is options.threads is options.memory is path is None
    within = within.decided(_PAIRS if plain else None)
    rows, those, limits = within
    n, ids, progress, scope = len(those), None, those.call.progress, Scope(points=those)
    window = None if exclude_within is None else window_of(exclude_within, n, n)
    allowed = shared_mask(where, n)
    if allowed is not None:
        ids = allowed.host_places
        those.refuse_unsupported(rows)
        scope = scope.among(ids)
        those, rows, limits = scope.points, scope.rows, limits[ids]
    with scope.refusals():
        wanted = _Wanted(those.decided_within(rows, limits, progress) if len(rows) else None, limits, ids, n, window)
    if path is None:
        if window is None:
            found = wanted.pairs(slice(0, len(rows)), progress)
        else:  # in blocks, which saves memory, because the window may drop most pairs
            with Progress(progress, total=len(rows), seconds=None, label="pairs", unit="row") as bar:
                blocks = list(_blocks(wanted.found, len(rows), bar)) or [wanted.pairs(slice(0, 0), False)]
            found = Pairs(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))
        side = inputs.side_of(points, "points")
        return Pairs(*(inputs.hand_back(part, side) for part in found))
    with Progress(progress, total=len(rows), seconds=None, label="pairs", unit="row") as bar:
        write_pairs(path, _blocks(wanted.found, len(rows), bar), index_dtype(n), limits.dtype)
    return path


def _sparse_pairs(wanted: SparsePairs, progress: ProgressLike, path: Path | None) -> Pairs | Path:
    """Find the pairs of sparse points, or write them to a file block by block."""
    with recording("pairs", wanted.n):
        if path is None:
            return wanted.of(slice(0, wanted.count), progress)
        with Progress(progress, total=wanted.count, seconds=None, label="pairs", unit="row") as bar:
            blocks = _blocks(lambda rows: wanted.of(rows, False), wanted.count, bar)
            write_pairs(path, blocks, index_dtype(wanted.n), wanted.dtype)
    return path


class _Wanted(NamedTuple):
    """A request for all pairs of points whose distances are within limits.

    Attributes
    ----------
    points : DecidedPoints, optional
        The points that may be in a pair; None if there are none.
    limits : array of shape (points,)
        The largest distance of each point to another point of a pair.
    ids : int64 array of shape (points,), optional
        The row numbers of these points among all points, if a mask excludes others.
    n : int
        The number of all points.
    window : int, optional
        Pairs of rows whose numbers differ by at most this number are dropped.
    """

    points: DecidedPoints | None
    limits: npt.NDArray[Any]
    ids: npt.NDArray[np.int64] | None
    n: int
    window: int | None

    def found(self, rows: slice) -> Pairs:
        """Find all pairs of a row in the slice `rows` and a later row, without showing progress."""
        return self.pairs(rows, False)

    def pairs(self, rows: slice, progress: ProgressLike) -> Pairs:
        """Find all pairs of a row in the slice `rows` and a later row.

        The arrays are of the library of the points; without points they are NumPy arrays.
        """
        if self.points is None:
            none = np.empty(0, index_dtype(self.n))
            return Pairs(none, none.copy(), np.empty(0, self.limits.dtype))
        made = pairs_of(self.points.pairs(rows, self.limits, progress), rows.start)
        if self.ids is not None:
            numbers = inputs.ids_for(made.left, self.ids.astype(index_dtype(self.n)))
            made = made._replace(left=inputs.rows_at(numbers, made.left), right=inputs.rows_at(numbers, made.right))
        if self.window is None:
            return made
        apart = made.right - made.left > self.window
        return Pairs(made.left[apart], made.right[apart], made.distances[apart])


def _blocks(find: Callable[[slice], Pairs], n: int, bar: Progress) -> Iterator[Pairs]:
    """Yield the pairs that `find` finds in block after block of rows.

    The number of pairs in a block decides the length of the next one.
    """
    begin, size = 0, tuning.PAIRS_FIRST_ROWS
    while begin < n:
        rows = slice(begin, min(begin + size, n))
        found = Pairs(*(np.asarray(inputs.to_host(part)) for part in find(rows)))
        fitting = tuning.PAIRS_HELD * size // max(1, len(found.left))
        size = max(tuning.PAIRS_LEAST_ROWS, min(fitting, tuning.PAIRS_GROWTH * size))
        yield found
        del found
        bar.add(rows.stop - begin)
        begin = rows.stop


def _all(points: DecidedPoints, rows: Any, limits: npt.NDArray[Any]) -> Pairs:
    return _Wanted(points, limits, None, len(rows), None).pairs(slice(0, len(rows)), points.call.progress)


_PAIRS = Verb(_all, own=True, later=True, finish=lambda found: pairs_of(found, 0))
