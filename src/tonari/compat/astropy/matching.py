"""Drop-ins for astropy's ``match_coordinates_sky`` and ``search_around_sky``; mutual matches, which astropy lacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tonari import inputs
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


class CoordinateMatchResult(NamedTuple):
    """The match of each position in a catalogue, with astropy's field names.

    Attributes
    ----------
    indices_to_catalog : int64 array
        The row number of each match in the catalogue.
    angular_separation : Angle, or float64 array of degrees
    physical_separation : Quantity, or float64 array
        Distances in space if both catalogues have distances, else between points of the unit sphere.
    """

    indices_to_catalog: Ids
    angular_separation: Any
    physical_separation: Any


@not_compiled
def match_coordinates_sky(
    matchcoord: Any, catalogcoord: Any, nthneighbor: int = 1, storekdtree: str | bool = "kdtree_sky"
) -> CoordinateMatchResult:
    """Find each position's nearest one in a catalogue, as ``astropy.coordinates.match_coordinates_sky`` does.

    Parameters
    ----------
    matchcoord : SkyCoord, frame with data, or :func:`sky`
        Positions of any shape; converted to the frame of the catalogue.
    catalogcoord : the same kind, of shape (n,)
    nthneighbor : int
        1 for the nearest position, 2 for the second nearest. Pass 2 to match a catalogue with itself, since each
        position is nearest to itself.
    storekdtree : str or bool
        Checked, but without effect.

    Returns
    -------
    CoordinateMatchResult
        Arrays of the shape of `matchcoord`. Separations are Angle and Quantity for astropy's coordinates, and arrays
        of degrees and of chord lengths for :func:`sky`. Ties are resolved in favour of the smaller row number.

    Raises
    ------
    TypeError, ValueError
        An argument has another type or shape, `nthneighbor` exceeds the number of positions in the catalogue, or
        coordinates are masked, NaN or infinite.

    Examples
    --------
    >>> from tonari.compat.astropy import match_coordinates_sky, sky
    >>> stars = sky(ra=[10.0, 10.5, 350.0], dec=[0.0, 0.0, 0.0])
    >>> match_coordinates_sky(stars, stars, nthneighbor=2).indices_to_catalog
    array([1, 0, 0])
    """
    check_store(storekdtree)
    pair = Pair.of(matchcoord, catalogcoord, ("matchcoord", "catalogcoord"), lead=True)
    nth, n = inputs.check_count(nthneighbor, "nthneighbor"), len(pair.second.latitude)
    if nth > n:
        raise ValueError(f"nthneighbor={nth}: catalogcoord has {n} positions, expected at most as many")
    indices, degrees = nearest(pair.first, pair.second, nth)
    index, apart = indices[:, -1].reshape(pair.shape), degrees[:, -1].reshape(pair.shape)
    rows = np.arange(len(indices)).reshape(pair.shape)
    return CoordinateMatchResult(index, *pair.measured(rows, index, apart, unit_of=1))


@not_compiled
def match_one_to_one(coords1: Any, coords2: Any, seplimit: Any = None) -> CoordinateSearchResult:
    """Find the pairs of positions of two catalogues that are each other's nearest neighbours.

    Each position is in at most one pair.

    Parameters
    ----------
    coords1, coords2 : SkyCoord, frame with data, or :func:`sky`; of shape (n,)
    seplimit : Quantity, or number or array of degrees for :func:`sky`, optional
        The largest separation of a pair, for all positions or for each position of coords1. Default: no limit.

    Returns
    -------
    CoordinateSearchResult
        Pairs in ascending order of their row in coords1. If several positions are equally near, the one with the
        smallest row number counts as the nearest.

    Raises
    ------
    TypeError, ValueError
        As for :func:`match_coordinates_sky`; or `seplimit` is not an angle of at least 0.

    Examples
    --------
    >>> from tonari.compat.astropy import match_one_to_one, sky
    >>> radio, optical = sky(ra=[10.0, 10.1], dec=[0.0, 0.0]), sky(ra=[10.11, 200.0], dec=[0.0, 0.0])
    >>> found = match_one_to_one(radio, optical, seplimit=0.05)
    >>> found.indices_to_first_set, found.indices_to_second_set
    (array([1]), array([0]))
    """
    pair = Pair.of(coords1, coords2, ("coords1", "coords2"))
    limit = None if seplimit is None else pair.limit(seplimit)
    left = right = np.empty(0, np.int64)
    apart = np.empty(0)
    if len(pair.first.latitude) and len(pair.second.latitude):
        there, degrees = nearest(pair.first, pair.second, 1)
        back, _ = nearest(pair.second, pair.first, 1)
        mutual = back[there[:, 0], 0] == np.arange(len(there))
        if limit is not None:
            mutual &= degrees[:, 0] <= limit
        left = np.flatnonzero(mutual)
        right, apart = there[left, 0], degrees[left, 0]
    return CoordinateSearchResult(left, right, *pair.measured(left, right, apart))


def nearest(queries: Positions, points: Positions, k: int) -> tuple[Ids, Float64]:
    """Find the k nearest positions of each query, in order of (separation, row number).

    The search compares chords between unit vectors, with an error below half of MARGIN. If all other chords are longer
    than a query's k-th shortest one by more than MARGIN, the points of the k shortest chords are its neighbours.
    Otherwise all points with chords up to the k-th one plus MARGIN are compared by their exact separations.

    Returns
    -------
    indices : int64 array of shape (m, k)
    degrees : float64 array of shape (m, k)
    """
    m, n = len(queries.latitude), len(points.latitude)
    if not m:
        return np.empty((0, k), np.int64), np.empty((0, k))
    vectors, index = queries.vectors(), Index(points.vectors())
    found = index.search(vectors, min(k + 1, n))
    indices = found.indices[:, :k].astype(np.int64)
    degrees = separations(queries.at(np.repeat(np.arange(m), k)), points.at(indices.ravel())).reshape(m, k)
    if k > 1:
        order = np.lexsort((indices, degrees), axis=1)
        indices = np.take_along_axis(indices, order, axis=1)
        degrees = np.take_along_axis(degrees, order, axis=1)
    if n > k:
        reach = found.distances[:, k - 1] + MARGIN
        close = np.flatnonzero(found.distances[:, k] <= reach)
        for some, left, right, apart in in_blocks(index, vectors, reach, close, queries, points):
            order = np.lexsort((right, apart, left))
            # a stable sort: `left` ascends and is the primary key, so each query's pairs stay in their place
            begin = np.searchsorted(left, some)
            first = order[begin[:, None] + np.arange(k)]
            indices[some], degrees[some] = right[first], apart[first]
    return indices, degrees
