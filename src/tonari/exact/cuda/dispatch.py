"""Run the plan's route on the plan's devices.

Each route is a module with two functions:

    prepare_x(points, plan, progress) -> prepared points, which can be kept between searches
    search_x(queries, prepared, plan, *, self_join, progress) -> Neighbors, Report

``points`` and ``queries`` are NumPy arrays in host memory (C-contiguous) or tensors on CUDA (``stride(1) == 1``), of an
accepted dtype. Their values have not been checked: the kernels that pack rows set flags for invalid values, and a route
passes the flags to ``inputs.check_flags``, which raises the errors. With ``self_join`` the queries are the points, and
row i excludes point i. Results are NumPy arrays or tensors, depending on the route. All work is ordered by the current
stream of each device; the first device of the plan is the current one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tonari import inputs
from tonari.core.errors import Unsupported
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within
from tonari.core.trail import decided
from tonari.cuda.compiling.ahead import card_of, compile_ahead, expecting
from tonari.cuda.devices import on, to_device
from tonari.cuda.streams import synchronize
from tonari.exact.cuda import tuning
from tonari.exact.cuda.attempts.as_bytes import shift_of_both
from tonari.exact.cuda.attempts.contracted import ContractedPoints, contracted_points
from tonari.exact.cuda.attempts.first import DevicePoints
from tonari.exact.cuda.attempts.rehearse import can_rehearse, rehearse_preparation, rehearse_search
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.refine.candidate_parts import blocks_of_all
from tonari.exact.cuda.refine.within import parts_per_block, refine_within
from tonari.exact.cuda.routes.codes.search import prepare_codes, rehearse_codes, rehearse_coding, search_codes
from tonari.exact.cuda.routes.host_refine import prepare_host_refine, search_host_refine
from tonari.exact.cuda.routes.multi_gpu import prepare_on_several, search_on_several
from tonari.exact.cuda.routes.resident import prepare_resident, prepare_resident_once, search_resident
from tonari.exact.cuda.routes.streamed import prepare_streamed, search_streamed
from tonari.exact.cuda.routes.within import counting, finding, limits_on, within
from tonari.exact.cuda.rows.part import Place
from tonari.exact.report import Report

logger = logging.getLogger("tonari")


class Route(NamedTuple):
    """The two functions of a route."""

    prepare: Callable[[Any, CudaPlan, ProgressLike], Any]
    search: Callable[..., tuple[Neighbors, Report]]


# "multi_gpu" is for several devices: each of them searches its part by the plan's route.
ROUTES: dict[str, Route] = {
    "resident": Route(prepare_resident, search_resident),
    "streamed": Route(prepare_streamed, search_streamed),
    "host_refine": Route(prepare_host_refine, search_host_refine),
    "codes": Route(prepare_codes, search_codes),
    "multi_gpu": Route(prepare_on_several, search_on_several),
}


def prepare(points: Any, plan: CudaPlan, progress: ProgressLike = None) -> Any:
    """Prepare points for searches by the plan's route."""
    rehearse = rehearse_coding if plan.route == "codes" else rehearse_preparation
    with on(plan.devices[0]), expecting(functools.partial(rehearse, plan), progress):
        return _route(plan).prepare(points, plan, progress)


def contract_beside(prepared: Any, plan: CudaPlan, progress: ProgressLike = None) -> ContractedPoints | None:
    """Contract prepared points of one device to fewer columns for the screen; the result keeps `prepared`, too.

    Return None if a contraction is not worth its time for this plan and these points, or if the device runs out of
    memory.
    """
    import torch

    if plan.route != "resident" or plan.form_dim == "full" or not isinstance(prepared, DevicePoints):
        return None
    try:
        with on(plan.devices[0]), expecting(functools.partial(rehearse_preparation, plan), progress):
            return contracted_points(prepared.points, plan, beside=prepared)
    except torch.cuda.OutOfMemoryError as error:
        decided("columns", f"points stay in all dimensions: {error}")
        return None


def search(
    queries: Any, prepared: Any, plan: CudaPlan, *, self_join: bool = False, progress: ProgressLike = None
) -> Neighbors:
    """Search points that were prepared by a plan of the same route.

    Returns
    -------
    Neighbors of shape (m, k)
        NumPy arrays, or tensors on the device of the queries.
    """
    return _search(queries, prepared, plan, time.perf_counter(), self_join=self_join, progress=progress)


def search_once(
    queries: Any, points: Any, plan: CudaPlan, *, self_join: bool = False, progress: ProgressLike = None
) -> Neighbors:
    """Prepare points and search them, as :func:`prepare` and :func:`search` do."""
    started = time.perf_counter()
    with on(plan.devices[0]), _expecting(queries, plan, self_join, progress, points=points):
        prepared: Any
        if plan.looks_first:
            prepared = prepare_resident_once(points if self_join else queries, points, plan)
        elif len(plan.devices) > 1:
            prepared = prepare_on_several(points, plan, progress, once=True)
        else:
            prepared = _route(plan).prepare(points, plan, progress)
    return _search(queries, prepared, plan, started, self_join=self_join, progress=progress)


