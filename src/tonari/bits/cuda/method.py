"""Rows of bits on CUDA as a registered method."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.bits.cuda.listed import search_listed
from tonari.bits.cuda.plan import BitsCudaPlan, plan_bits_on_cuda
from tonari.bits.cuda.prepared import PreparedBits
from tonari.bits.cuda.search import search_bits
from tonari.bits.cuda.within import count_bits, find_bits
from tonari.bits.plan import refusal
from tonari.core.method import SearchMethod
from tonari.core.neighbors import Neighbors
from tonari.core.problem import Problem
from tonari.core.progress import ProgressLike


class BitsOnCuda(SearchMethod):
    """See :class:`tonari.core.method.SearchMethod`."""

    name = "bits"
    device = "cuda"

    refuses = staticmethod(refusal)
    search = staticmethod(search_bits)
    find_within = staticmethod(find_bits)
    count_within = staticmethod(count_bits)

    def plan(self, problem: Problem, *, prepared_by: BitsCudaPlan | None = None, **given: Any) -> BitsCudaPlan:
        return plan_bits_on_cuda(problem, prepared_by=prepared_by, **given)

    def prepare(self, points: Any, plan: BitsCudaPlan, progress: ProgressLike = None) -> PreparedBits:
        return PreparedBits(points, plan)

    def held_bytes(self, prepared: PreparedBits, plan: BitsCudaPlan) -> int:
        return plan.packed_bytes

    def search_listed(
        self,
        queries: Any,
        points: Any,
        k: int,
        metric: str,
        listed: npt.NDArray[np.int64],
        begins: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
        *,
        self_ids: npt.NDArray[np.int64] | None = None,
        threads: int | None = None,
        found: Neighbors | None = None,
    ) -> Neighbors:
        return search_listed(queries, points, k, metric, listed, begins, ends, self_ids=self_ids)
