"""The registered method for rows with missing values on CUDA, which refuses every problem."""

from __future__ import annotations

from typing import Any, NoReturn

from tonari.core.errors import Unsupported
from tonari.core.method import SearchMethod
from tonari.core.problem import Problem
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.missing.plan import refusal


class MissingOnCuda(SearchMethod):
    """A :class:`tonari.core.method.SearchMethod` that refuses every plan, so that no search starts."""

    name = "missing"
    device = "cuda"

    refuses = staticmethod(refusal)

    def plan(self, problem: Problem, **given: Any) -> NoReturn:
        raise Unsupported(refusal(problem))

    def prepare(self, points: Any, plan: Any, progress: ProgressLike = None) -> Any:
        raise NotImplementedError

    def search(
        self, queries: Any, prepared: Any, plan: Any, *, self_join: bool = False, progress: ProgressLike = None
    ) -> Neighbors:
        raise NotImplementedError
