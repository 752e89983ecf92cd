"""The first lists: points that lie in one cluster are compared with the members of all clusters near them, exactly.

A block of members is screened against whole clusters, packed once, by the kernels of brute force. Its members agree on
the clusters: those that most of them have among their nearest.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import _native
from tonari.descent.clusters import Form, Nearest, find_centres
from tonari.descent.lists import MISSING, NEW
from tonari.exact import PreparedPoints
from tonari.planning import Plan, plan_on_cpu
from tonari.planning_descent import DescentPlan
from tonari.pool import Workers

_VOTES = 8  # clusters that each member names
_BLOCK = 64  # members of one task
_LARGEST = 4  # clusters larger than this many average ones are cut
_CANDIDATES = 2  # points that a block meets, at most, in units of those of `probes` average clusters


@dataclass
class _Group:
    """Points in the order of their clusters, in pieces.

    Attributes
    ----------
    order : int32 of shape (n,)
        Points.
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


def best_of_clusters(
    points: npt.NDArray[Any], plan: DescentPlan, size: int, workers: Workers, *, boundary: int | None = None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """For each point, its nearest among the members of clusters near it.

    Parameters
    ----------
    points : array of shape (n, d), checked
    plan : DescentPlan
    size : int
        Neighbours wanted.
    workers : Workers
    boundary : int, optional
        Only points on different sides of this number meet.

    Returns
    -------
    int32 of shape (n, size)
        New entries, the nearest first, none missing but where a side has fewer than `size` points.
    int32 of shape (n,)
        The points, those that met the same clusters together.
    """
    form = Form(points, plan.metric)
    nearest = Nearest(find_centres(points, form, plan, workers), plan)
    near = nearest.of_all(points, min(_VOTES, plan.clusters), form, as_queries=True)
    homes = near[:, 0] if form.queries_are_points else nearest.of_all(points, 1, form, as_queries=False)[:, 0]
    seconds = near[:, min(1, near.shape[1] - 1)]
    most = max(1, _LARGEST * len(points) // plan.clusters)
    members = _group(homes, seconds, plan.clusters, most, boundary)
    seekers = _group(near[:, 0], seconds, plan.clusters, _BLOCK, boundary)
    return _Search(points, plan, size, workers, near, members, seekers, boundary).run(), seekers.order


def _group(
    homes: npt.NDArray[np.int32], seconds: npt.NDArray[np.int32], clusters: int, most: int, boundary: int | None
) -> _Group:
    """Points by (cluster, side, second cluster, number), in even pieces of at most `most`."""
    n = len(homes)
    sides = np.zeros(n, np.int64) if boundary is None else (np.arange(n) >= boundary).astype(np.int64)
    order = np.lexsort((seconds, sides, homes))
    keys = homes[order] * np.int64(2) + sides[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    lengths = np.diff(starts, append=n)
    pieces = -(-lengths // most)
    place = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    begins = np.repeat(starts, pieces) + place * np.repeat(lengths, pieces) // np.repeat(pieces, pieces)
    of_piece = keys[begins]
    return _Group(
        order=order.astype(np.int32),
        begins=np.append(begins, n),
        clusters=of_piece // 2,
        sides=of_piece % 2,
        firsts=np.searchsorted(of_piece // 2, np.arange(clusters + 1)),
    )


class _Search:
    """One search through clusters; what its tasks share."""

    def __init__(
        self,
        points: npt.NDArray[Any],
        plan: DescentPlan,
        size: int,
        workers: Workers,
        near: npt.NDArray[np.int32],
        members: _Group,
        seekers: _Group,
        boundary: int | None,
    ) -> None:
        n, d = points.shape
        self.plan, self.size, self.workers = plan, size, workers
        self.near, self.members, self.seekers, self.boundary = near, members, seekers, boundary
        self.rows = points[members.order]
        same = np.array_equal(members.order, seekers.order)
        self.queries = self.rows if same else points[seekers.order]
        places = np.empty(n, np.int64)
        places[members.order] = np.arange(n)
        self.places = places[seekers.order]  # of the seekers among the members
        self.most = _CANDIDATES * plan.probes * max(1, n // plan.clusters)
        self.exact = plan_on_cpu(
            *(n, n, d, min(size, n)),
            dtype=points.dtype,
            metric=plan.metric,
            threads=plan.threads,
            isa=plan.isa,
            resident=False,
        )
        self.kernel = self.exact.kernel(_precision(self.exact))
        self.prepared = PreparedPoints(self.rows, self.exact)
        self.begins, self.sides = members.begins.tolist(), members.sides.tolist()
        self.firsts = members.firsts.tolist()
        self.packed: list[_native.PackedPoints] = []
        self.distance = np.dtype(np.float64 if points.dtype == np.float64 else np.float32)
        self.entries = np.full((n, size), MISSING, np.int32)
        self.own = threading.local()  # blocks of queries that each thread opens again and again

    def run(self) -> npt.NDArray[np.int32]:
        """The entries."""
        bounds = list(itertools.pairwise(self.begins))
        self.packed = self.prepared.pack(self.kernel, bounds, self.workers)
        self.workers.map(self._seek, range(len(self.seekers.clusters)))
        return self.entries

    def _seek(self, piece: int) -> None:
        self.workers.check()
        begin, end = self.seekers.begins[piece : piece + 2].tolist()
        seekers = self.seekers.order[begin:end]
        n, boundary, side = len(self.rows), self.boundary, int(self.seekers.sides[piece])
        if boundary is None:
            wanted, there = 0, n - 1
        else:
            wanted, there = 1 - side, n - boundary if side == 0 else boundary
        k = min(self.size, there)
        pieces = self._pieces(piece, seekers, wanted, k + (boundary is None))
        block = self._block(k)
        block.open(begin, end)
        for chosen in pieces:
            block.screen(self.packed[chosen], 0, self.packed[chosen].groups)
        indices, rest = np.empty((end - begin, k), np.int32), np.empty(end - begin, np.uint8)
        block.finish(np.empty((end - begin, k), self.distance), indices, rest)
        self.entries[seekers, :k] = self.members.order[indices] | np.int32(NEW)

    def _pieces(self, piece: int, seekers: npt.NDArray[np.int32], wanted: int, least: int) -> list[int]:
        """The pieces that a block meets: of the clusters that most of its points name, and of others up to `least`."""
        named, votes = np.unique(self.near[seekers], return_counts=True)
        clusters = named[np.argsort(-votes, kind="stable")][: self.plan.probes].tolist()
        share = self._share(piece)
        chosen: list[int] = []
        met = 0
        for cluster in clusters:
            here = [at for at in range(self.firsts[cluster], self.firsts[cluster + 1]) if self.sides[at] == wanted]
            turn = int(share * len(here))  # of a large cluster, blocks begin with different pieces
            for at in here[turn:] + here[:turn]:
                if met >= self.most:
                    break
                chosen.append(at)
                met += self.begins[at + 1] - self.begins[at]
        taken = set(chosen)
        for at in range(len(self.sides) if met < least else 0):
            if met < least and at not in taken and self.sides[at] == wanted:
                chosen.append(at)
                met += self.begins[at + 1] - self.begins[at]
        return chosen

    def _share(self, piece: int) -> float:
        """How far in its cluster a block of points lies: from 0 to 1, excluded."""
        cluster = int(self.seekers.clusters[piece])
        first, last = self.seekers.firsts[cluster : cluster + 2].tolist()
        return float((piece - first) / (last - first))

    def _block(self, k: int) -> _native.RowBlock:
        """This thread's block for lists of k."""
        blocks: dict[int, _native.RowBlock] = self.own.__dict__.setdefault("blocks", {})
        if k not in blocks:
            ids = self.places if self.boundary is None else None
            blocks[k] = _native.RowBlock(
                self.kernel,
                self.prepared.form,
                self.queries,
                self.rows,
                k,
                self.plan.isa,
                ids,
                self.distance == np.float64,
                False,
                self.exact.capacity,
                0,
            )
        return blocks[k]


def _precision(plan: Plan) -> str:
    """That of the screen: few pairs are compared, so that one pass is to settle them."""
    if plan.dtype in ("uint8", "int8"):
        return plan.ladder[0]
    return "bfloat16" if "bfloat16" in plan.ladder else plan.ladder[-1]
