"""A map of a graph in two dimensions, from the eigenvectors of its Laplacian.

Let A be the matrix whose entry for two points is the number of lists that connect them (0, 1 or 2), and D the diagonal
matrix of its row sums. The coordinates are the eigenvectors of the second and third smallest eigenvalues of I - D^-1/2
A D^-1/2, divided by the square root of D. These are eigenvectors of the random walk on the graph (Belkin and Niyogi,
"Laplacian eigenmaps", Neural Computation 15, 2003, section 2). Points that are connected by short walks lie near each
other. The first eigenvector is constant, and with several components further eigenvectors are constant on each
component, so the map shows only the largest one.

A large component is contracted first: each point of a random sample absorbs its neighbours, then the neighbours of
these, and so on until no point is left. An entry of A then counts the lists that connect the points absorbed by one
sampled point with those absorbed by another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core.process.floats import in_default_floats
from tonari.core.rows.draws import Purpose, generator
from tonari.graph import tuning
from tonari.graph.lists import Lists, in_blocks
from tonari.graph.structure import connected_components

if TYPE_CHECKING:
    import scipy.sparse

_LEAST = 3  # fewest points of a map
_SHIFT = -0.01  # shift of the Laplacian: below its smallest eigenvalue, 0, so that a factorization exists


class Map(NamedTuple):
    """Points of a graph in two dimensions.

    Attributes
    ----------
    points : int64 of shape (m,)
        The points that are drawn, ascending.
    positions : float64 of shape (m, 2)
    covered : int
        Number of points that the drawn points represent, including themselves.
    component : int
        Number of points in the largest component.
    """

    points: npt.NDArray[np.int64]
    positions: npt.NDArray[np.float64]
    covered: int
    component: int


@in_default_floats
def spectral_map(lists: Lists, *, most: int = 2000, seed: int = 0, labels: Any = None) -> Map | None:
    """Lay out the largest component of a graph.

    Parameters
    ----------
    lists : Lists
    most : int
        Number of points to draw; all if the component has no more.
    seed : int
        Seed of the sample and of the start of the eigensolver.
    labels : int32 of shape (n,), optional
        The result of :func:`tonari.graph.structure.connected_components`, if it is known.

    Returns
    -------
    Map or None
        None if the component has fewer than three points. The signs of the coordinates are chosen such that, on each
        axis, the point farthest from 0 is positive.

    Raises
    ------
    ImportError
        SciPy is not installed.
    """
    lists = lists.on_host()
    labels = connected_components(lists) if labels is None else labels
    members = np.flatnonzero(labels == np.bincount(labels).argmax())
    rng = generator(seed, Purpose.MAP)
    drawn = members if len(members) <= most else np.sort(rng.choice(members, most, replace=False))
    owners = np.full(lists.n, -1, np.int64)
    owners[drawn] = np.arange(len(drawn))
    if len(drawn) < len(members):
        _absorb(lists, owners, members)
    matrix = _connections(lists, owners, len(drawn))
    part = _largest(matrix)
    if len(part) < _LEAST:
        return None
    covered = int(np.isin(owners, part).sum())
    positions = _eigenvectors(matrix[part][:, part], rng)
    return Map(drawn[part], positions, covered, len(members))


def _absorb(lists: Lists, owners: npt.NDArray[np.int64], members: npt.NDArray[Any]) -> None:
    """Assign every point to a sampled point, its owner, in steps along the neighbour lists.

    In each step, an unassigned point gets the owner of its nearest assigned neighbour or, if it has none, of an
    assigned point that lists it. `owners` is changed in place; -1 means unassigned.
    """
    for _ in range(tuning.TAKEN_STEPS):
        if (owners[members] >= 0).all():
            return
        of_neighbours, of_others = np.full((2, lists.n), -1, np.int64)
        for rows, found in in_blocks(lists):
            theirs = np.where(found.indices >= 0, owners[found.indices], -1)
            nearest = (theirs >= 0).argmax(axis=1)[:, None]
            of_neighbours[rows] = np.take_along_axis(theirs, nearest, axis=1)[:, 0]
            listed = found.indices >= 0
            np.maximum.at(of_others, found.indices[listed], np.repeat(owners[rows], listed.sum(axis=1)))
        nearby = np.where(of_neighbours >= 0, of_neighbours, of_others)
        owners[:] = np.where(owners >= 0, owners, nearby)


def _connections(lists: Lists, owners: npt.NDArray[np.int64], count: int) -> scipy.sparse.csr_matrix:
    """Return a symmetric matrix whose entry (a, b) counts the list entries between points of owner a and of owner b."""
    from scipy.sparse import csr_matrix

    matrix = csr_matrix((count, count))
    for rows, found in in_blocks(lists):
        heads = np.where(found.indices >= 0, owners[found.indices], -1)
        tails = np.broadcast_to(owners[rows][:, None], heads.shape)
        valid = (heads >= 0) & (tails >= 0) & (heads != tails)
        ends = tails[valid], heads[valid]
        matrix = matrix + csr_matrix((np.ones(len(ends[0])), ends), shape=(count, count))
    return (matrix + matrix.T).tocsr()


def _largest(matrix: scipy.sparse.csr_matrix) -> npt.NDArray[Any]:
    """Return the row numbers in the largest component of a matrix: all rows, unless some points have no owner."""
    from scipy.sparse import csgraph

    labels = csgraph.connected_components(matrix, directed=False)[1]
    return np.flatnonzero(labels == np.bincount(labels).argmax())


def _eigenvectors(matrix: scipy.sparse.csr_matrix, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return the second and third eigenvectors of the random walk, as columns."""
    from scipy.sparse import diags_array, eye_array
    from scipy.sparse.linalg import eigsh

    roots = np.sqrt(np.asarray(matrix.sum(axis=1)).ravel())
    count = len(roots)
    laplacian = (eye_array(count) - diags_array(1 / roots) @ matrix @ diags_array(1 / roots)).tocsc()
    if count <= tuning.DENSE:
        vectors = np.linalg.eigh(laplacian.toarray())[1][:, 1:3]
    else:
        values, found = eigsh(laplacian, k=3, sigma=_SHIFT, v0=rng.standard_normal(count))
        vectors = found[:, np.argsort(values)[1:]]
    positions = vectors / roots[:, None]
    farthest = positions[np.abs(positions).argmax(axis=0), [0, 1]]
    signed: npt.NDArray[np.float64] = positions * np.where(farthest < 0, -1.0, 1.0)
    return signed