def _search(
    queries: Any, prepared: Any, plan: CudaPlan, started: float, *, self_join: bool, progress: ProgressLike
) -> Neighbors:
    """Search prepared points, and log a report; its duration includes the work of all devices."""
    if plan.why_devices:
        decided("devices", plan.why_devices)
    with on(plan.devices[0]), _expecting(queries, plan, self_join, progress, prepared):
        found, report = _route(plan).search(queries, prepared, plan, self_join=self_join, progress=progress)
    if logger.isEnabledFor(logging.INFO):
        synchronize(plan.devices)
        report.seconds = time.perf_counter() - started
        logger.info("%s", report)
    return Neighbors(*(inputs.hand_back(part, side_of(queries)) for part in found))


def warm(plan: CudaPlan, *, self_join: bool, progress: ProgressLike = None) -> int:
    """Compile the kernels that searches by a plan launch; see :func:`tonari.warm`."""
    if not can_rehearse(plan):
        raise Unsupported(
            f"kernels of route={plan.route!r} are compiled when they are needed: allow enough memory for another route"
        )
    # Later queries may be on the device, where searches for a few queries launch other kernels.
    there = dataclasses.replace(plan, cuda_graph=plan.route == "resident" and len(plan.devices) == 1)

    def stage() -> None:
        if plan.route == "codes":
            rehearse_coding(plan)
            rehearse_codes(plan, plan.dtype, self_join=self_join)
            return
        for each in (plan, there) if there.few else (plan,):
            rehearse_search(each, plan.dtype, self_join=self_join)

    with on(plan.devices[0]):
        return compile_ahead(stage, card_of(plan.devices[0]), progress=progress)


def find_within(request: Within, prepared: Any, plan: CudaPlan, progress: ProgressLike = None) -> RadiusNeighbors:
    """Find all points within each query's limit; see :meth:`tonari.core.method.SearchMethod.find_within`."""
    with on(plan.devices[0]):
        found = within(request.queries, prepared, plan, request.limits, finding(plan), Place.of(request), progress)
    return RadiusNeighbors(*(inputs.hand_back(part, side_of(request.queries)) for part in found))


def count_within(request: Within, prepared: Any, plan: CudaPlan, progress: ProgressLike = None) -> Any:
    """Count all points within each query's limit; see :meth:`tonari.core.method.SearchMethod.count_within`."""
    with on(plan.devices[0]):
        counts = within(request.queries, prepared, plan, request.limits, counting(), Place.of(request), progress)
    return inputs.hand_back(counts, side_of(request.queries))


def compares_all(plan: CudaPlan) -> bool:
    """Whether computing exact values of all points is faster than packing and screening them."""
    return plan.m * plan.n * (plan.d + tuning.OF_PAIR) <= tuning.OF_ATTEMPT


def count_by_values(request: Within, points: Any, plan: CudaPlan) -> Any:
    """Count the points within each query's limit, computing all exact values; the elements of rows are not checked."""
    place = plan.devices[0]
    with on(place):
        rows, base = to_device(request.queries, place), to_device(points, place)
        blocks = blocks_of_all(len(rows), len(base), parts_per_block(plan.metric), base.device)
        hits = refine_within(rows, base, blocks, limits_on(request.limits, base.device), plan.metric, listed=False)
    return inputs.hand_back(hits.counts, side_of(request.queries))


def side_of(queries: Any) -> inputs.Side:
    """Return the library and the device of the queries, and therefore of the results."""
    host = isinstance(queries, np.ndarray)
    return inputs.Side("numpy", None) if host else inputs.Side("torch", str(queries.device))


def _expecting(
    queries: Any, plan: CudaPlan, self_join: bool, progress: ProgressLike, prepared: Any = None, points: Any = None
) -> contextlib.AbstractContextManager[None]:
    """Return a context in which a search compiles all its missing kernels at once.

    If kernels are missing, unprepared points are first tested for integers of one byte, which need other kernels.
    """
    if not can_rehearse(plan):
        return contextlib.nullcontext()

    def stage() -> None:
        if plan.route == "codes":
            rehearse_coding(plan)
            rehearse_codes(plan, inputs.name_of_dtype(queries), self_join=self_join)
            return
        alone = prepared if plan.route == "resident" and len(plan.devices) == 1 else None
        looked_at = points is not None and plan.bytes_first
        shift = shift_of_both(points if self_join else queries, points) if looked_at else None
        rehearse_search(plan, inputs.name_of_dtype(queries), self_join=self_join, prepared=alone, shift=shift)

    return expecting(stage, progress)


def _route(plan: CudaPlan) -> Route:
    return ROUTES["multi_gpu" if len(plan.devices) > 1 else plan.route]
