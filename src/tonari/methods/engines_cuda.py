"""The GPU's engine as the verbs use it (engines.py)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tonari import inputs
from tonari.core.errors import BudgetExceeded
from tonari.core.neighbors import Neighbors
from tonari.core.progress import ProgressLike
from tonari.costs.model import MeanVisits
from tonari.cuda import self_neighbors as own
from tonari.cuda.devices import to_device
from tonari.exact.cuda import dispatch as run
from tonari.exact.cuda.cuda_graph_cache import Call
from tonari.exact.cuda.plan import RESERVE, CudaPlan, free_memory, plan_on_gpu
from tonari.exact.cuda.search import no_others
from tonari.inputs.arguments import check_no_threads
from tonari.kdtree.plan import TreePlan, plan_tree
from tonari.methods.engines import CpuEngine
from tonari.metrics import get_metric
from tonari.nn_descent.plan import DescentPlan, check_one_device, plan_descent

if TYPE_CHECKING:
    from tonari.nn_descent.backend import Steps

# What any card is taken to have to spare. A search that needs no more is planned without asking how much there is, and
# once for all like it: both take longer than a small search.
_SPARE_BYTES = 1 << 30


@functools.lru_cache(maxsize=1024)
def _plan_within_spare(n: int, m: int, d: int, k: int, **given: Any) -> CudaPlan | None:
    """The plan of a search that stays on the device and whose memory nobody has to look for; else None."""
    try:
        plan = plan_on_gpu(n, m, d, k, free_bytes=_SPARE_BYTES + RESERVE, **given)
    except BudgetExceeded:
        return None
    return plan if plan.route == "resident" and plan.query_batch >= m else None


class GpuEngine:
    """Searches on one or several CUDA devices.

    Values are looked at by the kernels that pack the rows, so NaN and the like are refused at the end of a search.
    """

    def __init__(self, devices: tuple[str, ...]) -> None:
        self.devices = devices

    def rows(self, x: Any, name: str, metric: str) -> Any:
        get_metric(metric)
        place = inputs.place_of(x, name)
        if place is None:
            return inputs.as_rows(x, name, check_values=False)
        if place not in self.devices:
            raise ValueError(f"{name}: is on {place}, but the points are on {', '.join(self.devices)}; copy it there")
        return inputs.as_device_rows(x, name)

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
    ) -> CudaPlan | TreePlan:
        check_no_threads(threads, self.devices)
        n, d = points.shape
        given: dict[str, Any] = {
            "dtype": inputs.name_of_dtype(points),
            "metric": metric,
            "devices": self.devices,
            "memory": memory,
            "self_join": self_join,
            "host_points": isinstance(points, np.ndarray),
            "host_queries": isinstance(queries, np.ndarray),
            "query_dtype": inputs.name_of_dtype(queries),
        }
        if method == "kdtree":
            return plan_tree(n, len(queries), d, k, free_bytes=self._free(prepared_by), **given)
        if prepared_by is not None:
            given |= {name: getattr(prepared_by, name) for name in ("route", "shard", "point_slab")}
        if memory is None:
            small = _plan_within_spare(n, len(queries), d, k, **given)
            if small is not None:
                return small
        return plan_on_gpu(n, len(queries), d, k, free_bytes=self._free(prepared_by), **given)

    def threads_to_prepare(self, asked: int | None) -> int | None:
        return asked  # which is refused, whatever it is

    def plan_descent(self, points: Any, k: int, metric: str, **asked: Any) -> DescentPlan:
        check_one_device(self.devices)
        n, d = points.shape
        given: dict[str, Any] = {
            "dtype": inputs.name_of_dtype(points),
            "devices": self.devices,
            "host_points": isinstance(points, np.ndarray),
            "free_bytes": self._free(None),
        }
        return plan_descent(n, d, k, metric=metric, **given, **asked)

    def _free(self, prepared_by: Any) -> int:
        """Memory that can be had on each device, where what is held already can be had again."""
        free = free_memory(self.devices)
        if prepared_by is None or getattr(prepared_by, "route", "") == "streamed":
            return free
        return int(free + prepared_by.packed_bytes + prepared_by.copied_bytes)

    def check_plan(self, plan: Any, points: Any) -> None:
        made_for = plan.devices or ("cpu",)
        if made_for != self.devices:
            raise ValueError(
                f"the plan was made for {', '.join(made_for)}, but this search runs on {', '.join(self.devices)}"
            )
        if getattr(plan, "route", "") == "screened" and not isinstance(points, np.ndarray):
            raise ValueError(
                "the plan's route is 'screened', which refines from host memory: the points are on a device"
            )

    def prepare(self, points: Any, plan: Any, progress: ProgressLike) -> Any:
        if plan.method == "kdtree":
            return _tree().prepare(points, plan, progress)
        return run.prepare(points, plan, progress)

    def visits(self, queries: Any, prepared: Any, plan: TreePlan) -> MeanVisits:
        seen = _tree().probe(prepared, queries, plan)
        return MeanVisits(seen.leaves, seen.nodes, seen.points)

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
        if plan.method == "kdtree":
            found: Neighbors = _tree().search(queries, prepared, plan, self_join=self_join, progress=progress)
            return found
        return run.search(queries, prepared, plan, self_join=self_join, progress=progress, call=call)

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
        if plan.method == "kdtree":
            found: Neighbors = _tree().search_once(queries, points, plan, self_join=self_join, progress=progress)
            return found
        return run.search_once(queries, points, plan, self_join=self_join, progress=progress, call=call)

    def no_others(self, rows: Any, metric: str) -> Neighbors:
        if isinstance(rows, np.ndarray):
            on_cpu = CpuEngine()
            return on_cpu.no_others(on_cpu.rows(rows, "points", metric), metric)
        return no_others(rows, metric)

    def with_self(self, found: Neighbors, rows: Any, metric: str) -> Neighbors:
        if isinstance(rows, np.ndarray):
            return CpuEngine().with_self(found, rows, metric)
        return own.with_self(found, rows, metric)

    def steps(self, points: Any, plan: DescentPlan) -> Steps:
        from tonari.nn_descent.cuda.backend import GpuSteps

        return GpuSteps(to_device(points, plan.devices[0]), plan)

    def beside_steps(self, x: Any) -> Any:
        there = np.ascontiguousarray(x) if isinstance(x, np.ndarray) else inputs.as_tensor(x)
        return to_device(there, self.devices[0])


def _tree() -> Any:
    """The tree on CUDA, whose kernels are for those who use it."""
    from tonari.kdtree.cuda import dispatch as tree_run

    return tree_run
