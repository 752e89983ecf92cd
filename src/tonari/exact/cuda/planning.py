"""Make a plan (plan.py): derive every choice of a search from the problem and the machine."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

from tonari import inputs
from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.problem import Problem
from tonari.core.process.caches import cached
from tonari.costs.model import brute_seconds
from tonari.costs.rates import CARD
from tonari.cuda import tuning as cuda_tuning
from tonari.cuda.memory import available
from tonari.exact.cuda import tuning
from tonari.exact.cuda.divisions import default_width, fit, form_dim_of, least_of, points_at_home, ways_of
from tonari.exact.cuda.memory import LEAST_BATCH, MOST_POINTS, CudaNeeds, Slabs
from tonari.exact.cuda.plan import PILOT, CudaPlan
from tonari.exact.cuda.rows.codes import code_columns
from tonari.exact.cuda.rows.form_dim import is_pilot_due, largest_form_dim
from tonari.metrics import get_metric
from tonari.metrics.problem import refuse_metric

_KEPT = ("route", "shard", "point_slab", "form_dim")  # a plan for prepared points keeps these fields


def plan_on_cuda(
    problem: Problem, *, free_bytes: int | None = None, prepared_by: CudaPlan | None = None, **overrides: Any
) -> CudaPlan:
    """Plan brute force on CUDA; see :func:`tonari.plan`.

    Everything stays on the device ("resident") if it fits. Otherwise points, and queries if necessary, are copied from
    host memory slab by slab ("streamed"); slabs are chosen for the least expected time. "host_refine" is chosen if the
    packed copy fits, the original rows do not, and either contracted rows are requested or the queries are so few that
    refining on the CPU takes no longer than streaming all points once more. The second precision is left out if its
    packed copy does not fit.

    Several devices divide the points, or the queries if all points fit on each device and that is faster. A division of
    the queries merges no lists and refines each row once, but copies more points.

    Parameters
    ----------
    problem : Problem
    free_bytes : int, optional
        Free bytes on each device. Default: the driver is asked.
    prepared_by : CudaPlan, optional
        The plan by which the points were prepared; the memory of its prepared points counts as free.
    **overrides
        Fields listed in :data:`tonari.exact.plan.ON_CUDA`.

    Raises
    ------
    ValueError
        An override or the budget cannot work; the message says why.

    Examples
    --------
    >>> from tonari.metrics.problem import make_problem
    >>> problem = make_problem(10**6, 10**4, 128, 10, dtype="float32", metric="euclidean", devices=("cuda:0",))
    >>> made = plan_on_cuda(problem, free_bytes=80 * 10**9)
    >>> made.route, made.precisions, made.group, made.width
    ('resident', ('float16', 'split', 'values'), 32, 16)
    """
    why_not = refuse_metric(problem)
    if why_not is not None:
        raise Unsupported(why_not)
    route = overrides.get("route")
    if overrides.get("form_dim") == PILOT and route in ("host_refine", "codes"):
        raise Unsupported(
            f"form_dim='pilot': pilot rows choose for route='resident' only, got route={route!r}; name a number of "
            "coordinates, such as form_dim=64, or leave route out"
        )
    if route == "codes" and "form_dim" not in overrides:
        form_dim_of({"form_dim": code_columns(problem.d)[-1], "route": route}, problem)  # refuses metrics without codes
    if prepared_by is not None:
        problem = dataclasses.replace(problem, devices=prepared_by.devices, may_take_fewer=False)
    elif problem.may_take_fewer and len(problem.devices) > 1:
        return _plan_on_some(problem, free_bytes, overrides)
    usual = not overrides
    if prepared_by is not None:
        overrides = {name: getattr(prepared_by, name) for name in _KEPT} | overrides
    contracted = prepared_by is not None and prepared_by.form_dim == overrides["form_dim"] == PILOT
    if free_bytes is None and problem.memory is None and usual and not contracted:
        small = _plan_within_spare(problem, tuple(overrides.items()))
        if small is not None:
            return small
    budget = available(problem.devices, free_bytes)
    if free_bytes is None and usual and prepared_by is None:
        return _plan_usual(problem, rounded(budget))
    if prepared_by is not None and prepared_by.route != "streamed":
        budget += prepared_by.packed_bytes + prepared_by.copied_bytes
    if contracted and usual and free_bytes is None:
        return _plan_for_contracted(problem, rounded(budget), tuple(overrides.items()))
    if contracted:
        return _plan_route(problem, budget, overrides, usual=usual)
    return _plan_within(problem, budget, overrides, usual=usual)


def _plan_on_some(problem: Problem, free_bytes: int | None, overrides: dict[str, Any]) -> CudaPlan:
    """Return the plan with the least expected time among plans for one device, two devices, and so on.

    Of plans with equal times, the one for the fewest devices is returned."""
    plans, too_small = list[CudaPlan](), None
    for count in range(1, len(problem.devices) + 1):
        some = dataclasses.replace(problem, devices=problem.devices[:count], may_take_fewer=False)
        try:
            plans.append(plan_on_cuda(some, free_bytes=free_bytes, **overrides))
        except BudgetExceeded as error:
            too_small = error
    if not plans:
        assert too_small is not None
        raise too_small
    best = min(plans, key=lambda plan: plan.seconds)
    times = ", ".join(f"{plan.seconds:.3g} s on {len(plan.devices)}" for plan in plans)
    return dataclasses.replace(best, why_devices=f"{len(best.devices)} of {len(problem.devices)}: {times}")


def is_contracted_for(problem: Problem, searched: int) -> bool:
    """Whether a search is long enough for a pilot, which measures on a sample whether contracted points are faster.

    The number of queries must justify the pilot: the `searched` earlier queries together with the queries of the
    problem. The result is False for short searches, because a contracted search needs too many launches. The points in
    all dimensions stay in memory as well.
    """
    if len(problem.devices) > 1 or problem.memory is not None:
        return False
    long = brute_seconds(problem, "", 1) >= tuning.CONTRACTED_SECONDS
    return long and _may_contract(dataclasses.replace(problem, m=problem.m + searched), {})


@cached(maxsize=1024)
def _plan_within_spare(problem: Problem, overrides: tuple[tuple[str, Any], ...]) -> CudaPlan | None:
    """Return the plan of a resident search in one batch within the spare memory (tuning.SPARE); None if none fits."""
    try:
        plan = _plan_within(problem, cuda_tuning.SPARE, dict(overrides), usual=True)
    except BudgetExceeded:
        return None
    return plan if plan.route == "resident" and plan.query_batch >= problem.m else None


@cached(maxsize=1024)
def _plan_usual(problem: Problem, free: int) -> CudaPlan:
    """Return the plan of a search of unprepared points without overrides; plans of equal searches are cached."""
    return _plan_within(problem, free, {}, usual=True)


@cached(maxsize=1024)
def _plan_for_contracted(problem: Problem, free: int, overrides: tuple[tuple[str, Any], ...]) -> CudaPlan:
    """Return the plan of a search of contracted points; plans of equal searches are cached."""
    return _plan_route(problem, free, dict(overrides), usual=True)


def rounded(free: int) -> int:
    """Round free memory down to six significant bits, so that searches of equal sizes find the same cached plan.

    >>> rounded(127), rounded(128), rounded(131)
    (126, 128, 128)
    """
    last = max(0, free.bit_length() - 6)
    return free >> last << last


def _plan_within(problem: Problem, free: int, overrides: dict[str, Any], *, usual: bool) -> CudaPlan:
    """Plan a search that may contract rows, if that may save time and fits into memory, else one in all dimensions.

    `free` is the number of free bytes on each device; `usual` is True if the caller overrides nothing.
    """
    if overrides.get("form_dim", PILOT) == PILOT:
        if _may_contract(problem, overrides):
            with contextlib.suppress(BudgetExceeded):
                return _plan_route(problem, free, overrides | {"form_dim": PILOT}, usual=usual)
        overrides = overrides | {"form_dim": "full"}
    return _plan_route(problem, free, overrides, usual=usual)


def _may_contract(problem: Problem, overrides: dict[str, Any]) -> bool:
    """Whether a contraction may save more time than the pilot takes, which chooses its number of coordinates."""
    metric = get_metric(problem.metric)
    # 8-bit integers are exact in float16, but their contracted rows are not
    narrow = inputs.dtype_of(problem.dtype).kind in "iu"
    screened = (metric.squares or metric.angular) and not narrow and largest_form_dim(problem.d) > 0
    pilot = is_pilot_due(brute_seconds(problem, "", len(problem.devices)))
    n, m = problem.n, problem.m
    whole = overrides.get("point_slab", n) >= n and overrides.get("query_slab", m) >= m and n <= MOST_POINTS
    return screened and pilot and whole and overrides.get("route", "resident") == "resident"


def _may_be_bytes(problem: Problem, overrides: dict[str, Any]) -> bool:
    """Whether the search would use int8 for 8-bit integers; it would not if the caller chose the precisions."""
    is_set = "precisions" in overrides or overrides["form_dim"] not in (PILOT, "full")
    return get_metric(problem.metric).squares and problem.d > tuning.SPLIT_FIRST and not is_set


def _plan_route(problem: Problem, free: int, overrides: dict[str, Any], *, usual: bool) -> CudaPlan:
    """Choose the division among devices, the route, the slabs and the batch, and return the plan.

    `free` is the number of free bytes on each device; `usual` is True if the caller overrides nothing.
    """
    devices, asked = problem.devices, problem.memory
    budget = free if asked is None else min(asked, free)
    form_dim, shards = form_dim_of(overrides, problem), ways_of(problem, overrides)
    tile = min(LEAST_BATCH, overrides.get("query_batch", LEAST_BATCH))
    choices = [(shard, *fit(needs, budget, limits)) for shard, needs, limits in shards]
    shard, needs, slabs, batch = min(choices, key=lambda choice: (-min(choice[3], tile), choice[1].seconds(choice[2])))
    if batch == 0:
        where = (
            f"of {asked} bytes" if asked == budget else f"of {budget} bytes, which {' and '.join(devices)} can give,"
        )
        least = least_of(shards, overrides)
        raise BudgetExceeded(f"a memory budget {where} cannot hold this search; allow at least {least}", least=least)
    chosen = overrides["form_dim"] == PILOT  # all dimensions count, because the pilot may choose them
    screened = problem if chosen else dataclasses.replace(problem, d=needs.screened)
    width = needs.refined_groups(slabs)
    in_place = len(devices) > 1 or not (problem.host_points or problem.host_queries)
    captured = usual and not form_dim and asked is None and in_place and slabs.route == "resident"
    seconds = brute_seconds(screened, "", len(devices)) + needs.copying_seconds(slabs)
    seconds += CARD.further * (len(devices) - 1)
    alone = slabs.route == "resident" and not needs.several
    may_be_bytes = _may_be_bytes(problem, overrides)
    longer = {1, 1 if "query_batch" in overrides else tuning.MIRRORED_LONGER}
    for times in sorted(longer, reverse=True):
        room = budget - needs.total_bytes(slabs, times * batch)
        subsets = alone and problem.n >= tuning.LEAST_OF_SUBSETS and needs.subset_bytes() <= room
        slots = needs.mirrored_slots(slabs, times * batch, room - needs.subset_bytes() * subsets)
        if slots:
            batch *= times
            break
    working = needs.working_bytes(slabs, batch) + needs.subset_bytes() * subsets
    working += needs.mirrored_bytes(slots, batch)
    at_home = 0
    if shard == "points" and slabs.route == "resident":
        at_home, more = _points_at_home(problem, needs, batch, budget)
        working += more
    return CudaPlan(
        **problem.plan_fields(),
        method="exact",
        isa="",
        threads=0,
        route=slabs.route,
        shard=shard,
        precisions=needs.precisions,
        form_dim=PILOT if chosen else needs.form_dim or "full",
        group=needs.group,
        width=min(width, overrides.get("width", default_width(problem))),
        contracted_width=width if needs.form_dim else 0,
        query_batch=batch,
        query_slab=slabs.queries,
        point_slab=slabs.points,
        subsets=subsets,
        bytes_first=alone and seconds >= tuning.BYTES_SECONDS and may_be_bytes,
        # An int8 copy is smaller than the copy for "split", so it fits, too.
        bytes_later="split" in needs.precisions and may_be_bytes,
        mirrored_slots=slots,
        cuda_graph=captured and batch >= needs.m,
        packed_bytes=needs.packed_bytes(slabs, needs.precisions[0]),
        copied_bytes=needs.copied_bytes(slabs),
        working_bytes=working,
        output_bytes=needs.output_bytes(slabs),
        seconds=seconds,
        points_at_home=at_home,
        why_devices=f"{len(devices)}, as given" if len(devices) > 1 else "",
    )


def _points_at_home(problem: Problem, needs: CudaNeeds, batch: int, budget: int) -> tuple[int, int]:
    """Return the number of points assigned to the device that has all of them, and the extra bytes that this takes.

    Both are 0 if the points do not fit there.
    """
    count = points_at_home(dataclasses.replace(needs, n=problem.n), needs.devices)
    there = dataclasses.replace(needs, n=count, devices=1, results=problem.m, merged=True)
    if not count or (bytes_there := there.total_bytes(Slabs("resident", count, needs.m), batch)) > budget:
        return 0, 0
    return count, max(0, bytes_there - needs.total_bytes(Slabs("resident", needs.n, needs.m), batch))
