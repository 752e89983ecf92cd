"""Parts of a search: some points, some queries, or both, with their positions in the whole search and their plan."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core.process.caches import cached
from tonari.core.results.radius_neighbors import Within
from tonari.cuda.compiling.rehearsal import numbers_from
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.rows.groups import group_count


class Place(NamedTuple):
    """The position of a part in the whole search, and whether query i is point i.

    Attributes
    ----------
    first_point, first_query : int
    self_join : bool
    numbers : int64 array, optional
        For each query, its row number among the points, if only some rows of a self-join are searched. Default: query i
        is point i.
    later : bool
        Whether a point finds only points with larger row numbers, in a search within a radius.
    """

    first_point: int = 0
    first_query: int = 0
    self_join: bool = False
    numbers: npt.NDArray[np.int64] | None = None
    later: bool = False

    @classmethod
    def of(cls, request: Within) -> Place:
        """Return the position of the queries of a radius request among all points."""
        return cls() if request.own is None else cls(0, request.first, self_join=True, later=request.later)

    def at(self, point: int, query: int) -> Place:
        """Return the position of a part that begins `point` points and `query` queries after this one."""
        return self._replace(first_point=self.first_point + point, first_query=self.first_query + query)

    def own(self, rows: int, device: Any) -> Any:
        """Return for each query the row number of its own point in this part, int64; None unless it is a self-join."""
        if not self.self_join:
            return None
        if self.numbers is not None:
            import torch

            here = slice(self.first_query, self.first_query + rows)
            return torch.from_numpy(self.numbers[here] - self.first_point).to(device)
        first = self.first_query - self.first_point
        return numbers_from(first, rows, device)


@cached(maxsize=1024)
def plan_for_part(plan: CudaPlan, n: int, m: int, device: str) -> CudaPlan:
    """Return the plan for a part of a search, with n points and m queries, on one of the plan's devices."""
    # In a self-join, some rows may have only n - 1 other points. If k is larger, only refining all groups proves them.
    width, contracted = plan.width, plan.contracted_width
    if plan.k >= n:
        width = contracted = group_count(n, plan.group)
    alone = len(plan.devices) == 1  # with several devices, replays are decided by the plan of the whole search
    return dataclasses.replace(
        plan,
        n=n,
        m=m,
        k=min(plan.k, n),
        width=width,
        contracted_width=contracted,
        devices=(device,),
        cuda_graph=plan.cuda_graph and alone,
    )
