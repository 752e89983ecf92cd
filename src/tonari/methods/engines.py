"""Where a verb runs: the CPU's engine and the GPU's (engines_gpu.py) under the same few names.

So each verb is written once, and what only a GPU needs is imported when one is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari._native import exact_values
from tonari.core.neighbors import Neighbors, index_dtype
from tonari.core.plan import Plan
from tonari.core.progress import ProgressLike
from tonari.core.workers import default_threads
from tonari.exact import PreparedPoints, search_prepared
from tonari.exact.plan import plan_on_cpu
from tonari.kdtree.plan import TreePlan, plan_tree
from tonari.metrics import get_metric
from tonari.nn_descent.plan import DescentPlan, plan_descent

if TYPE_CHECKING:
    from tonari.costs.model import MeanVisits
    from tonari.exact.cuda.cuda_graph_cache import Call
    from tonari.kdtree.cpu.prepared import PreparedTree
    from tonari.nn_descent.backend import Steps


class Engine(Protocol):
    """What a verb asks of the place where it runs.

    Rows are checked arrays: NumPy in host memory, tensors on CUDA. Of the methods, :meth:`plan` makes a plan of the one
    that it is told, and everything else does what its plan says.

    Attributes
    ----------
    devices : tuple of str
        "cuda:0" and so on; none on the CPU.
    """

    devices: tuple[str, ...]

    def rows(self, x: Any, name: str, metric: str) -> Any:
        """Rows that the engine and the metric accept."""

    def plan(
        self,
        points: Any,
        queries: Any,
        k: int,
        metric: str,
        *,
        method: str,
        threads: int | None,
        memory: int | str | None,
        self_join: bool = False,
        prepared_by: Any = None,
    ) -> Any:
        """A plan for this search by a method, "exact" or "kdtree".

        `prepared_by`: the plan of that method by which the points were prepared before.
        """

    def threads_to_prepare(self, asked: int | None) -> int | None:
        """Threads for points that are prepared for searches to come: those asked for, else all; on CUDA none."""

    def plan_descent(self, points: Any, k: int, metric: str, **asked: Any) -> DescentPlan:
        """A plan for a graph by NN-Descent; see :func:`tonari.nn_descent.plan.plan_descent`."""

    def check_plan(self, plan: Plan, points: Any) -> None:
        """Refuse a plan that was made for another place."""

    def prepare(self, points: Any, plan: Any, progress: ProgressLike) -> Any:
        """Points made ready for searches."""

    def visits(self, queries: Any, prepared: Any, plan: TreePlan) -> MeanVisits:
        """What a query looks at in a prepared tree, on average over some."""

    def search(
        self,
        queries: Any,
        prepared: Any,
        plan: Any,
        *,
        self_join: bool = False,
        progress: ProgressLike = None,
        call: Call | None = None,
    ) -> Neighbors:
        """The answer, beside the queries: NumPy arrays in host memory or tensors on their device.

        In a self-join the queries are the points, and none finds itself.

        `call`: what kind of call this is, where an engine may answer others of its kind sooner
        (exact/cuda/cuda_graph_cache.py).
        """

    def search_once(
        self,
        queries: Any,
        points: Any,
        plan: Any,
        *,
        self_join: bool = False,
        progress: ProgressLike = None,
        call: Call | None = None,
    ) -> Neighbors:
        """The same for points that are prepared for this search alone; in a self-join they are the queries."""

    def no_others(self, rows: Any, metric: str) -> Neighbors:
        """Lists of no neighbours, beside the rows, whose values are sound then."""

    def with_self(self, found: Neighbors, rows: Any, metric: str) -> Neighbors:
        """Lists of a self-join with each point put before its neighbours, beside the rows."""

    def steps(self, points: Any, plan: DescentPlan) -> Steps:
        """The steps of NN-Descent among the points."""

    def beside_steps(self, x: Any) -> Any:
        """An array where the steps have theirs: in host memory or on the device, as NumPy's or as a tensor."""


def engine_for(device: Any, **given: Any) -> Engine:
    """The engine for an argument `device` and arrays by their names; see :func:`tonari.inputs.devices_for`."""
    devices = inputs.devices_for(device, **given)
    if not devices:
        return CpuEngine()
    from tonari.methods.engines_cuda import GpuEngine

    return GpuEngine(devices)


