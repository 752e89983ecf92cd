"""Execute a radius search by the plan of a k-d tree on CUDA, over devices, slabs of points and blocks of queries.

As in dispatch.py, several devices share the queries, and each has the whole tree, or searches the trees of the slabs
one after another and joins the lists. Queries with values that a tree cannot compare are answered by brute force, and
slabs with such values are searched by brute force.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tonari import inputs
from tonari.core.process.progress import Counter, Progress, ProgressLike
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within
from tonari.core.rows.slices import cut
from tonari.cuda.device_threads import a_thread_each, side_by_side
from tonari.cuda.devices import on, to_device
from tonari.exact.cuda import dispatch as brute
from tonari.exact.cuda.planning import plan_on_cuda
from tonari.exact.cuda.routes.within import Verb, limits_on
from tonari.exact.cuda.rows.part import Place
from tonari.kdtree.cuda.prepared import PreparedTrees
from tonari.kdtree.cuda.search import beyond
from tonari.kdtree.cuda.steps import Steps
from tonari.kdtree.cuda.tree import DeviceTree
from tonari.kdtree.cuda.within import Ball, count_in_ball, find_in_ball
from tonari.kdtree.plan import TreePlan
from tonari.metrics.problem import make_problem


def within(
    queries: Any,
    prepared: PreparedTrees,
    plan: TreePlan,
    limits: npt.NDArray[Any],
    verb: Verb,
    place: Place,
    progress: ProgressLike,
) -> Any:
    """Answer a radius search; the answer has tensors on the device of the queries or, for NumPy queries, arrays."""
    m, slabs = len(queries), cut(plan.n, plan.point_slab)
    bounds = cut(m, -(-m // len(plan.devices)))
    workers = a_thread_each(plan.devices)
    where = "cpu" if isinstance(queries, np.ndarray) else queries.device
    with (
        on(plan.devices[0]),
        Progress(progress, total=m * len(slabs), seconds=plan.seconds, label="neighbours", unit="query") as bar,
    ):

        def answer(at: int) -> Any:
            request = _Asked(queries, prepared, plan, limits, verb, place, at, workers.check, bar)
            return verb.stack([verb.move(block, where) for block in request.answer(bounds[at], slabs)])

        return verb.stack(side_by_side(workers, plan.devices, len(bounds), answer))


@dataclass(frozen=True)
class _Asked:
    """The share of one device in a radius search: device `at` of the plan answers some of the queries."""

    queries: Any
    prepared: PreparedTrees
    plan: TreePlan
    limits: npt.NDArray[Any]
    verb: Verb
    place: Place
    at: int
    check: Callable[[], None]
    bar: Counter

    @property
    def device(self) -> Any:
        return torch.device(self.plan.devices[self.at])

    def answer(self, part: slice, slabs: list[slice]) -> list[Any]:
        """Answer some of the queries from each slab of the points, block by block; return the answers of the blocks."""
        blocks = [
            slice(part.start + here.start, part.start + here.stop)
            for here in cut(part.stop - part.start, self.plan.query_block)
        ]
        found: list[list[Any]] = [[] for _ in blocks]
        steps = Steps(self.device)
        with contextlib.closing(self.prepared.arriving(self.plan, self.at)) as trees:
            for slab, tree in zip(slabs, trees, strict=True):
                for here, answers in zip(blocks, found, strict=True):
                    answers.append(self._block(here, slab, tree, steps))
        return [self.verb.join(answers) for answers in found]

    def _block(self, here: slice, slab: slice, tree: DeviceTree | None, steps: Steps) -> Any:
        """Answer a block of queries from a slab of points; ids in the answer are row numbers among all points."""
        rows = to_device(self.queries[here], self.device)
        if tree is None:
            numbers = torch.arange(len(rows), device=self.device)
            self.bar.add(len(rows))
            return self._brute(here, numbers, slab)
        tree.written.read()
        limits = limits_on(self.limits[here], self.device)
        left = self._left(rows, here, tree)
        if len(left):
            limits[left] = -1.0
        there = self.place.at(slab.start, here.start)
        ball = Ball(
            rows.to(tree.rows.dtype).contiguous(),
            tree,
            limits,
            self.plan.metric,
            there.own(len(rows), self.device),
            there.later,
            steps,
            self.check,
            self._are_points(tree) and len(rows) == tree.n,
        )
        if not self.verb.listed:
            answer = count_in_ball(ball, self.bar, sort=self.plan.sort)
        else:
            lists = find_in_ball(ball, self.bar, sort=self.plan.sort)
            answer = lists._replace(indices=lists.indices + slab.start) if slab.start else lists
        return self.verb.join([answer, self._brute(here, left, slab)]) if len(left) else answer

    def _are_points(self, tree: DeviceTree) -> bool:
        """Return whether the queries are the points of the tree, all of which a tree can compare."""
        return self.queries is self.prepared.points and tree.n == self.plan.n

    def _left(self, rows: Any, here: slice, tree: DeviceTree) -> Any:
        """Return the positions in the block of the queries that a tree cannot compare."""
        if self._are_points(tree):
            return ()
        left = beyond(rows, self.plan.metric).nonzero()[:, 0]
        if len(left):
            inputs.check_values(self.queries[here], "queries", first=here.start, nonnegative=False)
        return left

    def _brute(self, here: slice, numbers: Any, slab: slice) -> Any:
        """Answer some queries of a block by brute force among the points of a slab; the other queries get no hits."""
        queries, points = self.queries[here], self.prepared.points[slab]
        host = isinstance(queries, np.ndarray)
        rows = queries[numbers.cpu().numpy()] if host else queries[numbers.to(queries.device)]
        problem = make_problem(
            len(points),
            len(rows),
            self.plan.d,
            1,
            dtype=inputs.name_of_dtype(points),
            query_dtype=inputs.name_of_dtype(rows),
            metric=self.plan.metric,
            devices=(self.plan.devices[self.at],),
            host_points=isinstance(points, np.ndarray),
            host_queries=host,
        )
        plan = plan_on_cuda(problem)
        prepared = brute.prepare(points, plan, False)
        limits = self.limits[here][numbers.cpu().numpy()]
        found = brute.find_within(Within(rows, limits), prepared, plan, False)
        indptr, ids, values = (torch.as_tensor(part).to(self.device) for part in found)
        ids = ids + slab.start
        of = torch.repeat_interleave(numbers, indptr.diff(), output_size=len(ids))
        if self.place.self_join:
            own = of + (here.start + self.place.first_query)
            others = ids > own if self.place.later else ids != own
            ids, values, of = ids[others], values[others], of[others]
        counts = torch.bincount(of, minlength=here.stop - here.start)
        if not self.verb.listed:
            return counts
        return RadiusNeighbors(torch.nn.functional.pad(counts.cumsum(0), (1, 0)), ids, values)
