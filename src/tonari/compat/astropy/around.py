"""Drop-in for ``astropy.coordinates.search_around_sky``: all pairs of positions within an angle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tonari.api.index.index import Index
from tonari.compat.astropy import tuning
from tonari.compat.astropy.arguments import Pair, check_store, chords
from tonari.compat.astropy.separations import Float64, Ids, Positions, separations
from tonari.core.process.compiling import not_compiled

# More than twice the error of a chord between float64 unit vectors. The error has three parts: at most 2^-50 from the
# coordinates in radians, at most 2^-51 from the unit vectors, and about 2^-50 times pi from the separation that is
# finally compared.
MARGIN = 2.0**-44


class CoordinateSearchResult(NamedTuple):
    """Pairs of positions of two catalogues, with astropy's field names.

    Attributes
    ----------
    indices_to_first_set, indices_to_second_set : int64 arrays of shape (pairs,)
        Row numbers of each pair's positions in the two catalogues.
    angular_separation : Angle, or float64 array of degrees
    physical_separation : Quantity, or float64 array
        Distances in space if both catalogues have distances, else between points of the unit sphere.
    """

    indices_to_first_set: Ids
    indices_to_second_set: Ids
    angular_separation: Any
    physical_separation: Any


@not_compiled
def search_around_sky(
    coords1: Any, coords2: Any, seplimit: Any, storekdtree: str | bool = "kdtree_sky"
) -> CoordinateSearchResult:
    """Find all pairs of positions of two catalogues within an angle, as ``astropy.coordinates.search_around_sky`` does.

    Parameters
    ----------
    coords1, coords2 : SkyCoord, frame with data, or :func:`sky`; of shape (n,)
    seplimit : Quantity, or number or array of degrees for :func:`sky`
        The largest separation, for all positions or for each position of coords1. Pairs at exactly this separation are
        found.
    storekdtree : str or bool
        Checked, but without effect.

    Returns
    -------
    CoordinateSearchResult
        Pairs in ascending order of their row in coords1, then of their row in coords2.

    Raises
    ------
    TypeError, ValueError
        As for :func:`match_coordinates_sky`; or `seplimit` is not an angle of at least 0.

    Examples
    --------
    >>> from tonari.compat.astropy import search_around_sky, sky
    >>> found = search_around_sky(sky(ra=[0.0], dec=[90.0]), sky(ra=[10.0, 200.0], dec=[89.5, 89.0]), seplimit=0.75)
    >>> found.indices_to_second_set, found.angular_separation
    (array([0]), array([0.5]))
    """
    check_store(storekdtree)
    pair = Pair.of(coords1, coords2, ("coords1", "coords2"))
    limit = pair.limit(seplimit)
    parts: list[tuple[Ids, Ids, Float64]] = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    if len(limit) and len(pair.second.latitude):
        reach = chords(np.minimum(limit, 180.0)) + MARGIN
        everything = np.arange(len(limit))
        vectors, index = pair.first.vectors(), Index(pair.second.vectors())
        for _, left, right, apart in in_blocks(index, vectors, reach, everything, pair.first, pair.second):
            within = np.flatnonzero(apart <= limit[left])
            order = within[np.lexsort((right[within], left[within]))]
            parts.append((left[order], right[order], apart[order]))
    left, right, apart = (np.concatenate(each) for each in zip(*parts, strict=True))
    return CoordinateSearchResult(left, right, *pair.measured(left, right, apart))


def in_blocks(
    index: Index, vectors: Float64, reach: Float64, rows: Ids, queries: Positions, points: Positions
) -> Iterator[tuple[Ids, Ids, Ids, Float64]]:
    """Find all points within the maximum chord of each selected query, in blocks of queries to bound the memory.

    Parameters
    ----------
    index : Index
        The index of the points' unit vectors.
    vectors : float64 array of shape (m, 3)
        The unit vectors of all queries.
    reach : float64 array of shape (m,)
        The maximum chord of each query.
    rows : int64 array
        The row numbers of the queries to search for, ascending.
    queries, points : Positions

    Yields
    ------
    some : int64 array
        The row numbers of the queries in this block.
    left, right : int64 arrays of shape (pairs,)
        The row numbers of the query and of the point of each pair; `left` ascends.
    degrees : float64 array of shape (pairs,)
        The angular separation of each pair.
    """
    if not len(rows):
        return
    counts = index.radius_count(vectors[rows], reach[rows])
    blocks = np.cumsum(counts) // tuning.PAIRS
    for some in np.split(rows, np.flatnonzero(np.diff(blocks)) + 1):
        found = index.radius_search(vectors[some], reach[some])
        left, right = np.repeat(some, np.diff(found.indptr)), found.indices.astype(np.int64)
        yield some, left, right, separations(queries.at(left), points.at(right))
