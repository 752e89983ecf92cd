"""NN-Descent as a registered method; on the CPU and on CUDA, only the backend differs."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from tonari import inputs
from tonari.core.method import GraphLists, Method
from tonari.core.problem import Problem
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.nn_descent.backend import Backend
from tonari.nn_descent.driver import build
from tonari.nn_descent.plan import DescentPlan
from tonari.nn_descent.planning.planner import plan_descent, refusal
from tonari.nn_descent.updates import GNND


class NnDescent(Method):
    """NN-Descent; see :class:`tonari.core.method.Method`."""

    name = "nn-descent"
    exact = False

    def refuses(self, problem: Problem) -> str | None:
        return refusal(problem)

    def plan(self, problem: Problem, **given: Any) -> DescentPlan:
        return plan_descent(problem, **given)

    @abstractmethod
    def backend(self, points: Any, plan: DescentPlan) -> Backend:
        """Make the backend that runs the steps for `points` on the device of the method."""

    def compiling(self, points: Any, plan: DescentPlan, progress: ProgressLike) -> AbstractContextManager[None]:
        """Return a context that compiles all missing kernels when a build starts; on the CPU, it does nothing."""
        return nullcontext()

    def build_graph(
        self,
        points: Any,
        plan: DescentPlan,
        *,
        prepared: Any = None,
        start: Any = None,
        progress: ProgressLike = None,
        patience: float | None = None,
    ) -> GraphLists:
        def begin() -> Any:
            begun = backend.entries_of(start, new=True)
            return backend.joined_entries(begun, begun[:, :0])

        with self.compiling(points, plan, progress):
            backend = self.backend(points, plan)
            found, report = build(backend, plan, progress, None if start is None else begin, patience=patience)
        return GraphLists(beside_rows(found, points), report, plan.seed)


class NnDescentOnCpu(NnDescent):
    """NN-Descent on the CPU."""

    device = "cpu"

    def backend(self, points: Any, plan: DescentPlan) -> Backend:
        from tonari.nn_descent.cpu.backend import CpuBackend

        return CpuBackend(points, plan)


class NnDescentOnCuda(NnDescent):
    """NN-Descent on one CUDA device."""

    device = "cuda"

    def compiling(self, points: Any, plan: DescentPlan, progress: ProgressLike) -> AbstractContextManager[None]:
        from tonari.cuda.compiling.ahead import expecting
        from tonari.nn_descent.cuda.rehearse import rehearse_descent

        if plan.update == GNND:
            return nullcontext()
        return expecting(lambda: rehearse_descent(plan, inputs.name_of_dtype(points)), progress)

    def backend(self, points: Any, plan: DescentPlan) -> Backend:
        from tonari.cuda.devices import to_device
        from tonari.nn_descent.cuda.backend import CudaBackend
        from tonari.nn_descent.papers.cuda.gnnd import GnndBackend

        backend = GnndBackend if plan.update == GNND else CudaBackend
        return backend(to_device(points, plan.devices[0]), plan)


def beside_rows(found: Neighbors, rows: Any) -> Neighbors:
    """Copy neighbour lists to host memory if the rows are in host memory; otherwise return them unchanged."""
    if not isinstance(rows, np.ndarray):
        return found
    return Neighbors(*(inputs.hand_back(part, inputs.Side("numpy", None)) for part in found))
