"""From checked arrays to an answer: the plan's route is taken on the plan's devices.

A route is a pair of functions, each in a module of its own:

    prepare_x(points, plan, progress) -> what can be kept between searches
    search_x(queries, prepared, plan, *, self_join, progress) -> Neighbors, Report

``points`` and ``queries`` are NumPy arrays in host memory (C-contiguous) or tensors on CUDA (``stride(1) == 1``), of an
accepted dtype, their values not looked at: a route reads the flags of the kernels that pack them and refuses through
``inputs.check_flags``. With ``self_join`` the queries are the points, and row i leaves point i out. Results are NumPy
arrays or tensors, as a route has them. All work is ordered by the current stream of each device; the first device of
the plan is the current one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tonari import inputs
from tonari.core.neighbors import Neighbors
from tonari.core.progress import ProgressLike
from tonari.cuda.devices import on
from tonari.cuda.streams import synchronize
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.routes.host_refine import prepare_host_refine, search_host_refine
from tonari.exact.cuda.routes.multi_gpu import prepare_on_several, search_on_several
from tonari.exact.cuda.routes.resident import prepare_resident, search_resident
from tonari.exact.cuda.routes.streamed import prepare_streamed, search_streamed
from tonari.exact.report import Report

logger = logging.getLogger("tonari")


class Route(NamedTuple):
    """The two functions of a route."""

    prepare: Callable[[Any, CudaPlan, ProgressLike], Any]
    search: Callable[..., tuple[Neighbors, Report]]


# By the plan's route; "multi_gpu" where it names more than one device, each of which has the plan's route for its part.
ROUTES: dict[str, Route] = {
    "resident": Route(prepare_resident, search_resident),
    "streamed": Route(prepare_streamed, search_streamed),
    "host_refine": Route(prepare_host_refine, search_host_refine),
    "multi_gpu": Route(prepare_on_several, search_on_several),
}


def prepare(points: Any, plan: CudaPlan, progress: ProgressLike = None) -> Any:
    """Make points ready for searches as the plan says."""
    with on(plan.devices[0]):
        return _route(plan).prepare(points, plan, progress)


def search(
    queries: Any, prepared: Any, plan: CudaPlan, *, self_join: bool = False, progress: ProgressLike = None
) -> Neighbors:
    """Answer queries against points that were prepared by a plan of the same route.

    Returns
    -------
    Neighbors of shape (m, k)
        Beside the queries: NumPy arrays, or tensors on their device.
    """
    return _search(queries, prepared, plan, time.perf_counter(), self_join=self_join, progress=progress)


def search_once(
    queries: Any, points: Any, plan: CudaPlan, *, self_join: bool = False, progress: ProgressLike = None
) -> Neighbors:
    """Prepare points and answer queries against them, as :func:`prepare` and :func:`search` do."""
    started = time.perf_counter()
    prepared = prepare(points, plan, progress)
    return _search(queries, prepared, plan, started, self_join=self_join, progress=progress)


def _search(
    queries: Any, prepared: Any, plan: CudaPlan, started: float, *, self_join: bool, progress: ProgressLike
) -> Neighbors:
    """The search itself; what it logs counts from `started` until the devices are done."""
    with on(plan.devices[0]):
        found, report = _route(plan).search(queries, prepared, plan, self_join=self_join, progress=progress)
    if logger.isEnabledFor(logging.INFO):
        synchronize(plan.devices)
        report.seconds = time.perf_counter() - started
        logger.info("%s", report)
    host = isinstance(queries, np.ndarray)
    side = inputs.Side("numpy", None) if host else inputs.Side("torch", str(queries.device))
    return Neighbors(*(inputs.hand_back(part, side) for part in found))


def _route(plan: CudaPlan) -> Route:
    return ROUTES["multi_gpu" if len(plan.devices) > 1 else plan.route]
