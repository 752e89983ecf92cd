"""The steps of NN-Descent on one CUDA device; ``nn_descent/backend.py`` specifies them."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import numpy as np
import torch

from tonari import inputs
from tonari.core.errors import BudgetExceeded
from tonari.core.problem import Problem
from tonari.core.results.neighbors import Neighbors
from tonari.cuda.devices import on
from tonari.cuda.self_neighbors import without_own
from tonari.exact.cuda import dispatch as run
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.planning import plan_on_cuda
from tonari.exact.cuda.refine.groups import refine_all
from tonari.exact.cuda.rows.groups import GROUP_SIZES, POINT_TILE
from tonari.metrics import get_metric
from tonari.metrics.names import is_own
from tonari.metrics.problem import make_problem
from tonari.nn_descent import tuning
from tonari.nn_descent.backend import Known, Round
from tonari.nn_descent.cuda.clusters import find_clusters
from tonari.nn_descent.cuda.form import Form, form_of
from tonari.nn_descent.cuda.rounds import round_of
from tonari.nn_descent.cuda.scan import scan
from tonari.nn_descent.entries import MISSING, MIX, NEW
from tonari.nn_descent.memory import list_bytes, scanned_rows, truth_bytes
from tonari.nn_descent.plan import DescentPlan


def nearest(queries: Any, points: Any, k: int, metric: str, memory: int) -> Neighbors:
    """Find the k nearest points of every query, nearest first, within `memory` bytes.

    Return tensors of shape (m, k).
    """
    n, d = points.shape
    if is_own(metric):  # a screen needs a bound on the metric, which is unknown for a user-defined function
        double = torch.float64 in (queries.dtype, points.dtype)
        return Neighbors(*refine_all(queries, points, k, metric=metric, double=double, scratch_bytes=memory))
    problem = make_problem(
        n,
        len(queries),
        d,
        k,
        dtype=inputs.name_of_dtype(points),
        query_dtype=inputs.name_of_dtype(queries),
        metric=metric,
        devices=(str(points.device),),
        host_points=False,
        host_queries=False,
        memory=memory,
    )
    return run.search_once(queries, points, plan_nearest(problem), progress=False)


def plan_nearest(problem: Problem, *, free_bytes: int | None = None) -> CudaPlan:
    """Plan an exact search of a few thousand queries within a budget, with all rows on the device.

    Most of the memory is for the screen's minima, one for each query and group of points. If slabs of points are packed
    one after another, more memory remains for larger batches of queries. The plan with the fewest pairs of a batch and
    a slab is the fastest. Its batches have equal lengths, because a short last batch would need its own compiled
    kernels.

    Parameters
    ----------
    free_bytes : int, optional
        See :func:`tonari.exact.cuda.planning.plan_on_cuda`.
    """
    n, m = problem.n, problem.m

    def plan(**slabs: Any) -> CudaPlan:
        return plan_on_cuda(problem, free_bytes=free_bytes, group=GROUP_SIZES[-1], **slabs)

    def visits(plan: CudaPlan) -> int:
        return -(-n // plan.point_slab) * -(-m // plan.query_batch)

    plans = [plan()]
    slab = n
    while plans[-1].query_batch < m and slab > tuning.LEAST_SLAB:
        slab = -(-slab // (2 * POINT_TILE)) * POINT_TILE
        # with several slabs, their lists have to be merged, which takes memory
        with contextlib.suppress(BudgetExceeded):
            plans.append(plan(route="streamed", point_slab=slab, query_slab=m))
    best = min(plans, key=visits)
    return dataclasses.replace(best, query_batch=-(-m // -(-m // best.query_batch)))


_BLOCK = 1 << 20  # number of random numbers drawn in one step
_WORD = 2**32 - 1


def random_on(device: Any, n: int, size: int, seed: int) -> Any:
    """Draw random new entries for all rows on a device (wang2021, algorithm 1, lines 1 to 4).

    Parameters
    ----------
    device : torch.device
    n, size, seed : int
        As for :func:`tonari.nn_descent.entries.random_entries`.

    Returns
    -------
    int32 tensor of shape (n, size)
    """
    drawn = torch.empty((n, size), dtype=torch.int32, device=device)
    columns = torch.arange(size, dtype=torch.int64, device=device) * MIX[1] + seed * MIX[2] % 2**32
    step = max(1, _BLOCK // size)
    for begin in range(0, n, step):
        own = torch.arange(begin, min(begin + step, n), dtype=torch.int64, device=device)[:, None]
        mixed = (own * MIX[0] + columns) & _WORD
        for shift in (16, 13, 16):  # int64 products may overflow, but their last 32 bits are correct
            mixed = ((mixed ^ (mixed >> shift)) * MIX[1]) & _WORD
        ids = (mixed % n).sort(1).values
        again = torch.zeros(ids.shape, dtype=torch.bool, device=device)
        again[:, 1:] = ids[:, 1:] == ids[:, :-1]
        drawn[begin : begin + step] = torch.where(again | (ids == own), MISSING, ids | NEW).to(torch.int32)
    return drawn


class CudaBackend:
    """:class:`tonari.nn_descent.backend.Backend` for points on a device.

    Parameters
    ----------
    points : tensor of shape (n, d), checked except for its values

    Raises
    ------
    ValueError
        A point has a NaN or an infinite value, or one that the metric does not accept.
    """

    def __init__(self, points: Any, plan: DescentPlan) -> None:
        self.points, self.plan = points, plan
        nonnegative = get_metric(plan.metric).nonnegative
        low, high = torch.aminmax(points)
        most = min(inputs.LARGEST_FLOAT64, _largest(points.dtype))
        if not bool((high <= most) & (low >= (0 if nonnegative else -most))):
            inputs.check_values(points, "points", first=0, nonnegative=nonnegative)
        self._order: Any = None
        self._held = 0  # bytes of the lists on the device

    def start(self, kind: str, known: Known | None = None) -> Any:
        size = self.plan.list_size
        return self._random(size) if kind == "random" else self._scan(size, None)

    def seeds(self, boundary: int, size: int) -> Any:
        return self._scan(size, boundary)

    def _random(self, size: int) -> Any:
        with on(self.points.device):
            return random_on(self.points.device, self.plan.n, size, self.plan.seed)

    def _formed(self) -> Form:
        """Return the points in the form that the start compares (cuda/form.py)."""
        return form_of(self.points, self.plan.metric)

    def _scan(self, size: int, boundary: int | None) -> Any:
        plan = self.plan
        with on(self.points.device):
            form = self._formed()
            clusters = find_clusters(form, plan)
            self._order = clusters.order
            return scan(form, clusters, size, scanned_rows(plan), boundary=boundary)

    def entries_of(self, indices: Any, *, new: bool) -> Any:
        ids = torch.as_tensor(indices, device=self.points.device).to(torch.int32)
        return torch.where(ids < 0, MISSING, ids | NEW if new else ids)

    def joined_entries(self, first: Any, second: Any) -> Any:
        size = self.plan.list_size
        both = torch.cat([first, second], 1)[:, :size]
        room = torch.full((len(both), size - both.shape[1]), MISSING, dtype=torch.int32, device=both.device)
        return torch.cat([both, room], 1)

    def round(self, entries: Any, boundary: int | None = None, *, light: bool = False, last: bool = False) -> Round:
        self._held = list_bytes(self.plan)
        with on(self.points.device):
            order = self._order
            if order is None:
                order = torch.arange(len(entries), device=entries.device)
            return round_of(self.points, entries, order, self.plan.light if light else self.plan, boundary)

    def exact(self, rows: Any, k: int) -> Neighbors:
        at = torch.from_numpy(np.asarray(rows)).to(self.points.device)
        with on(self.points.device):
            plan = self.plan  # the memory of the start's packed points is free now
            room = min(truth_bytes(plan), plan.packed_bytes + plan.working_bytes - self._held)
            found = nearest(self.points[at], self.points, min(k + 1, plan.n), plan.metric, room)
        return without_own(found, at, k)

    def of_rows(self, found: Neighbors, rows: Any) -> Neighbors:
        at = torch.from_numpy(np.asarray(rows)).to(found.indices.device)
        return Neighbors(*(part[at].cpu().numpy() for part in found))


def _largest(dtype: Any) -> float:
    """Return the largest finite value of a dtype."""
    return float(torch.finfo(dtype).max if dtype.is_floating_point else torch.iinfo(dtype).max + 1)
