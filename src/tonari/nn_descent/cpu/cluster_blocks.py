"""Sort rows by cluster, cut them into pieces, and compare blocks of rows with the members of clusters near them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.workers import Workers
from tonari.nn_descent import tuning

Pack = Callable[[npt.NDArray[np.int32]], _native.PackedPoints]


class Pieces(NamedTuple):
    """Rows sorted by cluster, cut into pieces.

    Attributes
    ----------
    order : int32 of shape (n,)
        The row numbers, sorted by cluster.
    begins : int64 of shape (pieces + 1,)
        Piece i is order[begins[i]:begins[i + 1]]. No piece is empty, and all its rows have the same cluster and side.
    clusters, sides : int64 of shape (pieces,)
        The cluster and the side of the rows of each piece.
    firsts : int64 of shape (clusters + 1,)
        The first piece of each cluster.
    """

    order: npt.NDArray[np.int32]
    begins: npt.NDArray[np.int64]
    clusters: npt.NDArray[np.int64]
    sides: npt.NDArray[np.int64]
    firsts: npt.NDArray[np.int64]

    def of_clusters(self, clusters: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Return the row numbers of all rows in some clusters."""
        return np.concatenate([self.order[slice(*self.begins[self.firsts[at : at + 2]])] for at in clusters])

    def pack(self, pack: Pack, workers: Workers) -> list[_native.PackedPoints]:
        """Pack every piece."""

        def work(at: int) -> _native.PackedPoints:
            workers.check()
            return pack(self.order[self.begins[at] : self.begins[at + 1]])

        return workers.map(work, range(len(self.clusters)))

    def places(self) -> npt.NDArray[np.int32]:
        """Return the position of each row in `order`."""
        places = np.empty(len(self.order), np.int32)
        places[self.order] = np.arange(len(self.order), dtype=np.int32)
        return places


def pieces_of(near: npt.NDArray[np.int32], clusters: int, most: int, boundary: int | None = None) -> Pieces:
    """Sort rows by (cluster, side, second nearest cluster, row number), and cut each cluster into even pieces.

    Parameters
    ----------
    near : int32 of shape (n, at least 1)
        The clusters of each row, nearest first.
    clusters : int
        Number of clusters.
    most : int
        Maximum rows per piece.
    boundary : int, optional
        Rows below it are on side 0, the others on side 1. Default: all on side 0.
    """
    n, homes = len(near), near[:, 0]
    sides = np.zeros(n, np.int64) if boundary is None else (np.arange(n) >= boundary).astype(np.int64)
    order = np.lexsort((near[:, min(1, near.shape[1] - 1)], sides, homes))
    keys = homes[order] * np.int64(2) + sides[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    lengths = np.diff(starts, append=n)
    pieces = -(-lengths // most)
    place = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    begins = np.repeat(starts, pieces) + place * np.repeat(lengths, pieces) // np.repeat(pieces, pieces)
    of_piece = keys[begins]
    return Pieces(
        order=order.astype(np.int32),
        begins=np.append(begins, n),
        clusters=of_piece // 2,
        sides=of_piece % 2,
        firsts=np.searchsorted(of_piece // 2, np.arange(clusters + 1)),
    )


class Members(NamedTuple):
    """The rows that a search can find, packed for a kernel.

    Attributes
    ----------
    kernel, form
        The kernel and the form of :class:`tonari.nn_descent.cpu.scores.Scores`.
    pieces : Pieces
    packed : list
        The packed rows of each piece.
    """

    kernel: str
    form: _native.Form
    pieces: Pieces
    packed: list[_native.PackedPoints]


@dataclass(frozen=True, kw_only=True)
class Reach:
    """The extent of a search: the members with which a block of rows is compared.

    Attributes
    ----------
    probes : int
        The number of clusters that a block of rows is compared with: first the near clusters of its rows, then the
        clusters nearest to the own cluster of these rows.
    most : int
        The largest number of members. Whole pieces are compared, so the last piece may exceed this number.
    without_self : bool
        Whether the rows are the members themselves, so that no row may find itself; only without a boundary.
    boundary : int, optional
        Compare only points of different graphs: ids below this number belong to the first graph.
    ranked : int32 of shape (clusters, any), optional
        The clusters nearest to each cluster, nearest first. Default: a block is compared only with the near clusters of
        its rows.
    blocks : iterable of int, optional
        The pieces of rows that are searched. Default: all pieces.
    """

    probes: int
    most: int
    without_self: bool = False
    boundary: int | None = None
    ranked: npt.NDArray[np.int32] | None = None
    blocks: Iterable[int] | None = None


def search_clusters(
    rows: npt.NDArray[Any],
    near: npt.NDArray[np.int32],
    seekers: Pieces,
    members: Members,
    reach: Reach,
    entries: npt.NDArray[np.int32],
    workers: Workers,
    *,
    mark: int = 0,
) -> None:
    """Fill the entries of rows with the best members of the clusters near them, by approximate scores.

    Parameters
    ----------
    rows : array of shape (n, d)
        The query rows.
    near : int32 of shape (n, any)
        Clusters near each row, nearest first.
    seekers : Pieces
        Pieces of the query rows; all rows of a piece are compared with the same members.
    members : Members
    reach : Reach
    entries : int32 of shape (n, size)
        Output. Columns beyond the number of members keep their values.
    workers : Workers
    mark : int
        Bits to set in every entry.
    """
    none_ranked = np.empty((len(members.pieces.firsts) - 1, 0), np.int32)
    search = _native.ClusterSearch(
        members.kernel,
        members.form,
        rows,
        _native.Pieces(*seekers),
        _native.Pieces(*members.pieces),
        members.packed,
        near,
        none_ranked if reach.ranked is None else reach.ranked,
        members.pieces.places() if reach.without_self else None,
        reach.probes,
        reach.most,
        -1 if reach.boundary is None else reach.boundary,
        mark,
        entries,
    )

    def work(begin: int, end: int) -> None:
        workers.check()
        search.run(begin, end)

    count = len(seekers.clusters)
    steps = range(0, count, tuning.TASK_BLOCKS)
    tasks = (
        [(at, min(at + tuning.TASK_BLOCKS, count)) for at in steps]
        if reach.blocks is None
        else [(at, at + 1) for at in reach.blocks]
    )
    workers.map(lambda task: work(*task), tasks)
