"""Rows in the order of their clusters, in pieces; and a search in which blocks of rows meet the clusters near them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.workers import Workers

_TASK = 8  # blocks of one task

Pack = Callable[[npt.NDArray[np.int32]], _native.PackedPoints]


class Pieces(NamedTuple):
    """Rows in the order of their clusters, in pieces.

    Attributes
    ----------
    order : int32 of shape (n,)
        Rows.
    begins : int64 of shape (pieces + 1,)
        Where the pieces begin in it. None is empty, and none lies in two clusters or on both sides of the boundary.
    clusters, sides : int64 of shape (pieces,)
    firsts : int64 of shape (clusters + 1,)
        The first piece of each cluster.
    """

    order: npt.NDArray[np.int32]
    begins: npt.NDArray[np.int64]
    clusters: npt.NDArray[np.int64]
    sides: npt.NDArray[np.int64]
    firsts: npt.NDArray[np.int64]

    def of_clusters(self, clusters: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The rows of some clusters."""
        return np.concatenate([self.order[slice(*self.begins[self.firsts[at : at + 2]])] for at in clusters])

    def pack(self, pack: Pack, workers: Workers) -> list[_native.PackedPoints]:
        """Every piece, packed."""

        def work(at: int) -> _native.PackedPoints:
            workers.check()
            return pack(self.order[self.begins[at] : self.begins[at + 1]])

        return workers.map(work, range(len(self.clusters)))

    def places(self) -> npt.NDArray[np.int32]:
        """Of each row in the order."""
        places = np.empty(len(self.order), np.int32)
        places[self.order] = np.arange(len(self.order), dtype=np.int32)
        return places


def pieces_of(near: npt.NDArray[np.int32], clusters: int, most: int, boundary: int | None = None) -> Pieces:
    """Rows by (cluster, side, second cluster, number), in even pieces of at most `most`.

    Parameters
    ----------
    near : int32 of shape (n, at least 1)
        The cluster of each row, and clusters that are next to it.
    clusters, most : int
    boundary : int, optional
        Rows below it are on side 0, others on side 1. Default: all on side 0.
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


def search_clusters(
    kernel: str,
    form: _native.Form,
    rows: npt.NDArray[Any],
    near: npt.NDArray[np.int32],
    seekers: Pieces,
    members: Pieces,
    packed: list[_native.PackedPoints],
    entries: npt.NDArray[np.int32],
    workers: Workers,
    *,
    probes: int,
    most: int,
    places: npt.NDArray[np.int32] | None = None,
    boundary: int | None = None,
    mark: int = 0,
) -> None:
    """Fill the entries of rows with the nearest members of clusters near them, by scores.

    Parameters
    ----------
    kernel, form
        Of :class:`tonari.nn_descent.cpu.scores.Scores`.
    rows : array of shape (n, d)
        The seekers.
    near : int32 of shape (n, any)
        Clusters near to each row, the nearest first.
    seekers, members : Pieces
        A piece of seekers is a block that meets the same members.
    packed : list
        Pieces of the members.
    entries : int32 of shape (n, size)
        What is not filled, since there are fewer members, stays.
    workers : Workers
    probes, most : int
        Clusters that a block meets, and members, but for a last piece.
    places : int32 of shape (n,), optional
        Where the rows are the members: the place of each, which it is not to find. Only without a boundary.
    boundary : int, optional
        Only rows on different sides of this number meet.
    mark : int
        Bits that are put on every entry.
    """
    search = _native.ClusterSearch(
        kernel,
        form,
        rows,
        _native.Pieces(*seekers),
        _native.Pieces(*members),
        packed,
        near,
        places,
        probes,
        most,
        -1 if boundary is None else boundary,
        mark,
        entries,
    )

    def work(begin: int) -> None:
        workers.check()
        search.run(begin, min(begin + _TASK, len(seekers.clusters)))

    workers.map(work, range(0, len(seekers.clusters), _TASK))
