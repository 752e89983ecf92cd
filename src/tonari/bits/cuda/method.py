"""The registered method for rows of bits on CUDA."""

from __future__ import annotations

from typing import Any

from tonari.bits.cuda.listed import search_listed
from tonari.bits.cuda.plan import BitsCudaPlan, plan_bits_on_cuda
from tonari.bits.cuda.prepared import PreparedBits
from tonari.bits.cuda.search import search_bits
from tonari.bits.cuda.within import count_bits, find_bits
from tonari.bits.plan import refusal
from tonari.core.method import SearchMethod
from tonari.core.problem import Problem
from tonari.core.process.progress import ProgressLike


class BitsOnCuda(SearchMethod):
    """The method "bits" on CUDA, with the interface of :class:`tonari.core.method.SearchMethod`."""

    name = "bits"
    device = "cuda"

    refuses = staticmethod(refusal)
    search = staticmethod(search_bits)
    find_within = staticmethod(find_bits)
    count_within = staticmethod(count_bits)
    search_listed = staticmethod(search_listed)

    def plan(self, problem: Problem, *, prepared_by: BitsCudaPlan | None = None, **given: Any) -> BitsCudaPlan:
        return plan_bits_on_cuda(problem, prepared_by=prepared_by, **given)

    def prepare(self, points: Any, plan: BitsCudaPlan, progress: ProgressLike = None) -> PreparedBits:
        return PreparedBits(points, plan)

    def held_bytes(self, prepared: PreparedBits, plan: BitsCudaPlan) -> int:
        return plan.packed_bytes