class CpuEngine:
    """Searches on the CPU."""

    devices: tuple[str, ...] = ()

    def rows(self, x: Any, name: str, metric: str) -> npt.NDArray[Any]:
        rows = inputs.as_rows(x, name)
        if get_metric(metric).nonnegative:
            inputs.check_nonnegative(rows, name)
        return rows

    def plan(
        self,
        points: npt.NDArray[Any],
        queries: npt.NDArray[Any],
        k: int,
        metric: str,
        *,
        method: str,
        threads: int | None,
        memory: int | str | None,
        self_join: bool = False,
        prepared_by: Plan | None = None,
    ) -> Plan:
        n, d = points.shape
        given: dict[str, Any] = {"threads": threads, "memory": memory, "self_join": self_join, "metric": metric}
        given["prepared"] = prepared_by is not None
        if method == "kdtree":
            return plan_tree(n, len(queries), d, k, dtype=points.dtype, query_dtype=queries.dtype, **given)
        return plan_on_cpu(n, len(queries), d, k, dtype=points.dtype, **given)

    def threads_to_prepare(self, asked: int | None) -> int | None:
        return asked or default_threads()

    def plan_descent(self, points: npt.NDArray[Any], k: int, metric: str, **asked: Any) -> DescentPlan:
        n, d = points.shape
        return plan_descent(n, d, k, dtype=points.dtype, metric=metric, **asked)

    def check_plan(self, plan: Plan, points: Any) -> None:
        if plan.devices:
            device = plan.devices[0] if len(plan.devices) == 1 else list(plan.devices)
            raise ValueError(f"the plan was made for {', '.join(plan.devices)}: pass device={device!r} with it")

    def prepare(self, points: npt.NDArray[Any], plan: Any, progress: ProgressLike) -> PreparedPoints | PreparedTree:
        if plan.method != "kdtree":
            return PreparedPoints(points, plan, progress)
        from tonari.kdtree.cpu.prepared import PreparedTree

        return PreparedTree(points, plan, progress)

    def visits(self, queries: npt.NDArray[Any], prepared: PreparedTree, plan: TreePlan) -> MeanVisits:
        return prepared.visits(queries, plan)

    def search(
        self,
        queries: npt.NDArray[Any],
        prepared: Any,
        plan: Any,
        *,
        self_join: bool = False,
        progress: ProgressLike = None,
        call: Call | None = None,
    ) -> Neighbors:
        own = np.arange(len(queries), dtype=np.int64) if self_join else None
        if plan.method == "kdtree":
            found: Neighbors = prepared.search(queries, plan, self_ids=own, progress=progress)
            return found
        return search_prepared(queries, prepared, plan, self_ids=own, progress=progress)[0]

    def search_once(
        self,
        queries: npt.NDArray[Any],
        points: npt.NDArray[Any],
        plan: Any,
        *,
        self_join: bool = False,
        progress: ProgressLike = None,
        call: Call | None = None,
    ) -> Neighbors:
        prepared = self.prepare(points, plan, progress)
        return self.search(queries, prepared, plan, self_join=self_join, progress=progress)

    def no_others(self, rows: npt.NDArray[Any], metric: str) -> Neighbors:
        value = np.float64 if rows.dtype == np.float64 else np.float32
        return Neighbors(np.empty((len(rows), 0), value), np.empty((len(rows), 0), index_dtype(len(rows))))

    def with_self(self, found: Neighbors, rows: npt.NDArray[Any], metric: str) -> Neighbors:
        own = np.arange(len(rows), dtype=np.int64)[:, None]
        values = np.zeros((len(rows), 1))
        if metric == "inner_product":
            exact_values(metric, rows, rows, own, values)
        first = values.astype(found.distances.dtype)
        ids = own.astype(found.indices.dtype)
        return Neighbors(np.hstack([first, found.distances]), np.hstack([ids, found.indices]))

    def steps(self, points: npt.NDArray[Any], plan: DescentPlan) -> Steps:
        from tonari.nn_descent.cpu.backend import CpuSteps

        return CpuSteps(points, plan)

    def beside_steps(self, x: Any) -> npt.NDArray[Any]:
        return x if isinstance(x, np.ndarray) else np.asarray(inputs.to_host(x))
