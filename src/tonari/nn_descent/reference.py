"""The steps of NN-Descent in plain NumPy: they specify a round, which all backends reproduce bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.results.neighbors import Neighbors, value_dtype
from tonari.core.rows.draws import Purpose, generator
from tonari.metrics import get_metric, reference
from tonari.nn_descent.backend import Known, Round
from tonari.nn_descent.entries import ID, MISSING, NEW, random_entries

Entries = npt.NDArray[np.int32]

_ORDER = np.uint64(0x9E3779B1)  # an odd multiplier: modulo 2**32, it maps distinct ids to distinct keys
_AFTER_ALL = np.uint64(2**64 - 1)
_BLOCK = 512  # number of rows processed in one step; their candidates take about 20 MB


class ReferenceBackend:
    """:class:`tonari.nn_descent.backend.Backend` for points in host memory.

    Parameters
    ----------
    points : array of shape (n, d), checked
    plan : DescentPlan

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.metrics.problem import make_problem
    >>> from tonari.nn_descent.planning.planner import plan_descent
    >>> points = np.arange(6, dtype=np.float32)[:, None] ** 2
    >>> problem = make_problem(6, 6, 1, 2, dtype="float32", metric="euclidean", self_join=True)
    >>> plan = plan_descent(problem, recall=0.9, seed=0)
    >>> steps = ReferenceBackend(points, plan)
    >>> steps.round(steps.start("random")).found.indices.tolist()
    [[1, 2], [0, 2], [1, 0], [2, 4], [3, 5], [4, 3]]
    """

    def __init__(self, points: npt.NDArray[Any], plan: Any) -> None:
        self.points, self.plan = points, plan
        self.dtype = np.dtype(value_dtype(points.dtype))
        self.descending = get_metric(plan.metric).descending

    def start(self, kind: str, known: Known | None = None) -> Entries:
        if kind == "random":
            return random_entries(self.plan.n, self.plan.list_size, self.plan.seed)
        return self._best_of_clusters()

    def seeds(self, boundary: int, size: int) -> Entries:
        n, seed = self.plan.n, self.plan.seed
        below = random_entries(n, size, seed, rows=slice(boundary), among=(boundary, n))
        above = random_entries(n, size, seed, rows=slice(boundary, n), among=(0, boundary))
        return np.concatenate([below, above])

    def entries_of(self, indices: npt.NDArray[Any], *, new: bool) -> Entries:
        ids = indices.astype(np.int32)
        return np.where(ids < 0, np.int32(MISSING), ids | np.int32(NEW if new else 0))

    def joined_entries(self, first: Entries, second: Entries) -> Entries:
        size = self.plan.list_size
        both = np.full((len(first), max(size, first.shape[1] + second.shape[1])), MISSING, np.int32)
        both[:, : first.shape[1]] = first
        both[:, first.shape[1] : first.shape[1] + second.shape[1]] = second
        return np.ascontiguousarray(both[:, :size])

    def round(self, entries: Entries, boundary: int | None = None, *, light: bool = False, last: bool = False) -> Round:
        if light:
            return ReferenceBackend(self.points, self.plan.light).round(entries, boundary)
        n, k = self.plan.n, self.plan.k
        following = np.empty_like(entries)
        distances, indices = np.empty((n, k), self.dtype), np.empty((n, k), np.int32)
        behind, changed = self.reverse(entries), 0
        for begin in range(0, n, _BLOCK):
            rows = np.arange(begin, min(n, begin + _BLOCK))
            own = entries[rows]
            ids, values = self._best(rows, np.hstack([_ids(own), self.others(entries, behind, rows, boundary)]))
            place = _places(ids, own)
            waits = (place >= min(self.plan.n_hubs, own.shape[1])) & (np.take_along_axis(own, place, axis=1) & NEW != 0)
            new = (ids >= 0) & ((place < 0) | waits)
            following[rows] = np.where(new, ids | np.int32(NEW), ids)
            distances[rows], indices[rows] = values[:, :k], ids[:, :k]
            changed += int(((place < 0) & (ids >= 0))[:, :k].sum())
        phi = float(distances[np.isfinite(distances)].sum(dtype=np.float64))
        return Round(following, Neighbors(distances, indices), changed, phi)

    def exact(self, rows: npt.NDArray[np.int64], k: int) -> Neighbors:
        return reference.brute(self.points[rows], self.points, k, self.plan.metric, self_ids=rows)

    def of_rows(self, found: Neighbors, rows: npt.NDArray[np.int64]) -> Neighbors:
        return Neighbors(found.distances[rows], found.indices[rows])

    def reverse(self, entries: Entries) -> Entries:
        """Find, for each point, the first `reverse` rows, by (column, row), that list it as a hub."""
        n, most = self.plan.n, self.plan.reverse
        hubs = entries[:, : self.plan.n_hubs].T.ravel()
        pairs = np.flatnonzero(hubs >= 0)
        pairs = pairs[np.argsort(hubs[pairs] & ID, kind="stable")]
        ids = hubs[pairs] & ID
        rank = np.arange(len(ids)) - np.searchsorted(ids, ids)
        pairs, ids, rank = (part[rank < most] for part in (pairs, ids, rank))
        behind = np.full((n, most), MISSING, np.int32)
        behind[ids, rank] = pairs % n | (hubs[pairs] & NEW)
        return behind

    def others(self, entries: Entries, behind: Entries, rows: npt.NDArray[Any], boundary: int | None) -> Entries:
        """Return the candidates of some rows that are not in the row's list already.

        The result is int32 of shape (rows, width), padded with -1.
        """
        hubs = np.hstack([entries[rows, : self.plan.n_hubs], behind[rows]])
        theirs = entries[_ids(hubs).clip(0), : self.plan.neighbors_per_hub]
        meet = (hubs >= 0)[:, :, None] & (theirs >= 0) & (((hubs[:, :, None] | theirs) & NEW) != 0)
        theirs = np.where(meet, theirs, np.int32(MISSING)).reshape(len(rows), -1)
        met = _ids(np.hstack([behind[rows], theirs]))
        if boundary is not None:
            met = np.where((met < boundary) == (rows < boundary)[:, None], np.int32(MISSING), met)
        had = np.hstack([_ids(entries[rows]), rows[:, None].astype(np.int32)])
        ids = np.hstack([had, met])
        keys = (ids.astype(np.uint64) * _ORDER) % np.uint64(2**32) * np.uint64(2)
        keys[:, had.shape[1] :] += np.uint64(1)  # an equal id in the row's own list sorts before this one
        keys[ids < 0] = _AFTER_ALL
        order = np.argsort(keys, axis=1, kind="stable")
        keys, ids = np.take_along_axis(keys, order, axis=1), np.take_along_axis(ids, order, axis=1)
        fresh = (keys % np.uint64(2) == 1) & (keys != _AFTER_ALL)
        fresh[:, 1:] &= keys[:, 1:] // np.uint64(2) != keys[:, :-1] // np.uint64(2)
        place = np.cumsum(fresh, axis=1) - 1
        row, column = np.nonzero(fresh & (place < self.plan.width))
        found = np.full((len(rows), self.plan.width), MISSING, np.int32)
        found[row, place[row, column]] = ids[row, column]
        return found

    def _best(self, rows: npt.NDArray[Any], ids: Entries) -> tuple[Entries, npt.NDArray[Any]]:
        """Return the nearest of each row's distinct `ids`, nearest first, with the distances of exact search."""
        values = reference.values_at(self.points[rows], self.points, ids, self.plan.metric)
        distances = reference.returned(values, self.dtype)
        keys = -distances if self.descending else distances
        order = np.lexsort((ids, keys, ids < 0))[:, : self.plan.list_size]
        return np.take_along_axis(ids, order, axis=1), np.take_along_axis(distances, order, axis=1)

    def _best_of_clusters(self) -> Entries:
        """Return the nearest neighbours of each point among the members of its nearest clusters."""
        n, size = self.plan.n, self.plan.list_size
        x = self.points.astype(np.float64)
        metric = get_metric(self.plan.metric)
        if metric.angular:
            x = x - x.mean(axis=1, keepdims=True) if metric.centred else x
            x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), np.finfo(np.float64).tiny)
        rng = generator(self.plan.seed, Purpose.CLUSTERS)
        sample = x[rng.choice(n, min(n, self.plan.n_clusters * self.plan.train_per_cluster), replace=False)]
        centres = sample[: self.plan.n_clusters].copy()
        for _ in range(self.plan.kmeans_iters):
            nearest = reference.pairwise(sample, centres, "sqeuclidean").argmin(axis=1)
            for cluster in np.unique(nearest):
                centres[cluster] = sample[nearest == cluster].mean(axis=0)
        by_nearness = np.argsort(reference.pairwise(x, centres, "sqeuclidean"), axis=1, kind="stable")
        members = [np.flatnonzero(by_nearness[:, 0] == cluster) for cluster in range(len(centres))]
        entries = np.full((n, size), MISSING, np.int32)
        for row in range(n):
            met = np.concatenate([members[cluster] for cluster in by_nearness[row, : self.plan.n_probe]])
            best, _ = self._best(np.array([row]), met[met != row][None].astype(np.int32))
            entries[row, : best.shape[1]] = best | NEW
        return entries


def _ids(entries: Entries) -> Entries:
    return np.where(entries < 0, np.int32(MISSING), entries & np.int32(ID))


def _places(ids: Entries, own: Entries) -> npt.NDArray[np.int64]:
    """Return the column of each id in its row's own entries; -1 if it is missing or not in the row."""
    order = np.argsort(_ids(own), axis=1, kind="stable")
    listed = np.take_along_axis(_ids(own), order, axis=1)
    span = np.int64(ID) + 2
    offsets = np.arange(len(ids), dtype=np.int64)[:, None] * span
    at = np.searchsorted((listed + offsets).ravel(), (ids + offsets).ravel()).reshape(ids.shape)
    at = np.minimum(at - np.arange(len(ids))[:, None] * own.shape[1], own.shape[1] - 1)
    there = (np.take_along_axis(listed, at, axis=1) == ids) & (ids >= 0)
    return np.where(there, np.take_along_axis(order, at, axis=1), -1)
